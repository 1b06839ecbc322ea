//! The names of our own tools, as the model calls them and as transcripts, rules and hooks know them.

/// Runs a shell command.
pub const BASH: &str = "Bash";
/// Shows a file.
pub const READ: &str = "Read";
/// Replaces a text in a file.
pub const EDIT: &str = "Edit";
/// Writes a whole file.
pub const WRITE: &str = "Write";
/// Changes a cell of a notebook.
pub const NOTEBOOK_EDIT: &str = "NotebookEdit";
/// Searches in files.
pub const GREP: &str = "Grep";
/// Finds files by name.
pub const GLOB: &str = "Glob";
/// Shows what a background task printed.
pub const TASK_OUTPUT: &str = "TaskOutput";
/// Stops a background task.
pub const TASK_STOP: &str = "TaskStop";
/// Starts a subagent.
pub const AGENT: &str = "Agent";
/// The older name of [`AGENT`].
pub const TASK: &str = "Task";
/// Reads a web page.
pub const WEB_FETCH: &str = "WebFetch";
/// Searches the web.
pub const WEB_SEARCH: &str = "WebSearch";
/// Calls a skill.
pub const SKILL: &str = "Skill";
/// Finds tools of MCP servers.
pub const TOOL_SEARCH: &str = "ToolSearch";
/// Shows what left the view.
pub const HISTORY: &str = "History";
/// Writes to another agent.
pub const SEND_MESSAGE: &str = "SendMessage";
/// Asks the user.
pub const ASK_USER_QUESTION: &str = "AskUserQuestion";
/// Begins to plan.
pub const ENTER_PLAN_MODE: &str = "EnterPlanMode";
/// Hands a plan in.
pub const EXIT_PLAN_MODE: &str = "ExitPlanMode";
/// Adds to the task list.
pub const TASK_CREATE: &str = "TaskCreate";
/// Shows one task of the list.
pub const TASK_GET: &str = "TaskGet";
/// Shows the task list.
pub const TASK_LIST: &str = "TaskList";
/// Changes a task of the list.
pub const TASK_UPDATE: &str = "TaskUpdate";
