//! Setting a file or directory aside: it is moved to where nothing uses it, and none of it is lost.
//!
//! It is a rename, never a copy and never a removal: into a folder or, if that is on another disk, to another name in
//! the same directory. Whatever is no longer what the caller saw stays where it is.

use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cap_std::fs::{Dir, Metadata, MetadataExt};
use rustix::fs::{AtFlags, RenameFlags, fstat, renameat, renameat_with, statat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::{MissingDirectories, NameInDirectory, step};
use crate::error::Error;
use crate::root::Root;

/// Bits that the owner of a directory needs to move something out of it.
const OWNERS_RIGHTS: u32 = 0o700;

/// Identity of a file or a directory; it survives a rename.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    device: u64,
    inode: u64,
    /// Time of creation, if the file system knows it: inode numbers are reused.
    born: Option<Duration>,
}

impl Identity {
    /// Its number on its device.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    fn of(metadata: &Metadata) -> Self {
        let born = metadata.created().ok().and_then(|born| born.into_std().duration_since(SystemTime::UNIX_EPOCH).ok());
        Self { device: metadata.dev(), inode: metadata.ino(), born }
    }
}

/// Identity of the file or directory at a path; a link is not followed.
pub fn identity(path: impl AsRef<Path>) -> Result<Identity, Error> {
    let place = NameInDirectory::of(path.as_ref(), MissingDirectories::Refused)?;
    place.identity()
}

/// Moves what is at a path into a folder if it still is what `expected` says, else fails with [`Error::Changed`].
/// Returns its new path.
pub fn set_aside(path: impl AsRef<Path>, expected: &Identity, folder: impl AsRef<Path>) -> Result<PathBuf, Error> {
    let (path, folder) = (path.as_ref(), folder.as_ref());
    match moved(path, expected, folder) {
        Err(Error::Denied { .. }) => {
            let _open = OpenedDirectories::above(path);
            moved(path, expected, folder)
        }
        other => other,
    }
}

fn moved(path: &Path, expected: &Identity, folder: &Path) -> Result<PathBuf, Error> {
    let place = NameInDirectory::of(path, MissingDirectories::Refused)?;
    if place.identity()? != *expected {
        return Err(Error::Changed { path: path.to_owned() });
    }
    if let Ok(root) = Root::create(folder)
        && let Ok(name) = place.renamed_into(root.dir())
    {
        return Ok(folder.join(name));
    }
    let name = place.renamed_into(&place.dir).map_err(|error| Error::of(path, error.into()))?;
    Ok(path.with_file_name(name))
}

impl NameInDirectory<'_> {
    fn identity(&self) -> Result<Identity, Error> {
        let metadata = self.dir.symlink_metadata(self.name).map_err(|error| Error::of(self.path, error))?;
        Ok(Identity::of(&metadata))
    }

    /// Renames it to the first free name in a directory.
    fn renamed_into(&self, directory: &Dir) -> Result<OsString, Errno> {
        let mut number = 1;
        loop {
            let mut name = OsString::from(format!("kept-{number}"));
            name.push(self.name);
            match rename_new(&self.dir, self.name, directory, &name) {
                Ok(()) => return Ok(name),
                Err(Errno::EXIST) => number += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

/// Renames without replacing anything.
fn rename_new(from: &Dir, name: &OsStr, to: &Dir, new: &OsStr) -> Result<(), Errno> {
    match renameat_with(from, name, to, new, RenameFlags::NOREPLACE) {
        // Not every file system knows the flag.
        Err(Errno::INVAL | Errno::NOSYS) => match statat(to, new, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => renameat(from, name, to, new),
            Err(error) => Err(error),
            Ok(_) => Err(Errno::EXIST),
        },
        other => other,
    }
}

/// Directories of ours without owner's rights, given them until this is dropped.
struct OpenedDirectories(Vec<(OwnedFd, u32)>);

impl OpenedDirectories {
    /// The directories above a path.
    fn above(path: &Path) -> Self {
        let mut opened = Self(Vec::new());
        let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
        above.reverse();
        for directory in above {
            let Ok(place) = NameInDirectory::of(directory, MissingDirectories::Refused) else { continue };
            let Ok(descriptor) = step(&place.dir, place.name) else { break };
            let Ok(found) = fstat(&descriptor) else { break };
            #[allow(clippy::useless_conversion, reason = "not on every system is it this wide already")]
            let mode = u32::from(found.st_mode) & 0o7777;
            let is_ours = found.st_uid == rustix::process::geteuid().as_raw();
            if is_ours && mode & OWNERS_RIGHTS != OWNERS_RIGHTS && set_mode(&descriptor, mode | OWNERS_RIGHTS) {
                opened.0.push((descriptor, mode));
            }
        }
        opened
    }
}

impl Drop for OpenedDirectories {
    fn drop(&mut self) {
        for (descriptor, mode) in self.0.iter().rev() {
            set_mode(descriptor, *mode);
        }
    }
}

/// Sets the mode by descriptor, so that no link can come in between.
fn set_mode(directory: &OwnedFd, mode: u32) -> bool {
    let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
    std::fs::set_permissions(path, Permissions::from_mode(mode)).is_ok()
}
