//! Text that Cairn adds to a conversation, beside messages and tool results.
//!
//! Each text has a [`Purpose`], which determines its place, its tag and its size limit. The line in the log carries the
//! purpose, so that no added text is mistaken for someone's words. The tags are listed in one place, which is also
//! where text from outside is prevented from imitating them.

use serde::{Deserialize, Serialize};

use crate::block::Block;

/// Tag of text that the model should know and nobody said.
const REMINDER: &str = "system-reminder";

/// The enum of purposes, and a list of all.
macro_rules! purposes {
    ($($(#[$about:meta])* $purpose:ident,)*) => {
        /// Purpose of an added text.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Purpose { $($(#[$about])* $purpose,)* }

        impl Purpose {
            /// All purposes.
            pub const ALL: &[Self] = &[$(Self::$purpose),*];
        }
    };
}

purposes! {
    /// Instruction files, the index of memory, the date.
    Instructions,
    /// A memory relevant to the message or the work.
    Memory,
    /// Problems of the memory index.
    Index,
    /// Memories saved in the background.
    Learnt,
    /// A new day has begun.
    Day,
    /// Standing instructions of the user, word for word.
    Standing,
    /// A file that the user's message names.
    Attached,
    /// A file that was in view before a compaction.
    File,
    /// Files that changed since the model read them.
    ChangedFiles,
    /// The plan that the user has approved.
    Plan,
    /// The task list.
    Tasks,
    /// The agents that can be started.
    Agents,
    /// The skills that can be called.
    Skills,
    /// The text of a skill that was called.
    Skill,
    /// The tools of MCP servers, or their definitions.
    Servers,
    /// The user asks for an agent.
    Wanted,
    /// Output of a hook.
    Hook,
    /// Outcome of teammates.
    Teammates,
    /// The worktree changed.
    Worktree,
    /// The same call was repeated.
    Repeated,
    /// Outcome of an agent in the background.
    Report,
    /// A message from another agent or session.
    Message,
    /// A command that the user ran, with its output.
    Command,
    /// The user stopped the turn.
    Interrupted,
    /// The reply was cut off.
    CutOff,
    /// Tells the model to continue, and why.
    GoOn,
}

/// Place of an added text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedPlace {
    /// Beside the user's message.
    WithMessage,
    /// As its own message.
    Alone,
    /// At the end of a tool result.
    InResult,
}

impl Purpose {
    /// Place, tag and limit in bytes. Text that others wrote is cut earlier, with a note where the rest is; this limit
    /// is the last resort.
    const fn shape(self) -> (InjectedPlace, Option<&'static str>, usize) {
        use InjectedPlace::{Alone, InResult, WithMessage};
        match self {
            Self::Instructions => (WithMessage, Some(REMINDER), 2_000_000),
            Self::Memory | Self::Standing | Self::Tasks => (WithMessage, Some(REMINDER), 50_000),
            Self::Skill => (WithMessage, Some("skill"), 1_000_000),
            Self::Attached
            | Self::File
            | Self::Plan
            | Self::Agents
            | Self::Skills
            | Self::Servers
            | Self::Learnt
            | Self::Index => (WithMessage, Some(REMINDER), 500_000),
            Self::Hook | Self::Teammates => (WithMessage, Some(REMINDER), 200_000),
            Self::Day | Self::Wanted | Self::Worktree | Self::ChangedFiles => (WithMessage, Some(REMINDER), 10_000),
            Self::Repeated => (InResult, Some(REMINDER), 10_000),
            Self::Report => (Alone, Some("task-notification"), 1_000_000),
            Self::Message => (Alone, Some("agent-message"), 200_000),
            Self::Command => (Alone, None, 1_000_000),
            Self::Interrupted | Self::CutOff => (Alone, None, 10_000),
            Self::GoOn => (Alone, None, 200_000),
        }
    }

    /// True if its text may show what files, commands or others said, and not only what this program knows.
    pub const fn shows_others(self) -> bool {
        matches!(
            self,
            Self::Attached
                | Self::File
                | Self::ChangedFiles
                | Self::Command
                | Self::Hook
                | Self::Message
                | Self::Report
                | Self::Teammates
        )
    }

    /// Its place.
    pub const fn place(self) -> InjectedPlace {
        self.shape().0
    }

    /// Its tag, if it has one.
    pub const fn tag(self) -> Option<&'static str> {
        self.shape().1
    }

    /// Its limit in bytes.
    pub const fn limit(self) -> usize {
        self.shape().2
    }
}

/// A text added to a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injected {
    purpose: Purpose,
    text: String,
}

impl Injected {
    /// Wraps a text in the tag of its purpose.
    pub fn new(purpose: Purpose, text: &str) -> Self {
        let text = cut(text, purpose.limit());
        let text = match purpose.tag() {
            Some(tag) => format!("<{tag}>\n{text}\n</{tag}>"),
            None => text.into_owned(),
        };
        Self { purpose, text }
    }

    /// A text that already has its own frame: more than the tag, or inline.
    pub fn framed(purpose: Purpose, text: &str) -> Self {
        Self { purpose, text: cut(text, purpose.limit()).into_owned() }
    }

    /// Its purpose.
    pub fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// The text as the model sees it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text as a block.
    pub fn block(&self) -> Block {
        Block::text(&*self.text)
    }
}

fn cut(text: &str, most: usize) -> std::borrow::Cow<'_, str> {
    match text.len() <= most {
        true => text.into(),
        false => format!("{}\n[cut at {most} bytes]", &text[..text.floor_char_boundary(most)]).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Added text is framed by its tag and cut to its limit.
    #[test]
    fn a_text_is_framed_and_bounded() {
        assert_eq!(Injected::new(Purpose::Day, "Monday.").text(), "<system-reminder>\nMonday.\n</system-reminder>");
        assert_eq!(Injected::new(Purpose::CutOff, "Go on.").text(), "Go on.");
        for &purpose in Purpose::ALL {
            let long = "ä".repeat(purpose.limit());
            let text = Injected::new(purpose, &long).text().to_owned();
            assert!(text.len() < purpose.limit() + 100 && text.contains("[cut at "), "{purpose:?}");
            assert_eq!(text.ends_with('>'), purpose.tag().is_some(), "{purpose:?}");
        }
    }
}
