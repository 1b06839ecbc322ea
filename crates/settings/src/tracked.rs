//! Checks whether git tracks a file, by reading its index without starting git: git runs what a repository's
//! configuration says, so asking it would be too late.
//!
//! What cannot be read counts as tracked. A tracked file counts as the project's, which has less weight.

use std::path::{Path, PathBuf};

use tools::git_index;

/// The largest `.git` file of a worktree that is read.
const POINTER_LIMIT: u64 = 16 * 1024;
/// The length of hashes in a SHA-1 repository.
const HASH: usize = 20;

/// True if git tracks this file or a parent of it. Outside a repository nothing is tracked.
pub(super) fn is_tracked(file: &Path) -> bool {
    let Some(parent) = file.parent() else { return false };
    for above in parent.ancestors() {
        let dot_git = above.join(".git");
        let git = match files::read(&dot_git, POINTER_LIMIT) {
            Err(files::Error::NotFound { .. }) => continue,
            Err(files::Error::IsDirectory { .. }) => Some(dot_git),
            Ok(pointer) => pointed(above, &pointer.bytes),
            Err(_) => None,
        };
        let (Some(git), Ok(inside)) = (git, file.strip_prefix(above)) else { return true };
        return match files::read(git.join("index"), git_index::LIMIT) {
            Ok(index) => names(&index.bytes, inside).unwrap_or(true),
            // A repository in which nothing was ever added.
            Err(files::Error::NotFound { .. }) => false,
            Err(_) => true,
        };
    }
    false
}

fn pointed(worktree: &Path, pointer: &[u8]) -> Option<PathBuf> {
    let text = std::str::from_utf8(pointer).ok()?;
    Some(worktree.join(text.strip_prefix("gitdir:")?.trim()))
}

/// True if an index contains the file, or a directory, symlink or submodule on its path. None if the index is invalid.
fn names(index: &[u8], file: &Path) -> Option<bool> {
    let wanted = folded(file.to_str()?.as_bytes());
    let mut found = false;
    let look = |_, name: &[u8]| {
        let entry = folded(name);
        let entry = entry.strip_suffix(b"/").unwrap_or(&entry);
        found |= wanted.strip_prefix(entry).is_some_and(|rest| rest.is_empty() || rest[0] == b'/');
    };
    git_index::entries(index, HASH, look).ok()?;
    Some(found)
}

/// A name as file systems may fold it: lower case, and without letters that some of them ignore.
fn folded(name: &[u8]) -> Vec<u8> {
    name.iter().filter(|byte| byte.is_ascii()).map(u8::to_ascii_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: &str = ".claude/settings.local.json";

    /// An index of this version with these names.
    fn index(version: u32, names: &[&str]) -> Vec<u8> {
        let mut bytes = b"DIRC".to_vec();
        bytes.extend(version.to_be_bytes());
        bytes.extend(u32::try_from(names.len()).unwrap().to_be_bytes());
        let mut before = "";
        for name in names {
            let start = bytes.len();
            bytes.extend([0; 60]);
            bytes.extend(u16::try_from(name.len()).unwrap().to_be_bytes());
            if version == 4 {
                let shared = before.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
                bytes.push(u8::try_from(before.len() - shared).unwrap());
                bytes.extend(name[shared..].bytes().chain([0]));
                before = name;
            } else {
                bytes.extend(name.bytes().chain([0]));
                let length = (bytes.len() - start).next_multiple_of(8);
                bytes.resize(start + length, 0);
            }
        }
        bytes.extend([0; 20]);
        bytes
    }

    /// TRUST-1: a local file that git tracks is the project's, in every version of the index.
    #[test]
    fn a_file_of_the_index_is_tracked() {
        for version in 2..=4 {
            let with = index(version, &[".claude/settings.json", LOCAL, "src/main.rs"]);
            assert_eq!(names(&with, Path::new(LOCAL)), Some(true), "version {version}");
            let without = index(version, &[".claude/settings.json", ".claude/settings.local.jsonx", "src/main.rs"]);
            assert_eq!(names(&without, Path::new(LOCAL)), Some(false), "version {version}");
        }
    }

    /// TRUST-1: a link, a submodule or a sparse directory on the way counts, and so does another case.
    #[test]
    fn what_lies_in_something_tracked_is_tracked() {
        for name in [".claude", ".claude/", ".CLAUDE/Settings.Local.json", ".cl\u{200c}aude/settings.local.json"] {
            assert_eq!(names(&index(2, &[name]), Path::new(LOCAL)), Some(true), "{name}");
        }
        assert_eq!(names(&index(2, &[".claud", "claude"]), Path::new(LOCAL)), Some(false));
    }

    /// TRUST-1: an index that cannot be understood says that all is tracked.
    #[test]
    fn an_index_that_cannot_be_read_counts_as_tracked() {
        let good = index(2, &["a", "b"]);
        for cut in 0..good.len() - 20 {
            assert_eq!(names(&good[..cut], Path::new(LOCAL)), None, "cut at {cut}");
        }
        assert_eq!(names(&index(5, &[]), Path::new(LOCAL)), None);
        let mut split = index(2, &["a"]);
        let end = split.len() - 20;
        split.splice(end..end, [&b"link"[..], &20_u32.to_be_bytes(), &[0; 20]].concat());
        assert_eq!(names(&split, Path::new(LOCAL)), None);

        let root = tempfile::tempdir().unwrap();
        let file = root.path().join(LOCAL);
        assert!(!is_tracked(&file), "no repository");
        files::replace(root.path().join(".git/HEAD"), b"ref: refs/heads/main\n").unwrap();
        assert!(!is_tracked(&file), "nothing was ever added");
        files::replace(root.path().join(".git/index"), b"garbage").unwrap();
        assert!(is_tracked(&file));
        files::replace(root.path().join(".git/index"), &index(2, &["x"])).unwrap();
        assert!(!is_tracked(&file));
    }
}
