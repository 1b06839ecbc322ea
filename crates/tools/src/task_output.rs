//! TaskOutput: new output of a background command, and its state.
//!
//! It changes nothing but what counts as new. It never fails because the command did: the exit code comes first.

use std::time::Duration;

use futures_util::future::BoxFuture;
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use schemars::JsonSchema;
use serde::Deserialize;
use transcript::tool_names;

use crate::bash::OTHERS_STOPPED;
use crate::jobs::{IncompleteRest, JobKind, JobState, NewOutput};
use crate::scope::Scope;
use crate::show;
use crate::subject::Access;
use crate::tool::{Limit, Output, TypedTool};

/// Default wait for the end, in milliseconds.
const WAIT: u64 = 30_000;

/// Longest wait for the end, in milliseconds: as long as for a command in the foreground.
const LONGEST: u64 = 600_000;

/// Shows what a command in the background printed since the last look, or what an agent reported, and whether it still runs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskOutputInput {
    /// The id that Bash or Agent gave.
    #[serde(alias = "bash_id", alias = "shell_id")]
    pub task_id: String,
    /// Only lines that match this regular expression; the others are not shown later either.
    pub filter: Option<String>,
    /// Wait for its end first.
    pub block: Option<bool>,
    /// With `block`: the longest wait in milliseconds: 30000 if left out, up to 600000.
    pub timeout: Option<u64>,
}

/// Shows background commands.
#[derive(Debug, Clone, Copy)]
pub struct TaskOutput;

impl TypedTool for TaskOutput {
    type Input = TaskOutputInput;
    const NAME: &'static str = tool_names::TASK_OUTPUT;
    const ACCESS: Access = Access::ReadOnly;
    const LIMIT: Limit = Limit::Characters(30_000);

    fn run(&self, input: TaskOutputInput, scope: Scope) -> BoxFuture<'static, Output> {
        Box::pin(async move { look(&input, &scope).await.unwrap_or_else(Output::failed) })
    }
}

async fn look(input: &TaskOutputInput, scope: &Scope) -> Result<Output, String> {
    let job = scope.jobs().find(&input.task_id).map_err(|error| error.to_string())?;
    // Before anything is taken: what a bad filter would have shown is not lost.
    let filter = input.filter.as_deref().filter(|filter| !filter.is_empty());
    let filter = filter.map(RegexMatcher::new).transpose().map_err(|error| format!("`filter`: {error}"))?;
    if input.block == Some(true) {
        let wait = Duration::from_millis(input.timeout.unwrap_or(WAIT).min(LONGEST));
        tokio::select! {
            () = job.ended() => {}
            () = tokio::time::sleep(wait) => {}
            () = scope.cancel().cancelled() => {}
        }
    }
    // First how it is, then what it printed: one who has ended prints nothing more.
    let status = job.status();
    let leave = match (status.state, &filter) {
        (JobState::Running, Some(_)) => IncompleteRest::Line,
        (JobState::Running, None) => IncompleteRest::Character,
        _ => IncompleteRest::Nothing,
    };
    let NewOutput { dropped, text: printed } = job.take(leave);
    let shown = match &filter {
        Some(filter) => matching(&printed, filter),
        None if printed.trim().is_empty() => "Nothing new was printed.".to_owned(),
        None => printed.trim_end_matches('\n').to_owned(),
    };
    let state = format!("{} {}", input.task_id, words(job.job().kind, status.state));
    let mut text = format!("{state}.\n");
    if dropped > 0 {
        text.push_str(&format!("[… {dropped} bytes left out …]\n"));
    }
    text.push_str(&shown);
    if status.stopped_others {
        text.push_str(&format!("\n[{OTHERS_STOPPED}]"));
    }
    Ok(Output::done(text, format!("{state}, {}", show::count(show::lines(&printed), "new line"))))
}

/// The matching lines, and a note of how many others there are.
fn matching(printed: &str, filter: &RegexMatcher) -> String {
    let (matching, others): (Vec<&str>, Vec<&str>) =
        printed.lines().partition(|line| filter.is_match(line.as_bytes()).unwrap_or(false));
    let note = match others.len() {
        0 if matching.is_empty() => Some("Nothing new was printed.".to_owned()),
        0 => None,
        _ => Some(format!("[{} left out by the filter]", show::count(others.len(), "new line"))),
    };
    matching.into_iter().map(str::to_owned).chain(note).collect::<Vec<_>>().join("\n")
}

fn words(kind: JobKind, state: JobState) -> String {
    match state {
        JobState::Exited { code: Some(0) } if kind == JobKind::Call => "was answered".to_owned(),
        JobState::Exited { .. } if kind == JobKind::Call => "failed".to_owned(),
        JobState::Running => "is running".to_owned(),
        JobState::Exited { code: Some(code) } => format!("ended with exit code {code}"),
        JobState::Exited { code: None } => "ended with an unknown exit code".to_owned(),
        JobState::TimedOut => "timed out and was stopped".to_owned(),
        JobState::Stopped => "was stopped".to_owned(),
    }
}
