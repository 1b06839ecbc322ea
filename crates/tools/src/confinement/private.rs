//! Files that only root may read, if we are root: host keys, passwords, logs, dumps. They are recognised by their mode,
//! not by a list.
//!
//! A root command keeps no capability, but it still owns such files. So they are searched for once, where systems keep
//! configuration and state, and hidden.

use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::process::{getegid, geteuid};

/// Directories that are searched, at any depth. Of the root directory only the entries themselves are checked.
const PLACES: [&str; 6] = ["/etc", "/usr/local", "/opt", "/srv", "/boot", "/var"];

/// Number of such files above which a directory is hidden as a whole: each costs a mount, for every command.
const MANY: usize = 64;

/// The paths, found at the first call. Empty if we are not root.
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

/// Private entries of a directory, and its subdirectories that are not private.
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

/// Returns whether we have access as owner or group, and others have none.
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
