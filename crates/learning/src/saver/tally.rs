//! What an agent may write, and what it did.

use serde::{Deserialize, Serialize};

use super::TEAM;

/// How much an agent may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes in all.
    pub bytes: usize,
    /// Memories that are made or changed.
    pub files: usize,
    /// Memories that are removed.
    pub removed: usize,
}

impl Limits {
    /// No limits, for work that somebody watches.
    pub const NONE: Self = Self { bytes: usize::MAX, files: usize::MAX, removed: usize::MAX };
}

/// What an agent did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Calls that were refused.
    pub denied: u32,
    /// Those of them that would have written.
    pub denied_writes: u32,
    /// Memories that were made or changed, each once.
    pub saved: Vec<String>,
    /// Memories that were removed.
    pub removed: Vec<String>,
    /// Why, where that was said.
    pub removals: Vec<Removal>,
    /// How many bytes were written.
    pub bytes: usize,
}

impl Tally {
    /// How many memories were made or changed, and how many of them are shared with the team.
    pub fn counted(&self) -> (usize, usize) {
        (self.saved.len(), self.saved.iter().filter(|path| path.starts_with(TEAM)).count())
    }
}

/// A memory that was removed, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Removal {
    /// The memory.
    pub path: String,
    /// The memory that says now what it said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<String>,
    /// Why it went.
    pub reason: String,
}
