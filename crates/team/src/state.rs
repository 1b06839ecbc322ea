//! Agreed state of a folder and its server, kept on the member's disk between two runs.
//!
//! It is kept by repository and folder, not by the server's address: a server that moved is the same team. Intended
//! changes to the folder are written down before the first file changes ([`SyncState::underway`]), so that after a run
//! was cut off at any point nothing that was only taken counts as an edit; so are texts about to be sent, so that the
//! server's history is asked whether they arrived.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::checksum::{self, Checksums};
use crate::error::Error;
use crate::folder::Listing;
use crate::key::EntryKey;
use crate::protocol::{Author, RepositoryContent, Snapshot};

/// Size limit of the file: ten times what a repository at its limits needs.
const STATE_BYTES: u64 = 10_000_000;
/// Number of earlier texts of an entry that are remembered, by checksum: a restored server seldom goes back further.
const PAST: usize = 8;

/// Changes being made to a folder: the checksum of a text, or none if the file is being removed.
pub type PendingText = BTreeMap<EntryKey, Option<String>>;

/// State remembered between two runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SyncState {
    /// True once a run has finished: before that, a file here says nothing about what its owner has seen.
    pub met: bool,
    /// The mark of the folder that it was in.
    pub mark: Option<String>,
    /// Checksum of the server's text that each file here was made from: the last one taken or sent.
    pub entries: Checksums,
    /// Checksums of the earlier texts of each entry, the newest last.
    pub past: BTreeMap<EntryKey, Vec<String>>,
    /// Changes being made to the folder.
    pub underway: PendingText,
    /// Texts being sent: a run that is cut off before the answer does not know whether they arrived.
    pub sending: Checksums,
    /// Files missing here that are too many to be deleted for all without a question, which nobody has answered yet.
    pub held: BTreeSet<EntryKey>,
    /// The server's entries when it was last read.
    pub server: Checksums,
    /// The server's deleted entries at that time, of those that were ever here.
    pub deleted: BTreeSet<EntryKey>,
    /// The server's version at that time.
    pub version: u64,
    /// The server's state at that time; none if it is known to have changed since.
    pub checksum: Option<String>,
    /// Author and time of each entry.
    pub authors: BTreeMap<EntryKey, Author>,
    /// The version up to which this member was told of overwritten texts.
    pub told: Option<u64>,
    /// The server's limit on entries, once it has named one.
    pub most: Option<u64>,
}

impl SyncState {
    /// Reads the state. A file that cannot be parsed or is too large counts as none: then the server's history says
    /// which files are old.
    pub fn read(path: &Path) -> Result<Self, Error> {
        match files::read(path, STATE_BYTES) {
            Ok(snapshot) => Ok(serde_json::from_slice(&snapshot.bytes).unwrap_or_default()),
            Err(files::Error::NotFound { .. } | files::Error::TooLarge { .. }) => Ok(Self::default()),
            Err(error) => Err(error.into()),
        }
    }

    /// Checksum of all the server's entries.
    pub(crate) fn whole(&self) -> String {
        checksum::of_all(self.server.iter().map(|(key, checksum)| (key, checksum.as_str())))
    }

    /// Takes over a server's snapshot: all of it, or the changes.
    pub(crate) fn merge(&mut self, snapshot: &Snapshot, is_all: bool) {
        if is_all {
            self.server.clear();
            self.deleted.clear();
            self.authors.clear();
        }
        let RepositoryContent { entry_checksums, deleted, authors, .. } = &snapshot.content;
        for key in deleted {
            self.server.remove(key);
            self.authors.remove(key);
            self.deleted.insert(key.clone());
        }
        for (key, checksum) in entry_checksums {
            self.server.insert(key.clone(), checksum.clone());
            self.deleted.remove(key);
        }
        let authors = authors.iter().filter(|(key, _)| entry_checksums.contains_key(*key));
        self.authors.extend(authors.map(|(key, author)| (key.clone(), author.clone())));
        (self.version, self.checksum) = (snapshot.version, Some(snapshot.checksum.clone()));
    }

    /// Records that the server has nothing.
    pub(crate) fn clear_server(&mut self) {
        self.server.clear();
        self.deleted.clear();
        self.authors.clear();
        (self.version, self.checksum) = (0, Some(String::new()));
    }

    /// Records that file and server have this text, or both have none.
    pub(crate) fn agree(&mut self, key: &EntryKey, text: Option<&String>) {
        self.sending.remove(key);
        let before = match text {
            Some(text) => self.entries.insert(key.clone(), text.clone()),
            None => self.entries.remove(key),
        };
        if let Some(before) = before.filter(|before| Some(before) != text) {
            self.had(key, before);
            if let (Some(past), Some(text)) = (self.past.get_mut(key), text) {
                past.retain(|one| one != text);
            }
        }
    }

    /// Records that this text is about to be sent. The server's is older from now on.
    pub(crate) fn send(&mut self, key: &EntryKey, text: String) {
        if let Some(seen) = self.server.get(key).filter(|seen| **seen != text) {
            self.had(key, seen.clone());
        }
        self.sending.insert(key.clone(), text);
    }

    /// Records an earlier text of an entry.
    fn had(&mut self, key: &EntryKey, text: String) {
        let past = self.past.entry(key.clone()).or_default();
        past.retain(|one| *one != text);
        past.push(text);
        let old = past.len().saturating_sub(PAST);
        past.drain(..old);
    }

    /// Completes a run that was cut off, as far as the folder's content shows that it came, and records as agreed what
    /// is the same on both sides.
    pub(crate) fn settle(&mut self, here: &Listing) {
        for (key, intent) in std::mem::take(&mut self.underway) {
            if here.hides(&key) {
                self.underway.insert(key, intent); // it cannot be said yet
            } else if here.files.get(&key) == intent.as_ref() {
                self.agree(&key, intent.as_ref());
            } else if !here.files.contains_key(&key) {
                // It did not get there: that it is missing is nobody's doing.
                self.agree(&key, None);
            }
        }
        for (key, text) in &here.files {
            if self.server.get(key) == Some(text) {
                self.agree(key, Some(text));
            }
        }
        let (stays, replaced) = std::mem::take(&mut self.sending)
            .into_iter()
            .partition(|(key, text)| here.hides(key) || here.files.get(key) == Some(text));
        self.sending = stays;
        // Nobody knows whether they arrived. What came after them here is newer in any case.
        let replaced: Checksums = replaced;
        replaced.into_iter().for_each(|(key, text)| self.had(&key, text));
        let gone =
            |key: &&EntryKey| !here.files.contains_key(*key) && !self.server.contains_key(*key) && !here.hides(key);
        let gone: Vec<EntryKey> = self.entries.keys().filter(gone).cloned().collect();
        gone.iter().for_each(|key| self.agree(key, None));
        // Anybody can delete names that never were: only what was ever here matters.
        self.deleted.retain(|key| self.entries.contains_key(key) || here.files.contains_key(key));
        self.past.retain(|key, _| self.entries.contains_key(key) || self.server.contains_key(key));
    }
}
