//! A disk that is full now and then, does not list some folders, fails to sync, and is there for a process that can be
//! killed before any effect. After a power cut, what was not synced is as it was before, or torn.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, ThreadId};

use files::faults::{Effect, FaultyDisk};
use tokio::sync::Notify;

use crate::it::chance::Chance;

/// One sync in so many brings everything to the disk and says that it failed.
const FAILED_SYNCS: usize = 250;

/// Looks on: called before each effect that is let through. Gives the file that a person writes at this moment, if any.
pub(crate) type Observer = Box<dyn FnMut(Effect<'_>, &Path) -> Option<PathBuf> + Send>;

/// On which threads effects are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    /// On the one where the process began.
    There,
    /// On those where it waits for the disk.
    Elsewhere,
}

pub(crate) struct StormDisk {
    chance: Chance,
    observer: Observer,
    /// Effects until the process is killed, where it is to be.
    kill: Option<usize>,
    is_dead: bool,
    died: Arc<Notify>,
    counted: Option<(ThreadId, Counted)>,
    /// Effects until the disk is full.
    fill: Option<usize>,
    pub(crate) is_full: bool,
    /// Whether anything was ever refused to a process that was alive.
    pub(crate) has_failed: bool,
    pub(crate) is_calm: bool,
    /// Whether some syncs say that they failed.
    pub(crate) fails_to_sync: bool,
    pub(crate) unlisted: BTreeSet<PathBuf>,
    /// What each path had before the changes that are not synced; nothing where there was no file.
    unsynced: BTreeMap<PathBuf, Vec<Option<Vec<u8>>>>,
    /// How much of a file was synced.
    synced: BTreeMap<PathBuf, u64>,
    /// Directories in which a file was written that has not been synced yet.
    drafts: BTreeSet<PathBuf>,
    /// Files that got their name before their bytes were synced.
    torn: BTreeSet<PathBuf>,
}

impl StormDisk {
    pub(crate) fn new(chance: Chance, observer: Observer) -> Self {
        Self {
            chance,
            observer,
            kill: None,
            is_dead: false,
            died: Arc::default(),
            counted: None,
            fill: None,
            is_full: false,
            has_failed: false,
            is_calm: false,
            fails_to_sync: false,
            unlisted: BTreeSet::new(),
            unsynced: BTreeMap::new(),
            synced: BTreeMap::new(),
            drafts: BTreeSet::new(),
            torn: BTreeSet::new(),
        }
    }

    /// The process will be killed before the effect after so many.
    pub(crate) fn kill_after(&mut self, effects: usize) {
        self.kill = Some(effects);
    }

    /// The disk will be full after so many effects.
    pub(crate) fn fill_after(&mut self, effects: usize) {
        self.fill = Some(effects);
    }

    /// The process is killed now: whatever it still tries fails.
    pub(crate) fn kill(&mut self) {
        (self.kill, self.is_dead) = (None, true);
        self.died.notify_one();
    }

    /// Rings when the process is killed that begins on this thread. Threads of it race: so that a seed is the same each time,
    /// effects until the kill are counted on this one alone, or on the others alone.
    pub(crate) fn died(&mut self, counted: Counted) -> Arc<Notify> {
        self.died = Arc::default();
        self.counted = Some((thread::current().id(), counted));
        self.died.clone()
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.is_dead
    }

    /// Another process comes.
    pub(crate) fn revive(&mut self) {
        (self.kill, self.is_dead) = (None, false);
    }

    /// A person writes a file, and her editor syncs it.
    pub(crate) fn forget(&mut self, path: &Path) {
        self.unsynced.remove(path);
        self.synced.remove(path);
        self.torn.remove(path);
    }

    /// The power goes: of what was not synced, some is there and some is not.
    pub(crate) fn cut_power(&mut self) {
        self.drafts.clear();
        for (path, before) in std::mem::take(&mut self.unsynced) {
            let at = self.chance.below(before.len() + 1);
            match before.into_iter().nth(at) {
                None => {} // the newest got there
                Some(Some(bytes)) => std::fs::write(&path, bytes).unwrap(),
                Some(None) => drop(std::fs::remove_file(&path)),
            }
        }
        for (path, synced) in std::mem::take(&mut self.synced) {
            self.tear(&path, synced);
        }
        for path in std::mem::take(&mut self.torn) {
            self.tear(&path, 0);
        }
    }

    /// Cuts a file somewhere behind what was synced.
    fn tear(&mut self, path: &Path, synced: u64) {
        let Ok(file) = OpenOptions::new().write(true).open(path) else { return };
        let len = file.metadata().unwrap().len();
        if len > synced {
            file.set_len(synced + self.chance.below((len - synced + 1) as usize) as u64).unwrap();
        }
    }

    fn refused(&mut self, effect: Effect<'_>, path: &Path) -> io::Result<()> {
        let full = || Err(io::Error::from(io::ErrorKind::StorageFull));
        match effect {
            _ if self.is_calm => Ok(()),
            Effect::Write if self.is_full => full(),
            Effect::MakeDirectory if self.is_full && !path.exists() => full(),
            Effect::Append(bytes) if self.is_full && !bytes.is_empty() => {
                // A part of it still has room.
                let some = self.chance.below(bytes.len());
                let part = OpenOptions::new().append(true).open(path);
                drop(part.and_then(|mut file| file.write_all(&bytes[..some])));
                full()
            }
            Effect::List if self.unlisted.contains(path) => Err(io::ErrorKind::PermissionDenied.into()),
            Effect::SyncFile | Effect::SyncDirectory if self.fails_to_sync && self.chance.one_in(FAILED_SYNCS) => {
                self.remember(effect, path);
                Err(io::Error::other("the disk does not answer"))
            }
            _ => Ok(()),
        }
    }

    fn remember(&mut self, effect: Effect<'_>, path: &Path) {
        match effect {
            Effect::Write => drop(self.drafts.insert(path.to_owned())),
            Effect::Name | Effect::Link => {
                self.note_before(path);
                if path.parent().is_some_and(|parent| self.drafts.contains(parent)) {
                    self.torn.insert(path.to_owned());
                }
            }
            Effect::Remove if !path.is_dir() => self.note_before(path),
            Effect::Append(_) => match std::fs::metadata(path) {
                Ok(metadata) => drop(self.synced.entry(path.to_owned()).or_insert(metadata.len())),
                Err(_) => {
                    self.note_before(path);
                    self.synced.insert(path.to_owned(), 0);
                }
            },
            Effect::SyncFile => {
                self.drafts.remove(path);
                self.synced.remove(path);
            }
            Effect::SyncDirectory => self.unsynced.retain(|file, _| file.parent() != Some(path)),
            Effect::Remove | Effect::MakeDirectory | Effect::List => {}
        }
    }

    fn note_before(&mut self, path: &Path) {
        let before = std::fs::read(path).ok();
        self.unsynced.entry(path.to_owned()).or_default().push(before);
    }
}

impl FaultyDisk for StormDisk {
    fn before(&mut self, effect: Effect<'_>, path: &Path) -> io::Result<()> {
        let is_counted =
            self.counted.is_none_or(|(thread, on)| (thread::current().id() == thread) == (on == Counted::There));
        if is_counted && self.kill == Some(0) {
            self.kill();
        }
        if self.is_dead {
            return Err(io::Error::other("the process is gone"));
        }
        if is_counted {
            self.kill = self.kill.map(|effects| effects - 1);
            self.is_full |= self.fill == Some(0);
            self.fill = self.fill.and_then(|effects| effects.checked_sub(1));
        }
        let refused = self.refused(effect, path);
        self.has_failed |= refused.is_err();
        refused?;
        if let Some(written) = (self.observer)(effect, path) {
            self.forget(&written);
        }
        self.remember(effect, path);
        Ok(())
    }
}
