//! An agent that was sent out: a conversation of its own, with a transcript beside its parent's.
//!
//! It begins with its definition's words and the order, knows nothing of what its parent said, and gives back the text of
//! its last reply. It never may more than its parent: it has the parent's rules, mode, directories and sandbox, less what
//! its definition takes away, and what it has to ask about reaches whoever is asked for the parent, under its name.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tools::permission::Mode;
use tools::{Output, Scope};
use transcript::Block;

use super::definition::Definition;
use super::narrow::narrow;
use super::tool::Children;
use crate::agent::{Agent, End, Parts};
use crate::error::Error;
use crate::event::Event;
use crate::permission::{Answer, Approver, LiveMode, Question};
use crate::run::Ending;
use crate::session::Session;
use crate::settings::Ground;
use crate::world::World;

/// How much of a child's last words its parent is given, in characters.
const MOST_REPORT: usize = 40_000;
/// The most requests of one run, where the definition says nothing.
const MOST_ROUNDS: u32 = 200;

/// Where a session stands when it sends agents out.
#[derive(Clone)]
pub(crate) struct Seat {
    /// What it is made of.
    pub(crate) parts: Parts,
    /// Where its tools run.
    pub(crate) scope: Scope,
    /// Its file.
    pub(crate) session: PathBuf,
    /// Where it works.
    pub(crate) directory: PathBuf,
    /// The time and fresh names.
    pub(crate) world: World,
}

/// Who an agent is that was sent out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// Its id, as its file is named.
    pub id: String,
    /// Its type.
    pub kind: String,
}

/// What an agent is told to do.
pub(super) struct Order {
    /// In a few words, for people.
    pub(super) description: String,
    /// All of it.
    pub(super) prompt: String,
    /// The model, where another is asked for than its definition says.
    pub(super) model: Option<String>,
}

/// Runs an agent to its end.
pub(super) async fn run(
    seat: &Seat,
    children: &Children,
    definition: &Definition,
    order: Order,
    cancel: &CancellationToken,
) -> Result<Output, Error> {
    let id: String = seat.world.fresh_id().to_string().chars().filter(char::is_ascii_alphanumeric).collect();
    let id = &id[id.len().saturating_sub(12)..];
    let session = Session::child(&seat.session, id, &seat.directory, seat.world.clone())?;
    let meta = json!({"agentType": definition.name, "description": order.description});
    files::replace(session.path().with_extension("meta.json"), meta.to_string().as_bytes())?;
    let mut parts = parts(seat, children, definition, order.model)?;
    parts.sent = Some(Sent { id: id.to_owned(), kind: definition.name.clone() });
    let model = parts.name.clone();
    let mut agent = Agent::new(session, parts)?;
    agent.scope().set_sandbox(seat.scope.sandbox());
    let opening = definition.initial_prompt.iter().map(String::as_str).chain([order.prompt.as_str()]);
    let said = opening.collect::<Vec<_>>().join("\n\n");
    let turn = agent.turn(vec![Block::text(said)], cancel).await;
    agent.close().await;
    children.spent(&definition.name, &model, turn.usage);
    let report = bounded(&turn.text);
    let went_wrong = match turn.end {
        End::Ended(Ending::Answered) if turn.text.trim().is_empty() => Some("it ended without a word".to_owned()),
        End::Ended(Ending::Answered) => None,
        End::Ended(ending) => Some(format!("it was stopped: {ending:?}")),
        End::Cancelled => Some("it was stopped by the user".to_owned()),
        End::Failed(error) => Some(error.to_string()),
        End::NoRoom(why) => Some(why),
        End::NotWritten(error) => Some(error.to_string()),
        End::Stopped(why) => Some(format!("a hook stopped it: {why}")),
    };
    let summary = format!("{}, {} requests, {} tokens", definition.name, turn.rounds, turn.usage.total());
    Ok(match went_wrong {
        None => Output::done(framed(&definition.name, &report), summary),
        Some(why) => Output::failed(format!(
            "The agent {} did not finish: {why}.\n{}",
            definition.name,
            framed(&definition.name, &report)
        )),
    })
}

fn parts(seat: &Seat, children: &Children, definition: &Definition, model: Option<String>) -> Result<Parts, Error> {
    let ground = Ground { directory: &seat.directory, home: seat.scope.home() };
    let (tools, narrowed) = narrow(definition, &seat.parts.tools, &ground)?;
    let mut parts = seat.parts.clone();
    // Those that know their session are made anew for it.
    let sends = tools.iter().any(|tool| tool.name() == "Agent");
    parts.tools =
        tools.into_iter().filter(|tool| !["Agent", "History", "SendMessage"].contains(&tool.name())).collect();
    parts.agents = sends.then(|| children.below()).flatten();
    parts.policy.narrowed = narrowed;
    if let Some(mode) = definition.mode {
        parts.policy.mode = LiveMode::from(stricter(mode, seat.parts.policy.mode.get()));
    }
    if let Some(model) = model.or_else(|| definition.model.clone()).filter(|model| model != "inherit") {
        parts.name = children.model(&model);
    }
    parts.limits.max_rounds = Some(definition.max_turns.unwrap_or(MOST_ROUNDS));
    (parts.system, parts.appended, parts.sections) = (Some(definition.prompt.clone()), None, Vec::new());
    parts.approver = Arc::new(Named { name: definition.name.clone(), approver: seat.parts.approver.clone() });
    let (name, parent) = (definition.name.clone(), seat.parts.listener.clone());
    parts.listener = Arc::new(move |event| match event {
        Event::ToolStarted { tool, input, .. } => parent(Event::AgentActs { agent: name.clone(), tool, input }),
        Event::Warning(text) => parent(Event::Warning(format!("{name}: {text}"))),
        _ => {}
    });
    (parts.reload, parts.teammates) = (None, None);
    Ok(parts)
}

/// The mode in which less happens unasked.
fn stricter(one: Mode, other: Mode) -> Mode {
    let rank = |mode: Mode| match mode {
        Mode::Plan => 0,
        Mode::Default => 1,
        Mode::AcceptEdits => 2,
        Mode::BypassPermissions => 3,
    };
    if rank(one) <= rank(other) { one } else { other }
}

/// Asks whoever is asked for the parent, and says for whom.
struct Named {
    name: String,
    approver: Arc<dyn Approver>,
}

impl Approver for Named {
    fn ask(&self, mut question: Question) -> BoxFuture<'_, Answer> {
        question.why = format!("the agent {} asks: {}", self.name, question.why);
        self.approver.ask(question)
    }
}

/// What an agent says is data to its parent.
fn framed(name: &str, report: &str) -> String {
    let quoted = memory::neutral::quoted(report);
    format!("<agent-report from=\"{name}\">\n{quoted}\n</agent-report>")
}

fn bounded(text: &str) -> String {
    match text.char_indices().nth(MOST_REPORT) {
        Some((end, _)) => format!("{}\n[cut at {MOST_REPORT} characters]", &text[..end]),
        None => text.to_owned(),
    }
}
