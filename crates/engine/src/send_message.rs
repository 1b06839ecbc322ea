//! The tool with which the model writes to other agents.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use mail::mailbox::{ControlMessage, LEAD, Message};
use mail::{Messenger, SOCKET, SessionLife};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tools::{Access, Output, Scope, Tool, TypedTool};
use transcript::tool_names;

use crate::teammates::Teammates;

/// Writes to another agent; what you say otherwise only the user sees.
///
/// Agent with a `name` and `team_name` starts a teammate: a process of its own, which works beside you, shares the task
/// list, can be written to, and tells you when it is idle.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct SendMessageInput {
    /// A name, `*` for all, or `uds:PATH` of another session.
    pub to: String,
    /// Text, or an object: {"type": "shutdown_request", "reason"}, {"type": "shutdown_response", "request_id", "approve",
    /// "reason"}, {"type": "plan_approval_response", "request_id", "approve", "feedback"}.
    pub message: Value,
    /// Five to ten words of it.
    pub summary: Option<String>,
}

/// Writes to an agent. One that works hears it at its next round; one that has ended goes on and reports again.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct PlainMessageInput {
    /// A name or id, `*` for all that are out, or `uds:PATH` of another session.
    pub to: String,
    /// The text.
    pub message: String,
    /// Five to ten words of it.
    pub summary: Option<String>,
}

/// The same tool without a team, with a shorter description.
#[derive(Debug, Clone)]
pub struct SendPlainly(pub Messenger);

impl TypedTool for SendPlainly {
    type Input = PlainMessageInput;
    const NAME: &'static str = SendMessage::NAME;

    fn access(&self, input: &PlainMessageInput) -> Access {
        access(&input.to)
    }

    fn run(&self, input: PlainMessageInput, scope: Scope) -> BoxFuture<'static, Output> {
        let PlainMessageInput { to, message, summary } = input;
        let whole = SendMessage { post: self.0.clone(), teammates: None };
        TypedTool::run(&whole, SendMessageInput { to, message: Value::String(message), summary }, scope)
    }
}

/// The same tool for a subagent: its definition stays the same, and it sends as that subagent.
pub(crate) fn below(tool: &Arc<dyn Tool>, post: &Messenger) -> Arc<dyn Tool> {
    let plain: Arc<dyn Tool> = Arc::new(SendPlainly(post.clone()));
    match tool.definition() == plain.definition() {
        true => plain,
        false => Arc::new(SendMessage { post: post.clone(), teammates: None }),
    }
}

/// Access class of a recipient: a team belongs to the session, another session does not.
fn access(to: &str) -> Access {
    if to.starts_with(SOCKET) { Access::Changes } else { Access::Session }
}

/// Writes to other agents.
#[derive(Debug, Clone)]
pub struct SendMessage {
    /// Outgoing messages of the session.
    pub post: Messenger,
    /// Starter of teammates that have left, if it may have any.
    pub teammates: Option<Teammates>,
}

impl TypedTool for SendMessage {
    type Input = SendMessageInput;
    const NAME: &'static str = tool_names::SEND_MESSAGE;

    fn access(&self, input: &SendMessageInput) -> Access {
        access(&input.to)
    }

    fn run(&self, input: SendMessageInput, scope: Scope) -> BoxFuture<'static, Output> {
        let Self { post, teammates } = self.clone();
        Box::pin(async move {
            // One that has ended and is written to goes on.
            if let Some(teammates) = teammates
                && let Err(why) = teammates.wake(&input.to, scope.jobs()).await
            {
                return Output::failed(format!("{} could not continue: {why}", input.to));
            }
            match send(&post, &input).await {
                Ok(said) => Output::done(said.clone(), said),
                Err(why) => Output::failed(why),
            }
        })
    }
}

async fn send(post: &Messenger, input: &SendMessageInput) -> Result<String, String> {
    let text = match &input.message {
        Value::String(text) => text.clone(),
        object => object.to_string(),
    };
    if text.trim().is_empty() {
        return Err("The message is empty.".to_owned());
    }
    let word =
        Message { id: String::new(), from: String::new(), text: text.clone(), summary: None, timestamp: String::new() }
            .word();
    let (text, life) = formed(post, word, text)?;
    let got = post.send(&input.to, &text, input.summary.as_deref()).await.map_err(|error| error.to_string())?;
    if let Some(life) = life {
        post.mail().set_life(life);
    }
    Ok(format!("Sent to {}.", got.join(", ")))
}

/// The message in its final form, and its effect on the sender's own session.
fn formed(post: &Messenger, word: ControlMessage, text: String) -> Result<(String, Option<SessionLife>), String> {
    let is_lead = post.me() == LEAD;
    let whole = |word: &ControlMessage| post.written(word);
    Ok(match word {
        ControlMessage::Text => (text, None),
        ControlMessage::ShutdownRequest { reason, .. } if is_lead => {
            (whole(&ControlMessage::ShutdownRequest { request: post.fresh(), reason }), None)
        }
        ControlMessage::PlanResponse { .. } if is_lead => (whole(&word), None),
        ControlMessage::ShutdownRequest { .. } | ControlMessage::PlanResponse { .. } => {
            return Err(format!("Only {LEAD} may send this."));
        }
        ControlMessage::ShutdownResponse { approve, .. } if !is_lead => {
            (whole(&word), Some(if approve { SessionLife::Ends } else { SessionLife::GoesOn }))
        }
        ControlMessage::ShutdownResponse { .. } => return Err("The lead cannot be asked to shut down.".to_owned()),
        ControlMessage::PlanRequest { .. }
        | ControlMessage::Idle { .. }
        | ControlMessage::Interrupt
        | ControlMessage::Progress { .. }
        | ControlMessage::Assigned { .. }
        | ControlMessage::PermissionRequest { .. }
        | ControlMessage::PermissionResponse { .. } => return Err("You cannot send this.".to_owned()),
    })
}
