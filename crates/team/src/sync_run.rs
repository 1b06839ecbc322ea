//! One run that synchronises a folder with the server: read, decide, take, send.
//!
//! [`sync`] decides from checksums alone; here its steps are put into an order in which every one of them may be the
//! last. The disk and the server are passed in, so that a test can stop a run between any two steps and let others come
//! between.
//!
//! - Intended changes to the folder are written down before the first file changes, and at the next look its content
//!   says how far the run came.
//! - A write names the whole state it was decided upon. If that is outdated, everything is read and decided again, a
//!   limited number of times; the next run tries again.
//! - A problem with one entry stops no other.

mod send;

use std::collections::{BTreeMap, BTreeSet};

use crate::checksum::{self, Checksums};
use crate::error::{Error, RequestTrouble};
use crate::folder::Listing;
use crate::key::EntryKey;
use crate::protocol::{ENTRY_BYTES, EntryWrite, HistoryAnswer, OverwrittenText, Snapshot, WriteAnswer};
use crate::report::{EarlyEnd, RemoteChange, SyncReport};
use crate::state::SyncState;
use crate::sync::{self, Deletions, PastTexts, SyncPlan};

/// Number of times that a conflict is read and decided again.
const CONFLICTS: u32 = 2;

/// A member's folder and its agreed state. Each call is one step.
pub trait SyncDisk: Send {
    /// Held while a run is under way, and released however it ends.
    type Lock: Send;

    /// Waits until no other run is under way in the folder.
    fn lock(&mut self) -> impl Future<Output = Result<Self::Lock, EarlyEnd>> + Send;
    /// The agreed state, as last written down.
    fn remembered(&mut self) -> impl Future<Output = Result<SyncState, Error>> + Send;
    /// Writes the agreed state down, durably.
    fn remember(&mut self, state: &SyncState) -> impl Future<Output = Result<(), Error>> + Send;
    /// The mark of the folder, if it has one.
    fn mark(&mut self) -> impl Future<Output = Option<String>> + Send;
    /// Gives the folder a new mark.
    fn make_mark(&mut self) -> impl Future<Output = Result<String, Error>> + Send;
    /// Lists the folder.
    fn look(&mut self) -> impl Future<Output = Result<Listing, Error>> + Send;
    /// Syncs files and their names to disk: whoever wrote them may have left that undone.
    fn flush(&mut self, keys: &BTreeSet<EntryKey>) -> impl Future<Output = Result<(), Error>> + Send;
    /// The text of a file, if it has this checksum.
    fn text(&mut self, key: &EntryKey, checksum: &str) -> impl Future<Output = Option<String>> + Send;
    /// Writes a text, if the file still has the expected checksum. Returns whether it did.
    fn take(
        &mut self,
        key: &EntryKey,
        text: &str,
        written: Option<jiff::Timestamp>,
        expected: Option<&str>,
    ) -> impl Future<Output = Result<bool, Error>> + Send;
    /// Removes a file, if it still has the expected checksum. Returns whether it did.
    fn remove(&mut self, key: &EntryKey, expected: &str) -> impl Future<Output = Result<bool, Error>> + Send;
}

/// Result of a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadResult {
    /// The reader is up to date.
    Unchanged,
    /// There is nothing yet.
    Empty,
    /// New content, with its state.
    Changed(Box<Snapshot>),
}

/// The server's side. Each call is one step.
pub trait SyncServer: Send + Sync {
    /// The entries, if their state is not `known`; only those changed after a version, if the server supports that; and
    /// the reader's texts that were overwritten after the version `told`.
    fn read(
        &self,
        known: Option<&str>,
        since: u64,
        overwritten_since: Option<u64>,
    ) -> impl Future<Output = Result<ReadResult, RequestTrouble>> + Send;
    /// The texts that the history knows; none if the server has no history to ask.
    fn known(&self, texts: &Checksums) -> impl Future<Output = Result<Option<HistoryAnswer>, RequestTrouble>> + Send;
    /// Writes, if the state still is `known`.
    fn write(
        &self,
        write: &EntryWrite,
        known: &str,
    ) -> impl Future<Output = Result<WriteAnswer, RequestTrouble>> + Send;
}

/// Takes the changes of others.
pub async fn pull<D: SyncDisk, S: SyncServer>(
    disk: &mut D,
    server: &S,
    deletions: Deletions,
) -> Result<SyncReport, EarlyEnd> {
    let _lock = disk.lock().await?;
    let mut run = SyncRun::begin(disk, server, deletions).await?;
    run.mark().await?;
    run.read().await?;
    run.take().await?;
    run.end().await
}

/// Takes the changes of others, and sends those made here.
pub async fn push<D: SyncDisk, S: SyncServer>(
    disk: &mut D,
    server: &S,
    deletions: Deletions,
) -> Result<SyncReport, EarlyEnd> {
    let _lock = disk.lock().await?;
    let mut run = SyncRun::begin(disk, server, deletions).await?;
    run.mark().await?;
    run.read().await?;
    run.take().await?;
    let mut conflicts = 0;
    let mut goes_on = run.send().await;
    while let Err(EarlyEnd::Server(RequestTrouble::Conflict)) = goes_on
        && conflicts < CONFLICTS
    {
        conflicts += 1;
        run.state.checksum = None; // something is not as it is thought to be
        run.read().await?;
        goes_on = run.send().await;
    }
    if goes_on? == SendResult::WithMoreToTake || conflicts > 0 {
        run.take().await?;
    }
    run.end().await
}

/// The plan of a run, and the folder's content.
pub async fn plan<D: SyncDisk, S: SyncServer>(
    disk: &mut D,
    server: &S,
    deletions: Deletions,
) -> Result<(SyncPlan, Listing), EarlyEnd> {
    let mut run = SyncRun::begin(disk, server, deletions).await?;
    run.read().await?;
    let (listing, plan) = run.compare().await?;
    Ok((plan, listing))
}

/// Result of sending. `WithMoreToTake`: a text was put back into the history, and now the server's can be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SendResult {
    All,
    WithMoreToTake,
}

struct SyncRun<'r, D, S> {
    disk: &'r mut D,
    server: &'r S,
    deletions: Deletions,
    state: SyncState,
    /// The state as last written down.
    saved: SyncState,
    /// The server's state as last read, on which a write is based.
    tag: String,
    /// Texts that came from the server in this run.
    texts: BTreeMap<EntryKey, String>,
    /// Entries that exist there but cannot be used: they do not count as missing.
    unusable: BTreeSet<EntryKey>,
    past: PastTexts,
    /// The version up to which overwritten texts were received.
    heard: Option<u64>,
    report: SyncReport,
}

impl<'r, D: SyncDisk, S: SyncServer> SyncRun<'r, D, S> {
    async fn begin(disk: &'r mut D, server: &'r S, deletions: Deletions) -> Result<Self, EarlyEnd> {
        let state = disk.remembered().await?;
        // What a run that was cut off has put into the folder is there only once it cannot vanish any more.
        disk.flush(&state.underway.keys().cloned().collect()).await?;
        Ok(Self {
            disk,
            server,
            deletions,
            saved: state.clone(),
            state,
            tag: String::new(),
            texts: BTreeMap::new(),
            unusable: BTreeSet::new(),
            past: PastTexts::default(),
            heard: None,
            report: SyncReport::default(),
        })
    }

    /// Checks the folder's mark. A missing file was deleted only in the folder where it was agreed on. In one that was
    /// removed and created again, or is an old copy, it never was, and is taken again.
    async fn mark(&mut self) -> Result<(), EarlyEnd> {
        let mark = self.disk.mark().await;
        if mark.is_some() && mark == self.state.mark {
            return Ok(());
        }
        let here = self.disk.look().await?;
        let missing: Vec<EntryKey> =
            self.state.entries.keys().filter(|key| !here.files.contains_key(*key)).cloned().collect();
        missing.iter().for_each(|key| self.state.agree(key, None));
        // Where that fails, or is not written down any more, the next run finds the same.
        self.state.mark = self.disk.make_mark().await.ok();
        Ok(())
    }

    /// Reads what changed on the server since the last time. If the merged state is not the one the server names,
    /// everything is read again: the server was restored, or is another.
    async fn read(&mut self) -> Result<(), EarlyEnd> {
        let (known, since) = (self.state.checksum.clone(), self.state.version);
        // A run that was cut off has read what it could not tell any more: then it is asked for, though nothing changed.
        let is_told = self.state.told == Some(self.state.version);
        let unless = known.as_deref().filter(|_| is_told);
        let snapshot = match self.server.read(unless, since, self.state.told).await? {
            ReadResult::Unchanged => {
                self.tag = known.unwrap_or_default();
                return Ok(());
            }
            ReadResult::Empty => {
                self.nothing_is_there();
                return Ok(());
            }
            ReadResult::Changed(snapshot) => *snapshot,
        };
        let entries = snapshot.content.entry_checksums.iter();
        let is_all =
            since == 0 || checksum::of_all(entries.map(|(key, text)| (key, text.as_str()))) == snapshot.checksum;
        let mut merged = self.state.clone();
        merged.merge(&snapshot, is_all);
        if is_all || (snapshot.version >= since && merged.whole() == snapshot.checksum) {
            self.accept(snapshot, is_all);
            return Ok(());
        }
        self.read_all().await
    }

    async fn read_all(&mut self) -> Result<(), EarlyEnd> {
        match self.server.read(None, 0, self.state.told).await? {
            ReadResult::Changed(snapshot) => self.accept(*snapshot, true),
            ReadResult::Empty | ReadResult::Unchanged => self.nothing_is_there(),
        }
        Ok(())
    }

    fn nothing_is_there(&mut self) {
        self.past = PastTexts::default();
        self.state.clear_server();
        self.state.told.get_or_insert(0);
        self.tag = String::new();
    }

    fn accept(&mut self, mut snapshot: Snapshot, is_all: bool) {
        self.past = PastTexts::default(); // what was said of another state
        if is_all {
            self.unusable.clear();
        }
        self.unusable.extend(take_out_unusable(&mut snapshot));
        self.state.merge(&snapshot, is_all);
        // What was overwritten before the first reading is no news.
        self.state.told.get_or_insert(snapshot.version);
        self.heard = Some(snapshot.version);
        if !self.unusable.is_empty() {
            (self.state.version, self.state.checksum) = (0, None); // the next run has to meet them again
        }
        self.report.refused.append(&mut snapshot.content.refused);
        self.report.overwritten.append(&mut snapshot.content.overwritten);
        self.texts.append(&mut snapshot.content.entries);
        self.tag = snapshot.checksum;
    }

    /// Lists the folder, and decides.
    async fn compare(&mut self) -> Result<(Listing, SyncPlan), EarlyEnd> {
        let listing = self.disk.look().await?;
        self.report.left.clone_from(&listing.left);
        let mut seen = listing.clone();
        seen.left.extend(self.unusable.iter().map(|key| (key.to_string(), String::new())));
        self.state.settle(&seen);
        let questions = sync::questions(&self.state, &seen, &self.past);
        if !questions.is_empty() {
            let answer = self.server.known(&questions).await?;
            self.past.note(&questions, answer.as_ref(), &self.tag);
        }
        let plan = sync::plan(&self.state, &seen, &self.past, self.deletions);
        self.report.conflicts.extend(plan.conflicts.iter().cloned());
        self.report.held.clone_from(&plan.held);
        self.state.held.retain(|key| seen.hides(key));
        self.state.held.extend(plan.held.iter().cloned());
        Ok((listing, plan))
    }

    /// Applies the changes of others to the folder.
    async fn take(&mut self) -> Result<(), EarlyEnd> {
        let (mut listing, mut plan) = self.compare().await?;
        if plan.take.iter().any(|key| self.text(key).is_none()) {
            // The server told only of what is new, and an older text is wanted again.
            self.read_all().await?;
            (listing, plan) = self.compare().await?;
        }
        let blocked = plan.not_taken.iter().map(|(key, why)| (key.to_string(), why.clone()));
        self.report.refused.extend(blocked);
        let texts: BTreeMap<EntryKey, String> =
            plan.take.iter().filter_map(|key| Some((key.clone(), self.text(key)?.clone()))).collect();
        let changes_files = !texts.is_empty() || !plan.remove.is_empty();
        self.state.underway.extend(texts.iter().map(|(key, text)| (key.clone(), Some(checksum::of(text)))));
        self.state.underway.extend(plan.remove.iter().map(|key| (key.clone(), None)));
        if changes_files {
            self.save().await?;
        }
        for (key, text) in texts {
            self.take_one(&key, text, listing.files.get(&key)).await;
        }
        for key in &plan.remove {
            if let Some(expected) = listing.files.get(key) {
                self.remove_one(key, expected).await;
            }
        }
        if changes_files {
            let now = self.disk.look().await?;
            self.state.settle(&now);
        }
        self.state.met = true;
        self.save().await
    }

    /// The server's text of an entry, if it was received.
    fn text(&self, key: &EntryKey) -> Option<&String> {
        let wanted = self.state.server.get(key)?;
        self.texts.get(key).filter(|text| checksum::of(text) == *wanted)
    }

    async fn take_one(&mut self, key: &EntryKey, text: String, expected: Option<&String>) {
        let before = match expected {
            Some(expected) => self.disk.text(key, expected).await,
            None => None,
        };
        let author = self.state.authors.get(key).cloned();
        let written = author.as_ref().and_then(|author| author.at.parse().ok());
        match self.disk.take(key, &text, written, expected.map(String::as_str)).await {
            Ok(true) => {
                let author = author.map(|author| author.name);
                self.report.changes.push(RemoteChange { key: key.clone(), before, after: Some(text), author });
                self.report.taken.insert(key.clone());
            }
            Ok(false) => {} // it was changed here since it was looked at
            Err(error) => drop(self.report.not_written.insert(key.clone(), error.to_string())),
        }
    }

    async fn remove_one(&mut self, key: &EntryKey, expected: &str) {
        let before = self.disk.text(key, expected).await;
        match self.disk.remove(key, expected).await {
            Ok(true) => {
                self.report.changes.push(RemoteChange { key: key.clone(), before, after: None, author: None });
                self.report.removed.insert(key.clone());
            }
            Ok(false) => {}
            Err(error) => drop(self.report.not_written.insert(key.clone(), error.to_string())),
        }
    }

    /// Ends the run. Overwritten texts count as told only once they are in the report.
    async fn end(mut self) -> Result<SyncReport, EarlyEnd> {
        self.state.told = self.heard.or(self.state.told);
        let _ = self.save().await; // else it is told once more
        let told: BTreeSet<OverwrittenText> = self.report.overwritten.drain(..).collect();
        self.report.overwritten.extend(told);
        Ok(self.report)
    }

    async fn save(&mut self) -> Result<(), EarlyEnd> {
        if self.saved != self.state {
            // A file that is agreed on and vanishes with the power would be taken for a deleted one.
            let is_new = |key: &EntryKey, text: &String| self.saved.entries.get(key) != Some(text);
            let agreed = self.state.entries.iter().filter(|(key, text)| is_new(key, text)).map(|(key, _)| key);
            let agreed = agreed.filter(|key| !self.report.taken.contains(*key)).cloned().collect();
            self.disk.flush(&agreed).await?;
            self.disk.remember(&self.state).await?;
            self.saved = self.state.clone();
        }
        Ok(())
    }
}

/// Removes the texts whose checksum is wrong, that are too long for an entry, or whose name differs from another only
/// in case or encoding; returns their keys.
fn take_out_unusable(snapshot: &mut Snapshot) -> BTreeSet<EntryKey> {
    let content = &mut snapshot.content;
    let (mut names, mut unusable) = (BTreeSet::new(), BTreeSet::new());
    for (key, text) in std::mem::take(&mut content.entries) {
        let is = checksum::of(&text);
        let why = match content.entry_checksums.get(&key) {
            Some(told) if *told != is => "its text is not what its checksum says",
            _ if text.len() > ENTRY_BYTES => "it is longer than an entry may be",
            _ if !names.insert(key.folded()) => "another entry's name differs only in the form of its letters",
            _ => {
                content.entry_checksums.insert(key.clone(), is);
                content.entries.insert(key, text);
                continue;
            }
        };
        content.entry_checksums.remove(&key);
        content.refuse(key.as_str(), why);
        unusable.insert(key);
    }
    unusable
}

#[cfg(test)]
mod laws;
