//! Changes in a memory directory: their author, and the texts before and after.
//!
//! Each run of an agent, and each command of the user, has a file of its own, outside the memory directory: first the
//! author, then every change with the whole text before and after it, written before the change is made. So everything
//! an agent does can be inspected and undone (`undo`), even after a crash in the middle. What the user removed or
//! undid is refused to agents ([`crate::tombstones`]). Nothing here asks a model or reads a clock.

mod recorder;
mod undo;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use files::{Lines, Log, Text};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::entry::Memory;
use crate::error::Error;
use crate::index;
use crate::quoted_sentences::QuotedSentence;
use crate::store::{Store, TEAM, checked};
use crate::tombstones::Tombstones;

pub use crate::kept_change::KeptChange;
pub use recorder::Recorder;
pub use undo::UndoResult;

/// Number of runs that are kept; the oldest are removed.
pub const KEPT: usize = 100;

/// Name for the user's own commands.
pub const USER: &str = "user";

/// File that names the newest run the user was told of.
const NEWEST_SHOWN: &str = "told";

/// The largest index that is read.
const INDEX: u64 = 10_000_000;

/// The folder with the runs of one memory directory.
#[derive(Debug, Clone)]
pub struct Changes {
    folder: PathBuf,
}

/// Author and time of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunHead {
    /// The agent, such as `extract`.
    pub agent: String,
    /// The session it belonged to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Time of its start.
    pub at: String,
    /// The memory directory.
    pub directory: PathBuf,
}

/// A line of a run's file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum ChangeLine {
    Head(RunHead),
    Change(KeptChange),
    /// The run is over, and files and index are in step.
    Ended,
}

/// A run that is being written.
#[derive(Debug)]
pub struct Writer {
    log: Log,
    id: String,
    agent: String,
    tombstones: Tombstones,
}

/// A recorded run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeRun {
    /// Its name.
    pub id: String,
    /// Author and time.
    pub head: RunHead,
    /// Changes, in order.
    pub changes: Vec<KeptChange>,
    /// True if it was completed.
    pub ended: bool,
}

impl Changes {
    /// The runs in a folder. It need not exist.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts a run under a new name. Names sort by age.
    pub fn begin(&self, id: &str, head: RunHead) -> Result<Writer, Error> {
        let log = Log::open(self.file(id)?, &head.agent)?;
        let mut writer = self.writer(log, id, &head.agent);
        writer.append(&ChangeLine::Head(head))?;
        self.forget_the_oldest();
        Ok(writer)
    }

    /// Runs that changed something, newest first.
    pub fn runs(&self) -> Vec<ChangeRun> {
        let mut runs: Vec<ChangeRun> = self.ids().iter().filter_map(|id| self.run(id).ok()).collect();
        runs.retain(|run| !run.changes.is_empty());
        runs
    }

    /// Runs that began since the last call, newest first. Each is reported once.
    pub fn news(&self) -> Vec<ChangeRun> {
        let (ids, marker) = (self.ids(), self.folder.join(NEWEST_SHOWN));
        let Some(newest) = ids.first() else { return Vec::new() };
        let told = files::read(&marker, 200).map(|file| String::from_utf8_lossy(&file.bytes).into_owned());
        if told.as_ref().is_ok_and(|told| told == newest) {
            return Vec::new();
        }
        let _ = files::replace_private(&marker, newest.as_bytes()); // then it is told once more
        let told = told.unwrap_or_default();
        ids.iter().take_while(|id| **id > told).filter_map(|id| self.run(id).ok()).collect()
    }

    /// One run.
    pub fn run(&self, id: &str) -> Result<ChangeRun, Error> {
        let path = self.file(id)?;
        let (mut head, mut changes, mut ended) = (None, Vec::new(), false);
        let mut lines = Lines::open(&path)?;
        while let Some(line) = lines.next()? {
            // A torn line is the one that was being written when all ended: its change was never made.
            let Text::Whole(line) = line.text else { continue };
            match serde_json::from_slice(line) {
                Ok(ChangeLine::Head(found)) => head = Some(found),
                Ok(ChangeLine::Change(change)) => changes.push(change),
                Ok(ChangeLine::Ended) => ended = true,
                Err(_) => {}
            }
        }
        let head = head.ok_or(files::Error::NotFound { path })?;
        Ok(ChangeRun { id: id.to_owned(), head, changes, ended })
    }

    /// Brings the index into step with the changes of runs that were not completed. Running ones are left alone.
    pub fn settle(&self, store: &Store) -> Result<Vec<String>, Error> {
        let mut settled = Vec::new();
        for id in self.ids() {
            let Ok(run) = self.run(&id) else { continue };
            if run.ended {
                continue;
            }
            let Ok(log) = Log::open(self.file(&id)?, "settling") else { continue };
            for change in run.changes.iter().filter(|change| !is_index(&change.path)) {
                store.in_step(&change.path)?;
                settled.push(change.path.clone());
            }
            self.writer(log, &id, &run.head.agent).end()?;
        }
        Ok(settled)
    }

    /// Plants a tombstone for each memory of a run whose file is gone and whose index line is left: the user has
    /// removed it by hand. One whose text is elsewhere was only moved; team memories may have been removed by others.
    pub fn bury_removed(&self, store: &Store, at: Timestamp) -> Result<(), Error> {
        let mut seen = HashSet::new();
        for run in self.runs() {
            for KeptChange { path, after, .. } in run.net() {
                let is_newest = seen.insert(path.clone());
                let Some(text) = after.filter(|_| is_newest && run.ended && !path.starts_with(TEAM)) else { continue };
                let is_gone = matches!(store.root().head(&path, 0), Err(files::Error::NotFound { .. }))
                    && store.line(&path)?.is_some();
                let body = || Memory::parse(&path, text.as_bytes(), None, text.len() as u64).body;
                if is_gone
                    && !self.tombstones().applies_since(&path, &text, run.head.began())
                    && store.nothing_like(&body()).is_ok()
                {
                    self.tombstones().plant(&path, &text, Some(at.to_string()))?;
                }
            }
        }
        self.bury_unknown(store, &seen, at)
    }

    /// The same for memories of which no run is kept any more: nothing is known of them but the line, so that the name alone
    /// is buried.
    fn bury_unknown(&self, store: &Store, known: &HashSet<String>, at: Timestamp) -> Result<(), Error> {
        // While no run has been dropped, a line without a file and without a run is nothing that was learnt here.
        if self.ids().len() < KEPT {
            return Ok(());
        }
        let index = match store.root().read(index::FILE, INDEX) {
            Ok(index) => String::from_utf8_lossy(&index.bytes).into_owned(),
            Err(files::Error::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for path in index::links(&index).into_iter().map(|link| link.target) {
            let is_memory = checked(&path).is_ok() && !path.starts_with(TEAM) && !known.contains(&*path);
            let is_gone = is_memory && matches!(store.root().head(&path, 0), Err(files::Error::NotFound { .. }));
            if is_gone && self.tombstones().against(&path, "").is_none() {
                self.tombstones().plant(&path, "", Some(at.to_string()))?;
            }
        }
        Ok(())
    }

    /// The user's tombstones.
    pub fn tombstones(&self) -> Tombstones {
        Tombstones::in_folder(&self.folder)
    }

    fn writer(&self, log: Log, id: &str, agent: &str) -> Writer {
        Writer { log, id: id.to_owned(), agent: agent.to_owned(), tombstones: self.tombstones() }
    }

    /// Names of runs, newest first.
    fn ids(&self) -> Vec<String> {
        let entries = files::list(&self.folder).unwrap_or_default();
        let name = |entry: files::DirectoryEntry| Some(entry.name.to_str()?.strip_suffix(".jsonl")?.to_owned());
        let mut ids: Vec<String> = entries.into_iter().filter_map(name).collect();
        ids.sort_unstable_by(|one, other| other.cmp(one));
        ids
    }

    fn forget_the_oldest(&self) {
        for id in self.ids().iter().skip(KEPT) {
            let _ = self.file(id).map(files::remove); // it is looked at again at the next run
        }
    }

    fn file(&self, id: &str) -> Result<PathBuf, Error> {
        let plain = !id.is_empty() && id.len() <= 120 && id.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-');
        if !plain {
            return Err(Error::BadName { name: id.to_owned(), why: "a run is named by letters, digits and dashes" });
        }
        Ok(self.folder.join(format!("{id}.jsonl")))
    }
}

impl Writer {
    /// The run's name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Records a change that is about to be made. An agent that would bring back what the user removed is refused; what
    /// the user writes lifts the tombstone.
    pub fn keep(&mut self, change: &KeptChange) -> Result<(), Error> {
        self.keep_quoting(change, None)
    }

    /// The same for a memory that quotes a sentence the user typed: what was typed after a removal is no return of it.
    pub fn keep_quoting(&mut self, change: &KeptChange, spoken: Option<&QuotedSentence>) -> Result<(), Error> {
        if let Some(after) = &change.after {
            self.allow(&change.path, change.before.as_deref(), after, spoken)?;
        }
        self.append(&ChangeLine::Change(change.clone()))
    }

    fn allow(
        &self,
        path: &str,
        before: Option<&str>,
        after: &str,
        spoken: Option<&QuotedSentence>,
    ) -> Result<(), Error> {
        if self.agent == USER {
            return self.tombstones.lift(path, after);
        }
        let known = before.is_some_and(|before| self.tombstones.against(path, before).is_some());
        match self.tombstones.refusing(path, after, spoken).filter(|_| !known) {
            Some(stone) => Err(Error::Forgotten { path: path.to_owned(), removed: stone.path }),
            None => Ok(()),
        }
    }

    /// Completes the run.
    pub fn end(mut self) -> Result<(), Error> {
        self.append(&ChangeLine::Ended)
    }

    fn append(&mut self, entry: &ChangeLine) -> Result<(), Error> {
        let mut line = serde_json::to_vec(entry).unwrap_or_default();
        line.push(b'\n');
        Ok(self.log.append(&line)?)
    }
}

impl RunHead {
    /// Time of its start.
    pub fn began(&self) -> Option<Timestamp> {
        self.at.parse().ok()
    }
}

impl ChangeRun {
    /// The first and the last state of each memory the run touched.
    pub fn net(&self) -> Vec<KeptChange> {
        let mut net: Vec<KeptChange> = Vec::new();
        for change in &self.changes {
            match net.iter_mut().find(|known| known.path == change.path) {
                Some(known) => known.after.clone_from(&change.after),
                None => net.push(change.clone()),
            }
        }
        net.retain(|change| change.before != change.after);
        net
    }
}

impl Store {
    /// Brings the index into step with one file, whatever became of it.
    fn in_step(&self, path: &str) -> Result<(), Error> {
        checked(path)?;
        let _held = self.lock()?;
        let memory = Memory::read(self.root(), path);
        self.indexed(path, |text, target| match (&memory, index::written(text, target)) {
            (Ok(memory), None) => {
                index::put(text, &memory.name, target, memory.description.as_deref().unwrap_or_default())
            }
            (Err(Error::Files(files::Error::NotFound { .. })), Some(_)) => index::take(text, target),
            _ => text.to_owned(),
        })?;
        Ok(())
    }
}

/// Returns whether a path is that of an index.
fn is_index(path: &str) -> bool {
    path.rsplit('/').next() == Some(index::FILE)
}

/// Folder for the runs of a memory directory, below a folder for all of them: by its path, with symlinks resolved.
pub fn folder(below: &Path, memory: &Path) -> PathBuf {
    let real = files::real(memory).unwrap_or_else(|_| memory.to_owned());
    let path = real.to_string_lossy();
    let name: String = path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let hash = blake3::hash(path.as_bytes()).to_hex();
    let tail = &name[name.len().saturating_sub(100)..];
    below.join(format!("{}-{}", tail.trim_matches('-'), &hash[..8]))
}
