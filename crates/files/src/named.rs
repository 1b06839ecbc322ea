//! Single files that a user or a model named by an absolute path.
//!
//! There is no root here: whether a path may be touched is decided before, by permission rules. What is promised here:
//! reading never takes more memory than it was allowed, never waits for a pipe and never touches a device; writing is
//! atomic, keeps the mode, and writes through a symbolic link to the file it points to. A file with several hard links
//! is cut loose from the others, as with every atomic replacement.

use std::collections::VecDeque;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use crate::error::Error;
use crate::put::{self, Mode};
use crate::root::{Entry, PRIVATE_DIRECTORY, Root};
use crate::stamp::{Snapshot, Stamp};

/// The most symbolic links that are followed for one path, as in the kernel.
const MOST_LINKS: usize = 40;

/// The mode of directories made for a file the user wants somewhere; the process's mask is applied.
const ORDINARY_DIRECTORY: u32 = 0o777;

/// The content of a file of at most `limit` bytes.
pub fn read(path: impl AsRef<Path>, limit: u64) -> Result<Snapshot, Error> {
    let path = path.as_ref();
    let failed = |error| Error::of(path, error);
    let too_large = |size| Error::TooLarge { path: path.to_owned(), size, limit };
    let file = open(path)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.len() > limit {
        return Err(too_large(metadata.len()));
    }
    let bytes = put::bounded(&file, metadata.len(), limit).map_err(failed)?;
    let bytes = bytes.ok_or_else(|| too_large(limit.saturating_add(1)))?;
    let stamp = Stamp::of(&bytes, metadata.modified().ok());
    Ok(Snapshot { bytes, stamp })
}

/// Up to `len` bytes from `offset` on; fewer, or none, at the end of the file.
pub fn read_range(path: impl AsRef<Path>, offset: u64, len: u64) -> Result<Vec<u8>, Error> {
    let path = path.as_ref();
    let failed = |error| Error::of(path, error);
    let mut file = open(path)?;
    let left = file.metadata().map_err(failed)?.len().saturating_sub(offset);
    file.seek(SeekFrom::Start(offset)).map_err(failed)?;
    let mut bytes = Vec::with_capacity(usize::try_from(len.min(left)).unwrap_or(0));
    file.take(len).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// What a file is now.
pub fn stamp(path: impl AsRef<Path>) -> Result<Stamp, Error> {
    let path = path.as_ref();
    Stamp::of_file(&mut open(path)?).map_err(|error| Error::of(path, error))
}

/// Opens a regular file for reading. Pipes, sockets, devices and directories are refused, without waiting.
pub fn open(path: impl AsRef<Path>) -> Result<File, Error> {
    let path = path.as_ref();
    let failed = |error| Error::of(path, error);
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    // Opening a device can have effects of its own, so what it is is asked before, and again of the opened file.
    regular(path, &std::fs::metadata(path).map_err(failed)?)?;
    let file = options.open(path).map_err(failed)?;
    regular(path, &file.metadata().map_err(failed)?)?;
    Ok(file)
}

/// Writes a file atomically, whether it exists or not: its mode is kept, directories are made on the way.
pub fn replace(path: impl AsRef<Path>, bytes: &[u8]) -> Result<Stamp, Error> {
    let path = path.as_ref();
    let target = Target::of(path)?;
    put::replace(&target.dir, target.name()?, bytes, target.mode).map_err(|error| Error::of(path, error))?;
    Ok(target.stamp(bytes))
}

/// Writes a file atomically if it still is what `expected` says, else fails with [`Error::Changed`].
pub fn replace_unchanged(path: impl AsRef<Path>, bytes: &[u8], expected: &Stamp) -> Result<Stamp, Error> {
    let path = path.as_ref();
    let changed = || Error::Changed { path: path.to_owned() };
    let target = Target::of(path)?;
    let still = || Ok(stamp(&target.path).is_ok_and(|now| now.same_content(expected)));
    let went_ahead = put::replace_if(&target.dir, target.name()?, bytes, target.mode, still)
        .map_err(|error| Error::of(path, error))?;
    if went_ahead { Ok(target.stamp(bytes)) } else { Err(changed()) }
}

/// Writes a new file; what exists is never overwritten. Directories are made on the way.
pub fn create_new(path: impl AsRef<Path>, bytes: &[u8]) -> Result<Stamp, Error> {
    let path = path.as_ref();
    let target = Target::of(path)?;
    put::create_new(&target.dir, target.name()?, bytes, Mode::Inherited).map_err(|error| Error::of(path, error))?;
    Ok(target.stamp(bytes))
}

/// Removes a file. A symbolic link is removed itself.
pub fn remove(path: impl AsRef<Path>) -> Result<(), Error> {
    let path = path.as_ref();
    std::fs::remove_file(path).map_err(|error| Error::of(path, error))
}

/// Removes a directory and all below it, without following a link out of it. That it is not there is fine.
pub fn remove_tree(path: impl AsRef<Path>) -> Result<(), Error> {
    let path = path.as_ref();
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(|error| Error::of(path, error)),
    }
}

/// Everything in a directory, by name.
pub fn list(directory: impl AsRef<Path>) -> Result<Vec<Entry>, Error> {
    Root::open(directory)?.list()
}

/// Makes a directory and its parents (0700) where they are missing, to last.
pub fn create_directory(path: impl AsRef<Path>) -> Result<(), Error> {
    make_directories(path.as_ref(), PRIVATE_DIRECTORY)
}

/// Where a path leads once every symbolic link in it is followed. What does not exist yet is kept as it is named, so
/// this also says where a file that is about to be made would lie.
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

fn regular(path: &Path, metadata: &std::fs::Metadata) -> Result<(), Error> {
    if metadata.is_dir() {
        Err(Error::IsDirectory { path: path.to_owned() })
    } else if metadata.is_file() {
        Ok(())
    } else {
        Err(Error::NotRegular { path: path.to_owned() })
    }
}

fn make_directories(path: &Path, mode: u32) -> Result<(), Error> {
    let failed = |error| Error::of(path, error);
    match DirBuilder::new().mode(mode).create(path) {
        Ok(()) => {}
        Err(_) if path.is_dir() => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = path.parent().ok_or_else(|| failed(error))?;
            make_directories(parent, mode)?;
            match DirBuilder::new().mode(mode).create(path) {
                Err(_) if path.is_dir() => return Ok(()),
                made => made.map_err(failed)?,
            }
        }
        Err(error) => return Err(failed(error)),
    }
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => {
            File::open(parent).and_then(|directory| directory.sync_all()).map_err(failed)
        }
        _ => Ok(()),
    }
}

/// The file a path leads to, ready to be written.
struct Target {
    path: PathBuf,
    dir: Dir,
    mode: Mode,
}

impl Target {
    fn of(path: &Path) -> Result<Self, Error> {
        let failed = |error| Error::of(path, error);
        let real = real(path)?;
        let mode = match std::fs::metadata(&real) {
            Ok(metadata) => {
                regular(path, &metadata)?;
                // A rename needs no permission to write the file itself; a read-only file is meant to stay.
                rustix::fs::access(&real, rustix::fs::Access::WRITE_OK).map_err(|error| failed(error.into()))?;
                Mode::Kept { bits: metadata.mode() & 0o7777, uid: metadata.uid(), gid: metadata.gid() }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Mode::Inherited,
            Err(error) => return Err(failed(error)),
        };
        let parent = real.parent().ok_or_else(|| Error::IsDirectory { path: path.to_owned() })?;
        make_directories(parent, ORDINARY_DIRECTORY)?;
        let dir = Dir::open_ambient_dir(parent, ambient_authority()).map_err(failed)?;
        Ok(Self { path: real, dir, mode })
    }

    fn name(&self) -> Result<&std::ffi::OsStr, Error> {
        self.path.file_name().ok_or_else(|| Error::IsDirectory { path: self.path.clone() })
    }

    fn stamp(&self, bytes: &[u8]) -> Stamp {
        Stamp::of(bytes, std::fs::metadata(&self.path).and_then(|metadata| metadata.modified()).ok())
    }
}
