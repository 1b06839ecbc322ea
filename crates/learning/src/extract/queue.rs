//! Sessions that may have turns nothing was learnt from: a folder with an entry for each, by its id.
//!
//! A session enters itself with its first turn and is removed when nothing is left in it. Whoever learns from a session
//! holds the lock on its entry, for as long as it is open or for as long as the learning takes; the operating system
//! releases it when a process ends, however that happens. So every session is learnt from by one process at a time, and
//! none that was killed is forgotten.
//!
//! What a process has learnt from a session that somebody else has opened meanwhile cannot be written into its log. It
//! is left beside the entry, and the session takes it in when it gets the lock.

use std::path::{Path, PathBuf};

use files::{LockFile, Root};
use serde::{Deserialize, Serialize};

use super::note::Note;

/// Extension of an entry's name.
const ENTRY: &str = ".left";
/// Extension of the name of the notes next to it.
const NOTES: &str = ".notes";
/// The largest file of notes that is read.
const NOTES_LIMIT: u64 = 1024 * 1024;
/// Number of attempts to create an entry that somebody keeps removing.
const TRIES: usize = 3;

/// The queue of one memory directory.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    folder: PathBuf,
}

/// A session that this process may learn from, and nobody else.
#[derive(Debug)]
pub(crate) struct SessionLease {
    root: Root,
    id: String,
    lock: LockFile,
    /// The session's file.
    pub(crate) session: PathBuf,
    /// Its working directory.
    pub(crate) directory: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct QueueEntry {
    session: PathBuf,
    directory: PathBuf,
}

impl Queue {
    pub(crate) fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Enters a session and leases it; none if another process has.
    pub(crate) fn enter(
        &self,
        id: &str,
        session: &Path,
        directory: &Path,
    ) -> Result<Option<SessionLease>, files::Error> {
        let root = Root::create(&self.folder)?;
        let (name, text) = (format!("{id}{ENTRY}"), entry(session, directory));
        for _ in 0..TRIES {
            root.make_lock_file(&name)?;
            let lock = match root.open_lock_file(&name) {
                Err(files::Error::NotFound { .. }) => continue,
                lock => lock?,
            };
            if !lock.try_lock()? {
                return Ok(None);
            }
            if lock.is_named(&root, &name)? {
                lock.write(&text)?;
                let (session, directory) = (session.to_owned(), directory.to_owned());
                return Ok(Some(SessionLease { root, id: id.to_owned(), lock, session, directory }));
            }
        }
        Ok(None)
    }

    /// The sessions in it, in the order of entry.
    pub(crate) fn sessions(&self) -> Vec<String> {
        let mut entries = files::list(&self.folder).unwrap_or_default();
        entries.sort_by(|one, other| (one.modified, &one.name).cmp(&(other.modified, &other.name)));
        let id = |entry: files::DirectoryEntry| Some(entry.name.to_str()?.strip_suffix(ENTRY)?.to_owned());
        entries.into_iter().filter_map(id).collect()
    }

    /// Leases a session; none if another process has, or it is not in the queue any more.
    pub(crate) fn lease(&self, id: &str) -> Option<SessionLease> {
        let (root, name) = (Root::open(&self.folder).ok()?, format!("{id}{ENTRY}"));
        let lock = root.open_lock_file(&name).ok()?;
        if !lock.try_lock().ok()? || !lock.is_named(&root, &name).ok()? {
            return None;
        }
        match serde_json::from_str::<QueueEntry>(&lock.read().ok()?.text) {
            Ok(QueueEntry { session, directory }) => {
                Some(SessionLease { root, id: id.to_owned(), lock, session, directory })
            }
            Err(_) => {
                let _ = root.remove(&name); // it was never written, or not by us: it names no session
                None
            }
        }
    }
}

impl SessionLease {
    /// True if the entry is still there.
    pub(crate) fn holds(&self) -> bool {
        self.lock.is_named(&self.root, self.name(ENTRY)).unwrap_or(false)
    }

    /// Notes of others who learnt from the session while they could not write to its log.
    pub(crate) fn notes(&self) -> Vec<Note> {
        let file = self.root.read(self.name(NOTES), NOTES_LIMIT).map(|file| file.bytes).unwrap_or_default();
        file.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }

    /// Leaves a note for whoever has the session open.
    pub(crate) fn leave(&self, note: &Note) -> Result<(), files::Error> {
        let line = serde_json::to_vec(note).unwrap_or_default();
        files::add_line(self.root.path().join(self.name(NOTES)), &line)
    }

    /// Removes the notes, which are now in the session's log.
    pub(crate) fn took_in(&self) {
        let _ = self.root.remove(self.name(NOTES)); // a note that is taken in twice says nothing new
    }

    /// Removes the session from the queue: nothing is left in it.
    pub(crate) fn done(self) {
        self.took_in();
        let _ = self.root.remove(self.name(ENTRY)); // whoever leases it next finds nothing to learn, and tries again
    }

    fn name(&self, ending: &str) -> String {
        format!("{}{ending}", self.id)
    }
}

fn entry(session: &Path, directory: &Path) -> String {
    serde_json::to_string(&QueueEntry { session: session.to_owned(), directory: directory.to_owned() })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use transcript::Id;

    /// EXTRACT-8: a session is leased by one process at a time, and stays in the queue until nothing is left in it.
    #[test]
    fn a_session_is_leased_by_one_process_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let queue = Queue::at(folder.path().join("queue"));
        assert!(queue.sessions().is_empty() && queue.lease("a").is_none());
        let own = queue.enter("a", Path::new("/s/a.jsonl"), Path::new("/p")).unwrap().unwrap();
        assert!(queue.lease("a").is_none(), "it is open");
        assert!(queue.enter("a", Path::new("/s/a.jsonl"), Path::new("/p")).unwrap().is_none());
        drop(own); // killed
        let taken = queue.lease("a").unwrap();
        assert_eq!((taken.session.as_path(), taken.directory.as_path()), (Path::new("/s/a.jsonl"), Path::new("/p")));
        let note = Note::learnt(vec![Id::from("t")], Vec::new(), None);
        taken.leave(&note).unwrap();
        assert_eq!(taken.notes(), [note]);
        assert_eq!(queue.sessions(), ["a"]);
        taken.done();
        assert!(queue.sessions().is_empty() && files::list(folder.path().join("queue")).unwrap().is_empty());
    }
}
