//! TaskOutput and TaskStop for agents: the same two tools, which know commands, know agents as well.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tools::{Access, Limit, Output, Runs, Scope, Subject, Tool};
use transcript::message::ToolDefinition;
use transcript::tool_names;

use super::children::Subagents;
use super::report;
use crate::errand::Subagent;

/// How long is waited for the end where the call does not say, and at most, in milliseconds: as for commands.
const WAIT: (u64, u64) = (30_000, 600_000);

/// One of the two, for commands, which asks first whether an agent is meant.
struct Task {
    commands: Arc<dyn Tool>,
    children: Arc<Subagents>,
}

/// The tools with those two made to know agents.
pub(crate) fn knowing(tools: Vec<Arc<dyn Tool>>, children: &Arc<Subagents>) -> Vec<Arc<dyn Tool>> {
    let knowing = |tool: Arc<dyn Tool>| match tool.name() {
        tool_names::TASK_OUTPUT | tool_names::TASK_STOP => {
            Arc::new(Task { commands: tool, children: children.clone() }) as Arc<dyn Tool>
        }
        _ => tool,
    };
    tools.into_iter().map(knowing).collect()
}

impl Tool for Task {
    fn name(&self) -> &str {
        self.commands.name()
    }

    fn definition(&self) -> ToolDefinition {
        self.commands.definition()
    }

    fn access(&self, input: &Value) -> Access {
        self.commands.access(input)
    }

    fn subject(&self, input: &Value, scope: &Scope) -> Subject {
        self.commands.subject(input, scope)
    }

    fn runs(&self, input: &Value) -> Runs {
        self.commands.runs(input)
    }

    fn limit(&self) -> Limit {
        self.commands.limit()
    }

    fn run(&self, input: Value, scope: Scope) -> BoxFuture<'static, Output> {
        let Some(errand) = input["task_id"].as_str().and_then(|id| self.children.find(id)) else {
            return self.commands.run(input, scope);
        };
        let (children, stops) = (self.children.clone(), self.name() == tool_names::TASK_STOP);
        Box::pin(
            async move { if stops { stop(&errand).await } else { look(&children, &errand, &input, &scope).await } },
        )
    }
}

async fn stop(errand: &Subagent) -> Output {
    if !errand.is_out() {
        return Output::done(format!("{} had already ended.", errand.id), "it had already ended");
    }
    errand.stop();
    errand.ended().await;
    Output::done(format!("Stopped {}: {}", errand.id, errand.description), format!("Stopped {}", errand.id))
}

async fn look(children: &Subagents, errand: &Subagent, input: &Value, scope: &Scope) -> Output {
    if input["block"] == true {
        let wait = Duration::from_millis(input["timeout"].as_u64().unwrap_or(WAIT.0).min(WAIT.1));
        tokio::select! {
            _ = errand.ended() => {}
            () = tokio::time::sleep(wait) => {}
            () = scope.cancel().cancelled() => {}
        }
    }
    let text = report::state(errand);
    if !errand.is_out() {
        children.heard_of(errand); // it is heard of now, and need not be told again
    }
    let summary = text.lines().next().unwrap_or_default().to_owned();
    Output::done(text, summary)
}
