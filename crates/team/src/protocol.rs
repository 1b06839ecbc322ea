//! Messages between client and server, as JSON.
//!
//! `GET <server>/api/claude_code/team_memory?repo=…` reads, `PUT` writes under `If-Match`. Everything beyond what other
//! servers have is optional on both sides: tombstones ([`RepositoryContent::deleted`], [`EntryWrite::deletes`]),
//! reading only what changed since a version (`&since=`), in parts of a size (`&part=`), the text that another was made
//! from ([`EntryWrite::bases`]) and the author whose text it replaced unseen ([`RepositoryContent::overwritten`]), and
//! asking whether the history knows a text (`POST …/known`).

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

use crate::error::Error;
use crate::key::EntryKey;
use crate::repository::Repository;

/// Milliseconds since 1970.
pub type Time = i64;

/// Path of the protocol below a server's address.
pub const PATH: &str = "/api/claude_code/team_memory";
/// Path for asking which texts the history knows.
pub const KNOWN_PATH: &str = "/api/claude_code/team_memory/known";
/// The largest text of one entry, in bytes.
pub const ENTRY_BYTES: usize = 250_000;
/// Size of one request of a client, in bytes; a larger entry is sent alone.
pub const BATCH_BYTES: usize = 200_000;
/// Characters of an invalid name that are shown.
const NAME_SHOWN: usize = 80;
/// The error code of a repository that has too many entries.
pub const TOO_MANY_ENTRIES: &str = "team_memory_too_many_entries";

/// Rights of a member. Each level includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Reading.
    Read,
    /// Writing and deleting entries.
    Write,
    /// Inviting, granting and revoking.
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

/// All entries of a repository, or those changed since a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// Organisation of the server.
    #[serde(default)]
    pub organization_id: String,
    /// The repository.
    pub repo: Repository,
    /// Version of the repository; every write increases it.
    pub version: u64,
    /// When it was last written, RFC 3339.
    #[serde(default)]
    pub last_modified: String,
    /// Checksum of all entries together.
    pub checksum: String,
    /// If more follows: the version up to which this goes. The rest changed after it.
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
    /// Keys that were deleted deliberately.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub deleted: BTreeSet<EntryKey>,
    /// Author and time of each entry.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub authors: BTreeMap<EntryKey, Author>,
    /// Texts of the reader that somebody replaced without having seen them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overwritten: Vec<OverwrittenText>,
    /// Entries that cannot be used, with the reasons.
    #[serde(skip)]
    pub refused: BTreeMap<String, String>,
}

/// Content as received, with arbitrary names. One bad name must not keep a member from all others.
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
    /// Adds an earlier part, without what changed since.
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

    /// Records an entry that cannot be used. A sender can make a name as long as it likes, so only its beginning is
    /// kept.
    pub(crate) fn refuse(&mut self, name: &str, why: &str) {
        self.refused.insert(name.chars().take(NAME_SHOWN).collect(), why.to_owned());
    }
}

/// Author and time of an entry.
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
    /// Name of the member who replaced it.
    pub by: String,
}

/// Texts that a reader has, by checksum, for which it asks whether the history knows them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryQuestion {
    /// By key.
    pub entries: BTreeMap<EntryKey, String>,
}

/// The texts in a question that the history knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryAnswer {
    /// Checksum of all entries together, at that moment.
    pub checksum: String,
    /// Texts that are or were entries.
    #[serde(deserialize_with = "usable_names")]
    pub known: BTreeSet<EntryKey>,
    /// The ones among them that were only put back, below a text whose author had not seen them.
    #[serde(default, deserialize_with = "usable_names")]
    pub put_back: BTreeSet<EntryKey>,
    /// Keys whose history no longer goes back to the beginning: a text that it does not know may be older.
    #[serde(deserialize_with = "usable_names")]
    pub trimmed: BTreeSet<EntryKey>,
}

/// Checksums of a repository, without texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hashes {
    /// Version of the repository; every write increases it.
    pub version: u64,
    /// Checksum of all entries together.
    pub checksum: String,
    /// By key.
    #[serde(deserialize_with = "usable")]
    pub entry_checksums: BTreeMap<EntryKey, String>,
    /// Keys that were deleted deliberately.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty", deserialize_with = "usable_names")]
    pub deleted: BTreeSet<EntryKey>,
}

/// Reads a server's map, without names that are not keys.
fn usable<'de, D: Deserializer<'de>, V: Deserialize<'de>>(deserializer: D) -> Result<BTreeMap<EntryKey, V>, D::Error> {
    let all: BTreeMap<String, V> = Deserialize::deserialize(deserializer)?;
    Ok(all.into_iter().filter_map(|(name, value)| Some((name.parse().ok()?, value))).collect())
}

fn usable_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<EntryKey>, D::Error> {
    let all: Vec<String> = Deserialize::deserialize(deserializer)?;
    Ok(all.into_iter().filter_map(|name| name.parse().ok()).collect())
}

/// A client's write.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryWrite {
    /// Texts to write, by key; other entries stay.
    #[serde(default)]
    pub entries: BTreeMap<EntryKey, String>,
    /// Keys to delete.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub deletes: BTreeSet<EntryKey>,
    /// Checksum of the text that each entry was made from; empty if it is new.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bases: BTreeMap<EntryKey, String>,
    /// Checksum of what each entry or deletion replaces, or a kept text goes below, as the writer saw it; empty if
    /// there was nothing. If this still holds for all of them, it does not matter that others wrote other entries
    /// meanwhile.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seen: BTreeMap<EntryKey, String>,
    /// Texts that the history has lost: they are put back there, below the current ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kept: BTreeMap<EntryKey, String>,
}

impl EntryWrite {
    /// True if it names the checksum of everything it replaces.
    #[cfg(feature = "server")]
    pub(crate) fn says_what_it_saw(&self) -> bool {
        let mut replaced = self.entries.keys().chain(&self.deletes).chain(self.kept.keys());
        !self.seen.is_empty() && replaced.all(|key| self.seen.contains_key(key))
    }

    /// True if it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.deletes.is_empty() && self.kept.is_empty()
    }
}

/// A server's answer to a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WriteAnswer {
    /// Version of the repository; every write increases it.
    pub version: u64,
    /// Checksum of all entries together, after the write.
    pub checksum: String,
}

/// An error, in the format of the provider's API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// The error.
    pub error: ErrorDetail,
}

/// An error's description.
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

/// Details of an error that a program can act on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Details {
    /// Code of the problem.
    pub error_code: String,
    /// The most entries a repository may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_entries: Option<u64>,
    /// Number of entries there would have been.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received_entries: Option<u64>,
    /// The entries that were refused, with the rule each broke.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, String>,
}
