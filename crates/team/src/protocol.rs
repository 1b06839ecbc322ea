//! What client and server say to each other, as JSON.
//!
//! `GET <server>/api/claude_code/team_memory?repo=…` reads, `PUT` writes under `If-Match`. Everything beyond what other
//! servers have is optional on both sides: tombstones ([`Content::deleted`], [`Write::deletes`]), reading only what changed
//! since a version (`&since=`), in parts of a size (`&part=`), what a text was made from ([`Write::bases`]) and whom it replaced unseen
//! ([`Content::overwritten`]), and asking whether the history knows a text (`POST …/known`).

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

use crate::error::Error;
use crate::key::EntryKey;
use crate::repository::Repository;

/// Milliseconds since 1970.
pub type Time = i64;

/// Where the protocol lives below a server's address.
pub const PATH: &str = "/api/claude_code/team_memory";
/// Where the history is asked which texts it knows.
pub const KNOWN_PATH: &str = "/api/claude_code/team_memory/known";
/// The largest text of one entry, in bytes.
pub const ENTRY_BYTES: usize = 250_000;
/// What a client puts into one request, in bytes; a larger entry travels alone.
pub const BATCH_BYTES: usize = 200_000;
/// How much of a name that is no key is shown, in characters.
const NAME_SHOWN: usize = 80;
/// The error code of a repository that has too many entries.
pub const TOO_MANY_ENTRIES: &str = "team_memory_too_many_entries";

/// How much a member may do. Each level includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Look.
    Read,
    /// Write and delete entries.
    Write,
    /// Invite, grant, and take away.
    Admin,
}

impl Level {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

impl FromStr for Level {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self, Error> {
        [Self::Read, Self::Write, Self::Admin]
            .into_iter()
            .find(|level| level.word() == word)
            .ok_or_else(|| Error::Missing(format!("level called {word}: there are read, write and admin")))
    }
}

/// All of a repository, or what changed since a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// Whose server it is.
    #[serde(default)]
    pub organization_id: String,
    /// Which repository.
    pub repo: Repository,
    /// Counts up with every write.
    pub version: u64,
    /// When it was last written, RFC 3339.
    #[serde(default)]
    pub last_modified: String,
    /// Of all entries together.
    pub checksum: String,
    /// Where more follows: the version up to which this goes. The rest changed after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// The entries.
    pub content: RepositoryContent,
}

/// Entries with their checksums.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "ReceivedContent")]
pub struct RepositoryContent {
    /// Texts by key.
    pub entries: BTreeMap<EntryKey, String>,
    /// Checksums by key.
    pub entry_checksums: BTreeMap<EntryKey, String>,
    /// Keys that were deleted on purpose.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub deleted: BTreeSet<EntryKey>,
    /// Who wrote which, and when.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub authors: BTreeMap<EntryKey, Author>,
    /// Texts of the reader that somebody replaced without having seen them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overwritten: Vec<OverwrittenText>,
    /// What came with it and cannot be used, with why.
    #[serde(skip)]
    pub refused: BTreeMap<String, String>,
}

/// Content as it comes, under whatever names. One bad name must not keep a member from all others.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReceivedContent {
    entries: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "usable")]
    entry_checksums: BTreeMap<EntryKey, String>,
    #[serde(default, deserialize_with = "usable_names")]
    deleted: BTreeSet<EntryKey>,
    #[serde(default, deserialize_with = "usable")]
    authors: BTreeMap<EntryKey, Author>,
    #[serde(default)]
    overwritten: Vec<OverwrittenText>,
}

impl From<ReceivedContent> for RepositoryContent {
    fn from(received: ReceivedContent) -> Self {
        let ReceivedContent { entries, entry_checksums, deleted, authors, overwritten } = received;
        let mut content = Self { entry_checksums, deleted, authors, overwritten, ..Self::default() };
        for (name, text) in entries {
            match name.parse::<EntryKey>() {
                Ok(key) => drop(content.entries.insert(key, text)),
                Err(bad) => content.refuse(&name, bad.why),
            }
        }
        content
    }
}

impl RepositoryContent {
    /// Adds what came before this, and was not changed since.
    pub(crate) fn add_earlier(&mut self, earlier: Self) {
        let is_new = |key: &EntryKey| self.entry_checksums.contains_key(key) || self.deleted.contains(key);
        let old: BTreeSet<EntryKey> =
            earlier.entries.keys().chain(&earlier.deleted).filter(|key| !is_new(key)).cloned().collect();
        let Self { entries, entry_checksums, deleted, authors, refused, .. } = earlier;
        self.entries.extend(entries.into_iter().filter(|(key, _)| old.contains(key)));
        self.entry_checksums.extend(entry_checksums.into_iter().filter(|(key, _)| old.contains(key)));
        self.deleted.extend(deleted.into_iter().filter(|key| old.contains(key)));
        self.authors.extend(authors.into_iter().filter(|(key, _)| old.contains(key)));
        self.refused.extend(refused);
    }

    /// Notes what cannot be used. A name is as long as a sender likes, so only its beginning is kept.
    pub(crate) fn refuse(&mut self, name: &str, why: &str) {
        self.refused.insert(name.chars().take(NAME_SHOWN).collect(), why.to_owned());
    }
}

/// Who wrote an entry, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    /// The member's name.
    pub name: String,
    /// RFC 3339.
    pub at: String,
}

/// A text that was replaced by somebody who had not seen it. It stays in the history.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OverwrittenText {
    /// The entry.
    pub key: String,
    /// The version it had.
    pub version: u64,
    /// Who replaced it.
    pub by: String,
}

/// Texts that a reader has, by checksum: does the history know them?
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryQuestion {
    /// By key.
    pub entries: BTreeMap<EntryKey, String>,
}

/// Which of the texts that were asked about the history knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryAnswer {
    /// Of all entries together, at that moment.
    pub checksum: String,
    /// These texts were here once, or are.
    #[serde(deserialize_with = "usable_names")]
    pub known: BTreeSet<EntryKey>,
    /// Of these, the ones that were only put back below a text whose writer had not seen them.
    #[serde(default, deserialize_with = "usable_names")]
    pub put_back: BTreeSet<EntryKey>,
    /// The history of these no longer goes back to the beginning: one that it does not know may be older.
    #[serde(deserialize_with = "usable_names")]
    pub trimmed: BTreeSet<EntryKey>,
}

/// Checksums alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hashes {
    /// Counts up with every write.
    pub version: u64,
    /// Of all entries together.
    pub checksum: String,
    /// By key.
    #[serde(deserialize_with = "usable")]
    pub entry_checksums: BTreeMap<EntryKey, String>,
    /// Keys that were deleted on purpose.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty", deserialize_with = "usable_names")]
    pub deleted: BTreeSet<EntryKey>,
}

/// What a server says under names that are keys.
fn usable<'de, D: Deserializer<'de>, V: Deserialize<'de>>(deserializer: D) -> Result<BTreeMap<EntryKey, V>, D::Error> {
    let all: BTreeMap<String, V> = Deserialize::deserialize(deserializer)?;
    Ok(all.into_iter().filter_map(|(name, value)| Some((name.parse().ok()?, value))).collect())
}

fn usable_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<EntryKey>, D::Error> {
    let all: Vec<String> = Deserialize::deserialize(deserializer)?;
    Ok(all.into_iter().filter_map(|name| name.parse().ok()).collect())
}

/// What a client writes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryWrite {
    /// Texts to put, by key; others stay.
    #[serde(default)]
    pub entries: BTreeMap<EntryKey, String>,
    /// Keys to delete.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub deletes: BTreeSet<EntryKey>,
    /// The checksum of the text that each entry was made from; empty where it was made from none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bases: BTreeMap<EntryKey, String>,
    /// The checksum of what each entry or deletion replaces, or a kept text goes below, as the writer saw it; empty where there was nothing. Where that
    /// still is so for all of them, it does not matter that others wrote other entries meanwhile.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seen: BTreeMap<EntryKey, String>,
    /// Texts that the history has lost: they are put back there, below what is there now.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kept: BTreeMap<EntryKey, String>,
}

impl EntryWrite {
    /// Whether it says of everything it replaces what that was.
    #[cfg(feature = "server")]
    pub(crate) fn says_what_it_saw(&self) -> bool {
        let mut replaced = self.entries.keys().chain(&self.deletes).chain(self.kept.keys());
        !self.seen.is_empty() && replaced.all(|key| self.seen.contains_key(key))
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.deletes.is_empty() && self.kept.is_empty()
    }
}

/// What a server says of a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WriteAnswer {
    /// Counts up with every write.
    pub version: u64,
    /// Of all entries together, now.
    pub checksum: String,
}

/// An error, as the provider's API writes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// What happened.
    pub error: ErrorDetail,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorDetail {
    /// Its kind, in a word.
    #[serde(rename = "type")]
    pub kind: String,
    /// In a sentence.
    pub message: String,
    /// For programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Details>,
}

/// What a program can act on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Details {
    /// Which problem.
    pub error_code: String,
    /// The most entries a repository may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_entries: Option<u64>,
    /// How many there would have been.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received_entries: Option<u64>,
    /// The entries that were refused, with the rule each broke.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, String>,
}
