//! Undoing a run.
//!
//! A memory is restored if it is still as the run left it; one that was changed since stays, and is reported. The same
//! holds for its line in the index: one that was reworded since stays. A memory that an agent made and the user undoes
//! leaves a tombstone.

use jiff::Timestamp;

use super::{ChangeRun, Changes, KeptChange, USER, is_index};
use crate::entry::Memory;
use crate::error::Error;
use crate::index;
use crate::store::{MODE, Store, checked, home};

/// Largest file that is restored, in bytes.
const LIMIT: u64 = 16 * 1024 * 1024;

/// Result of undoing one memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoResult {
    /// It was restored.
    Restored {
        /// The memory.
        path: String,
    },
    /// It was new, and was removed.
    Removed {
        /// The memory.
        path: String,
    },
    /// It was changed since, and stays as it is.
    ChangedSince {
        /// The memory.
        path: String,
        /// Its text before the run.
        before: Option<String>,
        /// Its current text.
        now: Option<String>,
    },
}

impl Changes {
    /// Undoes a run, or only one memory of it; `at` is the time of the undo.
    pub fn undo(&self, id: &str, only: Option<&str>, store: &Store, at: Timestamp) -> Result<Vec<UndoResult>, Error> {
        let run = self.run(id)?;
        let mut paths: Vec<&str> = run.changes.iter().map(|change| change.path.as_str()).collect();
        paths.sort_unstable();
        paths.dedup();
        let asked = |path: &&str| only.is_none_or(|only| only == *path);
        paths.into_iter().filter(asked).map(|path| self.undo_one(path, &run, store, at)).collect()
    }

    fn undo_one(&self, path: &str, run: &ChangeRun, store: &Store, at: Timestamp) -> Result<UndoResult, Error> {
        let of: Vec<&KeptChange> = run.changes.iter().filter(|change| change.path == path).collect();
        let (Some(first), Some(last)) = (of.first(), of.last()) else {
            return Err(Error::NoMemory { name: path.to_owned(), directory: store.root().path().to_owned() });
        };
        let undone = restore(path, first, last, store)?;
        match (&undone, &last.after, &first.before) {
            (UndoResult::Removed { .. }, Some(after), _) if run.head.agent != USER => {
                self.tombstones().plant(path, after, Some(at.to_string()))?;
            }
            (UndoResult::Restored { .. }, _, Some(before)) => self.tombstones().lift(path, before)?,
            _ => {}
        }
        Ok(undone)
    }
}

/// Restores one memory to its state before a run.
fn restore(path: &str, first: &KeptChange, last: &KeptChange, store: &Store) -> Result<UndoResult, Error> {
    if !is_index(path) {
        checked(path)?;
    }
    let _held = store.lock()?;
    let file = match store.root().read(path, LIMIT) {
        Ok(file) => Some(file),
        Err(files::Error::NotFound { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let now = file.as_ref().map(|file| String::from_utf8_lossy(&file.bytes).into_owned());
    let path = path.to_owned();
    if now != last.after && now != first.before {
        return Ok(UndoResult::ChangedSince { path, before: first.before.clone(), now });
    }
    match (&first.before, &file) {
        (Some(before), Some(file)) => {
            store.root().replace_unchanged(&path, before.as_bytes(), &file.stamp, MODE)?;
        }
        (Some(before), None) => store.root().create_new(&path, before.as_bytes(), MODE)?,
        (None, Some(_)) => store.root().remove(&path)?,
        (None, None) => {}
    }
    if !is_index(&path) {
        let target = home(&path).1.to_owned();
        let ours = made_lines(&target, first, last);
        store.indexed(&path, |text, _| match (&first.before, &first.line, index::written(text, &target)) {
            (Some(_), Some(line), Some(now)) if line == now => text.to_owned(),
            // Somebody has reworded it since.
            (Some(_), _, Some(now)) if !ours.iter().any(|line| line == now.trim()) => text.to_owned(),
            (Some(_), Some(line), _) => index::restore(text, &target, line),
            _ => index::take(text, &target),
        })?;
    }
    Ok(if first.before.is_some() { UndoResult::Restored { path } } else { UndoResult::Removed { path } })
}

/// The lines that the run may have left: the earlier one, or one made from a memory's name and description.
fn made_lines(target: &str, first: &KeptChange, last: &KeptChange) -> Vec<String> {
    let mut lines: Vec<String> = first.line.iter().map(|line| line.trim().to_owned()).collect();
    for text in [&first.before, &last.after].into_iter().flatten() {
        let memory = Memory::parse(&first.path, text.as_bytes(), None, text.len() as u64);
        lines.push(index::line(&memory.name, target, memory.description.as_deref().unwrap_or_default()));
    }
    lines
}
