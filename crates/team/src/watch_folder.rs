//! Synchronising a folder while somebody works: [`Rhythm`] says when, a task does it, and a listener is told the
//! results.
//!
//! Nobody waits for it, and no problem of it stops anybody. At the end unsent changes get a moment; the rest is sent
//! the next time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use files::Glance;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::key::EntryKey;
use crate::mirror::Mirror;
use crate::protocol::Time;
use crate::report::{EarlyEnd, RemoteChange, SyncReport};
use crate::rhythm::{NextSync, Rhythm, SyncEnding};

/// Interval between checks of the folder for changes. A check opens no file.
const LOOK: Duration = Duration::from_millis(500);
/// Time limit for unsent changes at the end.
const FAREWELL: Duration = Duration::from_secs(5);
/// Number of remote changes that are remembered, the newest.
const CHANGES: usize = 100;

/// A clock.
pub type Clock = Arc<dyn Fn() -> Time + Send + Sync>;
/// Listener for news.
pub type WatchListener = Arc<dyn Fn(WatchNews) + Send + Sync>;

/// News of a watched folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchNews {
    /// Something was taken, sent, removed or deleted, or changed on both sides.
    Done(Box<SyncReport>),
    /// Files that are not shared, and why; each is reported once.
    Left(BTreeMap<String, String>),
    /// Entries that cannot be synchronised, and why; each is reported once.
    KeptBack(BTreeMap<String, String>),
    /// Missing files, too many to be deleted for all without a question; reported once.
    Held(BTreeSet<EntryKey>),
    /// The reason nothing can be taken or sent now; reported once.
    Trouble(String),
}

/// Status of a watched folder.
#[derive(Debug, Clone, Default)]
pub struct WatchStatus {
    /// Time of the last comparison of both sides.
    pub met: Option<Time>,
    /// The reason they cannot be compared now.
    pub trouble: Option<String>,
    /// True if pushes are suspended until something is deleted here or the program starts again.
    pub is_silent: bool,
    /// Entries that wait to be sent, or deleted there.
    pub waiting: BTreeSet<EntryKey>,
    /// Files that are not shared, and why.
    pub left: BTreeMap<String, String>,
    /// Entries that cannot be synchronised, and why.
    pub kept_back: BTreeMap<String, String>,
    /// Files missing here, too many to be deleted for all without a question.
    pub held: BTreeSet<EntryKey>,
    /// Entries that both sides had changed.
    pub conflicts: BTreeSet<EntryKey>,
    /// Changes that others made here, the newest last.
    pub changes: Vec<RemoteChange>,
}

/// A folder being synchronised. Dropping it leaves the folder as it is.
#[derive(Debug)]
pub struct WatchedFolder {
    stop: CancellationToken,
    abandoned: CancellationToken,
    wake: Arc<Notify>,
    delete_missing: Arc<AtomicBool>,
    status: Arc<Mutex<WatchStatus>>,
    task: Option<JoinHandle<()>>,
}

impl WatchedFolder {
    /// Starts synchronising a mirror.
    pub fn start(mirror: Mirror, clock: Clock, tell: WatchListener) -> Self {
        let (stop, wake) = (CancellationToken::new(), Arc::new(Notify::new()));
        let status: Arc<Mutex<WatchStatus>> = Arc::default();
        let delete_missing: Arc<AtomicBool> = Arc::default();
        let work = WatchTask {
            mirror,
            clock,
            tell,
            stop: stop.clone(),
            wake: wake.clone(),
            delete_missing: delete_missing.clone(),
            status: status.clone(),
            rhythm: Rhythm::default(),
            seen: None,
        };
        let abandoned = CancellationToken::new();
        let end = abandoned.clone();
        // Files are written durably, which takes its time: on a thread of its own that holds up no other work.
        let runtime = tokio::runtime::Handle::current();
        let task = tokio::task::spawn_blocking(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = end.cancelled() => {}
                    () = work.run() => {}
                }
            });
        });
        Self { stop, abandoned, wake, delete_missing, status, task: Some(task) }
    }

    /// Current status.
    pub fn status(&self) -> WatchStatus {
        self.status.lock().clone()
    }

    /// Pulls and pushes now.
    pub fn hurry(&self) {
        self.wake.notify_one();
    }

    /// Deletes the missing files for all, now: somebody was asked.
    pub fn delete_missing(&self) {
        self.delete_missing.store(true, Ordering::SeqCst);
        self.hurry();
    }

    /// Sends waiting changes, if that takes only a moment, and ends.
    pub async fn close(mut self) {
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            let _ = task.await; // it ended either way
        }
    }
}

impl Drop for WatchedFolder {
    fn drop(&mut self) {
        self.abandoned.cancel();
    }
}

struct WatchTask {
    mirror: Mirror,
    clock: Clock,
    tell: WatchListener,
    stop: CancellationToken,
    wake: Arc<Notify>,
    delete_missing: Arc<AtomicBool>,
    status: Arc<Mutex<WatchStatus>>,
    rhythm: Rhythm,
    seen: Option<BTreeMap<PathBuf, Glance>>,
}

impl WatchTask {
    async fn run(mut self) {
        let stop = self.stop.clone();
        while !stop.is_cancelled() {
            let now = (self.clock)();
            self.look(now);
            let did = match self.rhythm.next(now) {
                NextSync::Wait(until) => {
                    let pause = Duration::from_millis(until.saturating_sub(now).unsigned_abs()).min(LOOK);
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = self.wake.notified() => self.rhythm.hurry(),
                        () = tokio::time::sleep(pause) => {}
                    }
                    continue;
                }
                did => did,
            };
            // What is cut off here is done again below, or the next time.
            let outcome = tokio::select! {
                () = stop.cancelled() => break,
                outcome = step(&mut self.mirror, did, &self.delete_missing) => outcome,
            };
            self.rhythm.done(did, SyncEnding::from(&outcome), (self.clock)(), crate::client::part());
            self.heard(outcome);
        }
        self.look((self.clock)());
        if !self.status.lock().waiting.is_empty()
            && !self.rhythm.is_silent()
            && let Ok(outcome) = tokio::time::timeout(FAREWELL, self.mirror.push()).await
        {
            self.heard(outcome);
        }
    }

    /// Looks for changes made here since the last look, and reports files that are newly not shared.
    fn look(&mut self, now: Time) {
        let Ok(found) = self.mirror.glances() else { return };
        if self.seen.as_ref() == Some(&found) {
            return;
        }
        self.seen = Some(found);
        let Ok((waiting, left)) = self.mirror.waiting() else { return };
        if !waiting.is_empty() {
            self.rhythm.changed(now, !waiting.delete.is_empty());
        }
        let known = {
            let mut status = self.status.lock();
            status.waiting = waiting.send.union(&waiting.delete).cloned().collect();
            std::mem::replace(&mut status.left, left.clone())
        };
        let fresh = unknown(left, &known);
        if !fresh.is_empty() {
            (self.tell)(WatchNews::Left(fresh));
        }
    }

    fn heard(&mut self, outcome: Result<SyncReport, EarlyEnd>) {
        let (now, is_silent) = ((self.clock)(), self.rhythm.is_silent());
        let mut news = Vec::new();
        let mut status = self.status.lock();
        status.is_silent = is_silent;
        match outcome {
            Ok(report) => {
                (status.met, status.trouble) = (Some(now), None);
                status.waiting.retain(|key| !report.sent.contains(key) && !report.deleted.contains(key));
                status.conflicts.extend(report.conflicts.iter().cloned());
                status.changes.extend(report.changes.iter().cloned());
                let old = status.changes.len().saturating_sub(CHANGES);
                status.changes.drain(..old);
                let kept_back = report.kept_back();
                let known = std::mem::replace(&mut status.kept_back, kept_back.clone());
                let fresh = unknown(kept_back, &known);
                let is_held_anew = !report.held.is_empty() && status.held != report.held;
                status.held.clone_from(&report.held);
                let held = report.held.clone();
                news.extend((!report.is_empty()).then(|| WatchNews::Done(Box::new(report))));
                news.extend((!fresh.is_empty()).then_some(WatchNews::KeptBack(fresh)));
                news.extend(is_held_anew.then_some(WatchNews::Held(held)));
            }
            Err(error) => {
                let text = error.to_string();
                let is_new = status.trouble.replace(text.clone()).as_ref() != Some(&text);
                news.extend(is_new.then_some(WatchNews::Trouble(text)));
            }
        }
        drop(status);
        news.into_iter().for_each(|news| (self.tell)(news));
    }
}

/// The entries that were not reported yet.
fn unknown(all: BTreeMap<String, String>, known: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    all.into_iter().filter(|(name, why)| known.get(name) != Some(why)).collect()
}

async fn step(mirror: &mut Mirror, what: NextSync, delete_missing: &AtomicBool) -> Result<SyncReport, EarlyEnd> {
    match what {
        NextSync::Push if delete_missing.swap(false, Ordering::SeqCst) => mirror.push_all_deletions().await,
        NextSync::Push => mirror.push().await,
        _ => mirror.pull().await,
    }
}

impl WatchStatus {
    /// One sentence on what prevents synchronisation, if anything does.
    pub fn trouble(&self) -> Option<String> {
        match (&self.trouble, self.is_silent) {
            (Some(trouble), true) => {
                Some(format!("{trouble}; nothing is sent until a file is deleted here or the session is started again"))
            }
            (trouble, _) => trouble.clone(),
        }
    }
}
