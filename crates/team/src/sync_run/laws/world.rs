//! A small world for the laws: folders, a server that keeps all versions, and everything that can go wrong between them.
//!
//! Every step of a run is one touch of this world. What breaks a law is noted where it happens.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use super::super::{ReadResult, SyncDisk, SyncServer};
use super::model_server::{EntryVersion, ModelServer};
use crate::checksum::{self, Checksums};
use crate::error::{Error, RequestTrouble};
use crate::folder::Listing;
use crate::key::EntryKey;
use crate::protocol::{EntryWrite, HistoryAnswer, RepositoryContent, Snapshot, WriteAnswer};
use crate::report::EarlyEnd;
use crate::state::SyncState;

/// Number of times a run checks whether another has let go.
const PATIENCE: usize = 40;
/// The server refuses this entry, whatever it says.
pub(super) const BAD: &str = "bad";

/// Numbers that look like chance, the same for one seed.
#[derive(Debug, Clone)]
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((value ^ (value >> 31)) % most as u64) as usize
    }

    pub(super) fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }
}

/// Protections that are taken away, to see the laws broken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Weakness {
    /// Steps under way are not written down.
    pub(super) no_journal: bool,
    /// The server cannot say what its history knows.
    pub(super) no_history: bool,
    /// Several runs at once in a folder.
    pub(super) no_lock: bool,
    /// A folder that cannot be listed looks deleted.
    pub(super) blind: bool,
    /// The checksum of the whole is always the one that the reader expects, as if nobody compared it.
    pub(super) no_whole: bool,
}

/// A member's machine.
#[derive(Debug, Clone, Default)]
pub(super) struct ModelFolder {
    pub(super) files: BTreeMap<EntryKey, String>,
    pub(super) state: SyncState,
    pub(super) old_state: Option<SyncState>,
    pub(super) unlisted: BTreeSet<String>,
    pub(super) is_full: bool,
    /// Number of times it was removed and created again: whoever opened it before has nothing of it.
    generation: usize,
    mark: Option<String>,
    locked: bool,
    pub(super) told: BTreeSet<(String, u64)>,
}

/// The whole world, with a record of what happened.
#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) server: ModelServer,
    pub(super) backup: ModelServer,
    /// Counts restored backups.
    pub(super) epoch: usize,
    pub(super) folders: Vec<ModelFolder>,
    pub(super) weakness: Weakness,
    pub(super) chance: Option<Chance>,
    pub(super) is_calm: bool,
    pub(super) broken: Vec<String>,
    /// The author of each text, and the texts that were there before it, at its birth and on the server.
    authors: BTreeMap<String, usize>,
    before: BTreeMap<String, BTreeSet<String>>,
    /// The text that each file had last.
    seen: BTreeMap<(usize, EntryKey), String>,
    /// Texts deleted by a person, with their folder.
    pub(super) deleted: BTreeSet<(usize, EntryKey, String)>,
    /// Texts that were overwritten by somebody who had not seen them: whose, which entry, which version.
    pub(super) unseen: BTreeSet<(usize, String, u64)>,
    /// The events, for whoever looks into a seed.
    pub(super) story: Vec<String>,
    typed: usize,
}

impl World {
    pub(super) fn one_in(&mut self, many: usize) -> bool {
        !self.is_calm && self.chance.as_mut().is_some_and(|chance| chance.one_in(many))
    }

    pub(super) fn tell(&mut self, what: impl Into<String>) {
        self.story.push(what.into());
    }

    fn note(&mut self, broken: String) {
        self.tell(format!("BROKEN: {broken}"));
        self.broken.push(broken);
    }

    /// A person writes a text that never was.
    pub(super) fn type_text(&mut self, folder: usize, key: &EntryKey) {
        self.typed += 1;
        let text = format!("{key} {} by {folder}", self.typed);
        self.folders[folder].files.insert(key.clone(), text.clone());
        // Whoever types has seen what was there last, though it may have vanished since.
        let before = self.seen.insert((folder, key.clone()), text.clone());
        self.tell(format!("{folder}: types {text:?}"));
        self.before.entry(text.clone()).or_default().extend(before);
        self.authors.insert(text, folder);
    }

    /// A person deletes a file.
    pub(super) fn delete(&mut self, folder: usize, key: &EntryKey) {
        if let Some(text) = self.folders[folder].files.remove(key) {
            self.tell(format!("{folder}: deletes {text:?}"));
            self.deleted.insert((folder, key.clone(), text));
        }
    }

    /// The folder is removed, and made again by the next to come. Nobody deleted a file in it.
    pub(super) fn vanish(&mut self, folder: usize) {
        self.tell(format!("{folder}: the folder vanishes"));
        let folder = &mut self.folders[folder];
        folder.generation += 1;
        folder.files.clear();
        folder.unlisted.clear();
        folder.mark = None;
    }

    /// Entries with a text older than one that its author, who is still there, wrote and the history has.
    pub(super) fn outdated(&self) -> Vec<String> {
        let mut outdated = Vec::new();
        for (key, rows) in &self.server.rows {
            let Some(now) = rows.last().and_then(|row| row.text.as_deref()) else { continue };
            let newer = rows.iter().filter_map(|row| row.text.as_deref()).find(|text| {
                let is_alive = self.folders[self.authors[*text]].generation == 0;
                *text != now && is_alive && self.is_before(now, text) && !self.is_before(text, now)
            });
            outdated.extend(newer.map(|newer| format!("{key} says {now:?}, and {newer:?} is newer")));
        }
        outdated
    }

    fn is_before(&self, older: &str, newer: &str) -> bool {
        let (mut seen, mut open) = (BTreeSet::new(), vec![newer]);
        while let Some(text) = open.pop() {
            if text == older {
                return true;
            }
            if seen.insert(text) {
                open.extend(self.before.get(text).into_iter().flatten().map(String::as_str));
            }
        }
        false
    }

    /// A file here is about to be replaced or removed by a run: it must not be the last copy of its text.
    fn loses(&mut self, folder: usize, key: &EntryKey, text: &str, began: usize) {
        if !self.server.knows(key, &checksum::of(text)) && began == self.epoch {
            self.note(format!("folder {folder} loses the last copy of {text:?}"));
        }
    }

    fn accepts(&mut self, folder: usize, key: &EntryKey, text: &str, base: Option<&String>) {
        let now = self.server.newest(key).cloned();
        let Some(EntryVersion { text: Some(old), author, version, .. }) = now else {
            // What is written over a deletion comes after what was deleted.
            let rows = self.server.rows.get(key).into_iter().flatten();
            let deleted = rows.rev().find_map(|row| row.text.clone());
            self.before.entry(text.to_owned()).or_default().extend(deleted);
            return;
        };
        let sum = checksum::of(text);
        let is_edit = self.authors[text] == folder
            && self.folders[folder].state.entries.get(key) != Some(&sum)
            && !self.server.knows(key, &sum);
        if !is_edit && !self.is_before(&old, text) {
            self.note(format!("folder {folder} writes {text:?} over {old:?}, which is newer"));
        }
        if author != folder && base != Some(&checksum::of(&old)) {
            self.unseen.insert((author, key.to_string(), version));
        }
        self.before.entry(text.to_owned()).or_default().insert(old);
    }

    fn write(&mut self, folder: usize, write: &EntryWrite, known: &str) -> Result<WriteAnswer, RequestTrouble> {
        let whole = if self.server.version == 0 { String::new() } else { self.server.whole() };
        let now = |key: &EntryKey| self.server.newest(key).and_then(|row| row.text.as_deref()).map(checksum::of);
        let is_as_seen = write.seen.iter().all(|(key, seen)| now(key).unwrap_or_default() == *seen);
        let is_late = if write.says_what_it_saw() { !is_as_seen } else { whole != known };
        if is_late {
            return Err(RequestTrouble::Conflict);
        }
        if let Some(bad) = write.entries.keys().find(|key| key.as_str() == BAD) {
            let by_name = self.one_in(2);
            let refused = if by_name { [(bad.to_string(), "bad".to_owned())].into() } else { BTreeMap::new() };
            let (server, message) = ("model".to_owned(), "no".to_owned());
            return Err(RequestTrouble::Refused { server, status: 400, message, refused });
        }
        self.server.version += 1;
        let version = self.server.version;
        self.tell(format!(
            "{folder}: writes {version}: {:?}, kept {:?}, deletes {:?}",
            write.entries, write.kept, write.deletes
        ));
        for (key, text) in &write.kept {
            if !self.server.knows(key, &checksum::of(text)) {
                let now = self.server.newest(key).cloned();
                self.server.put_back(key, text.clone(), folder);
                self.server.version += 1;
                let (text, author) = now.map_or((None, folder), |now| (now.text, now.author));
                self.server.put(key, text, author, None);
            }
        }
        for key in &write.deletes {
            let now = self.server.newest(key).and_then(|row| row.text.clone()).unwrap_or_default();
            // Who deletes a text has seen those it was made from.
            let saw =
                |(who, of, text): &(usize, EntryKey, String)| *who == folder && of == key && self.is_before(&now, text);
            if !self.deleted.iter().any(saw) {
                self.note(format!("folder {folder} deletes {key} ({now:?}), and nobody there did"));
            }
            self.server.put(key, None, folder, None);
        }
        for (key, text) in &write.entries {
            self.accepts(folder, key, text, write.bases.get(key));
            self.server.put(key, Some(text.clone()), folder, write.bases.get(key).cloned());
        }
        Ok(WriteAnswer { version: self.server.version, checksum: self.server.whole() })
    }

    fn read(&self, folder: usize, known: Option<&str>, since: u64, told: Option<u64>) -> ReadResult {
        let (whole, version) = (self.server.whole(), self.server.version);
        if version == 0 {
            return ReadResult::Empty;
        }
        if known == Some(whole.as_str()) {
            return ReadResult::Unchanged;
        }
        let mut content = RepositoryContent::default();
        for (key, rows) in &self.server.rows {
            let Some(row) = rows.last().filter(|row| row.version > since) else { continue };
            match &row.text {
                Some(text) => {
                    content.entry_checksums.insert(key.clone(), checksum::of(text));
                    content.entries.insert(key.clone(), text.clone());
                }
                None => drop(content.deleted.insert(key.clone())),
            }
        }
        content.overwritten = told.map(|told| self.server.overwritten(folder, told)).unwrap_or_default();
        let mut snapshot = Snapshot {
            organization_id: String::new(),
            repo: "acme/rocket".parse().unwrap(),
            version,
            last_modified: String::new(),
            checksum: whole,
            until: None,
            content,
        };
        if self.weakness.no_whole && since > 0 {
            // As if nobody compared: the sum is the one that the reader will come to, and time goes forward.
            let mut merged = self.folders[folder].state.clone();
            merged.merge(&snapshot, false);
            (snapshot.checksum, snapshot.version) = (merged.whole(), version.max(since));
        }
        ReadResult::Changed(Box::new(snapshot))
    }
}

/// One step: whoever decides what happens next may let others go first.
struct WorldStep(bool);

impl Future for WorldStep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

fn lost() -> RequestTrouble {
    RequestTrouble::Later { server: "model".to_owned(), message: "cut".to_owned() }
}

/// One run's hands on its folder and the server.
#[derive(Clone)]
pub(super) struct RunAccess {
    pub(super) world: Arc<Mutex<World>>,
    pub(super) folder: usize,
    /// Number of restores of the server when the run began.
    pub(super) began: usize,
    /// Generation of the folder when it was opened.
    pub(super) generation: usize,
}

/// The lock of a folder.
pub(super) struct ModelLock(Arc<Mutex<World>>, usize);

impl Drop for ModelLock {
    fn drop(&mut self) {
        self.0.lock().unwrap().folders[self.1].locked = false;
    }
}

impl RunAccess {
    async fn step(&self) -> MutexGuard<'_, World> {
        WorldStep(false).await;
        self.world.lock().unwrap()
    }

    fn is_gone(&self, world: &World) -> bool {
        world.folders[self.folder].generation != self.generation
    }

    fn full(&self) -> Error {
        files::Error::Full { path: "model".into() }.into()
    }
}

impl SyncDisk for RunAccess {
    type Lock = ModelLock;

    async fn lock(&mut self) -> Result<ModelLock, EarlyEnd> {
        for _ in 0..PATIENCE {
            let mut world = self.step().await;
            let is_weak = world.weakness.no_lock;
            let folder = &mut world.folders[self.folder];
            if is_weak || !std::mem::replace(&mut folder.locked, true) {
                let generation = folder.generation;
                drop(world);
                self.generation = generation;
                return Ok(ModelLock(self.world.clone(), self.folder));
            }
        }
        Err(EarlyEnd::Busy { by: "another".to_owned() })
    }

    async fn remembered(&mut self) -> Result<SyncState, Error> {
        Ok(self.step().await.folders[self.folder].state.clone())
    }

    async fn remember(&mut self, state: &SyncState) -> Result<(), Error> {
        let mut world = self.step().await;
        if world.folders[self.folder].is_full {
            return Err(self.full());
        }
        let mut state: SyncState = serde_json::from_str(&serde_json::to_string(state).unwrap()).unwrap();
        if world.weakness.no_journal {
            if !state.underway.is_empty() {
                return Ok(()); // as if all were written once, at the end
            }
            state.underway.clear();
        }
        let told = (&state.entries.keys().collect::<Vec<_>>(), &state.underway);
        let told = format!("{}: remembers {told:?}", self.folder);
        world.tell(told);
        world.folders[self.folder].state = state;
        // It can be in place and still be said to have failed.
        if world.one_in(100) { Err(self.full()) } else { Ok(()) }
    }

    async fn mark(&mut self) -> Option<String> {
        let world = self.step().await;
        world.folders[self.folder].mark.clone().filter(|_| !self.is_gone(&world))
    }

    async fn make_mark(&mut self) -> Result<String, Error> {
        let mut world = self.step().await;
        if world.folders[self.folder].is_full || self.is_gone(&world) {
            return Err(self.full());
        }
        world.typed += 1;
        let mark = format!("mark {}", world.typed);
        world.folders[self.folder].mark = Some(mark.clone());
        Ok(mark)
    }

    async fn look(&mut self) -> Result<Listing, Error> {
        let world = self.step().await;
        let folder = &world.folders[self.folder];
        let mut listing = Listing::default();
        for (key, text) in folder.files.iter().filter(|_| !self.is_gone(&world)) {
            let above = key.as_str().split('/').next().unwrap_or_default();
            if !folder.unlisted.contains(above) {
                listing.files.insert(key.clone(), checksum::of(text));
            }
        }
        if !world.weakness.blind {
            let why = || "it cannot be listed".to_owned();
            listing.left.extend(folder.unlisted.iter().map(|name| (name.clone(), why())));
        }
        Ok(listing)
    }

    async fn flush(&mut self, _: &BTreeSet<EntryKey>) -> Result<(), Error> {
        drop(self.step().await);
        Ok(()) // this world's power is never cut
    }

    async fn text(&mut self, key: &EntryKey, sum: &str) -> Option<String> {
        let world = self.step().await;
        let here = world.folders[self.folder].files.get(key).filter(|_| !self.is_gone(&world));
        here.filter(|text| checksum::of(text) == sum).cloned()
    }

    async fn take(
        &mut self,
        key: &EntryKey,
        text: &str,
        _: Option<jiff::Timestamp>,
        expected: Option<&str>,
    ) -> Result<bool, Error> {
        let mut world = self.step().await;
        if world.folders[self.folder].is_full || self.is_gone(&world) {
            return Err(self.full());
        }
        let now = world.folders[self.folder].files.get(key).cloned();
        if now.as_ref().map(|now| checksum::of(now)).as_deref() != expected {
            return Ok(false);
        }
        if let Some(now) = now {
            world.loses(self.folder, key, &now, self.began);
        }
        world.folders[self.folder].files.insert(key.clone(), text.to_owned());
        world.seen.insert((self.folder, key.clone()), text.to_owned());
        world.tell(format!("{}: takes {text:?}", self.folder));
        if world.one_in(50) { Err(self.full()) } else { Ok(true) }
    }

    async fn remove(&mut self, key: &EntryKey, expected: &str) -> Result<bool, Error> {
        let mut world = self.step().await;
        let now = world.folders[self.folder].files.get(key).cloned();
        let Some(now) = now.filter(|_| !self.is_gone(&world)) else { return Ok(false) };
        if checksum::of(&now) != expected {
            return Ok(false);
        }
        world.loses(self.folder, key, &now, self.began);
        if !world.deleted.iter().any(|(_, deleted, _)| deleted == key) {
            world.note(format!("folder {} removes {key}, and nobody deleted it", self.folder));
        }
        world.folders[self.folder].files.remove(key);
        world.tell(format!("{}: removes {now:?}", self.folder));
        Ok(true)
    }
}

impl SyncServer for RunAccess {
    async fn read(&self, known: Option<&str>, since: u64, told: Option<u64>) -> Result<ReadResult, RequestTrouble> {
        let mut world = self.step().await;
        if world.one_in(12) { Err(lost()) } else { Ok(world.read(self.folder, known, since, told)) }
    }

    async fn known(&self, texts: &Checksums) -> Result<Option<HistoryAnswer>, RequestTrouble> {
        let mut world = self.step().await;
        if world.one_in(12) {
            return Err(lost());
        }
        if world.weakness.no_history {
            return Ok(None);
        }
        let known: Checksums = texts.clone().into_iter().filter(|(key, sum)| world.server.knows(key, sum)).collect();
        let put_back = known.iter().filter(|(key, sum)| world.server.only_put_back(key, sum));
        let put_back = put_back.map(|(key, _)| key.clone()).collect();
        let (known, checksum) = (known.into_keys().collect(), world.server.whole());
        Ok(Some(HistoryAnswer { checksum, known, put_back, ..HistoryAnswer::default() }))
    }

    async fn write(&self, write: &EntryWrite, known: &str) -> Result<WriteAnswer, RequestTrouble> {
        {
            let mut world = self.step().await;
            if world.one_in(12) {
                return Err(lost()); // the request
            }
            let written = world.write(self.folder, write, known);
            if !world.one_in(12) {
                return written;
            }
        }
        // Its answer: the client tries once more, or gives up.
        let mut world = self.step().await;
        if world.one_in(2) { Err(lost()) } else { world.write(self.folder, write, known) }
    }
}
