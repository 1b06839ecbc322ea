//! A disk that fails, for tests: it is asked before everything that happens to a path below the directory it was mounted
//! for, from any thread, and can refuse.
//!
//! A disk that is asked to sync is the one that knows what was synced: nothing is flushed to the real disk then, which
//! makes a run of thousands of writes a matter of milliseconds.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

pub use super::Effect;

/// A disk that decides what happens.
pub trait FaultyDisk: Send {
    /// Called before an effect on a path. An error stops the effect and is what its caller gets.
    fn before(&mut self, effect: Effect<'_>, path: &Path) -> io::Result<()>;
}

type Mounts = Vec<(PathBuf, Arc<Mutex<dyn FaultyDisk>>)>;

static MOUNTS: Mutex<Mounts> = Mutex::new(Vec::new());

/// A mounted disk. It is asked until this is dropped.
#[derive(Debug)]
pub struct MountedDisk(PathBuf);

/// Mounts a disk for everything below a directory, which must be named as it is: without links.
pub fn mount(below: &Path, disk: Arc<Mutex<dyn FaultyDisk>>) -> MountedDisk {
    MOUNTS.lock().push((below.to_owned(), disk));
    MountedDisk(below.to_owned())
}

impl Drop for MountedDisk {
    fn drop(&mut self) {
        MOUNTS.lock().retain(|(below, _)| *below != self.0);
    }
}

fn fault_for(effect: Effect<'_>, path: impl FnOnce() -> PathBuf) -> Option<io::Result<()>> {
    let mounts = MOUNTS.lock();
    if mounts.is_empty() {
        return None;
    }
    let path = path();
    let (_, disk) = mounts.iter().find(|(below, _)| path.starts_with(below))?;
    let disk = disk.clone();
    drop(mounts);
    Some(disk.lock().before(effect, &path))
}

pub(crate) fn before(effect: Effect<'_>, path: impl FnOnce() -> PathBuf) -> io::Result<()> {
    fault_for(effect, path).unwrap_or(Ok(()))
}

pub(crate) fn sync(
    effect: Effect<'_>,
    path: impl FnOnce() -> PathBuf,
    real: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    fault_for(effect, path).unwrap_or_else(real)
}
