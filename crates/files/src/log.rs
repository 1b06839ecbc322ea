//! An append-only file of lines that survives a crash at any byte.
//!
//! - **Durable.** [`Log::append`] returns only when the lines are on the disk. What it returned `Ok` for is there after
//!   a crash; what it failed for may be there in part.
//! - **Torn-write safe.** A crash can leave half a line at the end. It is never removed, and never glued to a good one:
//!   the next append starts with a newline. So a reader meets torn and empty lines, and skips them.
//! - **One writer.** The file is locked by the operating system for as long as it is open for writing. The lock is on
//!   the log itself, so two names for one file are one lock, and it dies with the process: there is no stale lock to
//!   clean up. A process that was killed while it started another leaves the lock to that one for a moment, so a log whose
//!   writer has gone is tried for a little longer. Next to the log, `<name>.writer` holds what the writer said of itself; it is only read when the lock is
//!   held, so a crash that leaves it behind misleads nobody.
//!
//! There is no truncate, and there is no seek.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::directory::create_directory;
use crate::effect::{self, Effect};
use crate::error::Error;
use crate::root::Root;

/// Mode of a log: a session may hold anything.
const PRIVATE_FILE: u32 = 0o600;

/// Limit on the writer's description of itself that is read.
const WRITER_TEXT: u64 = 4096;

/// Time to keep trying a log whose writer is gone: far longer than a new process keeps what its parent had open.
const PATIENCE: Duration = Duration::from_secs(10);

/// Interval between attempts.
const AGAIN: Duration = Duration::from_millis(10);

/// Locks a file. If its writer is gone, waits for processes that still hold the lock by accident.
fn locked(file: &File, writer: &Path) -> Result<(), TryLockError> {
    for _ in 0..PATIENCE.as_millis() / AGAIN.as_millis() {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if has_gone(&held_by(writer)) => std::thread::sleep(AGAIN),
            other => return other,
        }
    }
    file.try_lock()
}

/// True if the process is gone whose pid is the first number in a writer's description.
fn has_gone(writer: &str) -> bool {
    let number: String = writer.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    !number.is_empty() && Path::new("/proc/self").exists() && !Path::new("/proc").join(number).exists()
}

/// A log, open for writing.
#[derive(Debug)]
pub struct Log {
    file: File,
    path: PathBuf,
    writer: PathBuf,
    end: FileEnd,
    /// Syncs the file; a test replaces it.
    sync: fn(&File) -> std::io::Result<()>,
}

/// State of the file's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileEnd {
    /// After a newline, or the file is empty.
    Clean,
    /// Perhaps inside a line.
    Torn,
}

impl Log {
    /// Opens a log for writing, making it (0600) and its directories (0700) where they are missing.
    ///
    /// `holder` is what another process is told that tries to open it meanwhile, such as `pid 4711, since 10:15`. That
    /// other process gets [`Error::Held`].
    pub fn open(path: impl AsRef<Path>, holder: &str) -> Result<Self, Error> {
        let path = crate::absolute::real(path)?;
        let failed = |error| Error::of(&path, error);
        let parent = path.parent().ok_or_else(|| Error::IsDirectory { path: path.clone() })?;
        create_directory(parent)?;
        if path.exists() {
            // Refuses what is not a regular file.
            crate::absolute::open(&path)?;
        }
        effect::before(Effect::Append(b""), || path.clone()).map_err(failed)?;
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).mode(PRIVATE_FILE).open(&path).map_err(failed)?;
        let writer = path.with_file_name(writer_file_name(&path));
        match locked(&file, &writer) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::Held { by: held_by(&writer), path }),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        // Says who holds it; a log that cannot say so is still a log.
        let _ =
            Root::open(parent).and_then(|root| root.replace(writer_file_name(&path), holder.as_bytes(), PRIVATE_FILE));
        let flush = || File::open(parent).and_then(|directory| directory.sync_all());
        effect::sync(Effect::SyncDirectory, || parent.to_owned(), flush).map_err(failed)?;
        let end = end_of(&file).map_err(failed)?;
        Ok(Self { file, path, writer, end, sync: File::sync_data })
    }

    /// Its path, symbolic links followed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends whole lines in one write and returns when they are on the disk. A missing last newline is added.
    ///
    /// On failure nothing is acknowledged: a part of `lines` may be in the file, and the next append will start on a
    /// new line.
    pub fn append(&mut self, lines: &[u8]) -> Result<(), Error> {
        if lines.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::with_capacity(lines.len() + 2);
        if self.end == FileEnd::Torn {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(lines);
        if !lines.ends_with(b"\n") {
            bytes.push(b'\n');
        }
        // Until it is known to be whole, it may be torn. This holds after a failed flush too: the system may have
        // dropped pages it could not write.
        self.end = FileEnd::Torn;
        effect::before(Effect::Append(&bytes), || self.path.clone())
            .and_then(|()| self.file.write_all(&bytes))
            .and_then(|()| effect::sync(Effect::SyncFile, || self.path.clone(), || (self.sync)(&self.file)))
            .map_err(|error| Error::of(&self.path, error))?;
        self.end = FileEnd::Clean;
        Ok(())
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // Before the lock goes, so that it cannot be the next writer's.
        if effect::before(Effect::Remove, || self.writer.clone()).is_ok() {
            let _ = std::fs::remove_file(&self.writer);
        }
    }
}

fn end_of(file: &File) -> std::io::Result<FileEnd> {
    let len = file.metadata()?.len();
    if len == 0 {
        return Ok(FileEnd::Clean);
    }
    let mut last = [0];
    file.read_exact_at(&mut last, len - 1)?;
    Ok(if last == *b"\n" { FileEnd::Clean } else { FileEnd::Torn })
}

/// Name of the file with the writer's description.
fn writer_file_name(path: &Path) -> OsString {
    let mut name = path.file_name().map_or_else(OsString::new, OsString::from);
    name.push(".writer");
    name
}

fn held_by(writer: &Path) -> String {
    match crate::absolute::read(writer, WRITER_TEXT) {
        Ok(snapshot) if !snapshot.bytes.is_empty() => String::from_utf8_lossy(&snapshot.bytes).into_owned(),
        _ => "another process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    thread_local! {
        /// Lengths of the file at each sync.
        static SYNCED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    }

    fn watched(file: &File) -> std::io::Result<()> {
        SYNCED.with_borrow_mut(|synced| synced.push(file.metadata().unwrap().len()));
        file.sync_data()
    }

    /// LOG-7: what was appended is forced to the disk each time, whole, before it is acknowledged; killing a process
    /// would not show it, since the system keeps what it has not written yet.
    #[test]
    fn every_append_is_forced_to_the_disk_before_it_returns() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::open(folder.path().join("s.jsonl"), "me").unwrap();
        log.sync = watched;
        let mut expected = Vec::new();
        for line in ["one", "two\n", "three"] {
            log.append(line.as_bytes()).unwrap();
            expected.push(expected.last().copied().unwrap_or(0) + line.trim_end().len() as u64 + 1);
            assert_eq!(SYNCED.with_borrow(Vec::clone), expected);
        }
    }

    /// LOG-7: what could not be forced to the disk is not acknowledged, and the next line does not hang on it.
    #[test]
    fn what_is_not_on_the_disk_is_not_acknowledged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let mut log = Log::open(&path, "me").unwrap();
        log.sync = |_| Err(std::io::Error::other("no disk"));
        assert!(log.append(b"half").is_err());
        log.sync = File::sync_data;
        log.append(b"whole").unwrap();
        assert_eq!(crate::absolute::read(&path, 100).unwrap().bytes, b"half\n\nwhole\n");
    }
}
