//! Tools of the model: read, write and search files, run commands.
//!
//! A tool is one file here. The doc comment of its input is its description; the input's type is its schema; its output
//! is a list of content blocks and whether it failed. A tool never panics, never asks and never decides whether it may
//! run: bad input is a failed output that names the field, asking is up to the engine, and the matching of permission
//! rules is in [`permission`], apart from the tools.
//!
//! - [`Tool`] is the engine's view of a tool; [`TypedTool`] is how most tools are written.
//! - [`Scope`] is where tools run: directories, files read so far, and cancellation.
//! - [`Jobs`] are the background commands of a scope.
//! - [`guard`] is the program below which commands run.
//! - [`program`] runs one of the user's own programs below it, such as a hook.
//! - [`server_process`] is a server that runs alongside a session.
//! - [`sandbox`] is what commands may be confined to.
//! - [`run_all`] runs the calls of one reply: read-only ones in parallel, the others one by one in order.
//!
//! The disk is reached through the files crate alone; the network, the clock and the environment not at all.

mod bash;
mod capture;
mod confinement;
mod edit;
mod environment;
mod file_change;
pub mod git;
pub mod git_index;
mod glob;
mod grep;
pub mod guard;
mod guard_protocol;
mod input;
mod jobs;
mod notebook_edit;
pub mod permission;
mod process;
pub mod program;
mod read;
mod run_calls;
pub mod sandbox;
mod scope;
pub mod server_process;
mod show;
mod subject;
mod task_output;
mod task_stop;
mod tool;
mod write;

use std::sync::Arc;

pub use bash::{Bash, BashInput, PRINTED_NOTHING};
pub use edit::{Edit, EditInput, edited};
pub use environment::{Credentials, Environment};
pub use file_change::{FileChange, texts_put_in};
pub use glob::{Glob, GlobInput, project_files};
pub use grep::{Grep, GrepInput, OutputMode};
pub use jobs::{
    CallInFront, CallWait, EndedCall, ForegroundCommand, Job, JobKind, JobState, Jobs, NoSuchJob, ProgressLines,
};
pub use notebook_edit::{CellEdit, CellType, NotebookEdit, NotebookEditInput};
pub use read::{Read, ReadInput, picture};
pub use run_calls::{ToolCall, run_all};
pub use scope::Scope;
pub use subject::{Access, Subject};
pub use task_output::{TaskOutput, TaskOutputInput};
pub use task_stop::{TaskStop, TaskStopInput};
pub use tool::{CONCURRENT, Limit, Output, Runs, TextRewrite, Tool, TypedTool, limit_of};
pub use write::{Write, WriteInput};

/// The tools that need nothing but a disk and a shell, in the order the model sees them.
pub fn standard() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(Read),
        Arc::new(Write),
        Arc::new(Edit),
        Arc::new(Grep),
        Arc::new(Glob),
        Arc::new(Bash),
        Arc::new(TaskOutput),
        Arc::new(TaskStop),
    ]
}
