//! A git worktree for one agent, with its own branch.
//!
//! A worktree without changes is removed together with its branch; one with changes stays, and is named. A record is
//! written before it is made, so that the next session finds whatever a killed one leaves behind: half-made worktrees
//! are removed, those that hold work are named.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use files::Root;
use learning::knowledge::CopiedFolder;
use memory::place;
use serde::{Deserialize, Serialize};
use session::{LineMeta, Session};
use tools::Environment;
use tools::git::{Git, Programs};
use transcript::{Injected, Purpose};

use super::child::ParentSnapshot;
use crate::agent::Parts;

/// Folder of the records, below the config home: nothing that a repository brings is trusted.
const RECORDS: &str = "cairn/worktrees";
/// Lock file next to that folder, held while worktrees are added or removed.
const LOCK: &str = "worktrees.lock";
/// Interval between attempts to take the lock.
const AGAIN: Duration = Duration::from_millis(20);
/// Largest size of a record, in bytes.
const MOST_RECORD: u64 = 10_000;
/// Message for an agent that resumes in a fresh worktree.
pub(super) const FRESH: &str = "Your worktree was gone. You have a new one in its place, at the project's newest \
                     commit; look again before you rely on what you saw there.";
/// Timeout for git: the checkout of a large repository.
const PATIENCE: Duration = Duration::from_secs(300);

/// The site from which an agent with a worktree is started, and git's environment there.
#[derive(Debug, Clone, Copy)]
pub struct WorktreeSite<'a> {
    /// Environment variables for git.
    pub environment: &'a Environment,
    /// The guard, if there is one.
    pub guard: Option<&'a Path>,
    /// The directory for `~`.
    pub user_home: Option<&'a Path>,
    /// The working tree.
    pub directory: &'a Path,
    /// The session whose folder holds the worktree.
    pub session: &'a Path,
    /// The session of the person or program at the top.
    pub top: &'a Path,
}

impl<'a> From<&'a ParentSnapshot> for WorktreeSite<'a> {
    fn from(parent: &'a ParentSnapshot) -> Self {
        Self {
            environment: &parent.parts.work.environment,
            guard: parent.parts.work.guard.as_deref(),
            user_home: parent.scope.home(),
            directory: &parent.directory,
            session: &parent.session,
            top: parent.parts.lineage.sent.as_ref().map_or(&parent.session, |sent| &sent.session),
        }
    }
}

impl<'a> WorktreeSite<'a> {
    /// Folder of its agents' worktrees.
    fn folder(&self) -> PathBuf {
        session::folder_of(self.session).join("worktrees")
    }

    fn git(&self, folder: &'a Path) -> Git<'a> {
        let _ = files::create_directory(folder); // without it git says what is wrong
        git(self.environment, self.guard, self.user_home, folder)
    }
}

/// The worktree of a running agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Worktree {
    /// Its path.
    pub(super) path: PathBuf,
    branch: String,
    /// The commit it started from.
    base: String,
    /// The agent's transcript: whoever holds its lock works in the worktree.
    transcript: PathBuf,
    /// The repository it belongs to.
    repository: PathBuf,
    /// Path of its record.
    #[serde(skip)]
    record: PathBuf,
    /// The working tree that it copies.
    #[serde(skip)]
    top: PathBuf,
    /// Its state for the agent.
    #[serde(skip)]
    pub(super) begins: WorktreeState,
}

/// State of a worktree when its agent starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum WorktreeState {
    /// At the project's newest commit.
    #[default]
    Fresh,
    /// As the agent left it.
    AsItWas,
}

/// Remains of a worktree after its agent has ended.
#[derive(Debug, PartialEq, Eq)]
pub enum WorktreeRemains {
    /// Nothing.
    Nothing,
    /// It has changes.
    Kept {
        /// Its path.
        path: PathBuf,
        /// Its branch.
        branch: String,
    },
}

impl fmt::Display for WorktreeRemains {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => Ok(()),
            Self::Kept { path, branch } => write!(
                to,
                "Its changes are in the worktree {} on the branch {branch}; nothing of them is here yet.",
                path.display()
            ),
        }
    }
}

impl Worktree {
    /// Moves a newly opened session into its worktree: the one it left, or a new one.
    pub async fn enter(session: &mut Session, from: WorktreeSite<'_>, id: &str) -> Result<Self, String> {
        let file = session.path().to_owned();
        let worktree = Self::again(from, id, &file).await?;
        session.work_in(&worktree.path);
        if session.goes_on() && worktree.begins == WorktreeState::Fresh {
            let told = session.inject(&Injected::new(Purpose::Worktree, FRESH), LineMeta::default());
            told.map_err(|error| error.to_string())?;
        }
        Ok(worktree)
    }

    /// Checks that a worktree can be made; the error says why not.
    pub(crate) async fn check(from: WorktreeSite<'_>) -> Result<(), String> {
        let folder = from.folder();
        Self::planned(&from.git(&folder), from, "", from.session).await.map(drop)
    }

    /// Makes a worktree for an agent.
    pub(super) async fn make(from: WorktreeSite<'_>, id: &str, transcript: &Path) -> Result<Self, String> {
        let folder = from.folder();
        let git = from.git(&folder);
        let worktree = Self::planned(&git, from, id, transcript).await?;
        worktree.write_down()?;
        let new = ["-b", &worktree.branch, &worktree.place(), &worktree.base].map(str::to_owned);
        worktree.add(&git, &new).await
    }

    /// For a resumed agent: its own worktree with its work if that is still there, else a fresh one in its place.
    pub(super) async fn again(from: WorktreeSite<'_>, id: &str, transcript: &Path) -> Result<Self, String> {
        let folder = from.folder();
        let git = from.git(&folder);
        let mut worktree = Self::planned(&git, from, id, transcript).await?;
        let top = git.run(&worktree.path, &["rev-parse", "--show-toplevel"]).await;
        let is_there = top.is_ok_and(|top| files::real(&top).ok() == files::real(&worktree.path).ok());
        if !is_there && files::glance(&worktree.path).is_some() {
            return Err(format!("{} is not a worktree any more", worktree.place()));
        }
        let branch = format!("refs/heads/{}", worktree.branch);
        let head = match is_there {
            true => git.run(&worktree.path, &["rev-parse", "--verify", "HEAD^{commit}"]).await.ok(),
            false => git.run(&worktree.repository, &["rev-parse", "--verify", &branch]).await.ok(),
        };
        if let Some(head) = &head
            && let Ok(shared) = git.run(&worktree.repository, &["merge-base", head, &worktree.base]).await
        {
            // What the project has already need not be kept for its sake.
            worktree.base = shared;
        }
        if is_there {
            worktree.begins = WorktreeState::AsItWas;
            worktree.write_down()?;
            return Ok(worktree);
        }
        worktree.write_down()?;
        let place = worktree.place();
        let words = match head {
            Some(_) => vec![place, worktree.branch.clone()],
            None => vec!["-b".to_owned(), worktree.branch.clone(), place, worktree.base.clone()],
        };
        worktree.add(&git, &words).await
    }

    /// Applies the project's rules to the worktree.
    pub fn furnish(&self, parts: &mut Parts) {
        parts.prompt.system_facts.changes = None; // those of the project
        parts.consent.policy.rules.hold_in_copy(&self.path, &self.top);
    }

    /// The folder that it copies.
    pub fn copied(&self) -> CopiedFolder {
        CopiedFolder { at: self.path.clone(), of: self.top.clone() }
    }

    fn place(&self) -> String {
        self.path.display().to_string()
    }

    /// Writes the record, before the worktree is made.
    fn write_down(&self) -> Result<(), String> {
        let text = serde_json::to_vec(self).unwrap_or_default();
        let kept = files::replace_private(&self.record, &text);
        // Git would make the folders that hold the worktree, for everybody to look into.
        let made = kept.and_then(|()| self.path.parent().map_or(Ok(()), files::create_directory));
        made.map_err(|error| error.to_string())
    }

    async fn add(self, git: &Git<'_>, words: &[String]) -> Result<Self, String> {
        let words: Vec<&str> = ["worktree", "add"].into_iter().chain(words.iter().map(String::as_str)).collect();
        let added = {
            let _alone = self.alone().await;
            let _ = git.run(&self.repository, &["worktree", "prune"]).await; // of one that was taken away by hand
            git.run(&self.repository, &words).await
        };
        if let Err(why) = added {
            self.remove(git).await;
            return Err(why);
        }
        Ok(self)
    }

    /// Plans a worktree for an agent, whether it exists or not.
    async fn planned(git: &Git<'_>, from: WorktreeSite<'_>, id: &str, transcript: &Path) -> Result<Self, String> {
        let repository = git.run(from.directory, &["rev-parse", "--show-toplevel"]).await;
        let repository = repository.map_err(|_| format!("{} is not in a git repository", from.directory.display()))?;
        let base = git.run(from.directory, &["rev-parse", "--verify", "HEAD^{commit}"]).await;
        let base = base.map_err(|_| "the repository has no commit yet".to_owned())?;
        let path = from.folder().join(format!("agent-{id}"));
        let home = from.top.ancestors().nth(3).ok_or("its session has no folder")?; // <home>/projects/<slug>/<id>.jsonl
        Ok(Self {
            record: home.join(RECORDS).join(format!("agent-{id}.json")),
            path,
            branch: format!("agent-{id}"),
            base,
            transcript: transcript.to_owned(),
            repository: place::canonical_root(Path::new(&repository)),
            top: PathBuf::from(repository),
            begins: WorktreeState::Fresh,
        })
    }

    /// Ends the use of the worktree, after its agent has ended.
    pub async fn finish(self, from: WorktreeSite<'_>) -> WorktreeRemains {
        let folder = from.folder();
        let git = from.git(&folder);
        if self.is_unchanged(&git).await {
            self.remove(&git).await;
            return WorktreeRemains::Nothing;
        }
        self.forget();
        WorktreeRemains::Kept { path: self.path, branch: self.branch }
    }

    /// Remains if the agent ended now.
    pub async fn left(&self, from: WorktreeSite<'_>) -> WorktreeRemains {
        let folder = from.folder();
        match self.is_unchanged(&from.git(&folder)).await {
            true => WorktreeRemains::Nothing,
            false => WorktreeRemains::Kept { path: self.path.clone(), branch: self.branch.clone() },
        }
    }

    /// Returns whether it holds nothing beyond its first commit.
    async fn is_unchanged(&self, git: &Git<'_>) -> bool {
        let status = git.run(&self.path, &["status", "--porcelain", "--untracked-files=all"]).await;
        let head = git.run(&self.path, &["rev-parse", "HEAD"]).await;
        status.is_ok_and(|status| status.is_empty()) && head.is_ok_and(|head| head == self.base)
    }

    /// Keeps others from adding and removing worktrees while it lives: git fails when it meets a half-made one. Without
    /// the lock the caller goes on, and git reports what is wrong.
    async fn alone(&self) -> Option<files::Lock> {
        let root = Root::open(self.record.ancestors().nth(2)?).ok()?;
        let taken = async {
            loop {
                match root.lock_within(LOCK, Duration::ZERO) {
                    Ok(lock) => return lock,
                    Err(_) => tokio::time::sleep(AGAIN).await,
                }
            }
        };
        tokio::time::timeout(PATIENCE, taken).await.ok()
    }

    /// Removes it with its branch and its record.
    async fn remove(&self, git: &Git<'_>) {
        let _alone = self.alone().await;
        let place = self.path.display().to_string();
        let _ = git.run(&self.repository, &["worktree", "unlock", &place]).await; // git locks it while it makes it
        let _ = git.run(&self.repository, &["worktree", "remove", "--force", &place]).await; // it may be half there
        let _ = files::remove_tree(&self.path);
        let _ = git.run(&self.repository, &["worktree", "prune"]).await;
        let at = git.run(&self.repository, &["rev-parse", "--verify", &format!("refs/heads/{}", self.branch)]).await;
        if at.is_ok_and(|at| at == self.base) {
            let _ = git.run(&self.repository, &["branch", "-D", &self.branch]).await;
        }
        self.forget();
    }

    /// Returns whether its agent is working. While an agent gets or gives back its worktree, it holds no transcript:
    /// then its sender's transcript is held, by another session than the one that asks.
    fn is_worked_in(&self, session: &Path) -> bool {
        let folder = self.transcript.parent().and_then(Path::parent);
        let sender = folder.map(|folder| folder.with_extension("jsonl"));
        is_held(&self.transcript) || sender.is_some_and(|sender| sender != session && is_held(&sender))
    }

    fn forget(&self) {
        let _ = files::remove(&self.record); // one that stays is looked at again
    }
}

/// Looks for worktrees of agents whose session was killed or is the one starting here; reports what became of each.
pub async fn left_behind(
    home: &Path,
    directory: &Path,
    session: &Path,
    environment: &Environment,
    guard: Option<&Path>,
) -> Vec<String> {
    let (folder, repository) = (home.join(RECORDS), place::canonical_root(directory));
    let mut told = Vec::new();
    for entry in files::list(&folder).unwrap_or_default() {
        let Ok(file) = files::read(folder.join(&entry.name), MOST_RECORD) else { continue };
        let Ok(worktree) = serde_json::from_slice::<Worktree>(&file.bytes) else { continue };
        let worktree = Worktree { record: folder.join(&entry.name), ..worktree };
        if worktree.repository != repository || !worktree.path.starts_with(home) || worktree.is_worked_in(session) {
            continue; // another's, or somebody works there
        }
        let (path, branch) = (worktree.path.display().to_string(), worktree.branch.clone());
        let git = git(environment, guard, None, worktree.path.parent().unwrap_or(home));
        let is_there = git.run(&worktree.path, &["rev-parse", "--verify", "HEAD"]).await.is_ok();
        if is_there && !worktree.is_unchanged(&git).await {
            worktree.forget();
            told.push(format!("an agent that was killed left changes in {path}, on the branch {branch}"));
        } else {
            worktree.remove(&git).await;
            told.push(format!("an agent that was killed left the worktree {path} without changes; it was removed"));
        }
    }
    told
}

/// Returns whether a process is writing to a transcript.
fn is_held(transcript: &Path) -> bool {
    let exists = files::glance(transcript).is_some();
    exists && matches!(files::Log::open(transcript, "a look at what is left behind"), Err(files::Error::Held { .. }))
}

/// Git for the agents of a session: confined to the repository and the folder of worktrees. If the repository makes git
/// run other programs, the user was asked before.
fn git<'a>(
    environment: &'a Environment,
    guard: Option<&'a Path>,
    home: Option<&'a Path>,
    changes: &'a Path,
) -> Git<'a> {
    Git { environment, guard, home, changes: Some(changes), programs: Programs::Approved, limit: PATIENCE }
}
