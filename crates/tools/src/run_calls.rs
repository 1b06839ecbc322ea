//! Runs the calls of one reply.
//!
//! Adjacent calls that allow it (as a rule read-only ones) run in parallel, up to [`CONCURRENT`]; every other call runs
//! alone and in order, so that a Read after an Edit sees the edit. Outputs are returned in the order of the calls. No
//! tool can disturb the others: an unknown name or a panic is a failed output. When the scope is cancelled, running
//! calls get a moment to clean up, and the rest are not started.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::stream::{self, StreamExt};
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;

use crate::permission::Rights;
use crate::scope::Scope;
use crate::subject::Subject;
use crate::tool::{CONCURRENT, Output, Runs, Tool};

/// Result of a call that was cancelled.
pub(crate) const CANCELLED: &str = "cancelled by the user";

/// Time for a cancelled call to clean up: longer than Bash waits between asking and killing.
const CLEAN_UP: Duration = Duration::from_secs(5);

/// One call of a tool.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// The tool.
    pub name: String,
    /// Its input.
    pub input: Value,
    /// The subject by which it was judged, if it was.
    pub subject: Option<Subject>,
    /// Its rights.
    pub rights: Rights,
    /// Its id in the conversation, if it has one.
    pub id: Option<String>,
}

impl ToolCall {
    /// A call that nobody judged: it has all of the user's rights.
    pub fn new(name: impl Into<String>, input: Value) -> Self {
        Self { name: name.into(), input, subject: None, rights: Rights::Full, id: None }
    }
}

/// Runs the calls and returns their outputs in the same order. `on_done` is called for each as it ends.
pub async fn run_all(
    calls: Vec<ToolCall>,
    tools: &[Arc<dyn Tool>],
    scope: &Scope,
    mut on_done: impl FnMut(usize, &Output),
) -> Vec<Output> {
    let mut outputs: Vec<Option<Output>> = calls.iter().map(|_| None).collect();
    let found: Vec<ResolvedCall> = calls
        .into_iter()
        .enumerate()
        .map(|(index, call)| ResolvedCall {
            index,
            tool: tools.iter().find(|tool| tool.name() == call.name).cloned(),
            call,
        })
        .collect();
    for group in found.chunk_by(|one, next| one.runs() == Runs::Parallel && next.runs() == Runs::Parallel) {
        let most = group.iter().filter_map(|found| found.tool.as_ref()).map(|tool| tool.most_at_once()).max();
        let most = most.unwrap_or(CONCURRENT);
        let running: Vec<_> = group.iter().map(|found| found.run(tools, scope).boxed()).collect();
        let mut running = stream::iter(running).buffer_unordered(most);
        while let Some((index, output)) = running.next().await {
            on_done(index, &output);
            outputs[index] = Some(output);
        }
    }
    outputs.into_iter().map(|output| output.unwrap_or_else(|| Output::failed(CANCELLED))).collect()
}

/// A call, and the tool it names.
struct ResolvedCall {
    index: usize,
    tool: Option<Arc<dyn Tool>>,
    call: ToolCall,
}

impl ResolvedCall {
    async fn run(&self, tools: &[Arc<dyn Tool>], scope: &Scope) -> (usize, Output) {
        let output = match &self.tool {
            Some(tool) => run_one(&**tool, self.call.clone(), scope).await,
            None => unknown(&self.call.name, tools),
        };
        (self.index, output)
    }

    fn runs(&self) -> Runs {
        // A call of no known tool does nothing.
        self.tool.as_ref().map_or(Runs::Parallel, |tool| tool.runs(&self.call.input))
    }
}

async fn run_one(tool: &dyn Tool, call: ToolCall, scope: &Scope) -> Output {
    if scope.cancel().is_cancelled() {
        return Output::failed(CANCELLED);
    }
    // A task of its own, so that a panic ends only this call; dropped with us, so that nothing runs on unseen.
    let own = match &call.subject {
        Some(subject) => scope.clone().for_call(subject),
        None => scope.clone(),
    };
    let running = tool.run(call.input, own.called(call.id, call.rights));
    let mut task = AbortOnDropHandle::new(tokio::spawn(running));
    let ended = tokio::select! {
        ended = &mut task => ended,
        () = scope.cancel().cancelled() => match tokio::time::timeout(CLEAN_UP, &mut task).await {
            Ok(ended) => ended,
            Err(_) => return Output::failed(CANCELLED),
        },
    };
    ended.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => Output::failed(format!("{} broke down: {}", call.name, message(&*panic))),
        Err(_) => Output::failed(CANCELLED),
    })
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

fn unknown(name: &str, tools: &[Arc<dyn Tool>]) -> Output {
    let names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
    Output::failed(format!("There is no tool named {name}. The tools are: {}.", names.join(", ")))
}

/// Runs blocking work off the event loop.
pub(crate) async fn off_the_loop(work: impl FnOnce() -> Output + Send + 'static) -> Output {
    match tokio::task::spawn_blocking(work).await {
        Ok(output) => output,
        Err(error) => match error.try_into_panic() {
            // Handed on to whoever runs the tool, who says which one it was.
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Output::failed(CANCELLED),
        },
    }
}
