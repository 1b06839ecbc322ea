//! Limits of an agent's writing, and a tally of what it did.

use super::{Removal, TEAM};

/// Limits of an agent's writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavingLimits {
    /// Bytes in all.
    pub bytes: usize,
    /// Memories that are created or changed.
    pub files: usize,
    /// Memories that are removed.
    pub removed: usize,
}

impl SavingLimits {
    /// No limits, for work that somebody watches.
    pub const NONE: Self = Self { bytes: usize::MAX, files: usize::MAX, removed: usize::MAX };
}

/// Tally of an agent's work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Calls that were refused.
    pub denied: u32,
    /// Those of them that would have written.
    pub denied_writes: u32,
    /// Memories that were created or changed, each once.
    pub saved: Vec<String>,
    /// Memories that were removed.
    pub removed: Vec<String>,
    /// Removals with a reason.
    pub removals: Vec<Removal>,
    /// Bytes written.
    pub bytes: usize,
}

impl Tally {
    /// Number of memories created or changed, and number of them shared with the team.
    pub fn counted(&self) -> (usize, usize) {
        (self.saved.len(), self.saved.iter().filter(|path| path.starts_with(TEAM)).count())
    }
}
