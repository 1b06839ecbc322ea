//! The turns of a session, and which of them were learnt from: a fold over the lines of its log.
//!
//! A turn begins with the user's words and lasts until the model answers without a call; what the user adds before that
//! belongs to it, unless it comes so much later that it is about something else. Its id is that of the line of its
//! first words. The log says of each turn whether it is covered: a run that finished was about it, or a rule passed it
//! over. What was said in private, or in another file, is in no turn. Compaction changes nothing here: the log has
//! every word.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use jiff::SignedDuration;
use transcript::block::Kind;
use transcript::line::{Body, TextSource};
use transcript::{Block, Id, Log};

use super::note::Note;

/// Number of runs about a turn that may fail; then it is left for the user.
pub(crate) const TRIES: u32 = 3;

/// Time after which the user's words begin a turn of their own: they do not continue an unanswered one, and are learnt
/// from in a separate run, since something else may have been said elsewhere in between.
pub(crate) const LATER: SignedDuration = SignedDuration::from_hours(1);

/// A turn, by its place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoggedTurn {
    /// The line of the user's first words.
    pub(crate) id: Id,
    /// Its lines.
    pub(crate) lines: Range<usize>,
    is_answered: bool,
    is_private: bool,
}

/// The turns of a log, as far as it was read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turns {
    turns: Vec<LoggedTurn>,
    covered: HashSet<Id>,
    failures: HashMap<Id, u32>,
    /// Number of lines read.
    read: usize,
    /// End of the newest turn: lines between two turns belong to the later one.
    end: usize,
    is_private: bool,
    learns: bool,
}

impl Turns {
    /// The turns of a log.
    pub(crate) fn of(log: &Log) -> Self {
        let mut turns = Self::default();
        turns.follow(log);
        turns
    }

    /// Reads what was added to the log.
    pub(crate) fn follow(&mut self, log: &Log) {
        for index in self.read..log.lines().len() {
            self.fold(log, index);
        }
        self.read = log.lines().len();
    }

    /// True if the session is private now.
    pub(crate) fn is_private(&self) -> bool {
        self.is_private
    }

    /// True if the session is learnt from.
    pub(crate) fn learns(&self) -> bool {
        self.learns
    }

    /// The turns that wait to be learnt from, in order.
    pub(crate) fn waiting(&self, log: &Log) -> Vec<LoggedTurn> {
        self.uncovered(log).filter(|turn| !self.is_given_up(turn)).cloned().collect()
    }

    /// The turns whose runs all failed.
    pub(crate) fn given_up(&self, log: &Log) -> Vec<LoggedTurn> {
        self.uncovered(log).filter(|turn| self.is_given_up(turn)).cloned().collect()
    }

    /// Up to `most` turns before a turn that may be shown with it.
    pub(crate) fn before<'a>(&'a self, log: &'a Log, turn: &LoggedTurn, most: usize) -> Vec<&'a LoggedTurn> {
        let at = self.turns.iter().position(|other| other.id == turn.id).unwrap_or_default();
        let mut before: Vec<&LoggedTurn> =
            self.turns[..at].iter().rev().filter(|turn| is_usable(turn, log)).take(most).collect();
        before.reverse();
        before
    }

    /// True if every turn so far may be shown to a model: nothing was private, and nothing is from elsewhere.
    pub(crate) fn all_usable(&self) -> bool {
        self.turns.iter().all(|turn| !turn.is_private)
    }

    /// The newest turn.
    pub(crate) fn last(&self) -> Option<&LoggedTurn> {
        self.turns.last()
    }

    fn is_given_up(&self, turn: &LoggedTurn) -> bool {
        self.failures.get(&turn.id).is_some_and(|failures| *failures >= TRIES)
    }

    fn uncovered<'a>(&'a self, log: &'a Log) -> impl Iterator<Item = &'a LoggedTurn> {
        let open = self.turns.iter().filter(|turn| !self.covered.contains(&turn.id));
        open.filter(|turn| is_usable(turn, log))
    }

    fn fold(&mut self, log: &Log, index: usize) {
        let line = &log.lines()[index];
        if line.sidechain {
            return;
        }
        match &line.body {
            Body::Meta(_) => self.note(log, index),
            Body::User { blocks, source: TextSource::Direct } if blocks.iter().any(is_result) => {
                self.goes_on(index, false);
            }
            Body::User { blocks, source: TextSource::Direct } if blocks.iter().any(is_text) => {
                self.add_message(log, index);
            }
            Body::Assistant { blocks, .. } => self.goes_on(index, !blocks.iter().any(is_call)),
            _ => {}
        }
    }

    fn add_message(&mut self, log: &Log, index: usize) {
        let Some(id) = &log.lines()[index].id else { return };
        let time = |line: usize| log.lines().get(line)?.time;
        if let Some(turn) = self.turns.last_mut()
            && let (Some(last), Some(now)) = (time(turn.lines.end - 1), time(index))
            && now.duration_since(last) >= LATER
        {
            turn.is_answered = true; // nobody will
        }
        let is_over = |turn: &LoggedTurn| turn.is_answered || log.view().is_taken_back(&turn.id);
        if self.turns.last().is_none_or(is_over) {
            let (lines, is_private) = (self.end..index, self.is_private);
            self.turns.push(LoggedTurn { id: id.clone(), lines, is_answered: false, is_private });
        }
        self.goes_on(index, false);
    }

    /// Extends the newest turn by a line. One that was learnt from stays answered: lines without the user's words are
    /// no reason to learn from it again.
    fn goes_on(&mut self, index: usize, answers: bool) {
        let Some(turn) = self.turns.last_mut() else { return };
        turn.lines.end = index + 1;
        turn.is_answered = answers || self.covered.contains(&turn.id);
        turn.is_private |= self.is_private;
        self.end = index + 1;
    }

    fn note(&mut self, log: &Log, index: usize) {
        match Note::of(&log.lines()[index]) {
            Some(Note::Private { on }) => self.is_private = on,
            Some(Note::Learns) => self.learns = true,
            Some(Note::Continued) => {
                self.turns.clear();
                self.end = index + 1;
            }
            Some(Note::Extracted { turns, covers, .. }) => {
                self.covered.extend(turns);
                let to =
                    covers.and_then(|id| log.lines()[..index].iter().rposition(|line| line.id.as_ref() == Some(&id)));
                let older = self.turns.iter().filter(|turn| to.is_some_and(|to| turn.lines.start <= to));
                self.covered.extend(older.map(|turn| turn.id.clone()));
            }
            Some(Note::ExtractFailed { turns, .. }) => {
                turns.into_iter().for_each(|turn| *self.failures.entry(turn).or_default() += 1);
            }
            None => {}
        }
    }
}

/// True if a turn was answered, is not private, and was not taken back.
fn is_usable(turn: &LoggedTurn, log: &Log) -> bool {
    turn.is_answered && !turn.is_private && !log.view().is_taken_back(&turn.id)
}

fn is_text(block: &Block) -> bool {
    *block.kind() == Kind::Text
}

fn is_result(block: &Block) -> bool {
    matches!(block.kind(), Kind::ToolResult { .. })
}

fn is_call(block: &Block) -> bool {
    matches!(block.kind(), Kind::ToolUse { .. })
}
