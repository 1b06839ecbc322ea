//! A member's folder kept in step with the server: [`sync_run`] on a real disk and over a real network.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use files::{Glance, LockFile, Root};

use crate::client::Client;
use crate::error::Error;
use crate::folder::{Folder, Listing};
use crate::key::EntryKey;
use crate::report::{EarlyEnd, SyncReport};
use crate::state::SyncState;
use crate::sync::{self, Deletions, PastTexts, SyncPlan};
use crate::sync_run::{self, SyncDisk};

/// Lock file next to the folder; the run that has locked it may work there. Its text names the process.
const LOCK: &str = ".team-lock";
/// Time to wait for another run: longer than most take, shorter than one that waits for an unreachable server.
const PATIENCE: Duration = Duration::from_secs(30);
/// Interval between attempts to take the lock.
const AGAIN: Duration = Duration::from_millis(50);

/// A folder, a server, and their agreed state.
#[derive(Debug)]
pub struct Mirror {
    disk: MirrorDisk,
    client: Client,
    deletions: Deletions,
}

#[derive(Debug)]
struct MirrorDisk {
    path: PathBuf,
    folder: Folder,
    state: PathBuf,
    patience: Duration,
}

impl Mirror {
    /// A mirror of a repository in a folder; `state` is the file with the agreed state, outside of it.
    pub fn open(folder: &Path, state: &Path, client: Client, deletions: Deletions) -> Result<Self, Error> {
        let (path, state) = (folder.to_owned(), state.to_owned());
        let disk = MirrorDisk { path, folder: Folder::open(folder)?, state, patience: PATIENCE };
        Ok(Self { disk, client, deletions })
    }

    /// With another policy for files that are missing here.
    pub fn with_deletions(mut self, deletions: Deletions) -> Self {
        self.deletions = deletions;
        self
    }

    /// With another time limit for waiting for another run.
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.disk.patience = patience;
        self
    }

    /// The plan of a run, and the folder's content.
    pub async fn plan(&mut self) -> Result<(SyncPlan, Listing), EarlyEnd> {
        sync_run::plan(&mut self.disk, &self.client, self.deletions).await
    }

    /// Changes made here since both sides were last compared, and the files that are not shared with the reasons; no
    /// server is asked.
    pub fn waiting(&self) -> Result<(SyncPlan, BTreeMap<String, String>), Error> {
        let listing = self.disk.list()?;
        let mut state = SyncState::read(&self.disk.state)?;
        state.settle(&listing);
        let plan = sync::plan(&state, &listing, &PastTexts::default(), self.deletions);
        Ok((SyncPlan { take: BTreeSet::new(), remove: BTreeSet::new(), ..plan }, listing.left))
    }

    /// The text of a listed file, unless it changed since.
    pub fn text(&self, key: &EntryKey, listing: &Listing) -> Option<String> {
        self.disk.folder.text(key, listing.files.get(key)?)
    }

    /// A glance at every file of the folder.
    pub fn glances(&self) -> Result<BTreeMap<PathBuf, Glance>, Error> {
        self.disk.folder.glances()
    }

    /// Takes the changes of others.
    pub async fn pull(&mut self) -> Result<SyncReport, EarlyEnd> {
        sync_run::pull(&mut self.disk, &self.client, self.deletions).await
    }

    /// Takes the changes of others, and sends those made here.
    pub async fn push(&mut self) -> Result<SyncReport, EarlyEnd> {
        sync_run::push(&mut self.disk, &self.client, self.deletions).await
    }

    /// The same, and every file that is missing here is deleted for all, however many there are.
    pub async fn push_all_deletions(&mut self) -> Result<SyncReport, EarlyEnd> {
        sync_run::push(&mut self.disk, &self.client, Deletions::TravelAll).await
    }
}

impl MirrorDisk {
    fn list(&self) -> Result<Listing, Error> {
        self.folder.look_since(files::glance(&self.state).as_ref())
    }

    /// Takes the lock; if another run has it, returns its process.
    fn try_lock(&self) -> Result<Result<LockFile, String>, Error> {
        let beside = Root::create(self.path.parent().unwrap_or(Path::new("/")))?;
        beside.make_lock_file(LOCK)?;
        let lock = beside.open_lock_file(LOCK)?;
        if !lock.try_lock()? {
            return Ok(Err(lock.read()?.text));
        }
        // A lock on a file that was removed meanwhile guards nothing.
        if !lock.is_named(&beside, LOCK)? {
            return Ok(Err(String::new()));
        }
        lock.write(&std::process::id().to_string())?;
        Ok(Ok(lock))
    }
}

impl SyncDisk for MirrorDisk {
    type Lock = LockFile;

    async fn lock(&mut self) -> Result<LockFile, EarlyEnd> {
        let mut by = String::new();
        for _ in 0..=self.patience.as_millis() / AGAIN.as_millis() {
            match self.try_lock()? {
                Ok(lock) => {
                    self.folder.reopen(&self.path)?;
                    return Ok(lock);
                }
                Err(other) => by = other,
            }
            tokio::time::sleep(AGAIN).await;
        }
        Err(EarlyEnd::Busy { by })
    }

    async fn remembered(&mut self) -> Result<SyncState, Error> {
        SyncState::read(&self.state)
    }

    async fn remember(&mut self, state: &SyncState) -> Result<(), Error> {
        let text = serde_json::to_vec(state).map_err(|error| Error::Invalid(error.to_string()))?;
        files::replace(&self.state, &text)?;
        Ok(())
    }

    async fn mark(&mut self) -> Option<String> {
        self.folder.mark()
    }

    async fn make_mark(&mut self) -> Result<String, Error> {
        self.folder.make_mark()
    }

    async fn look(&mut self) -> Result<Listing, Error> {
        self.list()
    }

    async fn flush(&mut self, keys: &BTreeSet<EntryKey>) -> Result<(), Error> {
        self.folder.flush(keys)
    }

    async fn text(&mut self, key: &EntryKey, checksum: &str) -> Option<String> {
        self.folder.text(key, checksum)
    }

    async fn take(
        &mut self,
        key: &EntryKey,
        text: &str,
        written: Option<jiff::Timestamp>,
        expected: Option<&str>,
    ) -> Result<bool, Error> {
        self.folder.take(key, text, written, expected)
    }

    async fn remove(&mut self, key: &EntryKey, expected: &str) -> Result<bool, Error> {
        self.folder.remove(key, expected)
    }
}
