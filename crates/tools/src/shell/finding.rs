//! What is found out about one simple command.

use super::field::Field;

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It only looks.
    ReadOnly,
    /// It is not known to only look.
    Unknown,
    /// It changes something.
    Writes,
}

/// A path that a command touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Touch {
    /// The path, as far as it is known.
    pub(crate) path: Field,
    pub(crate) how: How,
}

/// What is done with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// Looked at from outside: its name, its size, what a directory holds.
    Names,
    /// Gone to: what follows means something else where it cannot be.
    Entered,
    /// Read.
    Contents,
    /// Read, with everything below it; links are not followed on the way.
    Tree,
    /// Read, with everything below it and wherever links lead.
    Followed,
    /// Written.
    Written,
}

impl Touch {
    pub(super) fn read(path: Field, how: How) -> Self {
        Self { path, how }
    }
}

/// What is found out about one command.
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    pub(crate) verdict: Verdict,
    pub(crate) reason: String,
    pub(crate) touches: Vec<Touch>,
    /// Whether it depends on the configuration of a repository.
    pub(crate) repository: bool,
    /// Where it runs, if it changes the directory for itself (`git -C`).
    pub(crate) directory: Option<Field>,
    /// It prints names of files below these places, one a line, and nothing else.
    pub(crate) lists: Option<Vec<Field>>,
    /// It passes on lines of what it reads, unchanged.
    pub(crate) passes: bool,
    /// It prints a number and nothing else.
    pub(crate) counts: bool,
    /// It prints ids of commits and nothing else.
    pub(crate) commits: bool,
    /// Something is run in it that cannot be named.
    pub(crate) opaque: bool,
    /// It shows what is the user's and not the project's, and may hold keys.
    pub(crate) private: Option<String>,
}

impl Finding {
    fn new(verdict: Verdict, reason: String) -> Self {
        Self {
            verdict,
            reason,
            touches: Vec::new(),
            repository: false,
            directory: None,
            lists: None,
            passes: false,
            counts: false,
            commits: false,
            opaque: false,
            private: None,
        }
    }

    pub(super) fn read_only(reason: impl Into<String>) -> Self {
        Self::new(Verdict::ReadOnly, reason.into())
    }

    /// What it shows may hold keys.
    pub(super) fn showing(mut self, what: impl Into<String>) -> Self {
        self.private = Some(what.into());
        self
    }

    pub(super) fn unknown(reason: impl Into<String>) -> Self {
        Self::new(Verdict::Unknown, reason.into())
    }

    /// Something is run, and what is not known.
    pub(super) fn opaque(reason: impl Into<String>) -> Self {
        Self { opaque: true, ..Self::unknown(reason) }
    }

    pub(super) fn writes(reason: impl Into<String>) -> Self {
        Self::new(Verdict::Writes, reason.into())
    }
}
