//! A running subagent: an agent with at most its parent's permissions and a transcript of its own.
//!
//! Its permission requests go to its parent's approver, under its own name. Its final message is its report to the
//! parent: data, bounded, and framed as such.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use learning::knowledge::Knowledge;
use mail::Neighbours;
use session::{Error, LineMeta, Session, SubagentMeta, World, savings};
use settings::agent_definitions::{Definition, Isolation};
use settings::permission::{Approver, PermissionAnswer, Question, Respondent};
use tools::sandbox::Sandbox;
use tools::{Scope, TypedTool};
use transcript::{Block, Injected, Log, Purpose, Usage};

use super::apply_definition::{budget, forked, typed};
use super::branch::Branch;
use super::lost::length;
use super::subagent_report;
use super::subagents::Subagents;
use super::worktree::{FRESH, Worktree, WorktreeRemains, WorktreeState};
use crate::activity::{ActivityReporter, LastRequest};
use crate::agent::{Agent, Parts, Turn};
use crate::driver::MemoryPlaces;
use crate::event::{Event, SubagentNews};
use crate::run::{RunEnd, TurnEnd};
use crate::send_message::{SendMessage, below};
use crate::subagent::{Subagent, SubagentIdentity, SubagentOutcome, SubagentResult};

/// Built-in agents that change nothing in the project: they run without its instructions, which are mostly about how to
/// change it. Their caller knows these, and judges the findings.
const UNINSTRUCTED: [&str; 4] = ["Explore", "Plan", "cairn-guide", "statusline-setup"];

/// A session while it runs the calls of a reply, as handed to the tool that starts subagents.
pub(crate) struct Caller {
    /// State that subagents inherit.
    pub(crate) parent: Arc<ParentSnapshot>,
    /// Shared start of this reply's forks, or the reason it may have none.
    pub(crate) branch: Result<Arc<Branch>, &'static str>,
}

/// State that subagents inherit from the session that starts them.
#[derive(Clone)]
pub(crate) struct ParentSnapshot {
    /// The parent's parts.
    pub(crate) parts: Parts,
    /// The scope in which its tools run.
    pub(crate) scope: Scope,
    /// Its file.
    pub(crate) session: PathBuf,
    /// The working directory.
    pub(crate) directory: PathBuf,
    /// The clock, and the source of fresh ids.
    pub(crate) world: World,
    /// Id of the last prompt that the user submitted.
    pub(crate) prompt: Option<String>,
    /// The memory directories that it may write to.
    pub(crate) memories: MemoryPlaces,
}

/// Order for a subagent.
#[derive(Clone)]
pub(super) struct SpawnRequest {
    /// Kind of subagent.
    pub(super) who: SpawnKind,
    /// The full prompt.
    pub(super) prompt: String,
    /// The model, if it differs from the definition's.
    pub(super) model: Option<String>,
    /// Isolation of its working directory.
    pub(super) isolation: Isolation,
    /// Fresh start or resumption.
    pub(super) start: SubagentStart,
}

/// Kind of subagent.
#[derive(Clone)]
pub(super) enum SpawnKind {
    /// A typed agent, which knows nothing of the conversation.
    Typed(Box<Definition>),
    /// A fork, which knows all of the conversation; a fresh one has its branch.
    Fork(Option<Arc<Branch>>),
}

/// Start of a subagent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SubagentStart {
    Fresh,
    /// Resumed at the end of its transcript.
    Resumed,
}

impl SpawnKind {
    /// The name of the type.
    pub(super) fn kind(&self) -> &str {
        match self {
            Self::Typed(definition) => &definition.name,
            Self::Fork(_) => settings::agent_definitions::FORK,
        }
    }

    /// Its colour on the screen, as the definition names it.
    pub(super) fn color(&self) -> Option<String> {
        match self {
            Self::Typed(definition) => definition.color.clone(),
            Self::Fork(_) => None,
        }
    }

    /// The branch, if this is a fresh fork.
    fn branch(&self) -> Option<&Arc<Branch>> {
        match self {
            Self::Fork(branch) => branch.as_ref(),
            Self::Typed(_) => None,
        }
    }

    /// Returns whether it is given the project's instructions.
    fn is_instructed(&self) -> bool {
        match self {
            Self::Typed(definition) => {
                definition.source != settings::agent_definitions::DefinitionSource::BuiltIn
                    || !UNINSTRUCTED.contains(&definition.name.as_str())
            }
            Self::Fork(_) => true,
        }
    }
}

/// Runs a subagent to its end. There is a result whatever happens.
pub(super) async fn work(
    parent: Arc<ParentSnapshot>,
    subagents: Arc<Subagents>,
    order: SpawnRequest,
    subagent: Arc<Subagent>,
) {
    tell(&parent, &subagent, SubagentNews::Started);
    let stop = subagent.stop.clone();
    // The first fork of a reply is the first until its own reply has begun, or it has ended.
    let _first = match &order.who {
        SpawnKind::Fork(Some(branch)) => tokio::select! {
            first = branch.turn() => first,
            () = stop.cancelled() => None,
        },
        _ => None,
    };
    let begun_for = waiting(&subagent);
    let ended = match run(&parent, &subagents, order, &subagent).await {
        Ok(ended) => ended,
        Err(_) if stop.is_cancelled() => ended_early(SubagentOutcome::Stopped, &parent),
        Err(error) => ended_early(SubagentOutcome::Failed(error.to_string()), &parent),
    };
    subagent.progressed(parent.world.now(), |_| {});
    subagents.ended(&subagent, SubagentResult { bytes: length(&subagent.file), ..ended });
    tell(&parent, &subagent, SubagentNews::Ended);
    if subagent.mail.is_queued() && !stop.is_cancelled() {
        // Written to at the very end: what it reported stands, and it goes on for this. One that could not hear what it was
        // begun for would not hear it the next time either.
        let went_on = match waiting(&subagent).iter().all(|id| begun_for.contains(id)) {
            true => Err("its transcript could not be continued".to_owned()),
            false => subagents.again(&parent, &subagent).map(drop),
        };
        if let Err(why) = went_on {
            subagents.give_back(&parent, &subagent, &why);
        }
    }
}

/// Ids of the messages that wait for it.
fn waiting(subagent: &Subagent) -> Vec<String> {
    subagent.mail.waiting().unwrap_or_default().into_iter().map(|arrived| arrived.message.id).collect()
}

fn ended_early(how: SubagentOutcome, parent: &ParentSnapshot) -> SubagentResult {
    let (report, usage, model) = (String::new(), Usage::default(), parent.parts.talk.name.clone());
    SubagentResult { how, report, usage, subagent_tokens: 0, side_questions: Vec::new(), model, bytes: 0 }
}

async fn run(
    parent: &ParentSnapshot,
    subagents: &Arc<Subagents>,
    order: SpawnRequest,
    subagent: &Arc<Subagent>,
) -> Result<SubagentResult, Error> {
    let made = match (order.isolation, order.start) {
        (Isolation::None, _) => Ok(None),
        (Isolation::Worktree, SubagentStart::Fresh) => {
            Worktree::make(parent.into(), &subagent.id, &subagent.file).await.map(Some)
        }
        (Isolation::Worktree, SubagentStart::Resumed) => {
            Worktree::again(parent.into(), &subagent.id, &subagent.file).await.map(Some)
        }
    };
    let worktree = match made {
        Ok(worktree) => worktree,
        Err(why) => return Ok(ended_early(SubagentOutcome::Failed(format!("it got no worktree: {why}")), parent)),
    };
    let turn = match agent(parent, subagents, &order, subagent, worktree.as_ref()) {
        Ok(mut agent) => {
            let (model, mut labels) = (agent.model().to_owned(), agent.labels());
            let before = agent.session().log().lines().len();
            let turn = {
                let talk = agent.turn(opening(&order), &subagent.stop);
                tokio::select! {
                    biased;
                    turn = talk => turn,
                    never = keep_label(parent, subagent, &mut labels) => match never {},
                }
            };
            let _ = agent.account_for_labels(labels); // the ledger has it in any case
            let side_questions = savings::of_forks(&agent.session().log().lines()[before..]);
            agent.close().await;
            Ok((turn, model, side_questions))
        }
        Err(error) => Err(error),
    };
    let left = match worktree {
        Some(worktree) => worktree.finish(parent.into()).await,
        None => WorktreeRemains::Nothing,
    };
    let (turn, model, side_questions) = turn?;
    let spent = match budget(parent, &order.who) {
        Some(budget) => format!("its budget of {budget} tokens is spent"),
        None => "its budget is spent".to_owned(),
    };
    Ok(SubagentResult { side_questions, ..ended(turn, model, spent, subagent, &left) })
}

/// Keeps its label up to date while it works in the background.
async fn keep_label(parent: &ParentSnapshot, subagent: &Arc<Subagent>, labels: &mut ActivityReporter) -> Infallible {
    loop {
        let label = labels.next(|| subagent.is_background(), &subagent.stop).await;
        subagent.progressed(parent.world.now(), |so_far| so_far.label = Some(label));
        tell(parent, subagent, SubagentNews::Labelled);
    }
}

fn ended(turn: Turn, model: String, spent: String, subagent: &Subagent, left: &WorktreeRemains) -> SubagentResult {
    let how = match turn.end {
        TurnEnd::Ended(RunEnd::Answered) if !turn.text.trim().is_empty() => SubagentOutcome::Done,
        TurnEnd::Ended(RunEnd::BudgetSpent) => SubagentOutcome::Failed(spent),
        TurnEnd::Ended(ending) => SubagentOutcome::Failed(in_words(ending).to_owned()),
        TurnEnd::Cancelled => SubagentOutcome::Stopped,
        TurnEnd::Failed(error) => SubagentOutcome::Failed(error.to_string()),
        TurnEnd::NoRoom(why) => SubagentOutcome::Failed(why),
        TurnEnd::NotWritten(error) => SubagentOutcome::Failed(error.to_string()),
        TurnEnd::Stopped(why) => SubagentOutcome::Failed(format!("a hook stopped it: {why}")),
        TurnEnd::NotCalled(why) => SubagentOutcome::Failed(why),
    };
    let report = subagent_report::framed(subagent, &turn.text, left);
    SubagentResult {
        how,
        report,
        usage: turn.usage,
        subagent_tokens: turn.subagent_tokens,
        side_questions: Vec::new(),
        model,
        bytes: 0,
    }
}

/// Describes why it did not answer.
fn in_words(ending: RunEnd) -> &'static str {
    match ending {
        RunEnd::Answered => "it ended without a word",
        RunEnd::OutputLimit => "its answer was cut at the output limit",
        RunEnd::Refused => "its model declined to answer",
        RunEnd::WindowFull => "its window is full",
        RunEnd::MaxRounds => "it has made as many requests as it may",
        RunEnd::BudgetSpent => "its budget is spent",
        RunEnd::CostLimit => "the session has cost as much as it may",
        RunEnd::Looping => "it made the same call again and again",
    }
}

/// Its first message. A resumed subagent gets none: it continues with the messages written to it.
fn opening(order: &SpawnRequest) -> Vec<Block> {
    let text = match &order.who {
        _ if order.start == SubagentStart::Resumed => return Vec::new(),
        SpawnKind::Typed(definition) => {
            let words = definition.initial_prompt.iter().map(String::as_str).chain([order.prompt.as_str()]);
            words.collect::<Vec<_>>().join("\n\n")
        }
        SpawnKind::Fork(_) => super::branch::directive(&order.prompt),
    };
    vec![Block::text(text)]
}

/// Builds the agent, with a transcript of its own.
fn agent(
    parent: &ParentSnapshot,
    subagents: &Arc<Subagents>,
    order: &SpawnRequest,
    subagent: &Arc<Subagent>,
    worktree: Option<&Worktree>,
) -> Result<Agent, Error> {
    let directory = worktree.map_or(&parent.directory, |worktree| &worktree.path);
    let (id, world) = (&subagent.id, parent.world.clone());
    let mut session = match (order.start, &order.who) {
        (SubagentStart::Fresh, SpawnKind::Typed(_)) => Session::child(&parent.session, id, directory, world)?,
        (SubagentStart::Fresh, SpawnKind::Fork(branch)) => {
            let log = branch.as_ref().map(|branch| branch.log.clone()).unwrap_or_default();
            Session::branch(&parent.session, id, directory, log, world)?
        }
        (SubagentStart::Resumed, who) => {
            let before = match who {
                SpawnKind::Typed(_) => Log::default(),
                SpawnKind::Fork(_) => super::branch::before(&subagent.file)?,
            };
            Session::reopen(&subagent.file, before, id, directory, world)?
        }
    };
    if order.start == SubagentStart::Fresh {
        write_meta(parent, &order.who, subagent, worktree)?;
    }
    let mut parts = match &order.who {
        SpawnKind::Typed(definition) => {
            typed(parent, subagents, definition, order.model.clone(), directory, &subagent.file)?
        }
        SpawnKind::Fork(branch) => forked(parent, subagents, &mut session, branch.as_deref(), id)?,
    };
    let above = parent.parts.lineage.sent.as_ref().map_or(&parent.session, |sent| &sent.session);
    let (kind, prompt) = (subagent.kind.clone(), parent.prompt.clone());
    parts.lineage.sent = Some(SubagentIdentity { id: id.clone(), kind, session: above.clone(), prompt });
    parts.lineage.latest = Some(LastRequest::default());
    parts.consent.approver = Arc::new(ParentApprover { subagent: subagent.clone(), parent: parent.clone() });
    parts.talk.limits.budget = budget(parent, &order.who);
    if let SpawnKind::Typed(_) = &order.who {
        parts.prompt.budget = parts.talk.limits.budget; // a fork is told what its parent was
    }
    if let Some(worktree) = worktree {
        worktree.furnish(&mut parts);
    }
    parts.out.listener = listener(parent, subagent, &order.who);
    parts.reload = None;
    parts.contacts.teammates = None;
    if let Some(above) = &parent.parts.contacts.post {
        let post = above.below(subagent.called(), &subagent.mail, &(subagents.clone() as Arc<dyn Neighbours>));
        parts
            .work
            .tools
            .iter_mut()
            .filter(|tool| tool.name() == SendMessage::NAME)
            .for_each(|tool| *tool = below(tool, &post));
        parts.contacts.post = Some(post);
    }
    let mut agent = Agent::new(session, parts)?.with_mail(subagent.mail.clone());
    if let Some(instructions) = subagents.instructions().filter(|_| order.who.is_instructed()) {
        let copy = worktree.map(Worktree::copied);
        let knowledge = Knowledge::inherited(instructions, copy, agent.session());
        agent = agent.with_knowledge(knowledge);
    }
    if worktree.is_some_and(|worktree| worktree.begins == WorktreeState::Fresh) && order.start == SubagentStart::Resumed
    {
        agent.session_mut().inject(&Injected::new(Purpose::Worktree, FRESH), LineMeta::default())?;
    }
    agent.scope().set_sandbox(match (parent.scope.sandbox(), worktree) {
        (Some(sandbox), Some(worktree)) => {
            Some(Arc::new(Sandbox::clone(&sandbox).in_worktree(&worktree.path, &parent.directory)))
        }
        (sandbox, _) => sandbox,
    });
    let memory = match &order.who {
        SpawnKind::Typed(definition) => super::memory::place(definition, subagents),
        SpawnKind::Fork(_) => None,
    };
    let agent = agent.sharing_memories(&parent.memories);
    Ok(memory.into_iter().fold(agent, |agent, memory| agent.remembering(&memory.directory)))
}

/// Writes a subagent's metadata, next to its transcript.
pub(super) fn write_meta(
    parent: &ParentSnapshot,
    who: &SpawnKind,
    subagent: &Subagent,
    worktree: Option<&Worktree>,
) -> Result<(), Error> {
    let meta = SubagentMeta {
        agent_type: subagent.kind.clone(),
        description: subagent.description.clone(),
        tool_use_id: subagent.call.clone(),
        name: subagent.name.clone(),
        parent_agent_id: parent.parts.lineage.sent.as_ref().map(|sent| sent.id.clone()),
        branched_from: who.branch().map(|branch| branch.origin(&parent.session)),
        worktree_path: worktree.map(|worktree| worktree.path.clone()),
    };
    Ok(meta.write(&subagent.file)?)
}

/// Passes its events on, and counts its calls.
fn listener(parent: &ParentSnapshot, subagent: &Arc<Subagent>, who: &SpawnKind) -> crate::event::Listener {
    let (parent, subagent) = (parent.clone(), subagent.clone());
    let begun = who.branch().cloned();
    Arc::new(move |event| {
        if let Some(branch) = &begun
            && matches!(event, Event::Text(_) | Event::Thinking(_) | Event::CallWriting { .. } | Event::Replied { .. })
        {
            branch.has_begun();
        }
        let now = parent.world.now();
        match &event {
            Event::ToolStarted { tool, .. } => subagent.progressed(now, |so_far| {
                so_far.calls += 1;
                so_far.tool = Some(tool.clone());
            }),
            Event::Replied { reply } => subagent.progressed(now, |so_far| {
                so_far.requests += 1;
                so_far.tokens += reply.usage.total();
                let price = parent.parts.out.ledger.price(&reply.model);
                so_far.cost_usd += price.map_or(0.0, |price| price.cost(&reply.usage));
            }),
            _ => {}
        }
        match event {
            // One that it started itself is reported as it is.
            Event::Agent { .. } => (parent.parts.out.listener)(event),
            event => tell(&parent, &subagent, SubagentNews::Does(Box::new(event))),
        }
    })
}

pub(super) fn tell(parent: &ParentSnapshot, subagent: &Arc<Subagent>, news: SubagentNews) {
    (parent.parts.out.listener)(Event::Agent { subagent: subagent.clone(), news });
}

/// Asks the parent's approver, naming the subagent. In the background it waits until somebody looks.
struct ParentApprover {
    subagent: Arc<Subagent>,
    parent: ParentSnapshot,
}

impl Approver for ParentApprover {
    fn ask(&self, question: Question) -> BoxFuture<'_, PermissionAnswer> {
        let approver = &self.parent.parts.consent.approver;
        let Question::Call(mut question) = question else { return approver.ask(question) };
        question.why = format!("the agent {} asks: {}", self.subagent.kind, question.why);
        question.agent.get_or_insert_with(|| self.subagent.id.clone());
        if approver.respondent() != Respondent::Person || !self.subagent.keeps_questions() {
            return approver.ask(Question::Call(question));
        }
        let answer = self.subagent.keep_question(*question);
        tell(&self.parent, &self.subagent, SubagentNews::Asks);
        Box::pin(async move {
            let nobody =
                || PermissionAnswer::Unanswered { why: "Nobody has answered. Do what you can without it.".to_owned() };
            answer.await.unwrap_or_else(|_| nobody())
        })
    }

    fn respondent(&self) -> Respondent {
        self.parent.parts.consent.approver.respondent()
    }
}
