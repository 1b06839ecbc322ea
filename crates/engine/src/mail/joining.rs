//! The Agent tool of a session that may have teammates: a call that names a team starts one, all others are as ever.
//!
//! The definition stays as it is, byte for byte; SendMessage's says what a team is.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::{BoxFuture, ready};
use serde::Deserialize;
use serde_json::Value;
use tools::{Access, Limit, Output, Runs, Scope, Subject, Tool};
use transcript::ToolDefinition;

use super::{Teammates, Wanted};
use crate::agents::{Children, Isolation};

/// The Agent tool, with teammates.
pub(crate) struct InTeam {
    tool: Arc<dyn Tool>,
    teammates: Teammates,
    children: Arc<Children>,
}

/// What a call for a teammate says.
#[derive(Debug, Deserialize)]
struct Order {
    /// That one is wanted. A session has one team, whatever it is called.
    #[serde(rename = "team_name")]
    _team: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    prompt: String,
    #[serde(default)]
    subagent_type: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    mode: Option<String>,
    #[serde(default)]
    isolation: Option<String>,
}

/// Why a teammate gets no worktree: its session, what it is trusted with and its memory are those of the lead's directory.
const NO_WORKTREE: &str = "a teammate works where you do, and not in a worktree. Leave `isolation` out, or leave `team_name` \
                           out for an agent that gets one";

impl InTeam {
    pub(crate) fn new(tool: Arc<dyn Tool>, teammates: Teammates, children: Arc<Children>) -> Self {
        Self { tool, teammates, children }
    }

    fn start(&self, order: Order, scope: &Scope) -> Result<String, String> {
        let name = order.name.ok_or("A teammate needs a `name`.")?;
        if order.prompt.trim().is_empty() {
            return Err("A teammate needs a `prompt`: what it is to do.".to_owned());
        }
        let definition = order.subagent_type.map(|kind| self.children.named(&kind)).transpose()?;
        let isolated = definition.as_ref().is_some_and(|definition| definition.isolation == Isolation::Worktree);
        if isolated || order.isolation.is_some_and(|isolation| !matches!(isolation.as_str(), "" | "none")) {
            return Err(NO_WORKTREE.to_owned());
        }
        let plans = order.mode.as_deref() == Some("plan");
        let model = order.model.filter(|model| model != "inherit");
        let wanted = Wanted { name, prompt: order.prompt, kind: None, model, plans };
        let wanted = match definition {
            Some(definition) => wanted.of_type(definition),
            None => wanted,
        };
        self.teammates.start(&wanted, scope.jobs())
    }
}

/// Whether a call is for a teammate.
fn order(input: &Value) -> Option<Order> {
    serde_json::from_value(input.clone()).ok()
}

impl Tool for InTeam {
    fn name(&self) -> &str {
        self.tool.name()
    }

    fn definition(&self) -> ToolDefinition {
        self.tool.definition()
    }

    fn access(&self, input: &Value) -> Access {
        // What a teammate does is judged when it does it, by the rules and the mode of its lead.
        if order(input).is_some() { Access::Session } else { self.tool.access(input) }
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
        Box::pin(ready(match self.start(order, &scope) {
            Ok(said) => Output::done(said.clone(), said),
            Err(why) => Output::failed(format!("The teammate was not started: {why}")),
        }))
    }
}
