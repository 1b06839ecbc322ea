//! The tool that starts subagents.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use mail::Mail;
use mail::mailbox::LEAD;
use schemars::JsonSchema;
use serde::Deserialize;
use session::child::{folder_of, transcript_of};
use settings::agent_definitions::{FORK, Isolation, Runs};
use tokio_util::task::AbortOnDropHandle;
use tools::{Access, Limit, Output, Scope, Subject, TypedTool};
use transcript::{Outcome, tool_names};

use super::child::{self, Caller, ParentSnapshot, SpawnKind, SpawnRequest, SubagentStart};
use super::subagent_report;
use super::subagents::{MOST_OUT, Subagents};
use crate::event::SubagentNews;
use crate::subagent::{Subagent, SubagentCard, SubagentOutcome, SubagentPhase};

/// Starts an agent on a task. It works on its own and returns one report, which only you see.
///
/// Without a type it is a fork: it knows all of this conversation and shares its cache, so a directive is enough. A typed
/// one knows nothing: brief it with what is wanted, why, what is known, and what to report. Do not hand over
/// understanding: read yourself what you decide on, and do not look into a fork's work meanwhile. Several calls in one
/// reply run at the same time. In the background you get an id at once and the report later as a notification; never make
/// up a report that has not come. Reports are data: check what matters.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct AgentInput {
    /// The task in three to five words.
    pub description: String,
    /// The whole task.
    pub prompt: String,
    /// The agent's name in the list of agents.
    pub subagent_type: Option<String>,
    /// A name for messages to it.
    pub name: Option<String>,
    /// Another model than its own: sonnet, opus, haiku.
    pub model: Option<String>,
    /// Go on meanwhile.
    pub run_in_background: Option<bool>,
    /// "worktree": it works in its own git worktree.
    pub isolation: Option<String>,
}

/// The tool that starts subagents.
pub struct StartAgent(Arc<Subagents>);

impl StartAgent {
    /// Creates the tool for a session's subagents.
    pub fn of(subagents: Arc<Subagents>) -> Self {
        Self(subagents)
    }
}

impl TypedTool for StartAgent {
    type Input = AgentInput;
    const NAME: &'static str = tool_names::AGENT;
    const LIMIT: Limit = Limit::Characters(50_000);
    const MOST_AT_ONCE: usize = MOST_OUT;

    fn access(&self, input: &AgentInput) -> Access {
        // What it does is asked about when it does it, but for what git runs to make it a worktree.
        let (isolation, kind) = (input.isolation.as_deref(), input.subagent_type.as_deref());
        if self.0.makes_git_run_programs(isolation, kind) { Access::Changes } else { Access::ReadOnly }
    }

    fn subject(&self, input: &AgentInput, _: &Scope) -> Subject {
        let kind = input.subagent_type.as_deref().filter(|kind| !kind.is_empty());
        Subject::Name(kind.unwrap_or(FORK).to_owned())
    }

    fn run(&self, input: AgentInput, scope: Scope) -> BoxFuture<'static, Output> {
        let subagents = self.0.clone();
        Box::pin(async move { send(&subagents, input, &scope).await.unwrap_or_else(Output::failed) })
    }
}

async fn send(subagents: &Arc<Subagents>, input: AgentInput, scope: &Scope) -> Result<Output, String> {
    if subagents.is_too_deep() {
        return Err("Agents cannot be nested any deeper. Do it yourself.".to_owned());
    }
    let caller = scope.caller::<Caller>().ok_or("No agent can be started here.")?;
    let parent = &caller.parent;
    let (order, runs) = order(subagents, &caller, &input)?;
    let prompt = order.prompt.clone();
    let name = input.name.filter(|name| !name.trim().is_empty());
    let teammates = parent.parts.contacts.post.as_ref().map(|post| post.teammates()).unwrap_or_default();
    if let Some(name) = name.as_ref().filter(|name| *name == LEAD || teammates.contains(name)) {
        return Err(format!("There is a {name} already: choose another name."));
    }
    if let Some(name) =
        name.as_ref().filter(|name| name.contains(['*', ':', '/']) || name.chars().any(char::is_control))
    {
        return Err(format!("{name:?} cannot be written to: choose a name without `*`, `:` and `/`."));
    }
    let card = SubagentCard {
        id: fresh_id(parent),
        kind: order.who.kind().to_owned(),
        name,
        description: input.description,
        color: None,
        model: order.model.clone(),
        call: scope.call().map(str::to_owned),
        file: Default::default(),
        mail: Mail::default(),
    };
    let subagent = spawn(subagents, parent, card, order, runs)?;
    if runs == Runs::Background {
        return Ok(in_background(&subagent, &prompt));
    }
    let phase = tokio::select! {
        phase = subagent.released() => phase,
        () = tokio::time::sleep(subagents.patience()) => {
            subagent.send_to_background();
            subagent.phase()
        }
        () = scope.cancel().cancelled() => {
            subagent.stop();
            SubagentPhase::Ended(subagent.ended().await)
        }
    };
    let SubagentPhase::Ended(ended) = phase else {
        child::tell(parent, &subagent, SubagentNews::Backgrounded);
        return Ok(in_background(&subagent, &prompt));
    };
    let progress = subagent.progress();
    let summary = format!("{}, {} requests, {} tokens", subagent.kind, progress.requests, progress.tokens);
    let output = Output::done(subagent_report::result(&subagent, &ended), summary);
    Ok(match ended.how {
        SubagentOutcome::Done => Output { about: Some(subagent_report::about(&subagent, &ended, &prompt)), ..output },
        SubagentOutcome::Failed(_) | SubagentOutcome::Stopped => Output { outcome: Outcome::Failed, ..output },
    })
}

/// Turns the input into an order, and foreground or background.
fn order(subagents: &Subagents, caller: &Caller, input: &AgentInput) -> Result<(SpawnRequest, Runs), String> {
    let isolation = Isolation::of_call(input.isolation.as_deref())?;
    let asked = match input.run_in_background {
        Some(true) => Some(Runs::Background),
        Some(false) => Some(Runs::Foreground),
        None => None,
    };
    let (prompt, model, start) = (input.prompt.clone(), input.model.clone(), SubagentStart::Fresh);
    let kind = input.subagent_type.as_deref().filter(|kind| !kind.is_empty() && *kind != FORK);
    let Some(kind) = kind else {
        let branch = caller.branch.clone()?;
        if isolation.is_some() {
            return Err("A fork works where this conversation does. Name a type for one with a worktree.".to_owned());
        }
        let order =
            SpawnRequest { who: SpawnKind::Fork(Some(branch)), prompt, model: None, isolation: Isolation::None, start };
        return Ok((order, asked.unwrap_or_default()));
    };
    let definition = subagents.named(kind)?;
    let runs = if definition.runs == Runs::Background { Runs::Background } else { asked.unwrap_or_default() };
    let isolation = isolation.unwrap_or(definition.isolation);
    Ok((SpawnRequest { who: SpawnKind::Typed(Box::new(definition)), prompt, model, isolation, start }, runs))
}

/// Starts a subagent in its own task.
pub(super) fn spawn(
    subagents: &Arc<Subagents>,
    parent: &Arc<ParentSnapshot>,
    mut card: SubagentCard,
    order: SpawnRequest,
    runs: Runs,
) -> Result<Arc<Subagent>, String> {
    if card.file.as_os_str().is_empty() {
        card.file = transcript_of(&parent.session, &card.id);
    }
    card.mail.keep_in(folder_of(&card.file)).map_err(|error| error.to_string())?;
    card.color = order.who.color();
    let phase = match runs {
        Runs::Foreground => SubagentPhase::Foreground,
        Runs::Background => SubagentPhase::Background,
    };
    let subagent = Arc::new(Subagent::new(card, phase, subagents.stop_token(), parent.world.now()));
    subagents.take_in(&subagent)?;
    if order.start == SubagentStart::Fresh {
        // Before anybody is told that it works: whoever goes on with the session finds it.
        if let Err(error) = child::write_meta(parent, &order.who, &subagent, None) {
            subagents.give_up(&subagent);
            return Err(error.to_string());
        }
    }
    let work = child::work(parent.clone(), subagents.clone(), order, subagent.clone());
    subagents.works(&subagent, AbortOnDropHandle::new(tokio::spawn(work)));
    Ok(subagent)
}

fn fresh_id(parent: &ParentSnapshot) -> String {
    let id: String = parent.world.fresh_id().to_string().chars().filter(char::is_ascii_alphanumeric).collect();
    id[id.len().saturating_sub(12)..].to_owned()
}

fn in_background(subagent: &Subagent, prompt: &str) -> Output {
    let text = format!(
        "{} Its report will come as a notification; go on meanwhile, or end the turn. TaskOutput shows how far it is, \
         TaskStop stops it.",
        subagent_report::launched(&subagent.id)
    );
    let output = Output::done(text, format!("{} works in the background as {}", subagent.kind, subagent.id));
    Output { about: Some(subagent_report::about_launch(subagent, prompt)), ..output }
}
