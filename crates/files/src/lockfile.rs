//! A lock file with a text: who holds it, and since when.
//!
//! Other programs read the text and the time it was written; between our own processes the lock of the operating system
//! decides. That lock is on the file itself, so this is the one kind of file that is written in place: a replacement
//! would carry the name and not the lock. Somebody may still remove it or put another in its place, so whoever holds
//! the lock can ask whether it is on the file of that name ([`LockFile::is_named`]).

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cap_std::fs::{MetadataExt as _, OpenOptions, OpenOptionsExt};

use crate::atomic_write::{self, Mode};
use crate::effect::{self, Effect};
use crate::error::Error;
use crate::root::Root;

/// Mode of a lock file.
const PRIVATE_FILE: u32 = 0o600;

/// Limit on the text that is read.
const MOST: u64 = 4096;

/// An opened lock file. Its lock, if it was taken, goes when this does.
#[derive(Debug)]
pub struct LockFile {
    file: File,
    path: PathBuf,
}

/// Text of a lock file, and the time it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockText {
    /// Its text.
    pub text: String,
    /// When it was last written.
    pub modified: SystemTime,
}

impl Root {
    /// Makes an empty lock file that is dated 1970, unless there is one.
    pub fn make_lock_file(&self, relative: impl AsRef<Path>) -> Result<(), Error> {
        let relative = relative.as_ref();
        let (dir, name) = self.place(relative)?;
        match atomic_write::create_new(&dir, name, b"", Mode::Dated(PRIVATE_FILE)) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            made => made.map_err(|error| Error::of(&self.path().join(relative), error)),
        }
    }

    /// Opens a lock file that exists. It is not locked yet.
    pub fn open_lock_file(&self, relative: impl AsRef<Path>) -> Result<LockFile, Error> {
        let relative = relative.as_ref();
        let path = self.path().join(relative);
        let failed = |error| Error::of(&path, error);
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
        let file = self.dir().open_with(relative, &options).map_err(failed)?.into_std();
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(Error::NotRegular { path });
        }
        Ok(LockFile { file, path })
    }
}

impl LockFile {
    /// Takes the lock, unless somebody has it.
    pub fn try_lock(&self) -> Result<bool, Error> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(self.failed(error)),
        }
    }

    /// True if the name still leads to this file.
    pub fn is_named(&self, root: &Root, relative: impl AsRef<Path>) -> Result<bool, Error> {
        let own = self.file.metadata().map_err(|error| self.failed(error))?;
        match root.dir().symlink_metadata(relative) {
            Ok(named) => Ok((named.dev(), named.ino()) == (own.dev(), own.ino())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Reads its text.
    pub fn read(&self) -> Result<LockText, Error> {
        let mut file = &self.file;
        let mut bytes = Vec::new();
        let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.take(MOST).read_to_end(&mut bytes));
        read.map_err(|error| self.failed(error))?;
        let modified = file.metadata().and_then(|metadata| metadata.modified()).map_err(|error| self.failed(error))?;
        Ok(LockText { text: String::from_utf8_lossy(&bytes).into_owned(), modified })
    }

    /// Replaces its text.
    pub fn write(&self, text: &str) -> Result<(), Error> {
        let mut file = &self.file;
        // Written, then cut: a reader in between never finds it empty and takes it for free.
        let written = effect::before(Effect::Write, || self.path.clone())
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| file.write_all(text.as_bytes()))
            .and_then(|()| file.set_len(text.len() as u64))
            .and_then(|()| effect::sync(Effect::SyncFile, || self.path.clone(), || file.sync_all()));
        written.map_err(|error| self.failed(error))
    }

    /// Sets the time it was written.
    pub fn date(&self, modified: SystemTime) -> Result<(), Error> {
        let dated = self.file.set_modified(modified).and_then(|()| self.file.sync_all());
        dated.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: std::io::Error) -> Error {
        Error::of(&self.path, error)
    }
}
