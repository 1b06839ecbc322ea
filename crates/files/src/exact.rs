//! Files at exactly one place: no part of the path is a symbolic link.
//!
//! A path is checked first and used later, and in between another process can put a link where a directory or a file
//! was. So callers pass in the checked path with its links followed ([`real`](crate::real)), and here every part of it
//! is opened in turn without following a link: the file that was checked is the one read and written, or
//! [`Error::Linked`] says that it is no longer there.

mod aside;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use cap_std::fs::Dir;
use rustix::fs::{AtFlags, CWD, FileType, OFlags, accessat, mkdirat, openat, statat, unlinkat};

use crate::atomic_write::{self, Mode};
use crate::effect::{self, Effect};
use crate::error::Error;
use crate::fingerprint::{Snapshot, Stamp};

pub use aside::{Identity, identity, set_aside};

/// Mode of directories created for a file the user wants somewhere; the process's mask is applied.
const ORDINARY_DIRECTORY: u32 = 0o777;

/// Handling of directories that are missing on the way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MissingDirectories {
    /// They are an error.
    Refused,
    /// They are made.
    Made,
}

/// Opens a regular file for reading, as [`open`](crate::open) does.
pub fn open(path: impl AsRef<Path>) -> Result<File, Error> {
    let place = NameInDirectory::of(path.as_ref(), MissingDirectories::Refused)?;
    place.open()
}

/// The content of a file of at most `limit` bytes.
pub fn read(path: impl AsRef<Path>, limit: u64) -> Result<Snapshot, Error> {
    let path = path.as_ref();
    atomic_write::snapshot(path, &open(path)?, limit)
}

/// Up to `len` bytes from the beginning; fewer, or none, at the end of the file.
pub fn read_head(path: impl AsRef<Path>, len: u64) -> Result<Vec<u8>, Error> {
    let path = path.as_ref();
    atomic_write::range(path, open(path)?, 0, len)
}

/// Writes a file atomically, whether it exists or not: its mode is kept, directories are made on the way.
pub fn replace(path: impl AsRef<Path>, bytes: &[u8]) -> Result<Stamp, Error> {
    let place = NameInDirectory::of(path.as_ref(), MissingDirectories::Made)?;
    atomic_write::replace(&place.dir, place.name, bytes, place.mode()?)
        .map_err(|error| Error::of(place.path, error))?;
    Ok(place.stamp(bytes))
}

/// Writes a file atomically if it still is what `expected` says, else fails with [`Error::Changed`].
pub fn replace_unchanged(path: impl AsRef<Path>, bytes: &[u8], expected: &Stamp) -> Result<Stamp, Error> {
    let place = NameInDirectory::of(path.as_ref(), MissingDirectories::Made)?;
    let still = || {
        let now = place.open().ok().and_then(|mut file| Stamp::of_file(&mut file).ok());
        Ok(now.is_some_and(|now| now.same_content(expected)))
    };
    let went_ahead = atomic_write::replace_if(&place.dir, place.name, bytes, place.mode()?, still)
        .map_err(|error| Error::of(place.path, error))?;
    if went_ahead { Ok(place.stamp(bytes)) } else { Err(Error::Changed { path: place.path.to_owned() }) }
}

/// Writes a new file; what exists is never overwritten. Directories are made on the way.
pub fn create_new(path: impl AsRef<Path>, bytes: &[u8]) -> Result<Stamp, Error> {
    let place = NameInDirectory::of(path.as_ref(), MissingDirectories::Made)?;
    atomic_write::create_new(&place.dir, place.name, bytes, Mode::Inherited)
        .map_err(|error| Error::of(place.path, error))?;
    Ok(place.stamp(bytes))
}

/// Removes a file. A link in its place is removed itself.
pub fn remove(path: impl AsRef<Path>) -> Result<(), Error> {
    let place = NameInDirectory::of(path.as_ref(), MissingDirectories::Refused)?;
    effect::before(Effect::Remove, || path.as_ref().to_owned())
        .and_then(|()| Ok(unlinkat(&place.dir, place.name, AtFlags::empty())?))
        .map_err(|error| Error::of(place.path, error))
}

/// A name in an opened directory.
struct NameInDirectory<'p> {
    path: &'p Path,
    dir: Dir,
    name: &'p OsStr,
}

impl<'p> NameInDirectory<'p> {
    fn of(path: &'p Path, missing: MissingDirectories) -> Result<Self, Error> {
        let is_directory = || Error::IsDirectory { path: path.to_owned() };
        let (parent, name) = path.parent().zip(path.file_name()).ok_or_else(is_directory)?;
        Ok(Self { path, dir: directory(parent, missing)?, name })
    }

    fn open(&self) -> Result<File, Error> {
        let failed = |error: rustix::io::Errno| Error::of(self.path, error.into());
        // Opening a device can have effects of its own, so what it is is asked before, and again of the opened file.
        let kind = |mode| FileType::from_raw_mode(mode);
        let found = statat(&self.dir, self.name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        self.regular(kind(found.st_mode))?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&self.dir, self.name, flags, rustix::fs::Mode::empty()) {
            Err(rustix::io::Errno::LOOP) => return Err(Error::Linked { path: self.path.to_owned() }),
            opened => opened.map_err(failed)?,
        };
        self.regular(kind(rustix::fs::fstat(&file).map_err(failed)?.st_mode))?;
        Ok(File::from(file))
    }

    fn regular(&self, kind: FileType) -> Result<(), Error> {
        let path = || self.path.to_owned();
        match kind {
            FileType::RegularFile => Ok(()),
            FileType::Directory => Err(Error::IsDirectory { path: path() }),
            FileType::Symlink => Err(Error::Linked { path: path() }),
            _ => Err(Error::NotRegular { path: path() }),
        }
    }

    /// Mode of the existing file. A file that may not be written is not replaced either, although a rename could.
    fn mode(&self) -> Result<Mode, Error> {
        let failed = |error: rustix::io::Errno| Error::of(self.path, error.into());
        match statat(&self.dir, self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(rustix::io::Errno::NOENT) => Ok(Mode::Inherited),
            Err(error) => Err(failed(error)),
            Ok(found) => {
                self.regular(FileType::from_raw_mode(found.st_mode))?;
                accessat(&self.dir, self.name, rustix::fs::Access::WRITE_OK, AtFlags::empty()).map_err(failed)?;
                #[allow(clippy::useless_conversion, reason = "not on every system is it this wide already")]
                let bits = u32::from(found.st_mode) & 0o7777;
                Ok(Mode::Kept { bits, uid: found.st_uid, gid: found.st_gid })
            }
        }
    }

    fn stamp(&self, bytes: &[u8]) -> Stamp {
        let modified = self.dir.symlink_metadata(self.name).and_then(|metadata| metadata.modified());
        Stamp::of(bytes, modified.ok().map(cap_std::time::SystemTime::into_std))
    }
}

/// Opens a directory part by part, without following a link.
fn directory(path: &Path, missing: MissingDirectories) -> Result<Dir, Error> {
    let failed = |error: rustix::io::Errno| Error::of(path, error.into());
    let odd = || Error::of(path, io::Error::new(io::ErrorKind::InvalidInput, "the path must be absolute and plain"));
    if !path.is_absolute() {
        return Err(odd());
    }
    let mut opened = openat(CWD, "/", passing(), rustix::fs::Mode::empty()).map_err(failed)?;
    for part in path.components() {
        let name = match part {
            Component::RootDir => continue,
            Component::Normal(name) => name,
            _ => return Err(odd()),
        };
        opened = match step(&opened, name) {
            Err(rustix::io::Errno::NOENT) if missing == MissingDirectories::Made => {
                make(&opened, name).map_err(|error| Error::of(path, error))?;
                step(&opened, name)
            }
            stepped => stepped,
        }
        .map_err(|error| match statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if FileType::from_raw_mode(found.st_mode).is_symlink() => Error::Linked { path: path.to_owned() },
            _ => failed(error),
        })?;
    }
    Ok(Dir::from_std_file(File::from(opened)))
}

fn step(from: &impl AsFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    openat(from, name, passing() | OFlags::NOFOLLOW, rustix::fs::Mode::empty())
}

/// Creates a directory and syncs it. If somebody else just created it, that is fine.
fn make(parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
    effect::before(Effect::MakeDirectory, || effect::place_of(parent).join(name))?;
    match mkdirat(parent, name, rustix::fs::Mode::from_raw_mode(ORDINARY_DIRECTORY)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let readable = openat(parent, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, rustix::fs::Mode::empty());
    // A directory that may be entered and not listed cannot be flushed; what was made in it is there all the same.
    readable.map_or(Ok(()), |directory| {
        effect::sync(Effect::SyncDirectory, || effect::place_of(parent), || Ok(rustix::fs::fsync(&directory)?))
    })
}

/// Flags for opening a directory on the way: without the right to list it, if the system has such a flag.
fn passing() -> OFlags {
    #[cfg(target_os = "linux")]
    let only = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    let only = OFlags::RDONLY;
    only | OFlags::DIRECTORY | OFlags::CLOEXEC
}
