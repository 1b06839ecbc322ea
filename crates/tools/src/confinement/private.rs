//! What only root may read, where we are root: host keys, passwords, logs, dumps. It is known by its mode, not by a list.
//!
//! A command of root's keeps no capability, but it still owns such files. So they are looked for once, where systems keep
//! what they are told and what they store, and hidden.

use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::process::{getegid, geteuid};

/// Where it is looked for, at any depth. Of the root directory only the entries themselves are looked at.
const PLACES: [&str; 6] = ["/etc", "/usr/local", "/opt", "/srv", "/boot", "/var"];

/// With more such files than this, a directory is hidden as a whole: each costs a mount, for every command.
const MANY: usize = 64;

/// The paths, found at the first call. Nothing, for whoever is not root.
pub(crate) fn private() -> &'static [PathBuf] {
    static FOUND: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FOUND.get_or_init(|| if geteuid().is_root() { find() } else { Vec::new() })
}

fn find() -> Vec<PathBuf> {
    let mut found = private_in(Path::new("/")).0;
    let mut left: Vec<PathBuf> = PLACES.iter().map(PathBuf::from).filter(|place| !found.contains(place)).collect();
    while let Some(directory) = left.pop() {
        let (private, directories) = private_in(&directory);
        if private.len() > MANY && !PLACES.iter().any(|place| directory == Path::new(place)) {
            found.push(directory);
        } else {
            found.extend(private);
            left.extend(directories);
        }
    }
    found
}

/// What is private in a directory, and the directories in it that are not.
fn private_in(directory: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (mut private, mut directories) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.metadata() {
            Ok(metadata) if is_private(&metadata) => private.push(entry.path()),
            Ok(metadata) if metadata.is_dir() => directories.push(entry.path()),
            _ => {}
        }
    }
    (private, directories)
}

/// Whether we get at it as its owner or by our group, and others do not.
fn is_private(metadata: &Metadata) -> bool {
    // A directory that can only be passed through shows nothing by itself.
    let right = match metadata.file_type() {
        kind if kind.is_dir() => 0o1,
        kind if kind.is_file() => 0o4,
        _ => return false,
    };
    let mode = metadata.permissions().mode();
    let owned = metadata.uid() == geteuid().as_raw() || metadata.gid() == getegid().as_raw();
    owned && mode & right == 0
}
