//! The task list: what is to be done, what is being done, what is done. One list a session, in a file beside it.

use std::path::Path;

use futures_util::future::{BoxFuture, ready};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tools::{Access, Output, Scope, Subject, Typed};

/// The file of the list, beside the session.
const FILE: &str = "tasks.json";
/// The largest list that is read.
const LARGEST: u64 = 1_000_000;

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
    pub status: Status,
    /// The tasks that have to be done before.
    #[serde(default)]
    pub blocked_by: Vec<String>,
}

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It is to be done.
    Pending,
    /// It is being done.
    InProgress,
    /// It is done.
    Completed,
}

// What a task becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it, and what is said besides is paid for in every request")]
pub enum Becomes {
    Pending,
    InProgress,
    Completed,
    Deleted,
}

/// The tasks of a session, by the folder beside it.
pub fn read(folder: &Path) -> Vec<Task> {
    let bytes = files::read(folder.join(FILE), LARGEST).map(|file| file.bytes).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

fn write(scope: &Scope, tasks: &[Task], said: String) -> Output {
    let text = serde_json::to_string_pretty(tasks).unwrap_or_default();
    match files::replace(scope.temporary().join(FILE), text.as_bytes()) {
        Ok(_) => {
            let summary = said.lines().next().unwrap_or_default().to_owned();
            Output::done(said, summary)
        }
        Err(error) => Output::failed(format!("the list could not be written: {error}")),
    }
}

impl Task {
    /// In a line.
    pub fn line(&self) -> String {
        let status = match self.status {
            Status::Pending => "pending",
            Status::InProgress => "in_progress",
            Status::Completed => "completed",
        };
        let blocked = match self.blocked_by.as_slice() {
            [] => String::new(),
            ids => format!(" [blocked by {}]", ids.iter().map(|id| format!("#{id}")).collect::<Vec<_>>().join(", ")),
        };
        format!("#{} [{status}] {}{blocked}", self.id, self.subject)
    }
}

/// Puts a task on the list, for work of three steps or more. activeForm: as it goes on ("Running tests").
#[derive(Debug, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it, and what is said besides is paid for in every request")]
pub struct TaskCreateInput {
    pub subject: String,
    pub description: String,
    #[serde(rename = "activeForm")]
    pub active_form: Option<String>,
}

/// Puts a task on the list.
#[derive(Debug, Clone, Copy)]
pub struct TaskCreate;

impl Typed for TaskCreate {
    type Input = TaskCreateInput;
    const NAME: &'static str = "TaskCreate";

    fn access(&self, _: &TaskCreateInput) -> Access {
        Access::Session
    }

    fn subject(&self, _: &TaskCreateInput, _: &Scope) -> Subject {
        Subject::Whole
    }

    fn run(&self, input: TaskCreateInput, scope: Scope) -> BoxFuture<'static, Output> {
        let mut tasks = read(scope.temporary());
        let newest = tasks.iter().filter_map(|task| task.id.parse::<u64>().ok()).max().unwrap_or_default();
        let (id, status) = ((newest + 1).to_string(), Status::Pending);
        let said = format!("Task #{id} created: {}", input.subject);
        let TaskCreateInput { subject, description, active_form } = input;
        tasks.push(Task { id, subject, description, active_form, status, blocked_by: Vec::new() });
        Box::pin(ready(write(&scope, &tasks, said)))
    }
}

/// Shows all of one task.
#[derive(Debug, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it, and what is said besides is paid for in every request")]
pub struct TaskGetInput {
    #[serde(rename = "taskId")]
    pub task_id: String,
}

/// Shows one task.
#[derive(Debug, Clone, Copy)]
pub struct TaskGet;

impl Typed for TaskGet {
    type Input = TaskGetInput;
    const NAME: &'static str = "TaskGet";

    fn access(&self, _: &TaskGetInput) -> Access {
        Access::ReadOnly
    }

    fn subject(&self, _: &TaskGetInput, _: &Scope) -> Subject {
        Subject::Whole
    }

    fn run(&self, input: TaskGetInput, scope: Scope) -> BoxFuture<'static, Output> {
        let tasks = read(scope.temporary());
        let found = tasks.iter().find(|task| task.id == input.task_id);
        Box::pin(ready(match found {
            Some(task) => Output::done(format!("{}\n{}", task.line(), task.description), task.line()),
            None => none(&input.task_id),
        }))
    }
}

fn none(id: &str) -> Output {
    Output::failed(format!("There is no task #{id}. TaskList shows those there are."))
}

/// Shows the list.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct TaskListInput {}

/// Shows the list.
#[derive(Debug, Clone, Copy)]
pub struct TaskList;

impl Typed for TaskList {
    type Input = TaskListInput;
    const NAME: &'static str = "TaskList";

    fn access(&self, _: &TaskListInput) -> Access {
        Access::ReadOnly
    }

    fn subject(&self, _: &TaskListInput, _: &Scope) -> Subject {
        Subject::Whole
    }

    fn run(&self, _: TaskListInput, scope: Scope) -> BoxFuture<'static, Output> {
        let lines: Vec<String> = read(scope.temporary()).iter().map(Task::line).collect();
        let text = if lines.is_empty() { "There are no tasks.".to_owned() } else { lines.join("\n") };
        Box::pin(ready(Output::done(text, format!("{} tasks", lines.len()))))
    }
}

/// Changes a task: in_progress when you begin it, completed when it is done and checked.
#[derive(Debug, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it, and what is said besides is paid for in every request")]
pub struct TaskUpdateInput {
    #[serde(rename = "taskId")]
    pub task_id: String,
    pub status: Option<Becomes>,
    pub subject: Option<String>,
    pub description: Option<String>,
    #[serde(rename = "activeForm")]
    pub active_form: Option<String>,
    #[serde(rename = "addBlockedBy")]
    pub add_blocked_by: Option<Vec<String>>,
}

/// Changes a task.
#[derive(Debug, Clone, Copy)]
pub struct TaskUpdate;

impl Typed for TaskUpdate {
    type Input = TaskUpdateInput;
    const NAME: &'static str = "TaskUpdate";

    fn access(&self, _: &TaskUpdateInput) -> Access {
        Access::Session
    }

    fn subject(&self, _: &TaskUpdateInput, _: &Scope) -> Subject {
        Subject::Whole
    }

    fn run(&self, input: TaskUpdateInput, scope: Scope) -> BoxFuture<'static, Output> {
        let mut tasks = read(scope.temporary());
        let Some(at) = tasks.iter().position(|task| task.id == input.task_id) else {
            return Box::pin(ready(none(&input.task_id)));
        };
        let task = &mut tasks[at];
        match input.status {
            Some(Becomes::Pending) => task.status = Status::Pending,
            Some(Becomes::InProgress) => task.status = Status::InProgress,
            Some(Becomes::Completed) => task.status = Status::Completed,
            Some(Becomes::Deleted) | None => {}
        }
        task.subject = input.subject.unwrap_or(std::mem::take(&mut task.subject));
        task.description = input.description.unwrap_or(std::mem::take(&mut task.description));
        task.active_form = input.active_form.or(task.active_form.take());
        task.blocked_by.extend(input.add_blocked_by.unwrap_or_default());
        let said = match input.status {
            Some(Becomes::Deleted) => format!("Task #{} is gone.", tasks.remove(at).id),
            _ => tasks[at].line(),
        };
        Box::pin(ready(write(&scope, &tasks, said)))
    }
}
