//! Putting a whole file in place: the one way bytes get onto the disk, except for a log's appends.
//!
//! The bytes are written to a temporary file in the same directory, with the final mode, flushed to the disk, and only
//! then given the name; the directory is flushed last. A crash leaves either the old file or the new one.

use std::ffi::OsStr;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt};
use cap_tempfile::TempFile;

use crate::error::Error;
use crate::stamp::{Snapshot, Stamp};

/// Who may do what with the new file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mode {
    /// Exactly these bits.
    Exact(u32),
    /// Exactly these bits, and dated 1970.
    Dated(u32),
    /// What the process gives to new files.
    Inherited,
    /// These bits and, where we may, this owner: those of the file that is replaced.
    Kept {
        /// The permission bits.
        bits: u32,
        /// The user.
        uid: u32,
        /// The group.
        gid: u32,
    },
}

/// Makes the names of files that are about to be linked into place differ within this process.
static SERIAL: AtomicU64 = AtomicU64::new(0);

/// Writes `bytes` and gives them the name `name`, whatever had it before.
pub(crate) fn replace(dir: &Dir, name: &OsStr, bytes: &[u8], mode: Mode) -> io::Result<()> {
    replace_if(dir, name, bytes, mode, || Ok(true)).map(drop)
}

/// Like [`replace`], but asks `still` last, just before the name changes hands. Says whether it went ahead.
pub(crate) fn replace_if(
    dir: &Dir,
    name: &OsStr,
    bytes: &[u8],
    mode: Mode,
    still: impl FnOnce() -> io::Result<bool>,
) -> io::Result<bool> {
    let temporary = written(dir, bytes, mode)?;
    if !still()? {
        return Ok(false);
    }
    temporary.replace(name)?;
    sync(dir)?;
    Ok(true)
}

/// Writes `bytes` and gives them the name `name`, unless something has it already.
pub(crate) fn create_new(dir: &Dir, name: &OsStr, bytes: &[u8], mode: Mode) -> io::Result<()> {
    if dir.symlink_metadata(name).is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let held = format!(".{}-{}.new", std::process::id(), SERIAL.fetch_add(1, Ordering::Relaxed));
    written(dir, bytes, mode)?.replace(&held)?;
    // A link refuses to take a name that is in use: this is what makes it safe against a second creator. Where the file
    // system has no links, a rename can be told to refuse.
    let placed = match dir.hard_link(&held, dir, name) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => rename_new(dir, &held, name),
        linked => linked,
    };
    let _ = dir.remove_file(&held);
    placed?;
    sync(dir)
}

fn rename_new(dir: &Dir, from: &str, to: &OsStr) -> io::Result<()> {
    Ok(rustix::fs::renameat_with(dir, from, dir, to, rustix::fs::RenameFlags::NOREPLACE)?)
}

fn written<'d>(dir: &'d Dir, bytes: &[u8], mode: Mode) -> io::Result<TempFile<'d>> {
    let mut temporary = TempFile::new(dir)?;
    match mode {
        Mode::Exact(bits) => temporary.as_file().set_permissions(Permissions::from_mode(bits))?,
        Mode::Inherited => {}
        Mode::Dated(bits) => {
            temporary.as_file().set_permissions(Permissions::from_mode(bits))?;
            temporary.as_file().try_clone()?.into_std().set_modified(std::time::SystemTime::UNIX_EPOCH)?;
        }
        Mode::Kept { bits, uid, gid } => {
            keep_owner(temporary.as_file(), uid, gid)?;
            temporary.as_file().set_permissions(Permissions::from_mode(bits))?;
        }
    }
    temporary.write_all(bytes)?;
    temporary.as_file().sync_all()?;
    Ok(temporary)
}

/// Gives the file to its former owner where we are allowed to; where we are not, it is ours from now on.
fn keep_owner(file: &File, uid: u32, gid: u32) -> io::Result<()> {
    use cap_std::fs::MetadataExt;
    let now = file.metadata()?;
    if (now.uid(), now.gid()) != (uid, gid) {
        let (uid, gid) = (rustix::fs::Uid::from_raw(uid), rustix::fs::Gid::from_raw(gid));
        let _ = rustix::fs::fchown(file, Some(uid), Some(gid));
    }
    Ok(())
}

/// Flushes a directory, so that the names in it survive a power cut.
pub(crate) fn sync(dir: &Dir) -> io::Result<()> {
    dir.open(".")?.sync_all()
}

/// Options that open a file for reading without ever waiting for a writer at the other end of a pipe.
pub(crate) fn reading() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    options
}

/// The content of an opened file of at most `limit` bytes.
pub(crate) fn snapshot(path: &Path, file: &std::fs::File, limit: u64) -> Result<Snapshot, Error> {
    let failed = |error| Error::of(path, error);
    let too_large = |size| Error::TooLarge { path: path.to_owned(), size, limit };
    let metadata = file.metadata().map_err(failed)?;
    if metadata.len() > limit {
        return Err(too_large(metadata.len()));
    }
    let bytes = bounded(file, metadata.len(), limit).map_err(failed)?;
    let bytes = bytes.ok_or_else(|| too_large(limit.saturating_add(1)))?;
    let stamp = Stamp::of(&bytes, metadata.modified().ok());
    Ok(Snapshot { bytes, stamp })
}

/// Up to `len` bytes of an opened file from `offset` on.
pub(crate) fn range(path: &Path, mut file: std::fs::File, offset: u64, len: u64) -> Result<Vec<u8>, Error> {
    let failed = |error| Error::of(path, error);
    let left = file.metadata().map_err(failed)?.len().saturating_sub(offset);
    file.seek(SeekFrom::Start(offset)).map_err(failed)?;
    let mut bytes = Vec::with_capacity(usize::try_from(len.min(left)).unwrap_or(0));
    file.take(len).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Reads up to `limit` bytes; `None` if there are more. Never holds more than one byte above the limit.
pub(crate) fn bounded(file: impl Read, expected: u64, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let capacity = usize::try_from(expected.min(limit).saturating_add(1)).unwrap_or(0);
    let mut bytes = Vec::with_capacity(capacity);
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rename_to_a_new_name_refuses_one_that_is_in_use() {
        let directory = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(directory.path(), cap_std::ambient_authority()).unwrap();
        dir.write("one", "1").unwrap();
        dir.write("two", "2").unwrap();
        assert_eq!(rename_new(&dir, "one", OsStr::new("two")).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        rename_new(&dir, "one", OsStr::new("three")).unwrap();
        assert_eq!(dir.read("three").unwrap(), b"1");
    }
}
