//! Everything this crate does to the disk, announced before it happens.
//!
//! In the program an announcement is nothing. With the feature `faults`, which only tests switch on, a disk that was
//! mounted for the path is asked first and can refuse: see `faults`.

#[cfg(any(test, feature = "faults"))]
pub mod faults;

use std::os::fd::AsRawFd;
use std::path::PathBuf;

#[cfg(any(test, feature = "faults"))]
pub(crate) use faults::{before, sync};

/// One effect on the disk.
#[cfg_attr(not(any(test, feature = "faults")), allow(unreachable_pub, dead_code, reason = "nobody is told"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect<'b> {
    /// Bytes are written to a file that nobody can see yet.
    Write,
    /// A file gets its name; what had it before is gone.
    Name,
    /// A file gets a name, unless something has it already.
    Link,
    /// These bytes are added to the end of a file.
    Append(&'b [u8]),
    /// A file, or a directory with all below it, is removed.
    Remove,
    /// A directory is made.
    MakeDirectory,
    /// A directory is listed.
    List,
    /// The content of a file is synced.
    SyncFile,
    /// The names in a directory are synced.
    SyncDirectory,
}

/// Announces an effect on a path.
#[cfg(not(any(test, feature = "faults")))]
pub(crate) fn before(_: Effect<'_>, _: impl FnOnce() -> PathBuf) -> std::io::Result<()> {
    Ok(())
}

/// Announces a sync, then does it.
#[cfg(not(any(test, feature = "faults")))]
pub(crate) fn sync(
    _: Effect<'_>,
    _: impl FnOnce() -> PathBuf,
    real: impl FnOnce() -> std::io::Result<()>,
) -> std::io::Result<()> {
    real()
}

/// Path of an opened file or directory.
pub(crate) fn place_of(opened: &impl AsRawFd) -> PathBuf {
    std::fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd())).unwrap_or_default()
}
