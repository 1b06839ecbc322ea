//! Everything below a root, without a system call for each file.
//!
//! A listing asks the system about every name; a walk over ten thousand files cannot afford that, and whoever opens the
//! files learns the rest anyway. So a walk reports only path and kind. Links are reported and not followed, so a loop
//! of them ends at its first step. A directory that cannot be listed stops nothing; callers that take a missing file
//! for a deleted one use [`Root::walk_whole`], which names the directories that were passed over.

use std::path::{Path, PathBuf};

use cap_std::fs::Dir;

use crate::effect::{self, Effect};
use crate::error::Error;
use crate::root::{EntryKind, Root};

/// The deepest directory that is entered.
const DEEPEST: usize = 32;

/// Something below a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalkEntry {
    /// Its path, relative to the root.
    pub path: PathBuf,
    /// Its kind. Never a directory: those are entered.
    pub kind: EntryKind,
}

/// Everything below a root, as far as it could be listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walk {
    /// The entries, by path.
    pub found: Vec<WalkEntry>,
    /// Directories that could not be listed completely, so that their content is unknown. By path.
    pub unlisted: Vec<PathBuf>,
}

impl Root {
    /// Everything below except directories, and the directories that should have been entered but could not be listed.
    /// The root itself has to be listed completely.
    pub fn walk_whole(&self, mut enter: impl FnMut(&Path) -> bool) -> Result<Walk, Error> {
        let mut walk = Walk::default();
        below(self.dir(), Path::new(""), DEEPEST, usize::MAX, &mut enter, &mut walk)
            .map_err(|error| Error::of(self.path(), error))?;
        walk.found.sort_by(|one, other| one.path.cmp(&other.path));
        walk.unlisted.sort();
        walk.unlisted.dedup();
        if walk.unlisted.first().is_some_and(|path| path.as_os_str().is_empty()) {
            return Err(Error::of(self.path(), std::io::Error::other("it cannot be listed completely")));
        }
        Ok(walk)
    }

    /// Everything below except directories, by path. A directory is entered if `enter` returns true for its relative
    /// path.
    pub fn walk(&self, enter: impl FnMut(&Path) -> bool) -> Result<Vec<WalkEntry>, Error> {
        self.walk_some(usize::MAX, enter)
    }

    /// The same, limited to `most` entries: those that the system lists first.
    pub fn walk_some(&self, most: usize, mut enter: impl FnMut(&Path) -> bool) -> Result<Vec<WalkEntry>, Error> {
        let mut walk = Walk::default();
        below(self.dir(), Path::new(""), DEEPEST, most, &mut enter, &mut walk)
            .map_err(|error| Error::of(self.path(), error))?;
        walk.found.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(walk.found)
    }
}

fn below(
    dir: &Dir,
    at: &Path,
    deeper: usize,
    most: usize,
    enter: &mut impl FnMut(&Path) -> bool,
    walk: &mut Walk,
) -> std::io::Result<()> {
    effect::before(Effect::List, || effect::place_of(dir))?;
    for entry in dir.entries()? {
        if walk.found.len() >= most {
            break;
        }
        let Ok(entry) = entry else {
            walk.unlisted.push(at.to_owned());
            continue;
        };
        let path = at.join(entry.file_name());
        let Ok(kind) = entry.file_type().map(EntryKind::of) else {
            walk.unlisted.push(path);
            continue;
        };
        if kind != EntryKind::Directory {
            walk.found.push(WalkEntry { path, kind });
        } else if enter(&path) {
            let listed = deeper > 0
                && entry.open_dir().is_ok_and(|sub| below(&sub, &path, deeper - 1, most, enter, walk).is_ok());
            if !listed {
                walk.unlisted.push(path);
            }
        }
    }
    Ok(())
}
