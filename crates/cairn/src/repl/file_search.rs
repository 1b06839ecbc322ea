//! Files of the project by a few letters of their paths, for `@`.
//!
//! The list of files is made when it is first needed, beside the session, and so is every search in it: a key never waits
//! for the disk or for a hundred thousand paths. It honours what git ignores and knows paths only, no content.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::fuzzy;

/// The most files that are listed: beyond it a project has other ways to find one.
const LISTED: usize = 200_000;
/// The most files that are found.
const FOUND: usize = 50;
/// Age at which the list is made anew when the next word begins.
const FRESH: Duration = Duration::from_secs(5);

/// The list of files, and the search under way.
pub(super) struct FileSearch {
    directory: PathBuf,
    list: Arc<Vec<String>>,
    listed_at: Option<Instant>,
    running: Option<JoinHandle<SearchOutcome>>,
    /// The newest search that was asked for.
    wanted: Option<String>,
    /// Last result, and its query.
    found: Option<(String, Vec<String>)>,
    /// Tab was pressed before anything was found: the first is taken when it is.
    pub(super) takes_first: bool,
    stop: Arc<AtomicBool>,
}

/// Result of a search.
pub(super) struct SearchOutcome {
    typed: String,
    list: Option<Vec<String>>,
    found: Vec<String>,
}

impl FileSearch {
    /// Of a directory. Nothing is read yet.
    pub(super) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            list: Arc::default(),
            listed_at: None,
            running: None,
            wanted: None,
            found: None,
            takes_first: false,
            stop: Arc::default(),
        }
    }

    /// The paths for these letters, if they are known by now; else they are searched for.
    pub(super) fn find(&mut self, typed: &str) -> Option<Vec<String>> {
        if let Some((known, found)) = &self.found
            && known == typed
        {
            return Some(found.clone());
        }
        self.takes_first = false;
        self.wanted = Some(typed.to_owned());
        self.start();
        None
    }

    /// True if the letters that are searched for are these.
    pub(super) fn is_wanted(&self, typed: &str) -> bool {
        self.wanted.as_deref() == Some(typed)
    }

    /// True if it is known what fits these letters.
    pub(super) fn has_found(&self, typed: &str) -> bool {
        self.found.as_ref().is_some_and(|(known, _)| known == typed)
    }

    /// No word is being written: the next one gets a list that is fresh.
    pub(super) fn rest(&mut self) {
        (self.wanted, self.found, self.takes_first) = (None, None, false);
        if self.listed_at.is_some_and(|at| at.elapsed() > FRESH) {
            self.listed_at = None;
        }
    }

    /// One search at a time: what is typed meanwhile is searched for next.
    fn start(&mut self) {
        if self.running.is_some() {
            return;
        }
        let Some(typed) = self.wanted.clone() else { return };
        let (directory, stop) = (self.directory.clone(), self.stop.clone());
        let known = self.listed_at.map(|_| self.list.clone());
        self.running = Some(tokio::task::spawn_blocking(move || {
            let fresh = known.is_none().then(|| tools::project_files(&directory, LISTED, &stop));
            let list = fresh.as_deref().or(known.as_deref().map(Vec::as_slice)).unwrap_or_default();
            let found = fuzzy::best(&typed, list, |path| path.as_str(), FOUND);
            let found = found.into_iter().cloned().collect();
            SearchOutcome { typed, list: fresh, found }
        }));
    }

    /// Waits for the end of the search under way; forever, if there is none.
    pub(super) async fn ends(&mut self) -> Option<SearchOutcome> {
        match &mut self.running {
            Some(running) => running.await.ok(),
            None => std::future::pending().await,
        }
    }

    /// Takes in what a search found; says whether that is what is wanted.
    pub(super) fn ended(&mut self, outcome: Option<SearchOutcome>) -> bool {
        self.running = None;
        let Some(SearchOutcome { typed, list, found }) = outcome else { return false };
        if let Some(list) = list {
            (self.list, self.listed_at) = (Arc::new(list), Some(Instant::now()));
        }
        let is_wanted = self.is_wanted(&typed);
        self.found = Some((typed, found));
        if !is_wanted {
            self.start();
        }
        is_wanted
    }
}

impl Drop for FileSearch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
