//! What a run did, and why one ended early.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, RequestTrouble};
use crate::key::EntryKey;
use crate::protocol::OverwrittenText;

/// What a run did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SyncReport {
    /// Taken from the server.
    pub taken: BTreeSet<EntryKey>,
    /// Removed here.
    pub removed: BTreeSet<EntryKey>,
    /// Sent to the server.
    pub sent: BTreeSet<EntryKey>,
    /// Deleted there.
    pub deleted: BTreeSet<EntryKey>,
    /// Changed on both sides.
    pub conflicts: BTreeSet<EntryKey>,
    /// Missing here, and neither deleted there nor brought back until somebody says so.
    pub held: BTreeSet<EntryKey>,
    /// Texts of this member that others replaced without having seen them.
    pub overwritten: Vec<OverwrittenText>,
    /// Files that are not shared, and why.
    pub left: BTreeMap<String, String>,
    /// Files that the server does not take, and why.
    pub not_sent: BTreeMap<EntryKey, String>,
    /// What the server sent and was not taken, and why.
    pub refused: BTreeMap<String, String>,
    /// What could not be written or removed here, and why.
    pub not_written: BTreeMap<EntryKey, String>,
    /// The most entries the server keeps, where that is why something was not sent.
    pub limit: Option<u64>,
    /// What was changed here by others.
    pub changes: Vec<RemoteChange>,
}

/// What was changed here by somebody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteChange {
    /// The entry.
    pub key: EntryKey,
    /// The text here before, if there was one.
    pub before: Option<String>,
    /// The text now, if there is one.
    pub after: Option<String>,
    /// Who wrote it, where the server says.
    pub author: Option<String>,
}

impl SyncReport {
    /// Whether nothing was done, and there is nothing that somebody has to know.
    pub fn is_empty(&self) -> bool {
        let sets = [&self.taken, &self.removed, &self.sent, &self.deleted, &self.conflicts];
        sets.iter().all(|keys| keys.is_empty()) && self.overwritten.is_empty()
    }

    /// What could not be brought in step in this run, by name, and why.
    pub fn kept_back(&self) -> BTreeMap<String, String> {
        let not_sent = self.not_sent.iter().map(|(key, why)| (key.to_string(), format!("not sent: {why}")));
        let not_written = self.not_written.iter().map(|(key, why)| (key.to_string(), format!("not taken: {why}")));
        let refused = self.refused.iter().map(|(name, why)| (name.clone(), format!("not taken: {why}")));
        not_sent.chain(not_written).chain(refused).collect()
    }
}

/// Why a run ended early. Nothing is lost by that: it can simply be run again.
#[derive(Debug, thiserror::Error)]
pub enum EarlyEnd {
    /// The server.
    #[error(transparent)]
    Server(#[from] RequestTrouble),
    /// This machine.
    #[error(transparent)]
    Here(#[from] Error),
    /// Another run is under way in this folder, and did not end in time.
    #[error("another program brings this folder in step: process {by}; try again when it has ended")]
    Busy {
        /// The process.
        by: String,
    },
}
