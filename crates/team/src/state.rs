//! What a folder and its server agreed on, kept on the member's disk between two runs.
//!
//! It is kept by repository and folder, not by the server's address: a server that moved is the same team. What is about to
//! be put into the folder is written down before the first file changes ([`SyncState::underway`]), so that after a run was
//! cut off at any point nothing that was only taken counts as an edit; and what is about to be sent, so that the server's
//! history is asked whether it was.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::checksum::{self, Checksums};
use crate::error::Error;
use crate::folder::Listing;
use crate::key::EntryKey;
use crate::protocol::{Author, RepositoryContent, Snapshot};

/// The largest file that is read: ten times what a repository at its limits needs.
const STATE_BYTES: u64 = 10_000_000;
/// So many earlier texts of an entry are remembered, by checksum: a server that was restored seldom goes back further.
const PAST: usize = 8;

/// What is being put into a folder: a text by its checksum, or nothing where a file is being removed.
pub type PendingText = BTreeMap<EntryKey, Option<String>>;

/// What is remembered between two runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SyncState {
    /// Whether a run ever came to its end: without that a file here says nothing of what its owner has seen.
    pub met: bool,
    /// The mark of the folder in which that was.
    pub mark: Option<String>,
    /// The text of the server that each file here was made from: what was last taken or sent.
    pub entries: Checksums,
    /// The texts that each entry had before that one, the newest last.
    pub past: BTreeMap<EntryKey, Vec<String>>,
    /// What is being put into the folder.
    pub underway: PendingText,
    /// What is being sent: a run that is cut off before it hears the answer does not know whether it was.
    pub sending: Checksums,
    /// Missing here, and too many to be deleted for all without a question: nobody has answered it yet.
    pub held: BTreeSet<EntryKey>,
    /// What the server had when it was last read.
    pub server: Checksums,
    /// What it had deleted by then, of what was ever here.
    pub deleted: BTreeSet<EntryKey>,
    /// The version that was.
    pub version: u64,
    /// The name of that state; none where something is known to have changed since.
    pub checksum: Option<String>,
    /// Who wrote what, and when.
    pub authors: BTreeMap<EntryKey, Author>,
    /// The version up to which this member was told whose texts were overwritten.
    pub told: Option<u64>,
    /// The most entries the server keeps, once it said so.
    pub most: Option<u64>,
}

impl SyncState {
    /// What was written down. One that cannot be read, or is too large to be, is as good as none: then the server's history
    /// says which files are old.
    pub fn read(path: &Path) -> Result<Self, Error> {
        match files::read(path, STATE_BYTES) {
            Ok(snapshot) => Ok(serde_json::from_slice(&snapshot.bytes).unwrap_or_default()),
            Err(files::Error::NotFound { .. } | files::Error::TooLarge { .. }) => Ok(Self::default()),
            Err(error) => Err(error.into()),
        }
    }

    /// The checksum of all that the server had.
    pub(crate) fn whole(&self) -> String {
        checksum::of_all(self.server.iter().map(|(key, checksum)| (key, checksum.as_str())))
    }

    /// What the server has, as it says: all of it, or what changed.
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

    /// The server has nothing.
    pub(crate) fn clear_server(&mut self) {
        self.server.clear();
        self.deleted.clear();
        self.authors.clear();
        (self.version, self.checksum) = (0, Some(String::new()));
    }

    /// The file here is this text of the server now, or there is none on either side.
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

    /// This text is about to be sent. What the server has is older from now on.
    pub(crate) fn send(&mut self, key: &EntryKey, text: String) {
        if let Some(seen) = self.server.get(key).filter(|seen| **seen != text) {
            self.had(key, seen.clone());
        }
        self.sending.insert(key.clone(), text);
    }

    /// The entry had this text before the one it has now, here or as far as is known.
    fn had(&mut self, key: &EntryKey, text: String) {
        let past = self.past.entry(key.clone()).or_default();
        past.retain(|one| *one != text);
        past.push(text);
        let old = past.len().saturating_sub(PAST);
        past.drain(..old);
    }

    /// What lies in the folder says how far a run came that was cut off, and what is alike on both sides is agreed on.
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
