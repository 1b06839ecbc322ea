//! Guarded paths in the working directories: found before a command runs, and again after it.
//!
//! Found ones are made read-only, and with them every other name of a file in them: a second link to a file would be a
//! way to write to it. New ones cannot be prevented, but they are seen. Directories are looked through from the top, so
//! that in one too large to be seen whole (see [`MOST`]) it is the deepest that are missed.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fs::{DirEntry, FileType, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::permission::is_guarded_name;

/// How many entries are looked at: a large repository with its dependencies, in a fraction of a second.
const MOST: usize = 500_000;

/// What git holds most of and never changes; clones on one disk share it by links.
const OBJECTS: &str = "objects";

/// What was found.
pub(super) struct Guarded {
    found: BTreeMap<PathBuf, Identity>,
    /// Other names of guarded files.
    aliases: Vec<PathBuf>,
}

/// What can be told of an entry without looking into it.
#[derive(PartialEq, Eq)]
enum Identity {
    Link(PathBuf),
    Other { inode: u64, device: u64 },
}

/// Looks for guarded paths.
pub(super) fn guarded(directories: &[PathBuf]) -> Guarded {
    let mut found = BTreeMap::new();
    let mut shared = HashSet::new();
    walk(directories, |entry, path| {
        if !may_be_guarded(entry) || !is_guarded_name(&entry.file_name()) {
            return Enter::Yes;
        }
        if let Ok(metadata) = path.symlink_metadata() {
            shared.extend(several_names(path, &metadata));
            found.insert(path.to_owned(), Identity::of(path, &metadata));
        }
        Enter::No
    });
    let mut aliases = Vec::new();
    if !shared.is_empty() {
        walk(directories, |entry, path| {
            let is_one = shared.contains(&entry.ino()) && entry.file_type().is_ok_and(|kind| kind.is_file());
            if is_one {
                aliases.push(path.to_owned());
            }
            // Those below a guarded path are read-only with it.
            if found.contains_key(path) { Enter::No } else { Enter::Yes }
        });
    }
    Guarded { found, aliases }
}

impl Guarded {
    /// What is to be made read-only in the working directories. A link cannot be, but what it leads to can.
    pub(super) fn to_protect(&self, directories: &[PathBuf]) -> Vec<PathBuf> {
        let found = self.found.keys().filter_map(|path| path.canonicalize().ok());
        let inside = |path: &PathBuf| directories.iter().any(|directory| path.starts_with(directory));
        found.filter(inside).chain(self.aliases.iter().cloned()).collect()
    }

    /// What was not there before, or was something else.
    pub(super) fn made_since(&self, before: &Self) -> Vec<PathBuf> {
        let new = self.found.iter().filter(|(path, identity)| before.found.get(*path) != Some(identity));
        new.map(|(path, _)| path.clone()).collect()
    }
}

impl Identity {
    fn of(path: &Path, metadata: &Metadata) -> Self {
        match path.read_link() {
            Ok(target) => Self::Link(target),
            Err(_) => Self::Other { inode: metadata.ino(), device: metadata.dev() },
        }
    }
}

/// Whether to look into a directory.
#[derive(PartialEq, Eq)]
enum Enter {
    Yes,
    No,
}

/// Shows every entry below the directories, those higher up first. Links are not followed.
fn walk(directories: &[PathBuf], mut look: impl FnMut(&DirEntry, &Path) -> Enter) {
    let mut queue: VecDeque<PathBuf> = directories.iter().cloned().collect();
    let mut seen = 0;
    while let Some(directory) = queue.pop_front() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MOST {
                return;
            }
            let path = entry.path();
            if look(&entry, &path) == Enter::Yes && entry.file_type().as_ref().is_ok_and(FileType::is_dir) {
                queue.push_back(path);
            }
        }
    }
}

/// A quick no for almost all names: every guarded one begins with a dot, unless something invisible stands before it.
fn may_be_guarded(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let first = name.as_bytes().first().copied().unwrap_or_default();
    first == b'.' || !first.is_ascii_graphic()
}

/// The files at or below a guarded path that have another name somewhere.
fn several_names(path: &Path, metadata: &Metadata) -> Vec<u64> {
    if !metadata.is_dir() {
        return (metadata.is_file() && metadata.nlink() > 1).then(|| metadata.ino()).into_iter().collect();
    }
    let mut shared = Vec::new();
    walk(&[path.to_owned()], |entry, _| {
        if let Ok(metadata) = entry.metadata()
            && metadata.is_file()
            && metadata.nlink() > 1
        {
            shared.push(metadata.ino());
        }
        if entry.file_name() == OBJECTS { Enter::No } else { Enter::Yes }
    });
    shared
}
