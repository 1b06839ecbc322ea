//! Where tasks stand: one file, beside the session or in the folder of its team, changed by one at a time.
//!
//! A lock of the operating system is held while the list is read, changed and replaced, so of several who begin a task at
//! once one gets it and the others are told who. In a team a task that is being done belongs to somebody: only they and
//! the lead may change it, and nobody takes it over before it was given back.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use files::Root;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::mailbox::{LEAD, PATIENCE};

/// The file of the list.
const FILE: &str = "tasks.json";
/// What is locked while it is changed.
const LOCK: &str = "tasks.lock";
/// The largest list that is read.
const LARGEST: u64 = 1_000_000;
/// The list is its owner's alone.
const PRIVATE_FILE: u32 = 0o600;

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Its number, from 1.
    pub id: String,
    /// What it is, in a few words.
    pub subject: String,
    /// What is to be done.
    #[serde(default)]
    pub description: String,
    /// How it is called while it is being done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_form: Option<String>,
    /// How far it is.
    pub status: TaskStatus,
    /// The tasks that have to be done before.
    #[serde(default)]
    pub blocked_by: Vec<String>,
    /// Who of the team does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// It is to be done.
    Pending,
    /// It is being done.
    InProgress,
    /// It is done.
    Completed,
}

/// The list a session works with. Clones share which that is.
#[derive(Debug, Clone, Default)]
pub struct Board(Arc<Mutex<Option<SharedList>>>);

/// A list that is shared.
#[derive(Debug, Clone)]
struct SharedList {
    folder: PathBuf,
    me: String,
}

impl Board {
    /// From now on the list of a team is meant, under a name in it. What stood on the session's own is put there, if
    /// nobody has put anything there yet.
    pub fn join(&self, team: &Path, me: &str, own: &Path) -> Result<(), String> {
        let mine = read(own);
        if !mine.is_empty() && read(team).is_empty() {
            change(team, |tasks| {
                if tasks.is_empty() {
                    tasks.extend(mine);
                }
                Ok(())
            })?;
        }
        *self.0.lock() = Some(SharedList { folder: team.to_owned(), me: me.to_owned() });
        Ok(())
    }

    /// The tasks; `own` is where the session's own list lies.
    pub fn tasks(&self, own: &Path) -> Vec<Task> {
        let shared = self.0.lock().clone();
        read(shared.as_ref().map_or(own, |shared| &shared.folder))
    }

    /// Changes the list. `by` is told under which name, in a team; what it refuses leaves the list as it is.
    pub fn change<T>(
        &self,
        own: &Path,
        by: impl FnOnce(&mut Vec<Task>, Option<&str>) -> Result<T, String>,
    ) -> Result<T, String> {
        let shared = self.0.lock().clone();
        let folder = shared.as_ref().map_or(own, |shared| &shared.folder);
        change(folder, |tasks| by(tasks, shared.as_ref().map(|shared| shared.me.as_str())))
    }
}

/// The tasks in a folder.
pub fn read(folder: &Path) -> Vec<Task> {
    let bytes = files::read(folder.join(FILE), LARGEST).map(|file| file.bytes).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// Whether nothing stands there. What cannot be read is something.
pub fn is_empty(folder: &Path) -> bool {
    match files::read(folder.join(FILE), LARGEST) {
        Ok(file) => serde_json::from_slice::<Vec<Task>>(&file.bytes).is_ok_and(|tasks| tasks.is_empty()),
        Err(error) => matches!(error, files::Error::NotFound { .. }),
    }
}

/// Changes the list in a folder. One that cannot be read is left as it is.
pub fn change<T>(folder: &Path, by: impl FnOnce(&mut Vec<Task>) -> Result<T, String>) -> Result<T, String> {
    let failed = |error: files::Error| format!("the list could not be written: {error}");
    let root = Root::create(folder).map_err(failed)?;
    let _held = root.lock_within(LOCK, PATIENCE).map_err(failed)?;
    let mut tasks: Vec<Task> = match root.read(FILE, LARGEST) {
        Ok(file) => serde_json::from_slice(&file.bytes)
            .map_err(|error| format!("{} is no list of tasks: {error}", folder.join(FILE).display()))?,
        Err(files::Error::NotFound { .. }) => Vec::new(),
        Err(error) => return Err(failed(error)),
    };
    let done = by(&mut tasks)?;
    let text = serde_json::to_vec_pretty(&tasks).map_err(|error| error.to_string())?;
    if text.len() as u64 > LARGEST {
        return Err("the list is full: take away what is done, or put long descriptions into files".to_owned());
    }
    root.replace(FILE, &text, PRIVATE_FILE).map_err(failed)?;
    Ok(done)
}

/// Gives back what somebody had begun who is gone.
pub fn give_back(folder: &Path, owner: &str) -> Result<(), String> {
    if read(folder).is_empty() {
        return Ok(());
    }
    change(folder, |tasks| {
        for task in tasks.iter_mut().filter(|task| task.owner.as_deref() == Some(owner)) {
            if task.status != TaskStatus::Completed {
                (task.status, task.owner) = (TaskStatus::Pending, None);
            }
        }
        Ok(())
    })
}

/// Whether somebody may change a task; the error says why not.
pub(super) fn may_change(task: &Task, me: &str) -> Result<(), String> {
    match &task.owner {
        Some(owner) if owner != me && me != LEAD => {
            Err(format!("Task #{} belongs to {owner}. Only {owner} and the lead may change it.", task.id))
        }
        _ => Ok(()),
    }
}

/// Lets somebody begin a task; the error says why they cannot.
pub(super) fn claim(tasks: &mut [Task], at: usize, owner: &str) -> Result<(), String> {
    let is_open = |id: &String| tasks.iter().any(|task| task.id == *id && task.status != TaskStatus::Completed);
    let open: Vec<String> = tasks[at].blocked_by.iter().filter(|id| is_open(id)).cloned().collect();
    let task = &mut tasks[at];
    match (&task.owner, task.status) {
        (Some(other), TaskStatus::InProgress) if other != owner => {
            return Err(format!("Task #{} is being done by {other}. Take another one.", task.id));
        }
        (_, TaskStatus::Completed) => return Err(format!("Task #{} is done already. Take another one.", task.id)),
        (Some(other), _) if other != owner => {
            return Err(format!("Task #{} is meant for {other}. Take another one.", task.id));
        }
        _ => {}
    }
    if !open.is_empty() {
        return Err(format!("Task #{} cannot be begun yet: #{} is not done.", task.id, open.join(", #")));
    }
    (task.status, task.owner) = (TaskStatus::InProgress, Some(owner.to_owned()));
    Ok(())
}
