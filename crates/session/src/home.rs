//! Paths below the config home, `~/.claude` by default.
//!
//! A session of a project is in `projects/<slug>/<id>.jsonl`. The slug is the working directory's real path, as Claude
//! Code makes it, so that both programs list each other's sessions.

use std::path::{Path, PathBuf};

use memory::changes::{self, Changes};
use memory::place::slug;

use crate::error::Error;

/// The folder of all projects' sessions, below the config home.
pub const PROJECTS: &str = "projects";

/// The config home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    path: PathBuf,
}

/// A session's file, as a listing shows it.
#[derive(Debug, Clone)]
pub struct SessionFile {
    /// The session's id: the file's name.
    pub id: String,
    /// The file.
    pub path: PathBuf,
    /// When it was last written.
    pub modified: Option<std::time::SystemTime>,
    /// Its length in bytes.
    pub len: u64,
}

impl Home {
    /// A config home at an absolute path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of a project's sessions.
    pub fn project(&self, directory: &Path) -> PathBuf {
        self.path.join(PROJECTS).join(slug(directory))
    }

    /// The changes that agents made in a memory directory, and the state before.
    pub fn changes(&self, memory: &Path) -> Changes {
        Changes::at(changes::folder(&self.path.join("memory-changes"), memory))
    }

    /// Sessions that may hold something which nothing was learnt from yet, for a memory directory.
    pub fn learning(&self, memory: &Path) -> PathBuf {
        changes::folder(&self.path.join("cairn/learning"), memory)
    }

    /// A session's file.
    pub fn session(&self, directory: &Path, id: &str) -> Result<PathBuf, Error> {
        if !is_session_id(id) {
            return Err(Error::BadId { id: id.to_owned() });
        }
        Ok(self.project(directory).join(format!("{id}.jsonl")))
    }

    /// A project's sessions, newest first.
    pub fn sessions(&self, directory: &Path) -> Result<Vec<SessionFile>, Error> {
        let entries = match files::list(self.project(directory)) {
            Ok(entries) => entries,
            Err(files::Error::NotFound { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let mut sessions: Vec<SessionFile> = entries
            .into_iter()
            .filter_map(|entry| {
                let name = entry.name.to_str()?;
                let id = name.strip_suffix(".jsonl").filter(|id| is_session_id(id))?.to_owned();
                let path = self.project(directory).join(name);
                Some(SessionFile { id, path, modified: entry.modified, len: entry.len })
            })
            .collect();
        sessions.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| b.id.cmp(&a.id)));
        Ok(sessions)
    }

    /// The session an id or the beginning of one means.
    pub fn find(&self, directory: &Path, id: &str) -> Result<SessionFile, Error> {
        let mut found: Vec<SessionFile> =
            self.sessions(directory)?.into_iter().filter(|session| session.id.starts_with(id)).collect();
        if let Some(exact) = found.iter().position(|session| session.id == id) {
            return Ok(found.swap_remove(exact));
        }
        match found.len() {
            0 => Err(Error::NoSession { id: id.to_owned(), folder: self.project(directory) }),
            1 => Ok(found.swap_remove(0)),
            _ => {
                let found = found.into_iter().map(|session| session.id).collect();
                Err(Error::Ambiguous { id: id.to_owned(), found })
            }
        }
    }
}

/// An id is a file's name, so it is nothing but letters, digits and dashes.
fn is_session_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// The branch checked out in a directory, or the commit where there is none; empty outside a repository. What git would
/// not call a branch is none: a stranger's `HEAD` is not a way into the prompt.
pub fn git_branch(directory: &Path) -> String {
    const HEAD_LIMIT: u64 = 4_096;
    let head = memory::place::checkout(directory)
        .and_then(|checkout| memory::place::git_directory(&checkout))
        .and_then(|git| files::Root::open(git).ok()?.read("HEAD", HEAD_LIMIT).ok());
    let head = head.map(|head| String::from_utf8_lossy(&head.bytes).trim().to_owned()).unwrap_or_default();
    let branch = head.strip_prefix("ref: refs/heads/").unwrap_or_default();
    let is_commit = matches!(head.len(), 40 | 64) && head.bytes().all(|byte| byte.is_ascii_hexdigit());
    match branch {
        "" if is_commit => head,
        _ if is_branch(branch) => branch.to_owned(),
        _ => String::new(),
    }
}

/// True if this can be the name of a branch, and nothing else.
pub fn is_branch(name: &str) -> bool {
    const LONGEST: usize = 200;
    let odd = |c: char| c.is_control() || c.is_whitespace() || "~^:?*[\\<>".contains(c);
    name.len() <= LONGEST && !name.contains(odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TRUST-5: what stands in `HEAD` is a branch, a commit, or nothing; a `.git` that leads elsewhere is not followed.
    #[test]
    fn a_branch_is_what_git_would_call_one() {
        let place = tempfile::tempdir().unwrap();
        let base = place.path().canonicalize().unwrap();
        let (repository, other) = (base.join("repository"), base.join("other"));
        let head = |text: &str| {
            files::replace(repository.join(".git/HEAD"), text.as_bytes()).unwrap();
            git_branch(&repository)
        };
        assert_eq!(head("ref: refs/heads/topic/one\n"), "topic/one");
        assert_eq!(head(&"a1".repeat(20)), "a1".repeat(20));
        for odd in ["aws_secret_access_key = x", "ref: refs/heads/a b", "ref: refs/heads/\u{1b}[2J", "", "ref: x"] {
            assert_eq!(head(odd), "", "{odd:?}");
        }
        files::replace(other.join(".git/HEAD"), b"ref: refs/heads/theirs").unwrap();
        files::remove(repository.join(".git/HEAD")).unwrap();
        std::os::unix::fs::symlink(other.join(".git/HEAD"), repository.join(".git/HEAD")).unwrap();
        assert_eq!(git_branch(&repository), "", "a link out of it");
        files::remove_tree(repository.join(".git")).unwrap();
        files::replace(repository.join(".git"), b"gitdir: ../other/.git").unwrap();
        assert_eq!(git_branch(&repository), "", "a repository that does not know of it");
        files::replace(other.join(".git/worktrees/one/HEAD"), b"ref: refs/heads/mine").unwrap();
        let own = repository.join(".git").display().to_string();
        files::replace(other.join(".git/worktrees/one/gitdir"), own.as_bytes()).unwrap();
        files::replace(repository.join(".git"), b"gitdir: ../other/.git/worktrees/one").unwrap();
        assert_eq!(git_branch(&repository), "mine", "a worktree");
    }

    #[test]
    fn a_session_id_cannot_name_another_file() {
        let home = Home::at("/h");
        for bad in ["../x", "a/b", "", "a.b", "x\0"] {
            assert!(home.session(Path::new("/w"), bad).is_err(), "{bad:?}");
        }
        assert!(home.session(Path::new("/w"), "01890a5d-ac96-774b-bcce-b302099a8057").is_ok());
    }
}
