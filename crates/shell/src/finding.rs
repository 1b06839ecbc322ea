//! Findings about one simple command.

/// Effect of a command, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandEffect {
    /// It only reads: plain words, a known program, known options.
    ReadOnly,
    /// It consists of programs that read. Only the kernel can ensure that it does nothing else.
    Confined,
    /// Unknown.
    Unknown,
    /// It changes something.
    Writes,
}

/// The files that a command reads, by its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilesRead {
    /// None: its words are text.
    Nothing,
    /// Only names, sizes and dates.
    Names,
    /// The contents of the files it names.
    Files,
    /// The contents of the files it names and of all below the directories, links not followed.
    Trees,
    /// Any file.
    Anything,
}

/// Findings about one command.
#[derive(Debug, Clone)]
pub struct CommandFinding {
    /// Its effect.
    pub verdict: CommandEffect,
    /// The reason in words.
    pub reason: String,
    /// The files it reads.
    pub reads: FilesRead,
    /// True if it runs something that cannot be named.
    pub opaque: bool,
    /// The user's private data that it prints, which may contain keys.
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

    /// A finding about a command that runs something unknown.
    pub(crate) fn opaque(reason: impl Into<String>) -> Self {
        Self { opaque: true, ..Self::unknown(reason) }
    }

    pub(crate) fn writes(reason: impl Into<String>) -> Self {
        Self::new(CommandEffect::Writes, reason.into())
    }

    /// Adds that its output may contain keys.
    pub(crate) fn showing(mut self, what: impl Into<String>) -> Self {
        self.private = Some(what.into());
        self
    }
}
