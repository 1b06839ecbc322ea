//! Problems with the files of an extension. Each names its file and line; none stops a session.

use std::fmt;
use std::path::{Path, PathBuf};

use settings::Weight;

/// A problem with a file of a skill, a command or a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionTrouble {
    /// The file or folder.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The problem, and what follows from it.
    pub what: String,
    /// An error means that something was left out; a warning, that one value does not count.
    pub weight: Weight,
}

impl ExtensionTrouble {
    /// One by which something was left out.
    pub fn error(file: &Path, line: usize, what: impl Into<String>) -> Self {
        Self { weight: Weight::Error, ..Self::warning(file, line, what) }
    }

    /// One by which a value does not count.
    pub fn warning(file: &Path, line: usize, what: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, what: what.into(), weight: Weight::Warning }
    }
}

impl fmt::Display for ExtensionTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.what)
    }
}
