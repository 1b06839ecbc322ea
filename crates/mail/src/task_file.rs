//! File of the task list, beside the session or in the folder of its team, changed by one process at a time.
//!
//! A lock of the operating system is held while the list is read, changed and replaced, so if several begin a task at
//! once, one gets it and the others are told who has it. In a team a task that is being done belongs to somebody: only
//! they and the lead may change it, and nobody takes it over before it was given back.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use files::Root;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::mailbox::{LEAD, PATIENCE};

/// The file of the list.
const FILE: &str = "tasks.json";
/// The file that is locked during a change.
const LOCK: &str = "tasks.lock";
/// The largest list that is read.
const LARGEST: u64 = 1_000_000;
/// Access bits: only the owner reads and writes the list.
const PRIVATE_FILE: u32 = 0o600;

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Its number, from 1.
    pub id: String,
    /// The task in a few words.
    pub subject: String,
    /// The work to do.
    #[serde(default)]
    pub description: String,
    /// Its name while it is being done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_form: Option<String>,
    /// Its status.
    pub status: TaskStatus,
    /// Numbers of the tasks that have to be done before.
    #[serde(default)]
    pub blocked_by: Vec<String>,
    /// Name of the team member who does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// Status of a task.
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

/// The list that a session works with. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct TaskBoard(Arc<Mutex<Option<SharedList>>>);

/// The list of a team, and our name in it.
#[derive(Debug, Clone)]
struct SharedList {
    folder: PathBuf,
    me: String,
}

impl TaskBoard {
    /// Switches to the list of a team, under our name in it. Tasks of the session's own list move there, if the team's
    /// is empty.
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

    /// The tasks; `own` is the folder of the session's own list.
    pub fn tasks(&self, own: &Path) -> Vec<Task> {
        let shared = self.0.lock().clone();
        read(shared.as_ref().map_or(own, |shared| &shared.folder))
    }

    /// Changes the list. `by` is given our name in the team, if there is one; if it fails, the list stays as it is.
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

/// True if no task is on the list. A list that cannot be read counts as not empty.
pub fn is_empty(folder: &Path) -> bool {
    match files::read(folder.join(FILE), LARGEST) {
        Ok(file) => serde_json::from_slice::<Vec<Task>>(&file.bytes).is_ok_and(|tasks| tasks.is_empty()),
        Err(error) => matches!(error, files::Error::NotFound { .. }),
    }
}

/// Changes the list in a folder. An unreadable list is left as it is.
pub fn change<T>(folder: &Path, by: impl FnOnce(&mut Vec<Task>) -> Result<T, String>) -> Result<T, String> {
    let failed = |error: files::Error| format!("the list could not be written: {error}");
    let root = Root::create(folder).map_err(failed)?;
    let _held = root.lock_within(LOCK, PATIENCE).map_err(failed)?;
    let mut tasks: Vec<Task> = match root.read(FILE, LARGEST) {
        Ok(file) => serde_json::from_slice(&file.bytes)
            .map_err(|error| format!("{} is not a task list: {error}", folder.join(FILE).display()))?,
        Err(files::Error::NotFound { .. }) => Vec::new(),
        Err(error) => return Err(failed(error)),
    };
    let done = by(&mut tasks)?;
    let text = serde_json::to_vec_pretty(&tasks).map_err(|error| error.to_string())?;
    if text.len() as u64 > LARGEST {
        return Err("the list is full: remove what is done, or put long descriptions into files".to_owned());
    }
    root.replace(FILE, &text, PRIVATE_FILE).map_err(failed)?;
    Ok(done)
}

/// Gives back the unfinished tasks of a member who is gone.
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

/// Checks that somebody may change a task; the error says why not.
pub(super) fn may_change(task: &Task, me: &str) -> Result<(), String> {
    match &task.owner {
        Some(owner) if owner != me && me != LEAD => {
            Err(format!("Task #{} belongs to {owner}. Only {owner} and the lead may change it.", task.id))
        }
        _ => Ok(()),
    }
}

/// Lets somebody begin a task; the error says why not.
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
