//! Problems of a file that was read all the same.
//!
//! Broken input gives a value plus diagnostics, never an error: a memory with bad frontmatter is still a memory.

use std::fmt;

/// One problem, and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The line, from 1.
    pub line: usize,
    /// The problem.
    pub problem: FileProblem,
}

/// A problem of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileProblem {
    /// Bytes that are not UTF-8 were read as replacement characters.
    NotUtf8,
    /// The frontmatter is not YAML; it was read line by line.
    NotYaml(String),
    /// The frontmatter has no closing line; it was taken to end where `key: value` lines end.
    Unclosed,
    /// The frontmatter is too large; it was read line by line.
    Oversized(usize),
    /// The type is not one of the four, so the memory has none.
    UnknownType(String),
    /// The last day on which it holds is no date.
    UnknownDay(String),
    /// Only the beginning of the file was read.
    Cut {
        /// Bytes read.
        read: u64,
        /// Bytes in total.
        of: u64,
    },
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.problem)
    }
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotUtf8 => write!(f, "bytes that are not UTF-8"),
            Self::NotYaml(why) => write!(f, "the frontmatter is not YAML ({why}); it was read line by line"),
            Self::Unclosed => write!(f, "the frontmatter has no closing ---"),
            Self::Oversized(bytes) => write!(f, "the frontmatter has {bytes} bytes; it was read line by line"),
            Self::UnknownType(found) => {
                write!(f, "type {found:?} is none of user, feedback, project, reference")
            }
            Self::UnknownDay(found) => write!(f, "until {found:?} is no date such as 2026-11-30"),
            Self::Cut { read, of } => write!(f, "only the first {read} of {of} bytes were read"),
        }
    }
}
