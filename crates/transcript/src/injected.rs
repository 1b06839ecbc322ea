//! Text that this program puts into a conversation, beside what people say and tools give.
//!
//! Each has a [`Purpose`], and the purpose says the rest: where it stands, the tag it is framed by, and how long it may be.
//! The line of the log carries the purpose, so that nothing that was put in is taken for what somebody said. The tags are
//! listed in one place, which is where text from outside is kept from imitating them.

use serde::{Deserialize, Serialize};

use crate::block::Block;

/// The frame of what a model is to know and nobody said.
const REMINDER: &str = "system-reminder";

/// The enum of purposes, and a list of all.
macro_rules! purposes {
    ($($(#[$about:meta])* $purpose:ident,)*) => {
        /// What a text is for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Purpose { $($(#[$about])* $purpose,)* }

        impl Purpose {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$purpose),*];
        }
    };
}

purposes! {
    /// Instruction files, the index of memory, the date.
    Instructions,
    /// A memory that bears on what is said or done.
    Memory,
    /// What is wrong with the index of memory.
    Index,
    /// Which memories were saved in the background.
    Learnt,
    /// A new day has begun.
    Day,
    /// What the user forbade or required, word for word.
    Standing,
    /// A file that was in view before a compaction.
    File,
    /// Files that are another than the model knows them.
    ChangedFiles,
    /// The plan that the user has approved.
    Plan,
    /// The task list.
    Tasks,
    /// The agents that can be sent out.
    Agents,
    /// The user wants an agent.
    Wanted,
    /// What a hook says.
    Hook,
    /// What became of teammates.
    Teammates,
    /// The worktree is another.
    Worktree,
    /// The same call was made again.
    Repeated,
    /// What became of an agent in the background.
    Report,
    /// A message from another agent or session.
    Message,
    /// A command that the user ran, and what it printed.
    Command,
    /// The user stopped the turn.
    Interrupted,
    /// The reply was cut off.
    CutOff,
    /// The model is to go on, and why.
    GoOn,
}

/// Where a text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedPlace {
    /// Beside what the user says.
    Beside,
    /// As a message of its own.
    Alone,
    /// At the end of a tool's result.
    InResult,
}

impl Purpose {
    /// Where it stands, the tag of its frame, and how long it may be, in bytes. What others wrote is cut before, with a word
    /// on where the rest is; this is the last resort.
    const fn shape(self) -> (InjectedPlace, Option<&'static str>, usize) {
        use InjectedPlace::{Alone, Beside, InResult};
        match self {
            Self::Instructions => (Beside, Some(REMINDER), 2_000_000),
            Self::Memory | Self::Standing | Self::Tasks => (Beside, Some(REMINDER), 50_000),
            Self::File | Self::Plan | Self::Agents | Self::Learnt | Self::Index => (Beside, Some(REMINDER), 500_000),
            Self::Hook | Self::Teammates => (Beside, Some(REMINDER), 200_000),
            Self::Day | Self::Wanted | Self::Worktree | Self::ChangedFiles => (Beside, Some(REMINDER), 10_000),
            Self::Repeated => (InResult, Some(REMINDER), 10_000),
            Self::Report => (Alone, Some("task-notification"), 1_000_000),
            Self::Message => (Alone, Some("agent-message"), 200_000),
            Self::Command => (Alone, None, 1_000_000),
            Self::Interrupted | Self::CutOff => (Alone, None, 10_000),
            Self::GoOn => (Alone, None, 200_000),
        }
    }

    /// Where it stands.
    pub const fn place(self) -> InjectedPlace {
        self.shape().0
    }

    /// The tag of its frame; none where it has none.
    pub const fn tag(self) -> Option<&'static str> {
        self.shape().1
    }

    /// How long it may be, in bytes.
    pub const fn limit(self) -> usize {
        self.shape().2
    }
}

/// A text that is put into a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injected {
    purpose: Purpose,
    text: String,
}

impl Injected {
    /// In the frame of its purpose.
    pub fn new(purpose: Purpose, text: &str) -> Self {
        let text = cut(text, purpose.limit());
        let text = match purpose.tag() {
            Some(tag) => format!("<{tag}>\n{text}\n</{tag}>"),
            None => text.into_owned(),
        };
        Self { purpose, text }
    }

    /// With a frame of its own, which names more than the tag, or stands in a line.
    pub fn framed(purpose: Purpose, text: &str) -> Self {
        Self { purpose, text: cut(text, purpose.limit()).into_owned() }
    }

    /// What it is for.
    pub fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// As the model sees it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same as a block.
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

    /// What is put in stands in its frame, no longer than it may be.
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
