//! What an agent may write, and what it did.

use super::{Removal, TEAM};

/// How much an agent may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavingLimits {
    /// Bytes in all.
    pub bytes: usize,
    /// Memories that are made or changed.
    pub files: usize,
    /// Memories that are removed.
    pub removed: usize,
}

impl SavingLimits {
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
