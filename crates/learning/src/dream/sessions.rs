//! The sessions that share a memory, ours and Claude Code's: which were touched since, and what was said in them.
//!
//! Sessions lie by the directory they worked in, memory by the repository. So every folder of sessions is looked at whose
//! sessions worked in this repository. What people said is taken from the newest, bounded; the rest is searched by whoever
//! wants to know more. All of it is data: it is quoted, and gives no orders.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use memory::neutral;
use memory::place::{canonical_root, slug};
use session::home::SessionFile;
use session::{Home, record};
use transcript::line::Line;

/// How much of a session file is read to find where it worked.
const HEAD: u64 = 64 * 1024;
/// A larger session is not read for what was said; it can still be searched.
const LARGEST: u64 = 64 * 1024 * 1024;
/// Of how many sessions is shown what was said.
const SHOWN: usize = 20;
/// How many of them are named.
const NAMED: usize = 60;
/// How many words of the user are shown of one: those at its beginning and those at its end.
const FIRST: usize = 3;
const LAST: usize = 9;
/// How long each is, in characters, and all of them together, in bytes.
const EACH: usize = 400;
const ALL: usize = 48_000;

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

/// Whether a folder is that of a worktree of the repository.
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

/// Whether the newest session of a folder worked in a repository.
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
    let session = |entry: files::Entry| {
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

/// The sessions that were touched since a time, the newest first, but the one that asks.
pub fn touched(folders: &[PathBuf], since: Option<Timestamp>, except: Option<&str>) -> Vec<SessionFile> {
    let is_new = |session: &SessionFile| {
        let modified = session.modified.and_then(|at| Timestamp::try_from(at).ok());
        Some(session.id.as_str()) != except && (since.is_none() || modified > since)
    };
    let mut sessions: Vec<SessionFile> = folders.iter().flat_map(|folder| sessions_in(folder)).filter(is_new).collect();
    sessions.sort_by_key(|session| std::cmp::Reverse(session.modified));
    sessions
}

/// What a dream is told of sessions: where they lie, and what the user said in the newest of them.
pub fn told(sessions: &[SessionFile]) -> String {
    let mut text = String::new();
    for (at, session) in sessions.iter().take(NAMED).enumerate() {
        let modified = session.modified.and_then(|at| Timestamp::try_from(at).ok());
        let modified = modified.map(|at| at.strftime("%Y-%m-%d").to_string()).unwrap_or_default();
        let _ =
            writeln!(text, "- {} (last touched {modified}, {} KB)", session.path.display(), session.len.div_ceil(1024));
        if at < SHOWN && session.len <= LARGEST && text.len() < ALL {
            for said in said(&session.path) {
                let _ = writeln!(text, "  > {said}");
            }
        }
    }
    if sessions.len() > NAMED {
        let _ = writeln!(text, "- and {} older ones beside them", sessions.len() - NAMED);
    }
    text
}

/// What the user said in a session, with its date, each on a line.
fn said(path: &Path) -> Vec<String> {
    let Ok((lines, _)) = record::lines(path) else { return Vec::new() };
    let all: Vec<String> = lines.iter().filter_map(words).collect();
    let cut = all.len().saturating_sub(LAST).max(FIRST.min(all.len()));
    let gap = (cut > FIRST).then(|| "[…]".to_owned());
    all[..FIRST.min(all.len())].iter().cloned().chain(gap).chain(all[cut..].iter().cloned()).collect()
}

/// What the user said on a line.
fn words(line: &Line) -> Option<String> {
    let typed = line.typed().join(" ");
    let text = typed.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.sidechain || text.is_empty() {
        return None;
    }
    let cut: String = text.chars().take(EACH).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    let date = line.time.map(|at| at.strftime("%Y-%m-%d: ").to_string()).unwrap_or_default();
    Some(format!("{date}{}{more}", neutral::quoted(&cut)))
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

    /// DREAM-3: a dream is told what the user said, in few words, quoted.
    #[test]
    fn what_was_said_is_quoted_and_bounded() {
        let place = tempfile::tempdir().unwrap();
        let many: Vec<String> = (0..30).map(|n| format!("word number {n} </session> {}", "x".repeat(1_000))).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        session(place.path(), "s1", place.path(), &many);
        session(place.path(), "s2", place.path(), &["<command-name>/clear</command-name>", "Use tabs.\nAlways."]);
        let text = told(&touched(&[place.path().to_owned()], None, None));
        assert!(text.contains("> 2026-03-01: Use tabs. Always.") && !text.contains("clear"), "{text}");
        assert!(text.contains("number 0 ") && text.contains("number 29 ") && !text.contains("number 15 "), "{text}");
        assert!(text.contains("[…]") && text.len() < 8_000, "{}", text.len());
    }
}
