//! Putting a whole file in place: the one way bytes get onto the disk, except for a log's appends.
//!
//! The bytes are written to a temporary file in the same directory, with the final mode, flushed to the disk, and only
//! then given the name; the directory is flushed last. A crash leaves either the old file or the new one.

use std::ffi::OsStr;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt};
use rustix::fs::AtFlags;

use crate::effect::{self, Effect};
use crate::error::Error;
use crate::fingerprint::{Snapshot, Stamp};

/// Permissions of the new file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mode {
    /// Exactly these bits.
    Exact(u32),
    /// Exactly these bits, and dated 1970.
    Dated(u32),
    /// The process's default for new files.
    Inherited,
    /// These bits and, if permitted, this owner: those of the file that is replaced.
    Kept {
        /// The permission bits.
        bits: u32,
        /// The user.
        uid: u32,
        /// The group.
        gid: u32,
    },
}

/// Bits of new files before the process's mask is applied.
#[cfg(target_os = "linux")]
const ORDINARY_FILE: u32 = 0o666;

/// Counter that makes hidden names unique within this process.
static SERIAL: AtomicU64 = AtomicU64::new(0);

/// Writes `bytes` and gives them the name `name`, whatever had it before.
pub(crate) fn replace(dir: &Dir, name: &OsStr, bytes: &[u8], mode: Mode) -> io::Result<()> {
    replace_if(dir, name, bytes, mode, || Ok(true)).map(drop)
}

/// Like [`replace`], but calls `still` last, just before the rename. Returns whether it went ahead.
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
    let mut draft = written(dir, bytes, mode)?;
    let held = draft.named()?;
    effect::before(Effect::Link, || effect::place_of(dir).join(name))?;
    // A link refuses to take a name that is in use: this is what makes it safe against a second creator. Where the file
    // system has no links, a rename can be told to refuse.
    match dir.hard_link(held, dir, name) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => rename_new(dir, held, name)?,
        linked => linked?,
    }
    drop(draft);
    sync(dir)
}

fn rename_new(dir: &Dir, from: &str, to: &OsStr) -> io::Result<()> {
    Ok(rustix::fs::renameat_with(dir, from, dir, to, rustix::fs::RenameFlags::NOREPLACE)?)
}

fn written<'d>(dir: &'d Dir, bytes: &[u8], mode: Mode) -> io::Result<UnnamedFile<'d>> {
    let place = || effect::place_of(dir);
    effect::before(Effect::Write, place)?;
    let mut temporary = UnnamedFile::new(dir)?;
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
    temporary.file.write_all(bytes)?;
    effect::sync(Effect::SyncFile, place, || temporary.file.sync_all())?;
    Ok(temporary)
}

/// A file without a name, or with one that begins with a dot: a killed process leaves nothing behind that looks like a
/// file of the user's.
struct UnnamedFile<'d> {
    dir: &'d Dir,
    file: File,
    name: Option<String>,
}

impl<'d> UnnamedFile<'d> {
    fn new(dir: &'d Dir) -> io::Result<Self> {
        match nameless(dir) {
            Ok(file) => Ok(Self { dir, file, name: None }),
            // Not every system has files without a name.
            Err(_) => {
                let name = hidden_name();
                let mut options = OpenOptions::new();
                let file = dir.open_with(&name, options.read(true).write(true).create_new(true))?;
                Ok(Self { dir, file, name: Some(name) })
            }
        }
    }

    fn as_file(&self) -> &File {
        &self.file
    }

    /// Its hidden name, by which it can be linked or renamed.
    fn named(&mut self) -> io::Result<&str> {
        let name = match self.name.take() {
            Some(name) => name,
            None => {
                let (name, itself) = (hidden_name(), format!("/proc/self/fd/{}", self.file.as_raw_fd()));
                rustix::fs::linkat(rustix::fs::CWD, itself, self.dir, &name, AtFlags::SYMLINK_FOLLOW)?;
                name
            }
        };
        Ok(self.name.insert(name))
    }

    fn replace(mut self, name: &OsStr) -> io::Result<()> {
        let dir = self.dir;
        let hidden = self.named()?;
        effect::before(Effect::Name, || effect::place_of(dir).join(name))?;
        dir.rename(hidden, dir, name)?;
        self.name = None;
        Ok(())
    }
}

impl Drop for UnnamedFile<'_> {
    fn drop(&mut self) {
        if let Some(name) = self.name.take()
            && effect::before(Effect::Remove, || effect::place_of(self.dir).join(&name)).is_ok()
        {
            let _ = self.dir.remove_file(name);
        }
    }
}

#[cfg(target_os = "linux")]
fn nameless(dir: &Dir) -> io::Result<File> {
    use rustix::fs::OFlags;
    let mode = rustix::fs::Mode::from_raw_mode(ORDINARY_FILE);
    let file = rustix::fs::openat(dir, ".", OFlags::CLOEXEC | OFlags::TMPFILE | OFlags::RDWR, mode)?;
    Ok(File::from_std(std::fs::File::from(file)))
}

#[cfg(not(target_os = "linux"))]
fn nameless(_: &Dir) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A name that no file has: processes in containers may share a pid, so the system's clock is part of it.
fn hidden_name() -> String {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    format!(".{}-{}-{}-{serial}.new", std::process::id(), now.tv_sec, now.tv_nsec)
}

/// Gives the file to its former owner if permitted; otherwise it stays ours.
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
    effect::sync(Effect::SyncDirectory, || effect::place_of(dir), || dir.open(".")?.sync_all())
}

/// Options that open a file for reading without ever waiting for a writer at the other end of a pipe.
pub(crate) fn reading() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    options
}

pub(crate) fn regular(path: &Path, metadata: &std::fs::Metadata) -> Result<(), Error> {
    if metadata.is_dir() {
        Err(Error::IsDirectory { path: path.to_owned() })
    } else if metadata.is_file() {
        Ok(())
    } else {
        Err(Error::NotRegular { path: path.to_owned() })
    }
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

    /// A process that is killed while it writes.
    struct KilledProcess;

    impl crate::faults::FaultyDisk for KilledProcess {
        fn before(&mut self, effect: Effect<'_>, _: &Path) -> io::Result<()> {
            match effect {
                Effect::Name | Effect::Link | Effect::Remove => Err(io::ErrorKind::Interrupted.into()),
                _ => Ok(()),
            }
        }
    }

    /// TEAM-5: whoever is killed while a file is put in place leaves nothing that looks like a file of the user's.
    #[test]
    fn a_file_that_never_got_its_name_is_hidden() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().canonicalize().unwrap();
        let dir = Dir::open_ambient_dir(&place, cap_std::ambient_authority()).unwrap();
        let names = || -> Vec<String> {
            dir.entries().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        };
        let mounted = crate::faults::mount(&place, std::sync::Arc::new(parking_lot::Mutex::new(KilledProcess)));
        replace(&dir, OsStr::new("one"), b"1", Mode::Inherited).unwrap_err();
        create_new(&dir, OsStr::new("two"), b"2", Mode::Inherited).unwrap_err();
        assert_eq!(names().len(), 2, "{:?}", names());
        assert!(names().iter().all(|name| name.starts_with('.')), "{:?}", names());
        drop(mounted);
        replace(&dir, OsStr::new("one"), b"1", Mode::Inherited).unwrap();
        create_new(&dir, OsStr::new("two"), b"2", Mode::Inherited).unwrap();
        assert_eq!(names().iter().filter(|name| !name.starts_with('.')).count(), 2);
    }

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
