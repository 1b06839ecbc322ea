//! A skill as the text of a message: its placeholders filled in, its shell lines set apart for the caller to run.
//!
//! Everything is found once, in the text as it was written. Arguments and the output of commands are put in as they are and
//! never looked at again, so neither can name another placeholder or another command. Any text can be expanded.

mod arguments;

use crate::shell_lines::{Segment, segments};
use crate::skill::{Skill, SkillRights};
use arguments::substitute;
pub use arguments::{ExpandValues, fill_folders, split_arguments};

/// The most skills that one message can begin with.
pub const MOST_STACKED: usize = 6;

/// A skill that waits for the output of its commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpandPlan {
    pieces: Vec<PlanPiece>,
}

/// A part of a skill's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanPiece {
    /// Text, as it is sent.
    Text(String),
    /// A command whose output stands here.
    Command(String),
}

impl ExpandPlan {
    /// Fills in the text of a skill. Lines that run as commands stay text if the skill is not trusted with them.
    pub fn new(skill: &Skill, typed: &str, values: &ExpandValues<'_>) -> Self {
        let runs = matches!(skill.rights, SkillRights::Granted(_));
        let found = if runs { segments(&skill.body) } else { vec![Segment::Text(&skill.body)] };
        let words = split_arguments(typed);
        let mut is_used = false;
        let mut fill = |text: &str| substitute(text, typed, &words, &skill.arguments, values, &mut is_used);
        let mut pieces: Vec<PlanPiece> = found
            .into_iter()
            .map(|segment| match segment {
                Segment::Text(text) => PlanPiece::Text(fill(text)),
                Segment::Command(text) => PlanPiece::Command(fill(text)),
            })
            .collect();
        if !is_used && !typed.trim().is_empty() {
            pieces.push(PlanPiece::Text(format!("\n\nARGUMENTS: {typed}")));
        }
        Self { pieces }
    }

    /// Its parts, in order.
    pub fn pieces(&self) -> &[PlanPiece] {
        &self.pieces
    }

    /// The commands to run, in order. If one may not run or fails, nothing of the skill is sent.
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            PlanPiece::Command(command) => Some(command.as_str()),
            PlanPiece::Text(_) => None,
        })
    }

    /// The whole text, with the output of each command in its place. None unless there is one for each.
    pub fn text(&self, outputs: &[String]) -> Option<String> {
        let mut outputs = outputs.iter();
        let mut text = String::new();
        for piece in &self.pieces {
            text.push_str(match piece {
                PlanPiece::Text(text) => text,
                PlanPiece::Command(_) => outputs.next()?.trim_end_matches('\n'),
            });
        }
        outputs.next().is_none().then_some(text)
    }
}

/// The skills that a message begins with, up to [`MOST_STACKED`], and what follows them: the arguments of the last.
pub fn stacked(message: &str, is_callable: impl Fn(&str) -> bool) -> (Vec<&str>, &str) {
    let (mut names, mut rest) = (Vec::new(), message.trim_start());
    while names.len() < MOST_STACKED {
        let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let Some(name) = word.strip_prefix('/').filter(|name| is_callable(name)) else { break };
        names.push(name);
        rest = after.trim_start();
    }
    (names, rest)
}

#[cfg(test)]
mod tests;
