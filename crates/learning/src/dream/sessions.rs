//! The sessions that share a memory, ours and Claude Code's: their folders, and which were touched since a time.
//!
//! Sessions are stored by the directory they worked in, memory by the repository. So every folder is looked at whose
//! sessions worked in this repository.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use memory::place::{canonical_root, slug};
use session::Home;
use session::home::SessionFile;

/// Bytes of a session file that are read to find its working directory.
const HEAD: u64 = 64 * 1024;
/// The folders that hold sessions of a project, in the order of their names.
pub fn folders(home: &Home, directory: &Path) -> Vec<PathBuf> {
    let root = canonical_root(directory);
    let projects = home.path().join("projects");
    let own = home.project(directory);
    let first = slug(&root);
    let mut folders: Vec<PathBuf> = files::list(&projects)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|entry| {
            let folder = projects.join(&entry.name);
            // A worktree may lie anywhere; any other place is below the root, and its name begins like the root's.
            let likely = entry.name.to_str()?.starts_with(&first) || is_worktree(&root, &folder);
            (likely && (folder == own || works_in(&folder, &root))).then_some(folder)
        })
        .collect();
    if !folders.contains(&own) {
        folders.push(own);
    }
    folders
}

/// True if a folder belongs to a worktree of the repository.
fn is_worktree(root: &Path, folder: &Path) -> bool {
    let worktrees = root.join(".git/worktrees");
    let places = files::list(&worktrees).unwrap_or_default().into_iter().filter_map(|entry| {
        let file = files::read(worktrees.join(&entry.name).join("gitdir"), HEAD).ok()?;
        let git = PathBuf::from(String::from_utf8_lossy(&file.bytes).trim());
        git.parent().map(slug)
    });
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    places.into_iter().any(|place| name.starts_with(&place))
}

/// True if the newest session of a folder worked in a repository.
fn works_in(folder: &Path, root: &Path) -> bool {
    let newest = sessions_in(folder).into_iter().next();
    let worked = newest.and_then(|session| {
        let head = files::read_range(&session.path, 0, HEAD).ok()?;
        let lines = head.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        lines.into_iter().find_map(|line: serde_json::Value| line["cwd"].as_str().map(PathBuf::from))
    });
    worked.is_some_and(|worked| worked.is_absolute() && canonical_root(&worked) == root)
}

/// The sessions in a folder, newest first.
fn sessions_in(folder: &Path) -> Vec<SessionFile> {
    let session = |entry: files::DirectoryEntry| {
        let id = entry.name.to_str()?.strip_suffix(".jsonl")?.to_owned();
        // What a subagent did stands beside the sessions, and is none.
        let is_file = entry.kind == files::EntryKind::File;
        let is_session =
            is_file && !id.starts_with("agent-") && id.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-');
        let path = folder.join(&entry.name);
        is_session.then_some(SessionFile { id, path, modified: entry.modified, len: entry.len })
    };
    let mut sessions: Vec<SessionFile> =
        files::list(folder).unwrap_or_default().into_iter().filter_map(session).collect();
    sessions.sort_by_key(|session| std::cmp::Reverse(session.modified));
    sessions
}

/// The sessions touched since a time, the newest first, without the one that asks.
pub fn touched(folders: &[PathBuf], since: Option<Timestamp>, except: Option<&str>) -> Vec<SessionFile> {
    let is_new = |session: &SessionFile| {
        let modified = session.modified.and_then(|at| Timestamp::try_from(at).ok());
        Some(session.id.as_str()) != except && (since.is_none() || modified > since)
    };
    let mut sessions: Vec<SessionFile> = folders.iter().flat_map(|folder| sessions_in(folder)).filter(is_new).collect();
    sessions.sort_by_key(|session| std::cmp::Reverse(session.modified));
    sessions
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test looks at the disk with its own eyes")]
mod tests {
    use super::*;

    fn session(folder: &Path, id: &str, cwd: &Path, said: &[&str]) -> PathBuf {
        std::fs::create_dir_all(folder).unwrap();
        let line = |text: &&str| {
            serde_json::json!({
                "type": "user", "uuid": text, "parentUuid": null, "cwd": cwd, "timestamp": "2026-03-01T10:00:00.000Z",
                "message": {"role": "user", "content": text},
            })
        };
        let text: String = said.iter().map(|text| format!("{}\n", line(text))).collect();
        let path = folder.join(format!("{id}.jsonl"));
        std::fs::write(&path, text).unwrap();
        path
    }

    /// PATH-1, DREAM-1: sessions are counted in every folder that shares the memory: subdirectories and worktrees, and no
    /// other project whose name begins alike. A session whose slug alone looks like ours is another's.
    #[test]
    fn the_sessions_of_a_memory_lie_in_every_folder_that_shares_it() {
        let place = tempfile::tempdir().unwrap();
        let base = place.path().canonicalize().unwrap();
        let (home, root) = (Home::at(base.join("config")), base.join("repo"));
        let (sub, other, worktree) = (root.join("sub"), base.join("repo-other"), base.join("elsewhere"));
        for folder in [&sub, &other, &worktree, &root.join(".git/worktrees/one")] {
            std::fs::create_dir_all(folder).unwrap();
        }
        let git = root.join(".git/worktrees/one");
        std::fs::write(worktree.join(".git"), format!("gitdir: {}", git.display())).unwrap();
        std::fs::write(git.join("gitdir"), worktree.join(".git").display().to_string()).unwrap();
        std::fs::write(git.join("commondir"), "../..").unwrap();
        for (id, cwd) in [("s1", &root), ("s2", &sub), ("s3", &other), ("s4", &worktree)] {
            session(&home.project(cwd), id, cwd, &["hello there"]);
        }
        session(&home.project(&root), "agent-x", &root, &["I am a subagent"]);
        std::fs::create_dir(home.project(&root).join("folder.jsonl")).unwrap();
        std::os::unix::fs::symlink(base.join("elsewhere"), home.project(&root).join("link.jsonl")).unwrap();
        for from in [&root, &sub, &worktree] {
            let found = folders(&home, from);
            let mut ids: Vec<String> = touched(&found, None, None).into_iter().map(|session| session.id).collect();
            ids.sort();
            assert_eq!(ids, ["s1", "s2", "s4"], "{}", from.display());
            assert_eq!(touched(&found, None, Some("s1")).len(), 2, "the one that asks is not counted");
        }
        let future = Timestamp::from_second(4_000_000_000).unwrap();
        assert!(touched(&folders(&home, &root), Some(future), None).is_empty());
    }
}
