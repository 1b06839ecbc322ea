//! Rehearsals: dreams over a copy. The changes are shown and kept, and can be applied later, as long as the memories
//! they are about have not changed since.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use files::Root;
use memory::changes::{self, Changes, KeptChange};
use memory::echo_check::InjectedWords;
use memory::quoted_sentences::{QuotedSentence, Register, TypedMessages};
use memory::store::Store;
use serde::{Deserialize, Serialize};
use session::{Home, World};
use tools::Scope;

use super::dream_log::{DreamFinish, DreamOutcome, DreamStart};
use super::lock::DreamEnd;
use super::run::{Dream, HeldDreamLock, NoDreamReason};
use super::site::DreamSite;
use crate::ledger;
use crate::protection::Protection;
use crate::saver::{Author, Removal, Saver, SavingLimits, SavingPlace};

/// Folder of the copies below the config home, each in a folder that begins with the id of its process.
const FOLDER: &str = "cairn/rehearsals";
/// Size limit of a file that is copied; no memory is larger.
const COPIED: u64 = 4 * 1024 * 1024;
/// Mode of plans: they hold the texts of memories, so nobody else reads them.
const MODE: u32 = 0o600;
/// The largest plan that is read.
const LARGEST: u64 = 64 * 1024 * 1024;

/// Changes of a rehearsed dream.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RehearsedChanges {
    /// Time of the rehearsal.
    pub at: String,
    /// The model.
    pub model: String,
    /// The dream's report.
    pub text: String,
    /// The changes, each memory once.
    pub changes: Vec<KeptChange>,
    /// Reasons for removing memories.
    pub removals: Vec<Removal>,
    /// The user's sentences that the new memories quote.
    quoted: Vec<QuotedSentence>,
}

/// Reason a plan was not applied.
#[derive(Debug, thiserror::Error)]
pub enum NotAppliedReason {
    /// There is none.
    #[error("there is nothing to apply here; cairn dream --dry-run makes a proposal")]
    NoPlan,
    /// Memories have changed since.
    #[error("nothing was changed: these memories are no longer as they were in the dry run: {}", .0.join(", "))]
    ChangedSince(Vec<String>),
    /// A change was refused. Those made before it can be undone.
    #[error("{why} {done} of {all} changes were made before; cairn dream undo takes them back")]
    Refused {
        /// The reason.
        why: String,
        /// Number of changes made.
        done: usize,
        /// Number of all changes.
        all: usize,
    },
    /// The lock, or the memory directory.
    #[error(transparent)]
    NotDreamt(#[from] NoDreamReason),
}

impl Dream {
    /// Dreams over a copy, and returns the changes it would make. They are kept for [`RehearsedChanges::apply`].
    pub async fn rehearse(self) -> Result<(DreamFinish, Vec<KeptChange>), NoDreamReason> {
        tidy(&self.site.home);
        let name = format!("{}-{}", std::process::id(), self.site.world.fresh_id());
        let folder = self.site.home.path().join(FOLDER).join(name);
        let removed = RemovedAtEnd(folder.clone());
        let (last, _) = self.site.last()?;
        copy(&self.site.memory, &folder.join("memory"))?;
        let store = Store::create(folder.join("memory"), self.indexing)?;
        let sources = self.sources();
        let touched = self.something(&store, &sources, last)?;
        let copied = Changes::at(folder.join("changes"));
        let since = (last, touched, sources);
        let (over, told) = self.work("rehearsal".to_owned(), store, copied.clone(), since, None).await;
        let net = over.run.as_ref().and_then(|run| copied.run(run).ok()).map(|run| run.net()).unwrap_or_default();
        if over.how == DreamOutcome::Completed {
            let quotations = Register::in_folder(copied.folder()).read();
            let quoted = net.iter().filter_map(|change| quotations.of(&body(change.after.as_deref()?)).cloned());
            let plan = RehearsedChanges {
                at: over.at.to_string(),
                model: self.name.clone(),
                text: over.text.clone(),
                quoted: quoted.collect(),
                changes: net.clone(),
                removals: over.removals.clone(),
            };
            plan.keep(&self.site)?;
        }
        drop(removed);
        (self.listener)(&told);
        Ok((over, net))
    }
}

impl RehearsedChanges {
    fn file(site: &DreamSite) -> PathBuf {
        let mut path = changes::folder(&site.home.path().join(FOLDER), &site.memory).into_os_string();
        path.push(".json");
        path.into()
    }

    /// The newest rehearsal.
    pub fn of(site: &DreamSite) -> Option<Self> {
        let file = files::read(Self::file(site), LARGEST).ok()?;
        serde_json::from_slice(&file.bytes).ok()
    }

    /// Keeps it in place of the one before; one without changes leaves none.
    fn keep(&self, site: &DreamSite) -> Result<(), files::Error> {
        if self.changes.is_empty() {
            return Self::forget(site);
        }
        let file = Self::file(site);
        let name = file.file_name().unwrap_or_default();
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        Root::create(site.home.path().join(FOLDER))?.replace(name, &bytes, MODE)
    }

    fn forget(site: &DreamSite) -> Result<(), files::Error> {
        match files::remove(Self::file(site)) {
            Err(files::Error::NotFound { .. }) => Ok(()),
            other => other,
        }
    }

    /// The memories that have changed since the rehearsal.
    fn changed_since(&self, store: &Store) -> Vec<String> {
        let now = |path: &str| store.root().read(path, COPIED).ok().map(|file| file.bytes);
        let is_same = |change: &KeptChange| now(&change.path).as_deref() == change.before.as_deref().map(str::as_bytes);
        self.changes.iter().filter(|change| !is_same(change)).map(|change| change.path.clone()).collect()
    }

    /// Applies it, as a dream that can be shown and undone like any other.
    pub fn apply(
        &self,
        site: &DreamSite,
        indexing: memory::store::IndexUpkeep,
    ) -> Result<DreamFinish, NotAppliedReason> {
        let store = Store::create(&site.memory, indexing).map_err(NoDreamReason::from)?;
        let (_, mark) = site.last().map_err(NoDreamReason::from)?;
        let now = site.world.now();
        let lock = HeldDreamLock::take(&store, mark.dreamt, now)?;
        let changed = self.changed_since(&store);
        if !changed.is_empty() {
            return Err(NotAppliedReason::ChangedSince(changed)); // the lock goes back as it was
        }
        let id = format!("{}-{}", now.strftime("%Y%m%d-%H%M%S"), std::process::id());
        let (pid, model, log) = (std::process::id(), self.model.clone(), site.dream_log());
        let began = DreamStart { id: id.clone(), at: now, pid, model, sessions: 0, before: lock.before() };
        log.begin(&began).map_err(NoDreamReason::from)?;
        let saver = self.saver(site, indexing).map_err(NoDreamReason::from)?;
        let scope = Scope::new(&site.project, site.home.path().join(FOLDER));
        let done = self.changes.iter().try_fold(0, |done, change| match self.make(change, &saver, &store, &scope) {
            Ok(()) => Ok(done + 1),
            Err(why) => Err(NotAppliedReason::Refused { why, done, all: self.changes.len() }),
        });
        let (tally, run) = (saver.tally(), saver.end());
        let (saved, removed, removals) = (tally.saved, tally.removed, tally.removals);
        let mut over = DreamFinish { run, saved, removed, removals, ..DreamFinish::of(id, now) };
        (over.how, over.text) = match &done {
            Ok(_) => (DreamOutcome::Completed, self.text.clone()),
            Err(why) => (DreamOutcome::Failed, why.to_string()),
        };
        lock.give(if over.how == DreamOutcome::Completed { DreamEnd::Dreamt } else { DreamEnd::Failed });
        log.end(&over).map_err(NoDreamReason::from)?;
        done?;
        Self::forget(site).map_err(NoDreamReason::from)?;
        Ok(over)
    }

    fn saver(&self, site: &DreamSite, indexing: memory::store::IndexUpkeep) -> Result<Arc<Saver>, memory::Error> {
        let place = SavingPlace { directory: site.memory.clone(), indexing, changes: site.changes() };
        let author = Author {
            agent: ledger::DREAM,
            session: site.session.clone(),
            message: None,
            model: self.model.clone(),
            injected: InjectedWords::default(),
            typed: TypedMessages::default(),
            newest_source: None,
            world: World::clone(&site.world),
        };
        let saver = Saver::new(place, author, SavingLimits::NONE, &site.project)?;
        let saver = match site.user_place(indexing) {
            Some(user) => saver.knowing_user(&user),
            None => saver,
        };
        saver.protect(Protection::of(&site.changes()));
        for spoken in &self.quoted {
            let session = spoken.session.as_deref().unwrap_or_default();
            saver.hear(&spoken.sentence, spoken.time(), session, spoken.message.as_deref());
        }
        Ok(Arc::new(saver))
    }

    fn make(&self, change: &KeptChange, saver: &Saver, store: &Store, scope: &Scope) -> Result<(), String> {
        let path = saver.directory().join(&change.path);
        if let Ok(file) = store.root().read(&change.path, COPIED) {
            scope.note(&path, file.stamp);
        }
        let made = match &change.after {
            Some(after) => saver.save(&scope.subject(&path.to_string_lossy()), after, |_| Ok(after.clone()), scope),
            None => {
                let known = self.removals.iter().find(|removal| removal.path == change.path).cloned();
                let removal = known.unwrap_or_else(|| Removal {
                    path: change.path.clone(),
                    replaced_by: None,
                    reason: "It was rehearsed so.".to_owned(),
                });
                saver.remove(removal, scope)
            }
        };
        made.map(drop)
    }
}

/// The text of a memory below its head.
fn body(text: &str) -> String {
    memory::Memory::parse("", text.as_bytes(), None, text.len() as u64).body
}

/// Removes the copies of rehearsals whose process is gone.
pub fn tidy(home: &Home) {
    let folder = home.path().join(FOLDER);
    for entry in files::list(&folder).unwrap_or_default() {
        let pid = entry.name.to_str().and_then(|name| name.split_once('-')?.0.parse::<u32>().ok());
        if entry.kind == files::EntryKind::Directory && pid.is_none_or(|pid| !files::process_runs(pid)) {
            let _ = files::remove_tree(folder.join(&entry.name)); // it is looked at again the next time
        }
    }
}

/// A folder that is removed when this is dropped.
struct RemovedAtEnd(PathBuf);

impl Drop for RemovedAtEnd {
    fn drop(&mut self) {
        let _ = files::remove_tree(&self.0); // nobody is left to tell
    }
}

/// Copies a memory directory, with the dates of its files.
fn copy(from: &Path, to: &Path) -> Result<(), NoDreamReason> {
    let to = Root::create(to)?;
    let from = match Root::open(from) {
        Ok(from) => from,
        Err(files::Error::NotFound { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    for found in from.walk(|_| true)? {
        let is_text = found.path.extension().is_some_and(|extension| extension == "md");
        let Ok(file) = from.read(&found.path, COPIED) else { continue };
        if is_text {
            to.create_new(&found.path, &file.bytes, 0o600)?;
            if let Some(modified) = file.stamp.modified {
                to.date(&found.path, modified)?;
            }
        }
    }
    Ok(())
}
