//! An opened directory: everything below it can be reached, nothing outside it can be named.
//!
//! Holding a [`Root`] is the permission to work in it. The kernel resolves every path relative to the opened directory
//! and refuses to leave it, so there is no check that could be forgotten. Files are read bounded and written
//! atomically, with an explicit mode; directories made on the way are private (0700).

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, DirBuilderExt, FileType};

use crate::atomic_write::{self, Mode};
use crate::directory::{self, PRIVATE_DIRECTORY};
use crate::effect::{self, Effect};
use crate::error::Error;
use crate::fingerprint::{Snapshot, Stamp};

/// Bits of a mode that let the group or others write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// An opened directory.
#[derive(Debug)]
pub struct Root {
    dir: Dir,
    path: PathBuf,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// Its name, without the directory.
    pub name: OsString,
    /// Its kind.
    pub kind: EntryKind,
    /// Its length in bytes.
    pub len: u64,
    /// Time of the last modification, if the file system knows it.
    pub modified: Option<SystemTime>,
}

/// The beginning of a file.
#[derive(Debug, Clone)]
pub struct FileHead {
    /// The first bytes.
    pub bytes: Vec<u8>,
    /// Length of the whole file.
    pub len: u64,
    /// Time of the last modification, if the file system knows it.
    pub modified: Option<SystemTime>,
}

/// Kind of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, not followed.
    Link,
    /// A pipe, a socket or a device.
    Other,
}

impl Root {
    /// Opens a directory that exists.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let dir = Dir::open_ambient_dir(path, ambient_authority()).map_err(|error| Error::of(path, error))?;
        Ok(Self { dir, path: path.to_owned() })
    }

    /// Opens a directory, making it and its parents (0700) where they are missing.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, Error> {
        directory::create_directory(path.as_ref())?;
        Self::open(path)
    }

    /// Opens a directory that is ours alone: no link, owned by us or by whoever owns the one above, and nobody else may write
    /// there.
    pub fn open_own(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let found = std::fs::symlink_metadata(path).map_err(|error| Error::of(path, error))?;
        let alone = found.is_dir() && found.mode() & WRITABLE_BY_OTHERS == 0;
        if !alone || !directory::is_own(path, path.parent().unwrap_or(path)) {
            return Err(Error::NotOwn { path: path.to_owned() });
        }
        Self::open(path)
    }

    /// Its path, for messages only: nothing is looked up by it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A directory below that exists.
    pub fn sub(&self, relative: impl AsRef<Path>) -> Result<Self, Error> {
        let path = self.path.join(&relative);
        let dir = self.dir.open_dir(relative).map_err(|error| Error::of(&path, error))?;
        Ok(Self { dir, path })
    }

    /// A directory below, made (0700) where it is missing.
    pub fn create_sub(&self, relative: impl AsRef<Path>) -> Result<Self, Error> {
        let dir = self.directory(relative.as_ref())?;
        Ok(Self { dir, path: self.path.join(relative) })
    }

    /// The content of a file of at most `limit` bytes.
    pub fn read(&self, relative: impl AsRef<Path>, limit: u64) -> Result<Snapshot, Error> {
        let (file, _) = self.regular(relative.as_ref())?;
        atomic_write::snapshot(&self.path.join(relative), &file, limit)
    }

    /// Opens a regular file.
    fn regular(&self, relative: &Path) -> Result<(File, Metadata), Error> {
        let path = self.path.join(relative);
        let file =
            self.dir.open_with(relative, &atomic_write::reading()).map_err(|error| Error::of(&path, error))?.into_std();
        let metadata = file.metadata().map_err(|error| Error::of(&path, error))?;
        atomic_write::regular(&path, &metadata)?;
        Ok((file, metadata))
    }

    /// The first bytes of a file, at most `limit` of them, with its length and time.
    pub fn head(&self, relative: impl AsRef<Path>, limit: u64) -> Result<FileHead, Error> {
        let relative = relative.as_ref();
        let failed = |error| Error::of(&self.path.join(relative), error);
        let (mut file, metadata) = self.regular(relative)?;
        let len = metadata.len();
        // One byte above the length, so that the read that fills it also finds the end.
        let room = usize::try_from(len.min(limit)).unwrap_or(0).saturating_add(1);
        let mut bytes = vec![0; room];
        let mut filled = 0;
        while filled < room {
            match file.read(&mut bytes[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
            if filled as u64 >= len {
                break;
            }
        }
        bytes.truncate(filled.min(usize::try_from(limit).unwrap_or(usize::MAX)));
        Ok(FileHead { bytes, len, modified: metadata.modified().ok() })
    }

    /// Sets the modification time of a file, for a copy that is to be as old as its original.
    pub fn date(&self, relative: impl AsRef<Path>, modified: std::time::SystemTime) -> Result<(), Error> {
        let relative = relative.as_ref();
        let failed = |error| Error::of(&self.path.join(relative), error);
        let file = self.dir.open_with(relative, &atomic_write::reading()).map_err(failed)?;
        file.into_std().set_modified(modified).map_err(failed)
    }

    /// Writes a new file; what exists is never overwritten.
    pub fn create_new(&self, relative: impl AsRef<Path>, bytes: &[u8], mode: u32) -> Result<(), Error> {
        let relative = relative.as_ref();
        let (dir, name) = self.place(relative)?;
        atomic_write::create_new(&dir, name, bytes, Mode::Exact(mode))
            .map_err(|error| Error::of(&self.path.join(relative), error))
    }

    /// Writes a file atomically, whether it exists or not. A link of that name is replaced, not followed.
    pub fn replace(&self, relative: impl AsRef<Path>, bytes: &[u8], mode: u32) -> Result<(), Error> {
        let relative = relative.as_ref();
        let (dir, name) = self.place(relative)?;
        atomic_write::replace(&dir, name, bytes, Mode::Exact(mode))
            .map_err(|error| Error::of(&self.path.join(relative), error))
    }

    /// Writes a file atomically if it still is what `expected` says, else fails with [`Error::Changed`].
    pub fn replace_unchanged(
        &self,
        relative: impl AsRef<Path>,
        bytes: &[u8],
        expected: &Stamp,
        mode: u32,
    ) -> Result<(), Error> {
        let relative = relative.as_ref();
        let (dir, name) = self.place(relative)?;
        let path = self.path.join(relative);
        let still = || {
            let file = dir.open_with(name, &atomic_write::reading())?;
            if !file.metadata()?.is_file() {
                return Ok(false);
            }
            Stamp::of_file(&mut file.into_std()).map(|now| now.same_content(expected))
        };
        match atomic_write::replace_if(&dir, name, bytes, Mode::Exact(mode), still) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::Changed { path }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Error::Changed { path }),
            Err(error) => Err(Error::of(&path, error)),
        }
    }

    /// Gives a file another name, its content and times untouched; what has that name already is never overwritten.
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<(), Error> {
        let (from, to) = (from.as_ref(), to.as_ref());
        let (target, name) = self.place(to)?;
        // A link refuses a name that is in use. A crash before the removal leaves two names for one file.
        let linked = effect::before(Effect::Link, || effect::place_of(&target).join(name))
            .and_then(|()| self.dir.hard_link(from, &target, name));
        linked.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::of(&self.path.join(to), error),
            _ => Error::of(&self.path.join(from), error),
        })?;
        atomic_write::sync(&target).map_err(|error| Error::of(&self.path.join(to), error))?;
        self.remove(from)
    }

    /// Removes a file and syncs the directory.
    pub fn remove(&self, relative: impl AsRef<Path>) -> Result<(), Error> {
        let relative = relative.as_ref();
        let failed = |error| Error::of(&self.path.join(relative), error);
        self.before_removal(relative).and_then(|()| self.dir.remove_file(relative)).map_err(failed)?;
        self.flush(relative.parent().unwrap_or(Path::new("")))
    }

    /// Syncs a file below, if it exists and can be read: whoever wrote it may have left that undone.
    pub fn flush_file(&self, relative: impl AsRef<Path>) -> Result<(), Error> {
        let relative = relative.as_ref();
        let Ok(file) = self.dir.open_with(relative, &atomic_write::reading()) else { return Ok(()) };
        let path = || self.path.join(relative);
        effect::sync(Effect::SyncFile, path, || file.sync_all()).map_err(|error| Error::of(&path(), error))
    }

    /// Syncs the names in a directory below, if it exists: a killed process may have left that undone.
    pub fn flush(&self, relative: impl AsRef<Path>) -> Result<(), Error> {
        let relative = relative.as_ref();
        let here = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
        match self.dir.open_dir(here).and_then(|directory| atomic_write::sync(&directory)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::of(&self.path.join(relative), error)),
            _ => Ok(()),
        }
    }

    /// Removes a file, a link, or a directory with all below it.
    pub fn remove_tree(&self, relative: impl AsRef<Path>) -> Result<(), Error> {
        let relative = relative.as_ref();
        let is_directory = self.dir.symlink_metadata(relative).map(|metadata| metadata.is_dir());
        let removed = is_directory.and_then(|is_directory| {
            self.before_removal(relative)?;
            if is_directory { self.dir.remove_dir_all(relative) } else { self.dir.remove_file(relative) }
        });
        removed.map_err(|error| Error::of(&self.path.join(relative), error))
    }

    fn before_removal(&self, relative: &Path) -> io::Result<()> {
        effect::before(Effect::Remove, || effect::place_of(&self.dir).join(relative))
    }

    /// True if any part of a path below it is a link.
    pub fn is_linked(&self, relative: impl AsRef<Path>) -> bool {
        let is_link = |part: &Path| self.dir.symlink_metadata(part).is_ok_and(|metadata| metadata.is_symlink());
        relative.as_ref().ancestors().filter(|part| !part.as_os_str().is_empty()).any(is_link)
    }

    /// Everything in it, by name. Not what is below.
    pub fn list(&self) -> Result<Vec<DirectoryEntry>, Error> {
        let failed = |error| Error::of(&self.path, error);
        let mut entries = Vec::new();
        effect::before(Effect::List, || effect::place_of(&self.dir)).map_err(failed)?;
        for entry in self.dir.entries().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            // Removed between the listing and the look: not there.
            let Ok(metadata) = entry.metadata() else { continue };
            entries.push(DirectoryEntry {
                name: entry.file_name(),
                kind: EntryKind::of(metadata.file_type()),
                len: metadata.len(),
                modified: metadata.modified().ok().map(cap_std::time::SystemTime::into_std),
            });
        }
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    }

    /// The opened directory itself.
    pub(crate) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Directory and name of a relative path; directories on the way are created.
    pub(crate) fn place<'p>(&self, relative: &'p Path) -> Result<(Dir, &'p OsStr), Error> {
        let escapes = || Error::Escapes { path: relative.to_owned() };
        match relative.components().next_back() {
            Some(Component::Normal(name)) => Ok((self.directory(relative.parent().unwrap_or(Path::new("")))?, name)),
            _ => Err(escapes()),
        }
    }

    fn directory(&self, relative: &Path) -> Result<Dir, Error> {
        let failed = |error| Error::of(&self.path.join(relative), error);
        if relative.as_os_str().is_empty() {
            return self.dir.try_clone().map_err(failed);
        }
        effect::before(Effect::MakeDirectory, || effect::place_of(&self.dir).join(relative)).map_err(failed)?;
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(PRIVATE_DIRECTORY);
        self.dir.create_dir_with(relative, &builder).map_err(failed)?;
        self.dir.open_dir(relative).map_err(failed)
    }
}

impl EntryKind {
    pub(crate) fn of(kind: FileType) -> Self {
        if kind.is_file() {
            Self::File
        } else if kind.is_dir() {
            Self::Directory
        } else if kind.is_symlink() {
            Self::Link
        } else {
            Self::Other
        }
    }
}
