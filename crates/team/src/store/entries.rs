//! Entries: reading all or what changed, and writing under an optimistic lock.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::audit_log::{self, Action};
use super::rows::{Database, DatabaseRow, Transaction, Value};
use super::{Member, Time};
use crate::checksum;
use crate::error::Error;
use crate::key::EntryKey;
use crate::protocol::{Author, ENTRY_BYTES, EntryWrite, Hashes, RepositoryContent, Snapshot, WriteAnswer};
use crate::repository::Repository;

/// Limits of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepositoryLimits {
    /// Limit on entries.
    pub entries: u64,
    /// The longest text of one, in bytes.
    pub entry_bytes: usize,
    /// Limit on deleted entries that are reported as such.
    pub tombstones: u64,
    /// Limit on the versions of an entry in its history.
    pub versions: u64,
}

/// Default limit on tombstones: as many as fit into the file in which clients remember them.
const TOMBSTONES: u64 = 5_000;

impl Default for RepositoryLimits {
    fn default() -> Self {
        Self { entries: 1_000, entry_bytes: ENTRY_BYTES, tombstones: TOMBSTONES, versions: 100 }
    }
}

/// State of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Its version; every write increases it.
    pub version: u64,
    /// Checksum of all entries together.
    pub checksum: String,
    /// When it was last written.
    pub modified: Time,
}

/// The entries of repositories.
#[derive(Debug, Clone, Copy)]
pub struct Entries<'a>(pub(super) &'a Database);

impl Entries<'_> {
    /// State of a repository; none if nothing was ever written to it.
    pub async fn state(self, repository: &Repository) -> Result<Option<State>, Error> {
        let rows = self.0.rows(STATE, vec![repository.as_str().into()]).await?;
        rows.first().map(state).transpose()
    }

    /// Checksums of all entries.
    pub async fn hashes(self, repository: &Repository) -> Result<Option<Hashes>, Error> {
        let mut snapshot = self.0.snapshot().await?;
        let Some(row) = snapshot.row(STATE, vec![repository.as_str().into()]).await? else { return Ok(None) };
        let (state, (entry_checksums, deleted)) = (state(&row)?, checksums(&mut snapshot, repository).await?);
        Ok(Some(Hashes { version: state.version, checksum: state.checksum, entry_checksums, deleted }))
    }

    /// All entries, or those that changed after a version.
    pub async fn read(self, repository: &Repository, since: u64) -> Result<Option<Snapshot>, Error> {
        self.read_part(repository, since, u64::MAX).await
    }

    /// The same, limited to about so many bytes, the oldest changes first. Entries that were written together are not
    /// separated.
    pub async fn read_part(self, repository: &Repository, since: u64, part: u64) -> Result<Option<Snapshot>, Error> {
        const READ: &str = "SELECT entries.key, text, checksum, COALESCE(members.name, author), at FROM entries
            LEFT JOIN members ON members.id = author WHERE repository = $1 AND version > $2 AND version <= $3";
        const LENGTHS: &str = "SELECT version, CAST(COALESCE(LENGTH(text), 0) + LENGTH(key) AS BIGINT) FROM entries
            WHERE repository = $1 AND version > $2 ORDER BY version";
        let mut snapshot = self.0.snapshot().await?;
        let Some(row) = snapshot.row(STATE, vec![repository.as_str().into()]).await? else { return Ok(None) };
        let state = state(&row)?;
        let of = || vec![repository.as_str().into(), (since as i64).into()];
        let (mut until, mut length) = (None, 0);
        if part < u64::MAX {
            for row in snapshot.rows(LENGTHS, of()).await? {
                let version = row.number(0)?;
                if length >= part && until != Some(version) {
                    break;
                }
                length += row.number(1)?.unsigned_abs();
                until = Some(version);
            }
        }
        let mut values = of();
        values.push(until.unwrap_or(i64::MAX).into());
        let mut content = RepositoryContent::default();
        for row in snapshot.rows(READ, values).await? {
            let Some(key) = known_key(&row)? else { continue };
            content.authors.insert(key.clone(), Author { name: row.text(3)?, at: written(row.number(4)?) });
            match row.text_if_any(1)? {
                Some(text) => {
                    content.entry_checksums.insert(key.clone(), row.text(2)?);
                    content.entries.insert(key, text);
                }
                None => drop(content.deleted.insert(key)),
            }
        }
        Ok(Some(Snapshot {
            organization_id: String::new(),
            repo: repository.clone(),
            version: state.version,
            last_modified: written(state.modified),
            until: until.map(i64::unsigned_abs).filter(|until| *until < state.version),
            checksum: state.checksum,
            content,
        }))
    }

    /// Writes entries, if the repository's state still is the one the writer names. Otherwise nothing is written.
    pub async fn write(
        self,
        repository: &Repository,
        member: &Member,
        write: &EntryWrite,
        expected: Option<&str>,
        limits: &RepositoryLimits,
        now: Time,
    ) -> Result<WriteAnswer, Error> {
        if let Some(key) = write.deletes.iter().find(|key| write.entries.contains_key(*key)) {
            return Err(Error::Invalid(format!("{key} cannot be both written and deleted")));
        }
        // Who is late already need not wait for the others to write: of many that write at once most are.
        if let Some(expected) = expected.filter(|_| !write.says_what_it_saw()) {
            let state = self.state(repository).await?.filter(|state| state.version > 0);
            let known = state.map(|state| state.checksum).unwrap_or_default();
            if known != expected {
                return Err(Error::Conflict { checksum: known });
            }
        }
        let mut transaction = self.0.begin().await?;
        transaction.lock(repository.as_str()).await?;
        let before = transaction.row(STATE, vec![repository.as_str().into()]).await?;
        // One that was only made for rights has no state yet.
        let before = before.as_ref().map(state).transpose()?.filter(|state| state.version > 0);
        let known = before.as_ref().map_or("", |state| state.checksum.as_str());
        let version = before.as_ref().map_or(0, |state| state.version) + 1;
        let mut writing = PendingWrite { transaction, repository, member, write, limits, now, version };
        // The whole may be as the writer's own last write left it, with what others did in between: what it says it saw of
        // each entry is what counts.
        let is_late = match write.says_what_it_saw() {
            true => !writing.is_as_seen().await?,
            false => expected.is_some_and(|expected| expected != known),
        };
        if is_late {
            return Err(Error::Conflict { checksum: known.to_owned() });
        }
        let checksum = writing.run().await?;
        writing.transaction.commit().await?;
        Ok(WriteAnswer { version: writing.version, checksum })
    }
}

/// A write in progress.
struct PendingWrite<'a> {
    transaction: Transaction,
    repository: &'a Repository,
    member: &'a Member,
    write: &'a EntryWrite,
    limits: &'a RepositoryLimits,
    now: Time,
    /// The repository's version after the write.
    version: u64,
}

impl PendingWrite<'_> {
    /// Writes all of it. Returns the checksum of the repository.
    async fn run(&mut self) -> Result<String, Error> {
        const TOUCH: &str = "INSERT INTO repositories (name, version, checksum, modified) VALUES ($1, $2, '', $3)
            ON CONFLICT (name) DO UPDATE SET version = excluded.version, modified = excluded.modified";
        const SETTLE: &str = "UPDATE repositories SET checksum = $2, version = $3 WHERE name = $1";
        const BASE: &str = "UPDATE history SET base = $4 WHERE repository = $1 AND key = $2 AND version = $3";
        let (repository, write, limits) = (self.repository, self.write, self.limits);
        let name = || Value::from(repository.as_str());
        self.transaction.run(TOUCH, vec![name(), self.number(), self.now.into()]).await?;
        let (there, _) = checksums(&mut self.transaction, repository).await?;
        self.keep().await?;
        // Deletes first, so that a name that only changes its case is no twin of itself. What is not there leaves no trace:
        // everybody would have to remember it.
        for key in write.deletes.iter().filter(|key| there.contains_key(*key)) {
            self.put(key, None).await?;
        }
        let mut refused = BTreeMap::new();
        for (key, text) in &write.entries {
            if let Some(why) = self.refusal(key, text).await? {
                refused.insert(key.clone(), why);
                continue;
            }
            self.put(key, Some(text)).await?;
            if let Some(base) = write.bases.get(key) {
                self.run_on(BASE, key, [self.number(), base.as_str().into()]).await?;
            }
        }
        if !refused.is_empty() {
            return Err(Error::Refused(refused));
        }
        let (checksums, _) = checksums(&mut self.transaction, repository).await?;
        let received = checksums.len() as u64;
        if received > limits.entries && !write.entries.is_empty() {
            return Err(Error::TooMany { most: limits.entries, received });
        }
        let checksum = checksum::of_all(checksums.iter().map(|(key, checksum)| (key, checksum.as_str())));
        self.transaction.run(SETTLE, vec![name(), checksum.clone().into(), self.number()]).await?;
        self.forget().await?;
        let keys: Vec<&str> = write.entries.keys().chain(&write.deletes).map(EntryKey::as_str).collect();
        let (who, keys) = (&self.member.name, keys.join(", "));
        audit_log::note(&mut self.transaction, who, Action::Wrote, Some(repository), &keys, self.now).await?;
        Ok(checksum)
    }

    /// The version as a value.
    fn number(&self) -> Value {
        (self.version as i64).into()
    }

    /// The values of a statement about an entry.
    fn of<const N: usize>(&self, key: &EntryKey, more: [Value; N]) -> Vec<Value> {
        [self.repository.as_str().into(), key.as_str().into()].into_iter().chain(more).collect()
    }

    async fn run_on<const N: usize>(
        &mut self,
        sql: &'static str,
        key: &EntryKey,
        more: [Value; N],
    ) -> Result<(), Error> {
        let values = self.of(key, more);
        self.transaction.run(sql, values).await.map(drop)
    }

    async fn put(&mut self, key: &EntryKey, text: Option<&String>) -> Result<(), Error> {
        const ENTRY: &str = "INSERT INTO entries (repository, key, folded, text, checksum, version, author, at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (repository, key) DO UPDATE SET text = excluded.text,
            checksum = excluded.checksum, version = excluded.version, author = excluded.author, at = excluded.at";
        let checksum = checksum::of(text.map_or("", String::as_str));
        let (text, author) = (text.cloned().into(), self.member.id.as_str().into());
        let values = [key.folded().into(), text, checksum.into(), self.number(), author, self.now.into()];
        self.run_on(ENTRY, key, values).await?;
        self.run_on(HISTORY, key, []).await
    }

    /// The reason an entry cannot be stored, if there is one.
    async fn refusal(&mut self, key: &EntryKey, text: &str) -> Result<Option<String>, Error> {
        const TWIN: &str =
            "SELECT key FROM entries WHERE repository = $1 AND key <> $2 AND folded = $3 AND text IS NOT NULL";
        let most = self.limits.entry_bytes;
        if text.len() > most {
            return Ok(Some(format!("it has {} bytes; an entry may have {most}", text.len())));
        }
        // PostgreSQL keeps none, and an entry has to move from either database to the other.
        if text.contains('\0') {
            return Ok(Some("it holds a NUL byte".to_owned()));
        }
        let values = self.of(key, [key.folded().into()]);
        let twin = self.transaction.row(TWIN, values).await?;
        twin.map(|row| Ok(format!("it and {} would be one file on some systems", row.text(0)?))).transpose()
    }

    /// True if everything that is replaced is what the writer saw.
    async fn is_as_seen(&mut self) -> Result<bool, Error> {
        const NOW: &str = "SELECT checksum FROM entries WHERE repository = $1 AND key = $2 AND text IS NOT NULL";
        for (key, seen) in &self.write.seen {
            let row = self.transaction.row(NOW, self.of(key, [])).await?;
            let now = row.map(|row| row.text(0)).transpose()?.unwrap_or_default();
            if now != *seen {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Puts back texts that the history has lost, and above them the current ones, as their authors wrote them.
    async fn keep(&mut self) -> Result<(), Error> {
        const KNOWS: &str = "SELECT version FROM history WHERE repository = $1 AND key = $2 AND checksum = $3
            AND text IS NOT NULL";
        const KEEP: &str = "INSERT INTO history (repository, key, version, text, checksum, author, at, put_back)
            VALUES ($1, $2, $3, $4, $5, $6, $7, 1)";
        const RAISE: &str = "UPDATE entries SET version = $3 WHERE repository = $1 AND key = $2";
        let kept = &self.write.kept;
        for (key, text) in kept.iter().filter(|(_, text)| text.len() <= ENTRY_BYTES && !text.contains('\0')) {
            let checksum = checksum::of(text);
            let known = self.of(key, [checksum.clone().into()]);
            if self.transaction.row(KNOWS, known).await?.is_some() {
                continue;
            }
            let author = self.member.id.as_str().into();
            let values = [self.number(), text.clone().into(), checksum.into(), author, self.now.into()];
            self.run_on(KEEP, key, values).await?;
            self.run_on(RAISE, key, [((self.version + 1) as i64).into()]).await?;
            self.run_on(HISTORY, key, []).await?;
        }
        self.version += u64::from(!kept.is_empty());
        Ok(())
    }

    /// Drops versions beyond the retention, of the entries just written, and the oldest tombstones beyond their limit.
    async fn forget(&mut self) -> Result<(), Error> {
        const FORGET: &str = "DELETE FROM history WHERE repository = $1 AND key = $2 AND version NOT IN
            (SELECT version FROM history WHERE repository = $1 AND key = $2 ORDER BY version DESC LIMIT $3)";
        const TOMBSTONES: &str = "DELETE FROM entries WHERE repository = $1 AND text IS NULL AND key NOT IN
            (SELECT key FROM entries WHERE repository = $1 AND text IS NULL ORDER BY version DESC, key LIMIT $2)";
        let (write, limits) = (self.write, self.limits);
        if !write.deletes.is_empty() {
            let values = vec![self.repository.as_str().into(), (limits.tombstones as i64).into()];
            self.transaction.run(TOMBSTONES, values).await?;
        }
        if self.version > limits.versions {
            for key in write.entries.keys().chain(&write.deletes) {
                self.run_on(FORGET, key, [(limits.versions as i64).into()]).await?;
            }
        }
        Ok(())
    }
}

const STATE: &str = "SELECT version, checksum, modified FROM repositories WHERE name = $1";

fn state(row: &DatabaseRow) -> Result<State, Error> {
    Ok(State { version: row.number(0)? as u64, checksum: row.text(1)?, modified: row.number(2)? })
}

/// A time in the protocol's format.
pub(super) fn written(time: Time) -> String {
    Timestamp::from_millisecond(time).unwrap_or_default().to_string()
}

/// The key of a row; none if an earlier version accepted a key that is now invalid.
fn known_key(row: &DatabaseRow) -> Result<Option<EntryKey>, Error> {
    Ok(row.text(0)?.parse().ok())
}

/// The checksums of current entries, and the keys of deleted ones.
async fn checksums(
    transaction: &mut Transaction,
    repository: &Repository,
) -> Result<(BTreeMap<EntryKey, String>, BTreeSet<EntryKey>), Error> {
    const CHECKSUMS: &str = "SELECT key, checksum, CASE WHEN text IS NULL THEN 'deleted' ELSE '' END
        FROM entries WHERE repository = $1";
    let (mut there, mut deleted) = (BTreeMap::new(), BTreeSet::new());
    for row in transaction.rows(CHECKSUMS, vec![repository.as_str().into()]).await? {
        let Some(key) = known_key(&row)? else { continue };
        match row.text(2)?.as_str() {
            "deleted" => drop(deleted.insert(key)),
            _ => drop(there.insert(key, row.text(1)?)),
        }
    }
    Ok((there, deleted))
}

/// Copies an entry as it stands into its history.
const HISTORY: &str = "INSERT INTO history (repository, key, version, text, checksum, author, at)
    SELECT repository, key, version, text, checksum, author, at FROM entries WHERE repository = $1 AND key = $2";
