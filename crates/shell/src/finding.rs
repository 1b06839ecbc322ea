//! What is found out about one simple command.

/// What a command does, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandEffect {
    /// It only looks: plain words, a known program, known options.
    ReadOnly,
    /// It is made of programs that look. That it does nothing else, only the kernel can promise.
    Confined,
    /// Neither is known.
    Unknown,
    /// It changes something.
    Writes,
}

/// The files that a command reads, by its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilesRead {
    /// None: its words are text.
    Nothing,
    /// Names, sizes, dates.
    Names,
    /// The contents of the files it names.
    Files,
    /// The contents of the files it names and of all below the directories, links not followed.
    Trees,
    /// Whatever it likes.
    Anything,
}

/// What is found out about one command.
#[derive(Debug, Clone)]
pub struct CommandFinding {
    /// Its effect.
    pub verdict: CommandEffect,
    /// Why it is thought so, in words.
    pub reason: String,
    /// The files it reads.
    pub reads: FilesRead,
    /// Something is run in it that cannot be named.
    pub opaque: bool,
    /// What it shows that is the user's and not the project's, and may hold keys.
    pub private: Option<String>,
}

impl CommandFinding {
    fn new(verdict: CommandEffect, reason: String) -> Self {
        Self { verdict, reason, reads: FilesRead::Anything, opaque: false, private: None }
    }

    pub(crate) fn confined(reason: impl Into<String>) -> Self {
        Self::new(CommandEffect::Confined, reason.into())
    }

    pub(crate) fn unknown(reason: impl Into<String>) -> Self {
        Self::new(CommandEffect::Unknown, reason.into())
    }

    /// Something is run, and what is not known.
    pub(crate) fn opaque(reason: impl Into<String>) -> Self {
        Self { opaque: true, ..Self::unknown(reason) }
    }

    pub(crate) fn writes(reason: impl Into<String>) -> Self {
        Self::new(CommandEffect::Writes, reason.into())
    }

    /// What it shows may hold keys.
    pub(crate) fn showing(mut self, what: impl Into<String>) -> Self {
        self.private = Some(what.into());
        self
    }
}
