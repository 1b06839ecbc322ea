//! Lists everything below some directories, by name and kind alone.
//!
//! No file is opened, so the cost grows with the directories, and hardly with the files in them. There is no limit:
//! everything below is listed, or the directory that could not be listed is named. Symlinks are not followed, at any
//! part of a path.

use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, ResolveFlags, openat2, statat};
use rustix::io::Errno;

use super::pinned::PinnedPath;

/// Buffer size for one part of a listing: some thousand names.
const PIECE: usize = 128 * 1024;

/// An entry of a directory.
pub(super) struct ListedEntry<'a> {
    pub(super) directory: &'a Path,
    pub(super) name: &'a OsStr,
    pub(super) kind: FileType,
    pub(super) inode: u64,
}

impl ListedEntry<'_> {
    pub(super) fn path(&self) -> PathBuf {
        self.directory.join(self.name)
    }
}

/// Decision whether to descend into a directory.
#[derive(PartialEq, Eq)]
pub(super) enum Enter {
    Yes,
    No,
}

/// Callback that decides whether to go on, called for every part of a listing.
pub(super) type ContinueSign<'a> = dyn FnMut() -> Result<(), ListingStopped> + 'a;

/// The listing was stopped.
#[derive(Debug)]
pub(super) struct ListingStopped;

/// Calls back for every entry below the directories. Returns the directories that could not be listed, each as the
/// deepest one that can be named.
pub(super) fn walk(
    directories: &[PathBuf],
    sign: &mut ContinueSign<'_>,
    mut look: impl FnMut(&ListedEntry<'_>) -> Enter,
) -> Result<Vec<PathBuf>, ListingStopped> {
    let mut left: Vec<PathBuf> = directories.to_vec();
    let mut closed = Vec::new();
    let mut piece = vec![MaybeUninit::uninit(); PIECE];
    while let Some(directory) = left.pop() {
        let show = |entry: &ListedEntry<'_>| {
            if look(entry) == Enter::Yes && entry.kind.is_dir() {
                left.push(entry.path());
            }
        };
        match opened(&directory).and_then(|opened| list(&directory, &opened, &mut piece, sign, show)) {
            Ok(()) => {}
            Err(ListingFailure::Stopped) => return Err(ListingStopped),
            // It is gone by now, or a link is there.
            Err(ListingFailure::System(Errno::NOENT | Errno::NOTDIR | Errno::LOOP)) => {}
            Err(ListingFailure::System(_)) => closed.push(nameable(&directory)),
        }
    }
    closed.sort();
    closed.dedup();
    Ok(closed)
}

/// Reason why a directory was not listed completely.
enum ListingFailure {
    System(Errno),
    Stopped,
}

impl From<Errno> for ListingFailure {
    fn from(error: Errno) -> Self {
        Self::System(error)
    }
}

fn opened(directory: &Path) -> Result<OwnedFd, ListingFailure> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat2(CWD, directory, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?)
}

fn list(
    directory: &Path,
    opened: &OwnedFd,
    piece: &mut [MaybeUninit<u8>],
    sign: &mut ContinueSign<'_>,
    mut show: impl FnMut(&ListedEntry<'_>),
) -> Result<(), ListingFailure> {
    let mut entries = RawDir::new(opened, piece);
    loop {
        if entries.is_buffer_empty() {
            sign().map_err(|ListingStopped| ListingFailure::Stopped)?;
        }
        let Some(entry) = entries.next() else { return Ok(()) };
        let entry = entry?;
        let name = entry.file_name();
        if [c".", c".."].contains(&name) {
            continue;
        }
        let kind = match entry.file_type() {
            // Not every file system says it.
            FileType::Unknown => match statat(opened, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => FileType::from_raw_mode(found.st_mode),
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            },
            kind => kind,
        };
        show(&ListedEntry { directory, name: OsStr::from_bytes(name.to_bytes()), kind, inode: entry.ino() });
    }
}

/// The directory itself, or the deepest one above it that can be named.
fn nameable(directory: &Path) -> PathBuf {
    let named = directory.ancestors().find(|above| PinnedPath::at(above).is_ok());
    named.unwrap_or(directory).to_owned()
}
