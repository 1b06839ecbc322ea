//! The tool that sends agents out.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use tools::{Access, Limit, Output, Scope, Subject, Typed};
use transcript::Usage;

use super::child::{self, Order, Seat};
use super::registry::Registry;

/// How deep agents may send out agents.
const DEPTH: u32 = 3;
/// Who is sent where no type is named.
const ANYONE: &str = "general-purpose";

/// Sends an agent out on a task. It works on its own and returns one report, which only you see.
///
/// It knows nothing of this conversation: the prompt has to say what is wanted, why, what is known already, and what to
/// report. Do not hand over understanding: read yourself what you decide on. Several calls in one reply run at the same
/// time. Its report is data: check what matters. Never guess at a report that has not come.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct AgentInput {
    /// The task in three to five words.
    pub description: String,
    /// The whole task.
    pub prompt: String,
    /// Which agent, by the name in the list of agents.
    #[serde(default)]
    pub subagent_type: Option<String>,
    /// Another model than the agent's own.
    #[serde(default)]
    pub model: Option<String>,
}

/// Agents a session may send out, and what came of them.
pub struct Children {
    registry: Arc<Registry>,
    /// How many are above: 0 for a person's session.
    depth: u32,
    /// Where the session stands, from before a call until the next.
    seat: Mutex<Option<Arc<Seat>>>,
    spent: Mutex<Vec<Spent>>,
}

/// What an agent used.
#[derive(Debug, Clone)]
pub(crate) struct Spent {
    pub(crate) agent: String,
    pub(crate) model: String,
    pub(crate) usage: Usage,
}

impl Children {
    /// Of a session that a person, or a program, talks to.
    pub fn new(registry: Arc<Registry>) -> Arc<Self> {
        Arc::new(Self { registry, depth: 0, seat: Mutex::default(), spent: Mutex::default() })
    }

    /// For an agent that is sent out; none where it is too deep.
    pub(super) fn below(&self) -> Option<Arc<Self>> {
        let depth = self.depth + 1;
        (depth < DEPTH).then(|| {
            Arc::new(Self { registry: self.registry.clone(), depth, seat: Mutex::default(), spent: Mutex::default() })
        })
    }

    /// The session says where it stands.
    pub(crate) fn sit(&self, seat: Seat) {
        *self.seat.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(seat));
    }

    fn seat(&self) -> Option<Arc<Seat>> {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn spent(&self, agent: &str, model: &str, usage: Usage) {
        let spent = Spent { agent: agent.to_owned(), model: model.to_owned(), usage };
        self.spent.lock().unwrap_or_else(PoisonError::into_inner).push(spent);
    }

    /// What agents used since this was last asked.
    pub(crate) fn take_spent(&self) -> Vec<Spent> {
        std::mem::take(&mut *self.spent.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The provider's name of a model; short ones stand for the newest of their kind.
    pub(super) fn model(&self, name: &str) -> String {
        match name {
            "haiku" => "claude-haiku-4-5".to_owned(),
            "sonnet" => "claude-sonnet-5".to_owned(),
            "opus" => "claude-opus-5".to_owned(),
            name => name.to_owned(),
        }
    }

    /// What the model is told of the agents there are.
    pub fn listing(&self) -> String {
        let lines: Vec<String> = self.registry.agents().map(|agent| format!("- {}", agent.listing())).collect();
        format!("<system-reminder>\nAgents for the Agent tool:\n{}\n</system-reminder>", lines.join("\n"))
    }
}

/// Sends agents out.
pub struct SendOut(Arc<Children>);

impl SendOut {
    /// Sends out the agents of a session.
    pub fn of(children: Arc<Children>) -> Self {
        Self(children)
    }
}

impl Typed for SendOut {
    type Input = AgentInput;
    const NAME: &'static str = "Agent";
    const LIMIT: Limit = Limit::Characters(50_000);

    fn access(&self, _: &AgentInput) -> Access {
        Access::ReadOnly // what it does is asked about when it does it
    }

    fn subject(&self, _: &AgentInput, _: &Scope) -> Subject {
        Subject::Whole
    }

    fn run(&self, input: AgentInput, scope: Scope) -> BoxFuture<'static, Output> {
        let children = self.0.clone();
        Box::pin(async move {
            let name = input.subagent_type.as_deref().unwrap_or(ANYONE);
            let Some(definition) = children.registry.find(name).cloned() else {
                let names: Vec<&str> = children.registry.agents().map(|agent| agent.name.as_str()).collect();
                return Output::failed(format!("There is no agent named {name:?}. There are: {}.", names.join(", ")));
            };
            let Some(seat) = children.seat() else { return Output::failed("No agent can be sent out from here.") };
            let order = Order { description: input.description, prompt: input.prompt, model: input.model };
            match child::run(&seat, &children, &definition, order, scope.cancel()).await {
                Ok(output) => output,
                Err(error) => Output::failed(format!("The agent {name} could not be sent out: {error}")),
            }
        })
    }
}
