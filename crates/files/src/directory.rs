//! Directories by absolute path: making them, and telling whose they are.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use crate::effect::{self, Effect};
use crate::error::Error;

/// Mode of directories that are created on the way.
pub(crate) const PRIVATE_DIRECTORY: u32 = 0o700;

/// Creates a directory and its parents (0700) if they are missing, and syncs them.
pub fn create_directory(path: impl AsRef<Path>) -> Result<(), Error> {
    make_directories(path.as_ref(), PRIVATE_DIRECTORY)
}

/// True if the file at a path, no link followed, belongs to us, to root, or to the owner of `known`.
pub fn is_own(path: impl AsRef<Path>, known: impl AsRef<Path>) -> bool {
    let owner = |path: &Path| std::fs::symlink_metadata(path).ok().map(|metadata| metadata.uid());
    let found = owner(path.as_ref());
    found == Some(0)
        || found == Some(rustix::process::geteuid().as_raw())
        || found.is_some() && found == owner(known.as_ref())
}

fn make_directories(path: &Path, mode: u32) -> Result<(), Error> {
    let failed = |error| Error::of(path, error);
    if path.is_dir() {
        return Ok(());
    }
    effect::before(Effect::MakeDirectory, || path.to_owned()).map_err(failed)?;
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
            let flush = || File::open(parent).and_then(|directory| directory.sync_all());
            effect::sync(Effect::SyncDirectory, || parent.to_owned(), flush).map_err(failed)
        }
        _ => Ok(()),
    }
}
