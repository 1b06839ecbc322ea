//! Guarded paths in the working directories: found before a command runs, and again after it.
//!
//! Existing ones are made read-only, and so is every other name of a file in them: a second hard link would be a way to
//! write to it. New ones cannot be prevented, but they are detected. Existing paths are known by identity, not by name:
//! what was moved was not made. A directory that cannot be listed is made read-only as a whole, and nothing below it
//! counts as made.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use files::exact::{Identity, identity};

use super::list_tree::{ContinueSign, Enter, ListedEntry, ListingStopped, walk};
use crate::confinement::MadePath;
use crate::permission::is_guarded_name;

/// Git's object folder, which is large and never changes; clones on one disk share it by hard links.
const OBJECTS: &str = "objects";

/// Guarded paths found before a command runs.
pub(super) struct GuardedPaths {
    directories: Vec<PathBuf>,
    seen: Glimpse,
    /// Other names of guarded files.
    aliases: Vec<PathBuf>,
}

/// Result of one scan.
struct Glimpse {
    found: BTreeMap<PathBuf, Sighting>,
    /// Directories that could not be listed.
    closed: BTreeMap<PathBuf, Identity>,
}

/// A guarded path as found.
#[derive(PartialEq, Eq, Hash)]
struct Sighting {
    own: Identity,
    /// Identity of a symlink's target, if that is in a working directory.
    leads_to: Option<Identity>,
}

impl GuardedPaths {
    /// Scans for guarded paths.
    pub(super) fn find(directories: &[PathBuf], sign: &mut ContinueSign<'_>) -> Result<Self, ListingStopped> {
        let directories = outermost(directories);
        let seen = see(&directories, &HashSet::new(), sign)?;
        let mut shared = HashSet::new();
        for path in seen.found.keys() {
            shared.extend(several_names(path, sign)?);
        }
        let mut aliases = Vec::new();
        if !shared.is_empty() {
            walk(&directories, sign, |entry| {
                if shared.contains(&entry.inode) && entry.kind.is_file() {
                    aliases.push(entry.path());
                }
                // Those below a guarded path are read-only with it.
                if may_be_guarded(entry.name) && seen.found.contains_key(&entry.path()) {
                    Enter::No
                } else {
                    Enter::Yes
                }
            })?;
        }
        Ok(Self { directories, seen, aliases })
    }

    /// Paths to make read-only in the working directories, including the targets of guarded symlinks.
    pub(super) fn to_protect(&self) -> Vec<PathBuf> {
        let found = &self.seen.found;
        let targets = found.iter().filter(|(_, sighting)| sighting.leads_to.is_some());
        let targets = targets.filter_map(|(path, _)| path.canonicalize().ok());
        let targets = targets.filter(|path| is_inside(path, &self.directories));
        found.keys().chain(&self.aliases).chain(self.seen.closed.keys()).cloned().chain(targets).collect()
    }

    /// Scans again; returns guarded paths that existed nowhere before, and directories that can no longer be listed.
    pub(super) fn made_since(&self, sign: &mut ContinueSign<'_>) -> Result<Vec<MadePath>, ListingStopped> {
        let closed: HashSet<&Identity> = self.seen.closed.values().collect();
        let known: HashSet<&Sighting> = self.seen.found.values().collect();
        let now = see(&self.directories, &closed, sign)?;
        let found = now.found.into_iter().filter(|(_, sighting)| !known.contains(sighting));
        let found = found.map(|(path, sighting)| MadePath { path, identity: sighting.own });
        let shut = now.closed.into_iter().filter(|(_, identity)| !closed.contains(identity));
        Ok(found.chain(shut.map(|(path, identity)| MadePath { path, identity })).collect())
    }
}

/// The directories that are inside no other of them.
fn outermost(directories: &[PathBuf]) -> Vec<PathBuf> {
    let mut outermost: Vec<PathBuf> = Vec::new();
    let mut all: Vec<&PathBuf> = directories.iter().collect();
    all.sort();
    for directory in all {
        if !is_inside(directory, &outermost) {
            outermost.push(directory.clone());
        }
    }
    outermost
}

fn is_inside(path: &Path, directories: &[PathBuf]) -> bool {
    directories.iter().any(|directory| path.starts_with(directory))
}

/// Scans directories, except for those passed over.
fn see(
    directories: &[PathBuf],
    passed_over: &HashSet<&Identity>,
    sign: &mut ContinueSign<'_>,
) -> Result<Glimpse, ListingStopped> {
    let inodes: HashSet<u64> = passed_over.iter().map(|identity| identity.inode()).collect();
    let passed = |path: &Path| identity(path).is_ok_and(|identity| passed_over.contains(&identity));
    let tops: Vec<PathBuf> = directories.iter().filter(|top| inodes.is_empty() || !passed(top)).cloned().collect();
    let mut found = BTreeMap::new();
    let mut closed = BTreeMap::new();
    let mut close = |path: &Path| closed.extend(identity(path).map(|identity| (path.to_owned(), identity)).ok());
    let not_listed = walk(&tops, sign, |entry| {
        if may_be_guarded(entry.name) && is_guarded_name(entry.name) {
            match sighting(entry, directories) {
                Ok(sighting) => drop(found.insert(entry.path(), sighting)),
                Err(files::Error::NotFound { .. }) => {}
                Err(_) => close(entry.directory),
            }
            return Enter::No;
        }
        if inodes.contains(&entry.inode) && passed(&entry.path()) { Enter::No } else { Enter::Yes }
    })?;
    not_listed.iter().for_each(|path| close(path));
    Ok(Glimpse { found, closed })
}

fn sighting(entry: &ListedEntry<'_>, directories: &[PathBuf]) -> Result<Sighting, files::Error> {
    let path = entry.path();
    let own = identity(&path)?;
    let target = if entry.kind.is_symlink() { path.canonicalize().ok() } else { None };
    let leads_to = target.filter(|path| is_inside(path, directories)).and_then(|path| identity(path).ok());
    Ok(Sighting { own, leads_to })
}

/// Rejects almost all names quickly: every guarded one begins with a dot, unless an invisible character precedes it.
fn may_be_guarded(name: &OsStr) -> bool {
    let first = name.as_bytes().first().copied().unwrap_or_default();
    first == b'.' || !first.is_ascii_graphic()
}

/// Files at or below a guarded path that have another name somewhere.
fn several_names(path: &Path, sign: &mut ContinueSign<'_>) -> Result<Vec<u64>, ListingStopped> {
    let shared = |path: &Path| {
        let metadata = path.symlink_metadata().ok()?;
        (metadata.is_file() && metadata.nlink() > 1).then(|| metadata.ino())
    };
    let mut inodes: Vec<u64> = shared(path).into_iter().collect();
    if path.is_dir() && !path.is_symlink() {
        walk(&[path.to_owned()], sign, |entry| {
            inodes.extend(if entry.kind.is_file() { shared(&entry.path()) } else { None });
            if entry.name == OBJECTS { Enter::No } else { Enter::Yes }
        })?;
    }
    Ok(inodes)
}
