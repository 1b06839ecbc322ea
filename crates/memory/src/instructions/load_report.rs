//! Loaded files with reasons, and problems: for hooks, for commands and for people.

use std::fmt;
use std::path::PathBuf;

use super::{DEEPEST_INCLUDE, LONG_FILE, MOST_BYTES, MOST_FILES};

/// Owner of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The organisation's.
    Managed,
    /// The user's, for all projects.
    User,
    /// The project's, for all who work on it.
    Project,
    /// The user's, for this project.
    Local,
    /// The memory index.
    AutoMem,
    /// The index of team memory.
    TeamMem,
}

/// Reason why a file was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The session began.
    SessionStart,
    /// Its directory was read.
    NestedTraversal,
    /// A file that matches its rule was touched.
    PathGlobMatch,
    /// Another file includes it.
    Include,
    /// The context was compacted.
    Compact,
}

/// A file that was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedInstruction {
    /// Its path.
    pub path: PathBuf,
    /// Its owner (`memory_type` for hooks).
    pub owner: Owner,
    /// Reason why it was loaded.
    pub reason: Reason,
    /// The file that includes it.
    pub parent: Option<PathBuf>,
    /// The patterns of a rule.
    pub globs: Vec<String>,
    /// The text, without frontmatter and comments.
    pub text: String,
    /// Size of the file, in bytes.
    pub size: u64,
}

/// A problem with an instruction file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The file, or the pattern.
    pub path: PathBuf,
    /// The file that asked for it.
    pub parent: Option<PathBuf>,
    /// The problem.
    pub what: InstructionFault,
}

/// Kind of problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstructionFault {
    /// An included file does not exist.
    Missing,
    /// Includes are nested too deep.
    TooDeep,
    /// An included file is not text.
    NotText,
    /// It cannot be read: a device, a pipe, too large, not permitted.
    Unreadable(String),
    /// It is long. It was loaded.
    Long(usize),
    /// It leads to this file outside the project, to which the user has not agreed.
    Outside(PathBuf),
    /// It is above the project, and another user put it there.
    OfAnother,
    /// A pattern is not a glob.
    BadGlob(String),
    /// There are too many files.
    TooMany,
}

impl Owner {
    /// Its name for hooks.
    pub fn name(self) -> &'static str {
        match self {
            Self::Managed => "Managed",
            Self::User => "User",
            Self::Project => "Project",
            Self::Local => "Local",
            Self::AutoMem => "AutoMem",
            Self::TeamMem => "TeamMem",
        }
    }
}

impl Reason {
    /// Its name for hooks.
    pub fn name(self) -> &'static str {
        match self {
            Self::SessionStart => "session_start",
            Self::NestedTraversal => "nested_traversal",
            Self::PathGlobMatch => "path_glob_match",
            Self::Include => "include",
            Self::Compact => "compact",
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match &self.what {
            InstructionFault::Missing => write!(f, "does not exist, skipped")?,
            InstructionFault::TooDeep => write!(f, "included more than {DEEPEST_INCLUDE} levels deep, skipped")?,
            InstructionFault::NotText => write!(f, "is not text, skipped")?,
            InstructionFault::Unreadable(why) => write!(f, "skipped: {why}")?,
            InstructionFault::Long(length) => write!(
                f,
                "has {length} characters (over {LONG_FILE}), and every request carries them: shorten it, or move parts into \
                 rules for some files"
            )?,
            InstructionFault::Outside(real) if *real == self.path => write!(f, "is outside the project, skipped")?,
            InstructionFault::Outside(real) => write!(f, "leads to {}, outside the project, skipped", real.display())?,
            InstructionFault::OfAnother => write!(f, "belongs to another user of this machine, skipped")?,
            InstructionFault::BadGlob(why) => write!(f, "is not a valid glob: {why}")?,
            InstructionFault::TooMany => {
                write!(f, "more than {MOST_FILES} files or {MOST_BYTES} bytes, the rest is skipped")?;
            }
        }
        match &self.parent {
            Some(parent) => write!(f, " (from {})", parent.display()),
            None => Ok(()),
        }
    }
}
