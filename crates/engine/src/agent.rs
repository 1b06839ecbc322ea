//! The driver: takes the steps the machine names, until the turn is over.

use std::sync::Arc;

use futures_util::StreamExt;
use memory::rank::Doing;
use provider::Model;
use tokio_util::sync::CancellationToken;
use tools::{Call, Output, Scope, Tool, run_all};
use transcript::block::Kind;
use transcript::line::{Body, Source};
use transcript::mark::{Ttl, mark};
use transcript::{Block, Id, Outcome, Prologue, Reply, Request, StopReason, Usage};

use crate::error::Error;
use crate::event::Event;
use crate::inbox::Inbox;
use crate::knowledge::{Attached, Knowledge};
use crate::permission::{Answer, Approver, Policy};
use crate::run::{Ending, Limits, REPEATS_TOLD, Run, Step};
use crate::session::{Beside, SeenFile, Session};

/// What the log says where the user stopped a turn.
const INTERRUPTED: &str = "[The user interrupted this turn.]";
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
}

/// What an agent is made of.
pub struct Parts {
    /// Where everything is written down.
    pub session: Session,
    /// The model it talks to.
    pub model: Arc<dyn Model>,
    /// What it can do.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Where it can do it.
    pub scope: Scope,
    /// What it may do.
    pub policy: Policy,
    /// Who is asked about the rest.
    pub approver: Arc<dyn Approver>,
    /// What bounds a turn.
    pub limits: Limits,
    /// How long the provider keeps the cached prefix.
    pub ttl: Ttl,
    /// Who hears of what happens.
    pub listener: Listener,
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
    /// The log could not be written. What was acknowledged before is there.
    NotWritten(Error),
}

impl Agent {
    /// Puts an agent together. `prologue` is written to the log where it is not there yet; a resumed session remembers
    /// the files it has seen and where it worked.
    pub fn new(parts: Parts, prologue: &Prologue) -> Result<Self, Error> {
        let Parts { mut session, model, tools, scope, policy, approver, limits, ttl, listener } = parts;
        for beside in session.beside() {
            if let Some(seen) = beside.seen
                && let Ok(hash) = seen.hash.parse()
            {
                scope.note(&seen.path, files::Stamp { modified: None, len: seen.len, hash });
            }
            if let Some(directory) = beside.directory {
                scope.set_directory(directory);
            }
        }
        if session.log().view().prologue().map(|known| &**known) != Some(prologue) {
            session.append(Body::Prologue(prologue.clone()))?;
        }
        listener(Event::SessionStarted {
            session: session.id().to_owned(),
            file: session.path().to_owned(),
            model: prologue.model.clone(),
            tools: tools.iter().map(|tool| tool.name().to_owned()).collect(),
            mode: policy.mode,
        });
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

    /// Where messages wait that come while a turn runs; each joins the next round.
    pub fn inbox(&self) -> &Inbox {
        &self.inbox
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
        let marks = mark(&prologue, &messages, view.answered(), self.ttl);
        Some(Request { prologue, messages, marks })
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
        let call = Call { name: tool.clone(), input };
        let output = run_all(vec![call], &self.tools, &scope, |_, _| {}).await.pop();
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
                Step::CallModel => match self.call_model(run.rounds() + 1, cancel).await? {
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
                Step::Done(ending) => {
                    self.answer_open_calls(NOT_RUN)?;
                    return Ok(End::Ended(ending));
                }
            }
        }
    }

    fn hear(&mut self, said: Vec<Block>) -> Result<(), Error> {
        let text = text_of(&said);
        if let Some(beginning) = self.knowledge.as_mut().and_then(Knowledge::beginning) {
            self.attach(vec![beginning])?;
        }
        self.session.append(Body::User { blocks: said, source: Source::Said })?;
        (self.listener)(Event::PromptSubmitted { line: self.session.log().tip().cloned(), text: text.clone() });
        let recalled = self.knowledge.as_mut().map(|knowledge| knowledge.said(&text, &self.doing, &self.scope));
        self.attach(recalled.unwrap_or_default())
    }

    /// Puts context beside what was said.
    fn attach(&mut self, attached: Vec<Attached>) -> Result<(), Error> {
        let paths: Vec<String> =
            attached.iter().filter_map(|one| Some(one.beside.memory.as_ref()?.path.clone())).collect();
        for one in attached {
            self.session.append_with(Body::Attachment { blocks: vec![one.block] }, &one.beside)?;
        }
        if !paths.is_empty() {
            (self.listener)(Event::Recalled { paths });
        }
        Ok(())
    }

    /// What the calls of a reply touched: its instructions are loaded, and the user hears of saved memories.
    fn touched(&mut self, calls: &[Asked], scope: &Scope) -> Result<(), Error> {
        for call in calls {
            self.doing.tools.push(call.tool.clone());
            let known = self.tools.iter().find(|known| known.name() == call.tool);
            let Some(tools::Subject::Path { real, .. }) = known.map(|known| known.subject(&call.input, scope)) else {
                continue;
            };
            self.doing.files.push(real.display().to_string());
            let Some(knowledge) = &mut self.knowledge else { continue };
            if knowledge.is_memory(&real) && known.is_some_and(|known| known.changes(&call.input, scope).is_some()) {
                (self.listener)(Event::MemorySaved { path: real.clone() });
            }
            if let Some((files, attached)) = knowledge.touched(&real) {
                (self.listener)(Event::InstructionsLoaded { files });
                self.attach(vec![attached])?;
            }
        }
        Ok(())
    }

    async fn call_model(&mut self, round: u32, cancel: &CancellationToken) -> Result<Replied, Error> {
        if let Some(knowledge) = &mut self.knowledge {
            let chosen = knowledge.chosen().await;
            self.attach(chosen)?;
        }
        let Some(request) = self.request() else {
            let message = "the session has no prologue".to_owned();
            return Ok(Replied::Failed(provider::Error::Settings { message }));
        };
        let tokens = self.session.log().view().tally().count();
        (self.listener)(Event::RequestSent { round, tokens });
        let mut events = self.model.stream(request);
        let mut heard = Heard::default();
        loop {
            let event = tokio::select! {
                biased;
                () = cancel.cancelled() => None,
                event = events.next() => event,
            };
            match event {
                None if cancel.is_cancelled() => {
                    self.interrupt(heard.blocks())?;
                    return Ok(Replied::Cancelled);
                }
                None => {
                    let (host, cause) = ("the model".to_owned(), "the stream ended without an end".to_owned());
                    return Ok(Replied::Failed(provider::Error::Cut { host, cause }));
                }
                Some(provider::Event::Done(reply)) => {
                    self.write_reply(&reply)?;
                    (self.listener)(Event::Replied { reply: reply.clone() });
                    return Ok(Replied::Whole(reply));
                }
                Some(provider::Event::Failed(error)) => return Ok(Replied::Failed(error)),
                Some(event) => self.pass_on(event, &mut heard),
            }
        }
    }

    fn pass_on(&self, event: provider::Event, heard: &mut Heard) {
        let event = match event {
            provider::Event::Text(text) => {
                heard.text.push_str(&text);
                Event::Text(text)
            }
            provider::Event::Block(block) => {
                heard.text.clear();
                heard.whole.push(block);
                return;
            }
            provider::Event::Restarted => {
                *heard = Heard::default();
                Event::Restarted
            }
            provider::Event::Thinking(text) => Event::Thinking(text),
            provider::Event::ToolInput { name, .. } => Event::CallWriting { tool: name },
            provider::Event::Retrying { attempt, after, why } => {
                Event::Retrying { attempt, after, why: why.to_string() }
            }
            provider::Event::Started { .. } | provider::Event::Done(_) | provider::Event::Failed(_) => return,
        };
        (self.listener)(event);
    }

    fn write_reply(&mut self, reply: &Reply) -> Result<(), Error> {
        self.session.append(Body::Assistant {
            id: Id::from(&reply.id),
            model: reply.model.clone(),
            blocks: reply.blocks.clone(),
            usage: Some(reply.usage),
            stop: Some(reply.stop.clone()),
        })?;
        Ok(())
    }

    /// The user stopped the turn: what was heard of the reply is kept, calls it did not get to make are not.
    fn interrupt(&mut self, heard: Vec<Block>) -> Result<(), Error> {
        let heard: Vec<Block> =
            heard.into_iter().filter(|block| !matches!(block.kind(), Kind::ToolUse { .. })).collect();
        if heard.iter().any(|block| *block.kind() == Kind::Text) {
            let id = self.session.world().fresh_id();
            let model = self.session.log().view().prologue().map(|known| known.model.clone()).unwrap_or_default();
            let stop = Some(StopReason::Other("interrupted".into()));
            self.session.append(Body::Assistant { id, model, blocks: heard, usage: None, stop })?;
        }
        self.answer_open_calls(NOT_RUN)?;
        self.session.append(Body::User { blocks: vec![Block::text(INTERRUPTED)], source: Source::Injected })?;
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

    /// Runs the calls of a reply: neighbours that only look together, the others one by one. A call is judged when all
    /// before it have run, since they may have moved the directory its paths start from.
    async fn call_tools(&mut self, calls: Vec<Block>, repeats: u32, cancel: &CancellationToken) -> Result<(), Error> {
        let scope = self.scope.clone().with_cancel(cancel.clone());
        let calls: Vec<Asked> = calls.iter().filter_map(|block| self.asked(block)).collect();
        for group in calls.chunk_by(|one, next| one.only_looks && next.only_looks) {
            let mut allowed = Vec::new();
            for call in group {
                if self.may_run(call, &scope, cancel).await? {
                    allowed.push(call);
                }
            }
            let running = allowed.iter().map(|call| Call { name: call.tool.clone(), input: call.input.clone() });
            let tools = self.tools.clone();
            let mut written = Ok(());
            run_all(running.collect(), &tools, &scope, |index, output| {
                let output = if repeats >= REPEATS_TOLD { told_of_repeats(output, repeats) } else { output.clone() };
                if written.is_ok() {
                    written = self.write_result(allowed[index], output, &scope);
                }
            })
            .await;
            written?;
        }
        self.touched(&calls, &scope)
    }

    fn asked(&self, block: &Block) -> Option<Asked> {
        let Kind::ToolUse { id, name } = block.kind() else { return None };
        let input = block.input().unwrap_or_default();
        let known = self.tools.iter().find(|known| known.name() == &**name);
        let only_looks = known.is_none_or(|known| known.access(&input) == tools::Access::ReadOnly);
        let (id, tool) = (id.to_string(), name.to_string());
        Some(Asked { id, tool, input, only_looks, invalid: provider::invalid_input(block) })
    }

    /// Asks about a call. One that may run is announced, and the file it is about to change is kept; one that may not
    /// is answered.
    async fn may_run(&mut self, call: &Asked, scope: &Scope, cancel: &CancellationToken) -> Result<bool, Error> {
        if let Some(text) = &call.invalid {
            let why = format!("The input of this call is not JSON, so it was not run. It began: {text:.200}");
            self.write_result(call, Output::failed(why), scope)?;
            return Ok(false);
        }
        let answer = self.judge(&call.tool, &call.input, scope, cancel).await;
        if let Answer::Always(rule) = &answer {
            self.policy.rules.allow.push((**rule).clone());
        }
        let (id, tool, input) = (call.id.clone(), call.tool.clone(), call.input.clone());
        if let Answer::Deny { why } = answer {
            (self.listener)(Event::ToolDenied { id, tool, input, why: why.clone() });
            self.write_result(call, Output::failed(why), scope)?;
            return Ok(false);
        }
        let known = self.tools.iter().find(|known| known.name() == call.tool);
        if let Some(path) = known.and_then(|known| known.changes(&call.input, scope)) {
            self.session.keep(&path)?;
        }
        (self.listener)(Event::ToolStarted { id, tool, input });
        Ok(true)
    }

    async fn judge(&self, tool: &str, input: &serde_json::Value, scope: &Scope, cancel: &CancellationToken) -> Answer {
        let Some(tool) = self.tools.iter().find(|known| known.name() == tool) else {
            return Answer::Allow; // running it says which tools there are
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Answer::Deny { why: NOT_RUN.to_owned() },
            answer = self.policy.judge(&**tool, input, scope, &*self.approver) => answer,
        }
    }

    fn write_result(&mut self, call: &Asked, output: Output, scope: &Scope) -> Result<(), Error> {
        let result = Block::tool_result(&call.id, &output.content, output.outcome);
        let beside = self.beside(call, scope);
        self.session.append_with(Body::User { blocks: vec![result], source: Source::Said }, &beside)?;
        (self.listener)(Event::ToolEnded { id: call.id.clone(), tool: call.tool.clone(), output });
        Ok(())
    }

    /// What a later session has to know of this call: the file it saw, the directory it moved to.
    fn beside(&self, call: &Asked, scope: &Scope) -> Beside {
        let known = self.tools.iter().find(|known| known.name() == call.tool);
        let seen = known.and_then(|known| match known.subject(&call.input, scope) {
            tools::Subject::Path { real, .. } => {
                let stamp = scope.seen(&real)?;
                Some(SeenFile { path: real, len: stamp.len, hash: stamp.hash.to_hex().to_string() })
            }
            _ => None,
        });
        let directory = (call.tool == "Bash").then(|| scope.directory());
        Beside { seen, directory, ..Beside::default() }
    }

    /// Ends what the session started: commands that run in the background.
    pub async fn close(self) {
        self.scope.jobs().stop_all().await;
    }
}

/// A call the model asks for.
struct Asked {
    id: String,
    tool: String,
    input: serde_json::Value,
    only_looks: bool,
    /// The input as it was written, where it is not JSON.
    invalid: Option<String>,
}

enum Replied {
    Whole(Reply),
    Cancelled,
    Failed(provider::Error),
}

/// What was heard of a reply so far.
#[derive(Default)]
struct Heard {
    whole: Vec<Block>,
    text: String,
}

impl Heard {
    fn blocks(self) -> Vec<Block> {
        let rest = (!self.text.trim().is_empty()).then(|| Block::text(&self.text));
        self.whole.into_iter().chain(rest).collect()
    }
}

/// The same call again gives the same again; the model is told so where it looks.
fn told_of_repeats(output: &Output, repeats: u32) -> Output {
    let note = format!(
        "<system-reminder>This is call number {repeats} in a row with the same input, and its result will not change. \
         Try something else, or say what is in the way.</system-reminder>"
    );
    let mut output = output.clone();
    output.content.push(Block::text(note));
    output
}

fn text_of(blocks: &[Block]) -> String {
    let texts: Vec<String> = blocks.iter().filter_map(Block::as_text).collect();
    texts.join("\n")
}

fn add(sum: &mut Usage, usage: &Usage) {
    sum.input_tokens += usage.input_tokens;
    sum.output_tokens += usage.output_tokens;
    sum.cache_read_input_tokens += usage.cache_read_input_tokens;
    sum.cache_creation_input_tokens += usage.cache_creation_input_tokens;
    sum.cache_creation.ephemeral_5m_input_tokens += usage.cache_creation.ephemeral_5m_input_tokens;
    sum.cache_creation.ephemeral_1h_input_tokens += usage.cache_creation.ephemeral_1h_input_tokens;
}
