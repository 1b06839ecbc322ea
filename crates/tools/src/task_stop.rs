//! TaskStop: ends a background command, with everything it started.

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use transcript::tool_names;

use crate::jobs::JobState;
use crate::scope::Scope;
use crate::subject::Access;
use crate::tool::{Output, TypedTool};

/// Stops a command or an agent in the background and everything it started. TaskOutput still shows what it printed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskStopInput {
    /// The id that Bash or Agent gave.
    #[serde(alias = "shell_id", alias = "bash_id")]
    pub task_id: String,
}

/// Stops background commands.
#[derive(Debug, Clone, Copy)]
pub struct TaskStop;

impl TypedTool for TaskStop {
    type Input = TaskStopInput;
    const NAME: &'static str = tool_names::TASK_STOP;
    const ACCESS: Access = Access::Session;

    fn run(&self, input: TaskStopInput, scope: Scope) -> BoxFuture<'static, Output> {
        Box::pin(async move {
            match scope.jobs().stop(&input.task_id).await {
                Ok(before) if before.state == JobState::Running => {
                    Output::done(format!("Stopped {}: {}", before.id, before.command), format!("Stopped {}", before.id))
                }
                Ok(before) => {
                    let text = format!("{} had already ended.", before.id);
                    Output::done(&text, &text)
                }
                Err(error) => Output::failed(error.to_string()),
            }
        })
    }
}
