//! Errors of this crate, by what the caller can do about them.

use std::fmt;
use std::path::PathBuf;

/// A failure of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk, or a path that leads out of the memory directory.
    #[error(transparent)]
    Files(#[from] files::Error),
    /// The requested place may not hold memory: choose another.
    #[error("memory cannot be kept in {path:?} (from {from}): {rule}")]
    Refused {
        /// The given path.
        path: String,
        /// The input it came from.
        from: &'static str,
        /// The rule it breaks.
        rule: PlaceRule,
    },
    /// A memory cannot have this file name: choose another.
    #[error("{name:?} cannot be a memory's file name: {why}")]
    BadName {
        /// The given name.
        name: String,
        /// The problem with it.
        why: &'static str,
    },
    /// There is no such memory.
    #[error("there is no memory {name:?} in {}", directory.display())]
    NoMemory {
        /// The given name.
        name: String,
        /// The directory that was searched.
        directory: PathBuf,
    },
    /// The text holds a secret: write where it is kept instead.
    #[error("{path} was not saved: line {line} holds what the rule {rule} knows as a secret")]
    Secret {
        /// The file it was meant for.
        path: String,
        /// The rule.
        rule: &'static str,
        /// The line.
        line: usize,
    },
    /// A memory says the same already: change that one.
    #[error("not saved: {by} says the same already")]
    Known {
        /// That memory.
        by: String,
    },
    /// The user removed or undid this: leave it.
    #[error("{path} was not saved: the user removed {removed}, which says the same, and does not want it back")]
    Forgotten {
        /// The file it was meant for.
        path: String,
        /// The removed memory.
        removed: String,
    },
    /// The text is not a valid memory: correct it.
    #[error("{path} was not saved: {why}")]
    Malformed {
        /// The file it was meant for.
        path: String,
        /// The problem, and the correct form.
        why: String,
    },
    /// The writer has not seen the current text: read it first.
    #[error("{path} exists, and its content was not read")]
    Unseen {
        /// The memory.
        path: String,
    },
    /// The file is not UTF-8, so it cannot be edited without losing bytes.
    #[error("{} is not UTF-8 text: it can be read, but not edited without losing bytes", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// A pattern in the settings or in a rule is not a glob.
    #[error("{pattern:?} is not a glob: {source}")]
    BadGlob {
        /// The pattern.
        pattern: String,
        /// The problem with it.
        source: globset::Error,
    },
}

/// Rule that a memory directory must not break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceRule {
    /// It does not start at the root.
    Relative,
    /// It is the file system's root.
    Root,
    /// It is directly below the root, such as `/tmp`.
    BelowRoot,
    /// It is the root of a drive, such as `C:\`.
    DriveRoot,
    /// It is on another machine, such as `\\server\share`.
    Unc,
    /// It holds a NUL byte.
    Nul,
    /// It is the home directory itself: everything in it would become memory.
    Home,
}

impl fmt::Display for PlaceRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Relative => "it is a relative path; give an absolute one",
            Self::Root => "it is the root of the file system",
            Self::BelowRoot => "it is directly below the root; choose a directory at least two levels deep",
            Self::DriveRoot => "it is the root of a drive",
            Self::Unc => "it is a network (UNC) path",
            Self::Nul => "it holds a NUL byte",
            Self::Home => "it is the home directory itself",
        })
    }
}
