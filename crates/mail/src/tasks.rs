//! The task list: what is to be done, what is being done, what is done, and in a team by whom.

use futures_util::future::{BoxFuture, ready};
use schemars::JsonSchema;
use serde::Deserialize;
use tools::{Access, Output, Scope, TypedTool};
use transcript::tool_names;

use crate::mailbox::LEAD;
use crate::task_file::{Task, TaskBoard, TaskStatus, claim, may_change};

// What a task becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it, and what is said besides is paid for in every request")]
pub enum NewStatus {
    Pending,
    InProgress,
    Completed,
    Deleted,
}

fn output(said: Result<String, String>) -> BoxFuture<'static, Output> {
    Box::pin(ready(match said {
        Ok(said) => {
            let summary = said.lines().next().unwrap_or_default().to_owned();
            Output::done(said, summary)
        }
        Err(why) => Output::failed(why),
    }))
}

impl Task {
    /// The task in one line.
    pub fn line(&self) -> String {
        let status = match self.status {
            TaskStatus::Pending => "pending",
            TaskStatus::InProgress => "in_progress",
            TaskStatus::Completed => "completed",
        };
        let blocked = match self.blocked_by.as_slice() {
            [] => String::new(),
            ids => format!(" [blocked by {}]", ids.iter().map(|id| format!("#{id}")).collect::<Vec<_>>().join(", ")),
        };
        let owner = self.owner.as_ref().map(|owner| format!(" ({owner})")).unwrap_or_default();
        format!("#{} [{status}] {}{owner}{blocked}", self.id, self.subject)
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
#[derive(Debug, Clone)]
pub struct TaskCreate(pub TaskBoard);

impl TypedTool for TaskCreate {
    type Input = TaskCreateInput;
    const NAME: &'static str = tool_names::TASK_CREATE;
    const ACCESS: Access = Access::Session;

    fn run(&self, input: TaskCreateInput, scope: Scope) -> BoxFuture<'static, Output> {
        output(self.0.change(scope.temporary(), |tasks, _| {
            let newest = tasks.iter().filter_map(|task| task.id.parse::<u64>().ok()).max().unwrap_or_default();
            let (id, status) = ((newest + 1).to_string(), TaskStatus::Pending);
            let said = format!("Task #{id} created: {}", input.subject);
            let TaskCreateInput { subject, description, active_form } = input;
            tasks.push(Task { id, subject, description, active_form, status, blocked_by: Vec::new(), owner: None });
            Ok(said)
        }))
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
#[derive(Debug, Clone)]
pub struct TaskGet(pub TaskBoard);

impl TypedTool for TaskGet {
    type Input = TaskGetInput;
    const NAME: &'static str = tool_names::TASK_GET;
    const ACCESS: Access = Access::ReadOnly;

    fn run(&self, input: TaskGetInput, scope: Scope) -> BoxFuture<'static, Output> {
        let tasks = self.0.tasks(scope.temporary());
        let found = tasks.iter().find(|task| task.id == input.task_id);
        output(match found {
            Some(task) => Ok(format!("{}\n{}", task.line(), task.description)),
            None => Err(none(&input.task_id)),
        })
    }
}

fn none(id: &str) -> String {
    format!("There is no task #{id}. TaskList shows those there are.")
}

/// Shows the list.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct TaskListInput {}

/// Shows the list.
#[derive(Debug, Clone)]
pub struct TaskList(pub TaskBoard);

impl TypedTool for TaskList {
    type Input = TaskListInput;
    const NAME: &'static str = tool_names::TASK_LIST;
    const ACCESS: Access = Access::ReadOnly;

    fn run(&self, _: TaskListInput, scope: Scope) -> BoxFuture<'static, Output> {
        let lines: Vec<String> = self.0.tasks(scope.temporary()).iter().map(Task::line).collect();
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
    pub status: Option<NewStatus>,
    pub subject: Option<String>,
    pub description: Option<String>,
    #[serde(rename = "activeForm")]
    pub active_form: Option<String>,
    #[serde(rename = "addBlockedBy")]
    pub add_blocked_by: Option<Vec<String>>,
    /// In a team, who is to do it. It costs no words: whoever begins a task has it.
    #[serde(default)]
    #[schemars(skip)]
    pub owner: Option<String>,
}

/// Changes a task.
#[derive(Debug, Clone)]
pub struct TaskUpdate(pub TaskBoard);

impl TypedTool for TaskUpdate {
    type Input = TaskUpdateInput;
    const NAME: &'static str = tool_names::TASK_UPDATE;
    const ACCESS: Access = Access::Session;

    fn run(&self, input: TaskUpdateInput, scope: Scope) -> BoxFuture<'static, Output> {
        output(self.0.change(scope.temporary(), |tasks, me| change(tasks, me, input)))
    }
}

/// Changes one task, in a team under our name there.
fn change(tasks: &mut Vec<Task>, me: Option<&str>, input: TaskUpdateInput) -> Result<String, String> {
    let at = tasks.iter().position(|task| task.id == input.task_id).ok_or_else(|| none(&input.task_id))?;
    if let Some(me) = me {
        if me != LEAD && input.owner.as_deref().is_some_and(|owner| !owner.is_empty() && owner != me) {
            return Err("Only the lead gives tasks to others. Write to them instead.".to_owned());
        }
        if input.status == Some(NewStatus::InProgress) {
            claim(tasks, at, input.owner.as_deref().filter(|owner| !owner.is_empty()).unwrap_or(me))?;
        } else {
            may_change(&tasks[at], me)?;
        }
    }
    let task = &mut tasks[at];
    match input.status {
        Some(NewStatus::Pending) => (task.status, task.owner) = (TaskStatus::Pending, None),
        Some(NewStatus::InProgress) => task.status = TaskStatus::InProgress,
        Some(NewStatus::Completed) => task.status = TaskStatus::Completed,
        Some(NewStatus::Deleted) | None => {}
    }
    if me.is_some() && input.status != Some(NewStatus::InProgress) {
        task.owner = input.owner.filter(|owner| !owner.is_empty()).or(task.owner.take());
    }
    task.subject = input.subject.unwrap_or(std::mem::take(&mut task.subject));
    task.description = input.description.unwrap_or(std::mem::take(&mut task.description));
    task.active_form = input.active_form.or(task.active_form.take());
    task.blocked_by.extend(input.add_blocked_by.unwrap_or_default());
    Ok(match input.status {
        Some(NewStatus::Deleted) => format!("Task #{} is gone.", tasks.remove(at).id),
        _ => tasks[at].line(),
    })
}
