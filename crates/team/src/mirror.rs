//! A member's folder kept in step with the server: pull, then push.
//!
//! What both sides last agreed on is written down after every step, so a run that is cut off is simply run again: what
//! was taken or sent already is found alike on both sides.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use files::Glance;
use serde::{Deserialize, Serialize};

use crate::checksum;
use crate::client::{Client, Read, Trouble};
use crate::error::Error;
use crate::folder::{Folder, Found};
use crate::key::Key;
use crate::protocol::{Author, Content, ENTRY_BYTES, Snapshot, Write};
use crate::sync::{self, Checksums, Deletions, Plan, Remote};

/// Somebody was first: so often it is read and decided again. After that the next run tries.
const CONFLICTS: u32 = 2;
/// The largest file of what was agreed on that is read.
const AGREED_BYTES: u64 = 10_000_000;

/// What is remembered between two runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Agreed {
    /// What both sides last had alike.
    pub entries: Checksums,
    /// What the server had when it was last read.
    pub server: Checksums,
    /// What it had deleted by then.
    pub deleted: BTreeSet<Key>,
    /// The version that was.
    pub version: u64,
    /// The name of that state.
    pub checksum: Option<String>,
    /// Who wrote what, and when.
    pub authors: BTreeMap<Key, Author>,
    /// The most entries the server keeps, once it said so.
    pub most: Option<u64>,
}

impl Agreed {
    /// What was written down.
    pub fn read(state: &Path) -> Result<Self, Error> {
        match files::read(state, AGREED_BYTES) {
            // What cannot be read is as if nothing had been agreed on: nothing is lost by that, only compared again.
            Ok(snapshot) => Ok(serde_json::from_slice(&snapshot.bytes).unwrap_or_default()),
            Err(files::Error::NotFound { .. }) => Ok(Self::default()),
            Err(error) => Err(error.into()),
        }
    }
}

/// What a run did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    /// Taken from the server.
    pub taken: BTreeSet<Key>,
    /// Removed here.
    pub removed: BTreeSet<Key>,
    /// Sent to the server.
    pub sent: BTreeSet<Key>,
    /// Deleted there.
    pub deleted: BTreeSet<Key>,
    /// Changed on both sides.
    pub conflicts: BTreeSet<Key>,
    /// Files that are not shared, and why.
    pub left: BTreeMap<String, String>,
    /// What the server sent and was not taken, and why.
    pub refused: BTreeMap<String, String>,
    /// What was changed here by others.
    pub changes: Vec<Change>,
}

/// What was changed here by somebody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The entry.
    pub key: Key,
    /// The text here before, if there was one.
    pub before: Option<String>,
    /// The text now, if there is one.
    pub after: Option<String>,
    /// Who wrote it, where the server says.
    pub author: Option<String>,
}

impl Done {
    /// Whether nothing was done.
    pub fn is_empty(&self) -> bool {
        [&self.taken, &self.removed, &self.sent, &self.deleted, &self.conflicts].iter().all(|keys| keys.is_empty())
    }
}

/// A folder, a server, and what they agreed on.
#[derive(Debug)]
pub struct Mirror {
    folder: Folder,
    client: Client,
    state: PathBuf,
    agreed: Agreed,
    /// What was last written down, and a glance at it.
    saved: Option<(Agreed, Option<Glance>)>,
    deletions: Deletions,
}

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// The server.
    #[error(transparent)]
    Server(#[from] Trouble),
    /// This machine.
    #[error(transparent)]
    Here(#[from] Error),
}

impl Mirror {
    /// A mirror of a repository in a folder; `state` is where it writes down what was agreed on, outside of it.
    pub fn open(folder: &Path, state: &Path, client: Client, deletions: Deletions) -> Result<Self, Error> {
        let (folder, agreed) = (Folder::open(folder)?, Agreed::read(state)?);
        Ok(Self { folder, client, state: state.to_owned(), agreed, saved: None, deletions })
    }

    /// What is remembered.
    pub fn agreed(&self) -> &Agreed {
        &self.agreed
    }

    /// What would be done.
    pub async fn plan(&mut self) -> Result<(Plan, Found), Stopped> {
        self.read().await?;
        let found = self.look()?;
        Ok((self.compare(&found), found))
    }

    /// What was done here since both sides were last compared, and the files that are not shared with why; no server is
    /// asked.
    pub fn waiting(&self) -> Result<(Plan, BTreeMap<String, String>), Error> {
        let found = self.look()?;
        let plan = self.compare(&found);
        Ok((Plan { take: BTreeSet::new(), remove: BTreeSet::new(), ..plan }, found.left))
    }

    /// The text of a file that was found, unless it was changed since.
    pub fn text(&self, key: &Key, found: &Found) -> Option<String> {
        self.folder.text(key, found)
    }

    fn look(&self) -> Result<Found, Error> {
        let written = self.saved.as_ref().and_then(|(_, glance)| *glance);
        self.folder.look_since(written.as_ref())
    }

    /// A glance at every file of the folder.
    pub fn glances(&self) -> Result<BTreeMap<PathBuf, Glance>, Error> {
        self.folder.glances()
    }

    /// Takes in what others did.
    pub async fn pull(&mut self) -> Result<Done, Stopped> {
        let mut done = Done::default();
        self.remember();
        self.take_in(&mut done).await?;
        Ok(done)
    }

    /// Pulls, and sends what was done here.
    pub async fn push(&mut self) -> Result<Done, Stopped> {
        let mut done = Done::default();
        self.remember();
        self.take_in(&mut done).await?;
        self.send(&mut done).await?;
        Ok(done)
    }

    /// Another program may have met the server since, for the same folder.
    fn remember(&mut self) {
        let glance = files::glance(&self.state);
        if glance.is_some() && self.saved.as_ref().is_some_and(|(_, ours)| *ours == glance) {
            return;
        }
        if let Ok(agreed) = Agreed::read(&self.state) {
            self.agreed = agreed;
        }
    }

    /// Reads what the server has, and the texts that came with it are put into the folder.
    async fn take_in(&mut self, done: &mut Done) -> Result<(), Stopped> {
        let content = self.read().await?;
        let mut texts = content.entries;
        done.refused = content.refused;
        let found = self.look()?;
        done.left.clone_from(&found.left);
        let plan = self.compare(&found);
        if plan.take.iter().any(|key| !texts.contains_key(key)) {
            // The server told only of what is new, and an older text is wanted again.
            if let Read::Changed(snapshot) = self.client.read(None, 0).await? {
                texts = checked(*snapshot).content.entries;
            }
        }
        for key in &plan.take {
            let before = self.folder.text(key, &found);
            let author = self.agreed.authors.get(key);
            let written = author.and_then(|author| author.at.parse().ok());
            if let Some(text) = texts.get(key)
                && self.folder.take(key, text, written, &found)?
            {
                let author = author.map(|author| author.name.clone());
                self.agreed.entries.insert(key.clone(), checksum::of(text));
                done.changes.push(Change { key: key.clone(), before, after: Some(text.clone()), author });
                done.taken.insert(key.clone());
            }
        }
        for key in &plan.remove {
            let before = self.folder.text(key, &found);
            if self.folder.remove(key, &found)? {
                self.agreed.entries.remove(key);
                done.changes.push(Change { key: key.clone(), before, after: None, author: None });
                done.removed.insert(key.clone());
            }
        }
        done.conflicts.extend(plan.conflicts);
        self.settle(&found)
    }

    async fn send(&mut self, done: &mut Done) -> Result<(), Stopped> {
        let found = self.look()?;
        let plan = self.compare(&found);
        let room = self.agreed.most.map(|most| most.saturating_sub(self.agreed.server.len() as u64));
        let mut fresh = 0;
        let texts: BTreeMap<Key, String> = plan
            .send
            .iter()
            .filter(|key| {
                let is_new = !self.agreed.server.contains_key(*key);
                fresh += u64::from(is_new);
                !is_new || room.is_none_or(|room| fresh <= room)
            })
            .filter_map(|key| Some((key.clone(), self.folder.text(key, &found)?)))
            .collect();
        let mut writes: Vec<Write> =
            sync::batches(texts).into_iter().map(|entries| Write { entries, deletes: BTreeSet::new() }).collect();
        if !plan.delete.is_empty() {
            match writes.first_mut() {
                Some(first) => first.deletes = plan.delete,
                None => writes.push(Write { entries: BTreeMap::new(), deletes: plan.delete }),
            }
        }
        // The state that is written upon. Where somebody was first it runs ahead of what was taken in here: what is between
        // is taken with the next pull, which still begins at the older one.
        let (mut known, mut is_ours) = (self.agreed.checksum.clone().unwrap_or_default(), true);
        let mut conflicts = 0;
        'writes: for mut write in writes {
            let written = loop {
                if write.entries.is_empty() && write.deletes.is_empty() {
                    self.save()?;
                    continue 'writes;
                }
                match self.client.write(&write, &known).await {
                    Ok(written) => break written,
                    Err(Trouble::Conflict) if conflicts < CONFLICTS => {
                        conflicts += 1;
                        known = self.give_way(&mut write, done).await?;
                        is_ours = false;
                    }
                    Err(Trouble::TooMany { most }) => {
                        self.agreed.most = Some(most);
                        self.save()?;
                        return Err(Trouble::TooMany { most }.into());
                    }
                    Err(trouble) => return Err(trouble.into()),
                }
            };
            known.clone_from(&written.checksum);
            self.sent(&write, done);
            if is_ours {
                (self.agreed.version, self.agreed.checksum) = (written.version, Some(written.checksum));
            }
            self.save()?;
        }
        Ok(())
    }

    /// Somebody was first, or our own write arrived and its answer did not: checksums alone are read again, which is quick,
    /// so that the next try is not late too. What is there already is not written again. What both changed is told; a text of
    /// theirs beats a deletion of ours. Gives the state that may be written upon.
    async fn give_way(&mut self, write: &mut Write, done: &mut Done) -> Result<String, Stopped> {
        let Some(hashes) = self.client.hashes().await? else { return Ok(String::new()) };
        let mut arrived = Write::default();
        for (key, text) in std::mem::take(&mut write.entries) {
            match hashes.entry_checksums.get(&key) {
                Some(now) if *now == checksum::of(&text) => drop(arrived.entries.insert(key, text)),
                Some(now) if self.agreed.server.get(&key) != Some(now) => {
                    done.conflicts.insert(key.clone());
                    write.entries.insert(key, text);
                }
                _ => drop(write.entries.insert(key, text)),
            }
        }
        for key in std::mem::take(&mut write.deletes) {
            match hashes.entry_checksums.get(&key) {
                None => drop(arrived.deletes.insert(key)),
                Some(now) if self.agreed.server.get(&key) == Some(now) => drop(write.deletes.insert(key)),
                Some(_) => {}
            }
        }
        self.sent(&arrived, done);
        Ok(hashes.checksum)
    }

    /// What is on both sides now.
    fn sent(&mut self, write: &Write, done: &mut Done) {
        for (key, text) in &write.entries {
            let checksum = checksum::of(text);
            self.agreed.entries.insert(key.clone(), checksum.clone());
            self.agreed.server.insert(key.clone(), checksum);
            self.agreed.deleted.remove(key);
            done.sent.insert(key.clone());
        }
        for key in &write.deletes {
            self.agreed.entries.remove(key);
            self.agreed.server.remove(key);
            self.agreed.deleted.insert(key.clone());
            done.deleted.insert(key.clone());
        }
    }

    /// Reads what changed on the server since the last time; gives what came with it.
    async fn read(&mut self) -> Result<Content, Stopped> {
        let since = if self.agreed.checksum.is_some() { self.agreed.version } else { 0 };
        let mut snapshot = match self.client.read(self.agreed.checksum.as_deref(), since).await? {
            Read::Unchanged => return Ok(Content::default()),
            Read::Empty => {
                let (entries, most) = (self.agreed.entries.clone(), self.agreed.most);
                self.agreed = Agreed { entries, most, checksum: Some(String::new()), ..Agreed::default() };
                return Ok(Content::default());
            }
            Read::Changed(snapshot) => checked(*snapshot),
        };
        let whole =
            checksum::of_all(snapshot.content.entry_checksums.iter().map(|(key, checksum)| (key, checksum.as_str())));
        let is_all = since == 0 || whole == snapshot.checksum || snapshot.version < since;
        if is_all {
            self.agreed.server.clear();
            self.agreed.deleted.clear();
            self.agreed.authors.clear();
        }
        for key in &snapshot.content.deleted {
            self.agreed.server.remove(key);
            self.agreed.deleted.insert(key.clone());
        }
        for (key, checksum) in &snapshot.content.entry_checksums {
            self.agreed.server.insert(key.clone(), checksum.clone());
            self.agreed.deleted.remove(key);
        }
        self.agreed.authors.append(&mut snapshot.content.authors);
        (self.agreed.version, self.agreed.checksum) = (snapshot.version, Some(snapshot.checksum));
        Ok(snapshot.content)
    }

    fn compare(&self, found: &Found) -> Plan {
        let there = Remote { entries: self.agreed.server.clone(), deleted: self.agreed.deleted.clone() };
        let mut plan = sync::plan(&self.agreed.entries, &found.checksums(), &there, self.deletions);
        // A file that is here and cannot be shared is not missing: it is neither deleted there nor written over.
        let left: BTreeSet<Key> = found.left.keys().filter_map(|name| name.parse().ok()).collect();
        plan.delete.retain(|key| !left.contains(key));
        plan.take.retain(|key| !left.contains(key));
        // Nor is one whose name is that of another file here, written otherwise: on some systems they are one.
        let here: BTreeMap<String, &Key> = found.files.keys().map(|key| (key.folded(), key)).collect();
        plan.take
            .retain(|key| here.get(&key.folded()).is_none_or(|other| *other == key || plan.remove.contains(*other)));
        plan
    }

    /// What is alike on both sides is agreed on.
    fn settle(&mut self, found: &Found) -> Result<(), Stopped> {
        for (key, file) in &found.files {
            if self.agreed.server.get(key) == Some(&file.checksum) {
                self.agreed.entries.insert(key.clone(), file.checksum.clone());
            }
        }
        let gone = |key: &Key| !found.files.contains_key(key) && !self.agreed.server.contains_key(key);
        let gone: Vec<Key> = self.agreed.entries.keys().filter(|key| gone(key)).cloned().collect();
        gone.iter().for_each(|key| drop(self.agreed.entries.remove(key)));
        Ok(self.save()?)
    }

    fn save(&mut self) -> Result<(), Error> {
        if self.saved.as_ref().is_some_and(|(saved, _)| *saved == self.agreed) {
            return Ok(());
        }
        let text = serde_json::to_vec(&self.agreed).unwrap_or_default();
        files::replace(&self.state, &text)?;
        self.saved = Some((self.agreed.clone(), files::glance(&self.state)));
        Ok(())
    }
}

/// A snapshot without the texts that are not what their checksum says, are longer than an entry may be, or have the name of
/// another in other letters.
fn checked(mut snapshot: Snapshot) -> Snapshot {
    let content = &mut snapshot.content;
    let mut names = BTreeSet::new();
    let entries = std::mem::take(&mut content.entries);
    for (key, text) in entries {
        let is = checksum::of(&text);
        let why = match content.entry_checksums.get(&key) {
            Some(told) if *told != is => "its text is not what its checksum says",
            _ if text.len() > ENTRY_BYTES => "it is longer than an entry may be",
            _ if !names.insert(key.folded()) => "another entry has this name in other letters",
            _ => {
                content.entry_checksums.insert(key.clone(), is);
                content.entries.insert(key, text);
                continue;
            }
        };
        content.entry_checksums.remove(&key);
        content.refuse(key.as_str(), why);
    }
    snapshot
}
