//! Report of a run, and the reasons for which one ends early.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, RequestTrouble};
use crate::key::EntryKey;
use crate::protocol::OverwrittenText;

/// Report of a run.
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
    /// Missing here, and neither deleted on the server nor restored until somebody decides.
    pub held: BTreeSet<EntryKey>,
    /// Texts of this member that others replaced without having seen them.
    pub overwritten: Vec<OverwrittenText>,
    /// Files that are not shared, and why.
    pub left: BTreeMap<String, String>,
    /// Files that the server does not take, and why.
    pub not_sent: BTreeMap<EntryKey, String>,
    /// Entries from the server that were not taken, and why.
    pub refused: BTreeMap<String, String>,
    /// Entries that could not be written or removed here, and why.
    pub not_written: BTreeMap<EntryKey, String>,
    /// The server's limit on entries, if that is why something was not sent.
    pub limit: Option<u64>,
    /// Changes that others made.
    pub changes: Vec<RemoteChange>,
}

/// A change here that somebody else made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteChange {
    /// The entry.
    pub key: EntryKey,
    /// The text here before, if there was one.
    pub before: Option<String>,
    /// The text now, if there is one.
    pub after: Option<String>,
    /// Its author, if the server says.
    pub author: Option<String>,
}

impl SyncReport {
    /// True if nothing was done, and there is nothing that somebody has to know.
    pub fn is_empty(&self) -> bool {
        let sets = [&self.taken, &self.removed, &self.sent, &self.deleted, &self.conflicts];
        sets.iter().all(|keys| keys.is_empty()) && self.overwritten.is_empty()
    }

    /// Entries that could not be synchronised in this run, by name, and why.
    pub fn kept_back(&self) -> BTreeMap<String, String> {
        let not_sent = self.not_sent.iter().map(|(key, why)| (key.to_string(), format!("not sent: {why}")));
        let not_written = self.not_written.iter().map(|(key, why)| (key.to_string(), format!("not taken: {why}")));
        let refused = self.refused.iter().map(|(name, why)| (name.clone(), format!("not taken: {why}")));
        not_sent.chain(not_written).chain(refused).collect()
    }
}

/// Reason a run ended early. Nothing is lost: it can simply be run again.
#[derive(Debug, thiserror::Error)]
pub enum EarlyEnd {
    /// An error of the server.
    #[error(transparent)]
    Server(#[from] RequestTrouble),
    /// An error of this machine.
    #[error(transparent)]
    Here(#[from] Error),
    /// Another run is under way in this folder, and did not end in time.
    #[error("another program is synchronising this folder: process {by}; try again when it has ended")]
    Busy {
        /// The process.
        by: String,
    },
}
