//! The Agent tool of a session that may have teammates: a call with a team name starts one, all others work as usual.
//!
//! The tool's definition stays the same, byte for byte; that of SendMessage explains teams.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;
use settings::agent_definitions::Isolation;
use tools::{Access, Limit, Output, Runs, Scope, Subject, Tool};
use transcript::ToolDefinition;

use super::Subagents;
use crate::teammates::{TeammateRequest, Teammates};

/// The Agent tool, with teammates.
#[derive(Clone)]
pub(crate) struct TeamAgentTool {
    tool: Arc<dyn Tool>,
    teammates: Teammates,
    subagents: Arc<Subagents>,
}

/// Input of a call for a teammate.
#[derive(Debug, Deserialize)]
struct TeammateCall {
    /// Marks the call as one for a teammate. A session has one team, whatever its name.
    #[serde(rename = "team_name")]
    _team: String,
    name: Option<String>,
    #[serde(default)]
    prompt: String,
    subagent_type: Option<String>,
    model: Option<String>,
    mode: Option<String>,
    isolation: Option<String>,
}

impl TeamAgentTool {
    pub(crate) fn new(tool: Arc<dyn Tool>, teammates: Teammates, subagents: Arc<Subagents>) -> Self {
        Self { tool, teammates, subagents }
    }

    async fn start(&self, order: TeammateCall, scope: &Scope) -> Result<String, String> {
        let name = order.name.ok_or("A teammate needs a `name`.")?;
        if order.prompt.trim().is_empty() {
            return Err("A teammate needs a `prompt`: what it is to do.".to_owned());
        }
        let definition = order.subagent_type.map(|kind| self.subagents.named(&kind)).transpose()?;
        let isolation = Isolation::of_call(order.isolation.as_deref())?.unwrap_or_default();
        let plans = order.mode.as_deref() == Some("plan");
        let model = order.model.filter(|model| model != "inherit");
        let wanted = TeammateRequest { name, prompt: order.prompt, kind: None, model, plans, isolation };
        let wanted = match definition {
            Some(definition) => wanted.of_type(definition),
            None => wanted,
        };
        if wanted.isolation == Isolation::Worktree {
            self.subagents.can_have_worktrees().await?; // it makes one itself: here is where somebody hears why not
        }
        self.teammates.start(&wanted, scope.jobs())
    }
}

/// The input as a call for a teammate, if it is one.
fn order(input: &Value) -> Option<TeammateCall> {
    serde_json::from_value(input.clone()).ok()
}

impl Tool for TeamAgentTool {
    fn name(&self) -> &str {
        self.tool.name()
    }

    fn definition(&self) -> ToolDefinition {
        self.tool.definition()
    }

    fn access(&self, input: &Value) -> Access {
        // What a teammate does is judged when it does it, by the rules and the mode of its lead; what git runs to make it a
        // worktree, as of any agent.
        let Some(order) = order(input) else { return self.tool.access(input) };
        let runs_programs =
            self.subagents.makes_git_run_programs(order.isolation.as_deref(), order.subagent_type.as_deref());
        if runs_programs { Access::Changes } else { Access::Session }
    }

    fn subject(&self, input: &Value, scope: &Scope) -> Subject {
        self.tool.subject(input, scope)
    }

    fn runs(&self, input: &Value) -> Runs {
        if order(input).is_some() { Runs::Alone } else { self.tool.runs(input) }
    }

    fn changes(&self, input: &Value, scope: &Scope) -> Option<PathBuf> {
        self.tool.changes(input, scope)
    }

    fn limit(&self) -> Limit {
        self.tool.limit()
    }

    fn run(&self, input: Value, scope: Scope) -> BoxFuture<'static, Output> {
        let Some(order) = order(&input) else { return self.tool.run(input, scope) };
        let this = self.clone();
        Box::pin(async move {
            match this.start(order, &scope).await {
                Ok(said) => Output::done(said.clone(), said),
                Err(why) => Output::failed(format!("The teammate was not started: {why}")),
            }
        })
    }
}
