//! A lock that several processes respect, held for as long as the value lives.
//!
//! It is on a file of its own, since the files it guards are replaced, and a lock on a replaced file guards nothing.
//! The operating system gives it back when the process ends, however it ends: there is no stale lock to clean up.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::time::Duration;

use cap_std::fs::{OpenOptions, OpenOptionsExt};

use crate::error::Error;
use crate::root::Root;

/// Mode of a lock file.
const PRIVATE_FILE: u32 = 0o600;

/// Interval between attempts.
const AGAIN: Duration = Duration::from_millis(5);

/// A lock that is held.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Root {
    /// Takes the lock on the file `relative` (created if missing), waiting until whoever holds it lets go.
    pub fn lock(&self, relative: impl AsRef<Path>) -> Result<Lock, Error> {
        self.locked(relative.as_ref(), File::lock)
    }

    /// The same with a time limit: the holder may never let go.
    pub fn lock_within(&self, relative: impl AsRef<Path>, patience: Duration) -> Result<Lock, Error> {
        self.locked(relative.as_ref(), |file| {
            for _ in 0..=patience.as_millis() / AGAIN.as_millis() {
                match file.try_lock() {
                    Ok(()) => return Ok(()),
                    Err(TryLockError::WouldBlock) => std::thread::sleep(AGAIN),
                    Err(TryLockError::Error(error)) => return Err(error),
                }
            }
            Err(io::Error::new(io::ErrorKind::TimedOut, "another process holds the lock and does not release it"))
        })
    }

    fn locked(&self, relative: &Path, take: impl FnOnce(&File) -> io::Result<()>) -> Result<Lock, Error> {
        let path = self.path().join(relative);
        let failed = |error| Error::of(&path, error);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).mode(PRIVATE_FILE);
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
        let file = self.dir().open_with(relative, &options).map_err(failed)?.into_std();
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(Error::NotRegular { path });
        }
        take(&file).map_err(failed)?;
        Ok(Lock { _file: file })
    }
}
