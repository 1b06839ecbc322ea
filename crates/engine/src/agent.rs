//! The driver: takes the steps the machine names, until the turn is over.

mod calls;
pub mod compact;
mod media;
mod notes;
mod parts;
mod reply;
mod restore;
mod room;
mod shorten;

use std::path::Path;
use std::sync::Arc;

use memory::rank::Doing;
use provider::Model;
use tokio_util::sync::CancellationToken;
use tools::{Bash, Call, Output, Scope, Tool, run_all};
use transcript::block::Kind;
use transcript::line::{Body, Source};
use transcript::mark::{Ttl, mark};
use transcript::window::AutoCompact;
use transcript::{Block, Outcome, Request, Usage};

use crate::error::Error;
use crate::event::{Event, Recalled};
use crate::filling::Filling;
use crate::history::History;
use crate::inbox::Inbox;
use crate::knowledge::{Attached, Knowledge};
use crate::layers::{Layers, State, rates};
use crate::permission::{Approver, LiveMode, Policy};
use crate::run::{Ending, Limits, Run, Step};
use crate::session::Session;
use compact::Part;
use notes::Updating;
pub use parts::{MAX_OUTPUT_TOKENS, Parts};
use reply::Replied;

/// What a call is answered when the user stopped the turn before it ran.
const NOT_RUN: &str = "[Not run: the turn ended before it.]";

/// Where events go.
pub type Listener = Arc<dyn Fn(Event) + Send + Sync>;

/// An agent: a session, a model, tools, and what it may do.
pub struct Agent {
    session: Session,
    model: Arc<dyn Model>,
    tools: Vec<Arc<dyn Tool>>,
    scope: Scope,
    policy: Policy,
    approver: Arc<dyn Approver>,
    limits: Limits,
    ttl: Ttl,
    listener: Listener,
    inbox: Inbox,
    knowledge: Option<Knowledge>,
    /// What the turn has touched and used, for what has to be known about it.
    doing: Doing,
    layers: Layers,
    state: State,
    updating: Option<Updating>,
    /// What the system prompt is made from.
    parts: Parts,
}

/// A turn that is over.
#[derive(Debug)]
pub struct Turn {
    /// How it ended.
    pub end: End,
    /// The text of the last reply.
    pub text: String,
    /// How many requests it took.
    pub rounds: u32,
    /// What they used together.
    pub usage: Usage,
}

/// How a turn ended.
#[derive(Debug)]
pub enum End {
    /// As the machine says.
    Ended(Ending),
    /// The user stopped it.
    Cancelled,
    /// The model could not be reached, or refused.
    Failed(provider::Error),
    /// There is no room for the request, and nothing that could make any.
    NoRoom(String),
    /// The log could not be written. What was acknowledged before is there.
    NotWritten(Error),
}

impl Agent {
    /// Puts an agent together. What stands before the messages is written to the log where it is not there yet; a
    /// resumed session remembers the files it has seen and where it worked.
    pub fn new(mut session: Session, mut parts: Parts) -> Result<Self, Error> {
        if !parts.tools.is_empty() {
            parts.tools.push(Arc::new(History::new(session.path())));
        }
        let parts = parts.without_forbidden_tools();
        let (prologue, scope) = (parts.prologue(&session), parts.scope(&session));
        let Parts { model, tools, mut policy, approver, limits, ttl, listener, layers, .. } = parts.clone();
        policy.rules.allow.extend(parts::kept(&session)?);
        // What a file says was seen, or where it says the work went on, counts inside the working directories.
        let inside = |path: &Path| {
            let real = files::real(path).unwrap_or_default();
            scope.directories().iter().any(|directory| real.starts_with(directory))
        };
        for beside in session.beside() {
            if let Some(seen) = beside.seen.filter(|seen| inside(&seen.path))
                && let Ok(hash) = seen.hash.parse()
            {
                scope.note(&seen.path, files::Stamp { modified: None, len: seen.len, hash });
            }
            if let Some(directory) = beside.directory.filter(|directory| inside(directory)) {
                scope.set_directory(directory);
            }
        }
        if session.log().view().prologue().map(|known| &**known) != Some(&prologue) {
            session.append(Body::Prologue(prologue.clone()))?;
        }
        listener(Event::SessionStarted {
            session: session.id().to_owned(),
            file: session.path().to_owned(),
            model: prologue.model,
            tools: tools.iter().map(|tool| tool.name().to_owned()).collect(),
            mode: policy.mode.get(),
        });
        let state = State::of(session.log(), rates(&layers, ttl));
        Ok(Self {
            session,
            model,
            tools,
            scope,
            policy,
            approver,
            limits,
            ttl,
            listener,
            inbox: Inbox::default(),
            knowledge: None,
            doing: Doing::default(),
            state,
            layers,
            updating: None,
            parts,
        })
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Gives it instruction files and memory.
    #[must_use]
    pub fn with_knowledge(mut self, knowledge: Knowledge) -> Self {
        self.knowledge = Some(knowledge);
        self
    }

    /// Instruction files and memory.
    pub fn knowledge(&self) -> Option<&Knowledge> {
        self.knowledge.as_ref()
    }

    /// How it keeps within the window.
    pub fn layers(&self) -> &Layers {
        &self.layers
    }

    /// What fills the window.
    pub fn filling(&self) -> Filling {
        Filling::of(self.session.log().view())
    }

    /// Compacts because the user asks for it, as a turn of its own.
    pub async fn compaction(&mut self, instructions: Option<String>, part: Part, cancel: &CancellationToken) -> Turn {
        let end = match self.compact(instructions, part, cancel).await {
            Ok(Ok(())) => End::Ended(Ending::Answered),
            Ok(Err(_)) if cancel.is_cancelled() => End::Cancelled,
            Ok(Err(why)) => End::NoRoom(format!("not compacted: {why}")),
            Err(error) => End::NotWritten(error),
        };
        Turn { end, text: String::new(), rounds: 0, usage: Usage::default() }
    }

    /// Where messages wait that come while a turn runs; each joins the next round.
    pub fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    /// How much it may do without asking. It can be changed while a turn runs.
    pub fn mode(&self) -> &LiveMode {
        &self.policy.mode
    }

    /// What it may do.
    pub fn policy_mut(&mut self) -> &mut Policy {
        &mut self.policy
    }

    /// Where its tools run.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The session, to write to.
    pub fn session_mut(&mut self) -> &mut Session {
        &mut self.session
    }

    /// The request that would be sent now.
    pub fn request(&self) -> Option<Request> {
        let view = self.session.log().view();
        let prologue = view.prologue()?.clone();
        let messages = view.messages();
        let mut marks = mark(&prologue, &messages, &view.seams(), self.ttl);
        if self.layers.cache_diagnosis {
            marks.after = self.session.log().lines().iter().rev().find_map(|line| match &line.body {
                Body::Assistant { id, .. } if !line.sidechain => Some(id.clone()),
                _ => None,
            });
        }
        Some(Request { prologue, messages, marks })
    }

    /// One turn for a text, which nobody stops.
    pub async fn say(&mut self, text: &str) -> Turn {
        self.turn(vec![Block::text(text)], &CancellationToken::new()).await
    }

    /// One turn: the user's words, and everything until the model answers without calling a tool.
    pub async fn turn(&mut self, said: Vec<Block>, cancel: &CancellationToken) -> Turn {
        let mut turn = Turn { end: End::Cancelled, text: String::new(), rounds: 0, usage: Usage::default() };
        turn.end = match self.steps(said, cancel, &mut turn).await {
            Ok(end) => end,
            Err(error) => End::NotWritten(error),
        };
        if let Some(knowledge) = &mut self.knowledge {
            knowledge.turn_ended();
        }
        (self.listener)(Event::TurnEnded { usage: turn.usage });
        turn
    }

    /// Runs a command the user typed. Nothing is asked and no model is called; the model sees command and output with
    /// the user's next words.
    pub async fn shell(&mut self, command: &str, cancel: &CancellationToken) -> Turn {
        let mut turn =
            Turn { end: End::Ended(Ending::Answered), text: String::new(), rounds: 0, usage: Usage::default() };
        let id = format!("shell-{}", self.session.world().fresh_id());
        let (tool, input) = ("Bash".to_owned(), serde_json::json!({"command": command}));
        (self.listener)(Event::ToolStarted { id: id.clone(), tool: tool.clone(), input: input.clone() });
        let scope = self.scope.clone().with_cancel(cancel.clone());
        let call = Call::new(tool.clone(), input);
        let bash: [Arc<dyn Tool>; 1] = [Arc::new(Bash)]; // what the model may use is no limit to the user
        let output = run_all(vec![call], &bash, &scope, |_, _| {}).await.pop();
        let output = output.unwrap_or_else(|| Output::failed(NOT_RUN));
        turn.text = output.text();
        let text = format!("I ran a command.\n<command>{command}</command>\n<output>\n{}\n</output>", turn.text);
        let body = Body::User { blocks: vec![Block::text(text)], source: Source::Injected };
        if let Err(error) = self.session.append(body) {
            turn.end = End::NotWritten(error);
        }
        (self.listener)(Event::ToolEnded { id, tool, output });
        turn
    }

    async fn steps(&mut self, said: Vec<Block>, cancel: &CancellationToken, turn: &mut Turn) -> Result<End, Error> {
        self.doing = Doing::default();
        self.hear(said)?;
        let mut run = Run::new(self.limits);
        loop {
            if cancel.is_cancelled() {
                self.interrupt(Vec::new())?;
                return Ok(End::Cancelled);
            }
            let mut step = run.next(self.session.log());
            if !matches!(step, Step::CallTools(_))
                && let Some(said) = self.inbox.next()
            {
                // What was said meanwhile joins this round; after an answer it begins a turn of its own.
                if matches!(step, Step::Done(_)) {
                    self.answer_open_calls(NOT_RUN)?;
                    run = Run::new(self.limits);
                }
                self.hear(said)?;
                step = Step::CallModel;
                while let Some(said) = self.inbox.next() {
                    self.hear(said)?;
                }
            }
            match step {
                Step::CallModel => match self.ask(run.rounds() + 1, cancel).await? {
                    Replied::NoRoom(why) => return Ok(End::NoRoom(why)),
                    Replied::Whole(reply) => {
                        add(&mut turn.usage, &reply.usage);
                        turn.text = text_of(&reply.blocks);
                        run.replied(&reply);
                        turn.rounds += 1;
                    }
                    Replied::Cancelled => return Ok(End::Cancelled),
                    Replied::Failed(error) => return Ok(End::Failed(error)),
                },
                Step::CallTools(calls) => self.call_tools(calls, run.repeats(), cancel).await?,
                Step::Done(Ending::WindowFull) if self.overflowed(cancel).await? => run.goes_on(),
                Step::Done(ending) => {
                    self.answer_open_calls(NOT_RUN)?;
                    self.take_in_notes().await?;
                    self.keep_notes();
                    return Ok(End::Ended(ending));
                }
            }
        }
    }

    fn hear(&mut self, said: Vec<Block>) -> Result<(), Error> {
        let text = text_of(&said);
        let said = self.bounded(said);
        self.state.turn();
        if let Some(knowledge) = &mut self.knowledge {
            knowledge.remember(&self.session);
        }
        if let Some(beginning) = self.knowledge.as_mut().and_then(Knowledge::beginning) {
            self.attach(vec![beginning])?;
        }
        self.session.append(Body::User { blocks: said, source: Source::Said })?;
        (self.listener)(Event::PromptSubmitted { line: self.session.log().tip().cloned(), text: text.clone() });
        let recalled = self.knowledge.as_mut().map(|knowledge| knowledge.said(&text, &self.doing, &self.scope));
        self.attach(recalled.unwrap_or_default())
    }

    /// What the user said, where it would not fit the window: it goes to a file, and its beginning and end stay.
    fn bounded(&self, said: Vec<Block>) -> Vec<Block> {
        let view = self.session.log().view();
        let before = view.prologue().map_or(0, |prologue| view.tally().of_prologue(prologue));
        let tokens = view.tally().estimate(said.iter().map(Block::size).sum());
        if !self.layers.spill || before + tokens <= self.layers.window.threshold(AutoCompact::On) {
            return said;
        }
        let (text, id) = (text_of(&said), format!("prompt-{}", self.session.world().fresh_id()));
        let Ok(path) = self.session.keep_result(&id, "txt", &text) else { return said };
        let kept = context::spill::long_prompt(&text, &path.display().to_string());
        let others = said.into_iter().filter(|block| *block.kind() != Kind::Text);
        std::iter::once(Block::text(kept)).chain(others).collect()
    }

    /// Puts context beside what was said.
    fn attach(&mut self, attached: Vec<Attached>) -> Result<(), Error> {
        let directory = self.knowledge.as_ref().and_then(Knowledge::memory_directory).unwrap_or(Path::new(""));
        let recalled = |one: &Attached| {
            let path = one.beside.memory.as_ref()?.path.clone();
            Some(Recalled { file: directory.join(&path), path, text: one.block.as_text().unwrap_or_default() })
        };
        let memories: Vec<Recalled> = attached.iter().filter_map(recalled).collect();
        for one in attached {
            self.session.append_with(Body::Attachment { blocks: vec![one.block] }, &one.beside)?;
        }
        if !memories.is_empty() {
            (self.listener)(Event::Recalled { memories });
        }
        Ok(())
    }

    fn answer_open_calls(&mut self, text: &str) -> Result<(), Error> {
        for call in self.session.log().view().open_calls() {
            if let Kind::ToolUse { id, .. } = call.kind() {
                let result = Block::tool_result(id, &[Block::text(text)], Outcome::Failed);
                self.session.append(Body::User { blocks: vec![result], source: Source::Said })?;
            }
        }
        Ok(())
    }

    /// Ends what the session started: commands that run in the background, and notes that are being written. What is
    /// written by now is taken in.
    pub async fn close(mut self) {
        let _ = self.take_in_notes().await; // there is nobody left to tell
        self.scope.jobs().stop_all().await;
    }
}

fn text_of(blocks: &[Block]) -> String {
    let texts: Vec<String> = blocks.iter().filter_map(Block::as_text).collect();
    texts.join("\n")
}

pub(crate) fn add(sum: &mut Usage, usage: &Usage) {
    sum.input_tokens += usage.input_tokens;
    sum.output_tokens += usage.output_tokens;
    sum.cache_read_input_tokens += usage.cache_read_input_tokens;
    sum.cache_creation_input_tokens += usage.cache_creation_input_tokens;
    sum.cache_creation.ephemeral_5m_input_tokens += usage.cache_creation.ephemeral_5m_input_tokens;
    sum.cache_creation.ephemeral_1h_input_tokens += usage.cache_creation.ephemeral_1h_input_tokens;
}
