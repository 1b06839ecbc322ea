//! TaskOutput and TaskStop for subagents: the same two tools that know commands, extended.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tools::{Access, Limit, Output, Runs, Scope, Subject, Tool};
use transcript::message::ToolDefinition;
use transcript::tool_names;

use super::subagent_report;
use super::subagents::Subagents;
use crate::subagent::Subagent;

/// Default and longest wait for the end, in milliseconds: as for commands.
const WAIT: (u64, u64) = (30_000, 600_000);

/// One of the two command tools, with a lookup of subagents before it.
struct Task {
    commands: Arc<dyn Tool>,
    subagents: Arc<Subagents>,
}

/// Extends the two tools to subagents.
pub(crate) fn knowing(tools: Vec<Arc<dyn Tool>>, subagents: &Arc<Subagents>) -> Vec<Arc<dyn Tool>> {
    let knowing = |tool: Arc<dyn Tool>| match tool.name() {
        tool_names::TASK_OUTPUT | tool_names::TASK_STOP => {
            Arc::new(Task { commands: tool, subagents: subagents.clone() }) as Arc<dyn Tool>
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
        let Some(subagent) = input["task_id"].as_str().and_then(|id| self.subagents.find(id)) else {
            return self.commands.run(input, scope);
        };
        let (subagents, stops) = (self.subagents.clone(), self.name() == tool_names::TASK_STOP);
        Box::pin(async move {
            if stops { stop(&subagent).await } else { look(&subagents, &subagent, &input, &scope).await }
        })
    }
}

async fn stop(subagent: &Subagent) -> Output {
    if !subagent.is_out() {
        return Output::done(format!("{} had already ended.", subagent.id), "it had already ended");
    }
    subagent.stop();
    subagent.ended().await;
    Output::done(format!("Stopped {}: {}", subagent.id, subagent.description), format!("Stopped {}", subagent.id))
}

async fn look(subagents: &Subagents, subagent: &Subagent, input: &Value, scope: &Scope) -> Output {
    if input["block"] == true {
        let wait = Duration::from_millis(input["timeout"].as_u64().unwrap_or(WAIT.0).min(WAIT.1));
        tokio::select! {
            _ = subagent.ended() => {}
            () = tokio::time::sleep(wait) => {}
            () = scope.cancel().cancelled() => {}
        }
    }
    let text = subagent_report::state(subagent);
    if !subagent.is_out() {
        subagents.heard_of(subagent); // it is heard of now, and need not be told again
    }
    let summary = text.lines().next().unwrap_or_default().to_owned();
    Output::done(text, summary)
}
