//! Single files that a user or a model named by an absolute path.
//!
//! There is no root here: permission rules decide beforehand whether a path may be touched. What is promised here:
//! reading never takes more memory than allowed, never waits for a pipe and never touches a device; writing is atomic,
//! keeps the mode, and writes through a symbolic link to the file it points to. A file with several hard links is
//! separated from the others, as with every atomic replacement.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use crate::effect::{self, Effect};
use crate::error::Error;
use crate::fingerprint::{Snapshot, Stamp};
use crate::root::{DirectoryEntry, Root};
use crate::{atomic_write, exact};

/// The most symbolic links that are followed for one path, as in the kernel.
const MOST_LINKS: usize = 40;
/// Access bits: only the owner reads and writes it.
const PRIVATE_FILE: u32 = 0o600;

/// The content of a file of at most `limit` bytes.
pub fn read(path: impl AsRef<Path>, limit: u64) -> Result<Snapshot, Error> {
    let path = path.as_ref();
    atomic_write::snapshot(path, &open(path)?, limit)
}

/// Up to `len` bytes from `offset` on; fewer, or none, at the end of the file.
pub fn read_range(path: impl AsRef<Path>, offset: u64, len: u64) -> Result<Vec<u8>, Error> {
    let path = path.as_ref();
    atomic_write::range(path, open(path)?, offset, len)
}

/// Stamp of a file's current content.
pub fn stamp(path: impl AsRef<Path>) -> Result<Stamp, Error> {
    let path = path.as_ref();
    Stamp::of_file(&mut open(path)?).map_err(|error| Error::of(path, error))
}

/// True if a file still has the content of a stamp. It is read only if its time or length differs.
pub fn is_unchanged(path: impl AsRef<Path>, known: &Stamp) -> bool {
    let path = path.as_ref();
    let looks_same = |seen: &std::fs::Metadata| {
        seen.is_file() && seen.len() == known.len && known.modified.is_some() && seen.modified().ok() == known.modified
    };
    std::fs::metadata(path).is_ok_and(|seen| looks_same(&seen)) || stamp(path).is_ok_and(|now| now.same_content(known))
}

/// State of a file as seen without opening it. If it differs, the file may have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glance {
    inode: u64,
    len: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Glance {
    /// True if it was last changed long enough before another for any file system's clock to tell the two times apart.
    pub fn is_long_before(&self, other: &Self) -> bool {
        self.changed.0 + CLOCK_SECONDS < other.changed.0
    }
}

/// Coarsest clock of a file system, in seconds.
const CLOCK_SECONDS: i64 = 2;

/// A glance at a file; none if it is missing.
pub fn glance(path: impl AsRef<Path>) -> Option<Glance> {
    let seen = std::fs::metadata(path).ok()?;
    let (modified, changed) = ((seen.mtime(), seen.mtime_nsec()), (seen.ctime(), seen.ctime_nsec()));
    Some(Glance { inode: seen.ino(), len: seen.len(), modified, changed })
}

/// Opens a regular file for reading. Pipes, sockets, devices and directories are refused, without waiting.
pub fn open(path: impl AsRef<Path>) -> Result<File, Error> {
    let path = path.as_ref();
    let failed = |error| Error::of(path, error);
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    // Opening a device can have effects of its own, so what it is is asked before, and again of the opened file.
    atomic_write::regular(path, &std::fs::metadata(path).map_err(failed)?)?;
    let file = options.open(path).map_err(failed)?;
    atomic_write::regular(path, &file.metadata().map_err(failed)?)?;
    Ok(file)
}

/// Writes a file atomically, whether it exists or not: its mode is kept, directories are made on the way.
pub fn replace(path: impl AsRef<Path>, bytes: &[u8]) -> Result<Stamp, Error> {
    exact::replace(real(path)?, bytes)
}

/// Writes a file atomically if it still is what `expected` says, else fails with [`Error::Changed`].
pub fn replace_unchanged(path: impl AsRef<Path>, bytes: &[u8], expected: &Stamp) -> Result<Stamp, Error> {
    exact::replace_unchanged(real(path)?, bytes, expected)
}

/// Writes a new file; what exists is never overwritten. Directories are made on the way.
pub fn create_new(path: impl AsRef<Path>, bytes: &[u8]) -> Result<Stamp, Error> {
    exact::create_new(real(path)?, bytes)
}

/// Writes a file atomically for its owner alone (0600). Directories (0700) are made on the way.
pub fn replace_private(path: impl AsRef<Path>, bytes: &[u8]) -> Result<(), Error> {
    let (folder, name) = private_place(path.as_ref())?;
    folder.replace(name, bytes, PRIVATE_FILE)
}

/// Makes a file private to its owner (0600): creates an empty one, or keeps the existing one with its content.
pub fn make_private(path: impl AsRef<Path>) -> Result<(), Error> {
    let path = path.as_ref();
    let (folder, name) = private_place(path)?;
    match folder.create_new(name, b"", PRIVATE_FILE) {
        Err(Error::Exists { .. }) => {
            let private = std::fs::Permissions::from_mode(PRIVATE_FILE);
            open(path)?.set_permissions(private).map_err(|error| Error::of(path, error))
        }
        made => made,
    }
}

/// The folder of a file, created if missing, and the file's name in it, with links followed.
fn private_place(path: &Path) -> Result<(Root, PathBuf), Error> {
    let path = real(path)?;
    let no_file = || Error::of(&path, io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"));
    let (folder, name) = (path.parent().ok_or_else(no_file)?, path.file_name().ok_or_else(no_file)?);
    Ok((Root::create(folder)?, PathBuf::from(name)))
}

/// Removes a file. A symbolic link is removed itself.
pub fn remove(path: impl AsRef<Path>) -> Result<(), Error> {
    let path = path.as_ref();
    effect::before(Effect::Remove, || path.to_owned())
        .and_then(|()| std::fs::remove_file(path))
        .map_err(|error| Error::of(path, error))
}

/// Removes a directory and everything below it, without following a link out of it. A missing one is not an error.
pub fn remove_tree(path: impl AsRef<Path>) -> Result<(), Error> {
    let path = path.as_ref();
    match effect::before(Effect::Remove, || path.to_owned()).and_then(|()| std::fs::remove_dir_all(path)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(|error| Error::of(path, error)),
    }
}

/// Everything in a directory, by name.
pub fn list(directory: impl AsRef<Path>) -> Result<Vec<DirectoryEntry>, Error> {
    Root::open(directory)?.list()
}

/// The path with every symbolic link followed. Parts that do not exist yet are kept as named, so it also works for a
/// file that is about to be created.
pub fn real(path: impl AsRef<Path>) -> Result<PathBuf, Error> {
    let path = path.as_ref();
    if !path.is_absolute() {
        return Err(Error::of(path, io::Error::new(io::ErrorKind::InvalidInput, "the path must be absolute")));
    }
    let mut found = PathBuf::from("/");
    let mut links = 0;
    let mut rest: VecDeque<PathBuf> = parts(path).collect();
    while let Some(part) = rest.pop_front() {
        match part.components().next() {
            Some(Component::ParentDir) => {
                found.pop();
                continue;
            }
            Some(Component::RootDir) => {
                found = PathBuf::from("/");
                continue;
            }
            _ => found.push(&part),
        }
        if let Ok(target) = std::fs::read_link(&found) {
            links += 1;
            if links > MOST_LINKS {
                return Err(Error::of(path, io::Error::from(rustix::io::Errno::LOOP)));
            }
            found.pop();
            for part in parts(&target).collect::<Vec<_>>().into_iter().rev() {
                rest.push_front(part);
            }
        }
    }
    Ok(found)
}

fn parts(path: &Path) -> impl Iterator<Item = PathBuf> + '_ {
    path.components().filter(|part| *part != Component::CurDir).map(|part| PathBuf::from(part.as_os_str()))
}
