//! Everything below a root, without looking at each file.
//!
//! A listing asks the system about every name; a walk over ten thousand files cannot afford that, and whoever opens the
//! files learns the rest anyway. So a walk says only where something is and what kind of thing. Links are reported and
//! not followed, so a loop of them ends at its first step. What cannot be listed is passed over.

use std::path::{Path, PathBuf};

use cap_std::fs::Dir;

use crate::error::Error;
use crate::root::{EntryKind, Root};

/// The deepest directory that is entered.
const DEEPEST: usize = 32;

/// Something below a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Where it is, relative to the root.
    pub path: PathBuf,
    /// What it is. Never a directory: those are entered.
    pub kind: EntryKind,
}

impl Root {
    /// Everything below that is no directory, by path. A directory is entered when `enter` says so of its relative path.
    pub fn walk(&self, enter: impl FnMut(&Path) -> bool) -> Result<Vec<Found>, Error> {
        self.walk_some(usize::MAX, enter)
    }

    /// The same, but no more than so many of them: those that the system names first.
    pub fn walk_some(&self, most: usize, mut enter: impl FnMut(&Path) -> bool) -> Result<Vec<Found>, Error> {
        let mut found = Vec::new();
        below(self.dir(), Path::new(""), DEEPEST, most, &mut enter, &mut found)
            .map_err(|error| Error::of(self.path(), error))?;
        found.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(found)
    }
}

fn below(
    dir: &Dir,
    at: &Path,
    deeper: usize,
    most: usize,
    enter: &mut impl FnMut(&Path) -> bool,
    found: &mut Vec<Found>,
) -> std::io::Result<()> {
    for entry in dir.entries()? {
        if found.len() >= most {
            break;
        }
        let Ok(entry) = entry else { continue };
        let Ok(kind) = entry.file_type().map(EntryKind::of) else { continue };
        let path = at.join(entry.file_name());
        if kind == EntryKind::Directory {
            if deeper > 0
                && enter(&path)
                && let Ok(sub) = entry.open_dir()
            {
                let _ = below(&sub, &path, deeper - 1, most, enter, found);
            }
        } else {
            found.push(Found { path, kind });
        }
    }
    Ok(())
}
