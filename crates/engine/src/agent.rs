//! The agent: a driver, and what goes on around it. It takes the steps the machine names, until the turn is over.

mod dreams;
mod learning;
mod outside;
mod parts;
mod reload;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use context::{Layers, Reach};
use memory::instructions::Loaded;
use memory::rank::Doing;
use memory::remember::Origin;
use tokio_util::sync::CancellationToken;
use tools::sandbox::Sandbox;
use tools::{Bash, Call, Output, Scope, Tool, run_all};
use transcript::block::Kind;
use transcript::line::{Body, Source};
use transcript::window::AutoCompact;
use transcript::{Block, Request, Usage};

use crate::dream::beside::Dreaming;
use crate::driver::{Asked, Driver, Replied};
use crate::error::Error;
use crate::event::{Event, Recalled};
use crate::extract::{Extraction, Occasion, Outcome};
use crate::filling::Filling;
use crate::history::History;
use crate::hooks::{Happening, Hooks, Leaving, Start, Word};
use crate::inbox::Inbox;
use crate::knowledge::{Attached, Knowledge};
use crate::ledger::Ledger;
use crate::permission::{Choice, LiveMode, Policy};
use crate::run::{Ending, Run, Step};
use crate::session::Session;
pub(crate) use parts::readable;
pub use parts::{MAX_OUTPUT_TOKENS, Parts, Small, environment};
pub use reload::{Reload, Reloaded, Said};

/// What a call is answered when the user stopped the turn before it ran.
pub(crate) const NOT_RUN: &str = "[Not run: the turn ended before it.]";

/// Where events go.
pub type Listener = Arc<dyn Fn(Event) + Send + Sync>;

/// An agent: a driver, what it knows, and what is said to it meanwhile.
pub struct Agent {
    driver: Driver,
    inbox: Inbox,
    knowledge: Option<Knowledge>,
    extraction: Option<Extraction>,
    /// What was learnt since the user last said something.
    learnt: Vec<Outcome>,
    dreaming: Option<Dreaming>,
    /// What the turn has touched and used, for what has to be known about it.
    doing: Doing,
    /// Who has chosen whether commands run in a sandbox.
    sandbox: Choice,
    /// Why the session starts, until its hooks have run.
    start: Option<Start>,
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
    /// A hook ended it, or held back what was said, for this reason.
    Stopped(String),
}

impl Agent {
    /// Puts an agent together.
    pub fn new(session: Session, mut parts: Parts) -> Result<Self, Error> {
        if !parts.tools.is_empty() {
            parts.tools.push(Arc::new(History::new(session.path())));
        }
        if let Some(known) = session.known_prologue() {
            // A session that began without them goes on without: others would cost all of its cache.
            let names: Vec<&str> = known.tools.iter().map(|tool| tool.name.as_str()).collect();
            parts.tools.retain(|tool| !crate::plan::NAMES.contains(&tool.name()) || names.contains(&tool.name()));
        }
        let mut parts = parts.without_forbidden_tools();
        parts.policy.rules.allow.extend(parts::kept(&session)?);
        let driver = Driver::new(session, parts)?;
        driver.tell(Event::SessionStarted {
            session: driver.session.id().to_owned(),
            file: driver.session.path().to_owned(),
            model: driver.parts.name.clone(),
            tools: driver.parts.tools.iter().map(|tool| tool.name().to_owned()).collect(),
            mode: driver.parts.policy.mode.get(),
        });
        Ok(Self {
            driver,
            inbox: Inbox::default(),
            knowledge: None,
            extraction: None,
            learnt: Vec::new(),
            dreaming: None,
            doing: Doing::default(),
            sandbox: Choice::BySettings,
            start: Some(Start::Startup),
        })
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.driver.session
    }

    /// Gives it instruction files and memory.
    #[must_use]
    pub fn with_knowledge(mut self, knowledge: Knowledge) -> Self {
        self.driver.memories = knowledge.memory_directory().map(Path::to_owned);
        self.knowledge = Some(knowledge);
        self
    }

    /// Says why the session starts, for the hooks that run then: with the first turn.
    #[must_use]
    pub fn starting(mut self, start: Start) -> Self {
        self.start = Some(start);
        self
    }

    /// Instruction files and memory.
    pub fn knowledge(&self) -> Option<&Knowledge> {
        self.knowledge.as_ref()
    }

    /// How it keeps within the window.
    pub fn layers(&self) -> &Layers {
        self.driver.layers()
    }

    /// What fills the window.
    pub fn filling(&self) -> Filling {
        Filling::of(self.session().log().view())
    }

    /// Compacts because the user asks for it.
    pub async fn compact(
        &mut self,
        instructions: Option<String>,
        reach: Reach,
        cancel: &CancellationToken,
    ) -> Result<Result<(), String>, Error> {
        self.driver.compact(instructions, reach, &mut self.knowledge, cancel).await
    }

    /// Compacts because the user asks for it, as a turn of its own.
    pub async fn compaction(&mut self, instructions: Option<String>, reach: Reach, cancel: &CancellationToken) -> Turn {
        let end = match self.compact(instructions, reach, cancel).await {
            Ok(Ok(())) => End::Ended(Ending::Answered),
            Ok(Err(_)) if cancel.is_cancelled() => End::Cancelled,
            Ok(Err(why)) => End::NoRoom(format!("not compacted: {why}")),
            Err(error) => End::NotWritten(error),
        };
        Turn { end, text: String::new(), rounds: 0, usage: Usage::default() }
    }

    /// What was spent, and what may still be.
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.driver.parts.ledger
    }

    /// The notes of its session.
    pub fn notes_path(&self) -> std::path::PathBuf {
        self.driver.notes_path()
    }

    /// Waits until no notes are being written, for those who have to know what came of them.
    pub async fn settled(&mut self) -> Result<(), Error> {
        self.driver.wait_for_notes().await
    }

    /// Where messages wait that come while a turn runs; each joins the next round.
    pub fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    /// How much it may do without asking. It can be changed while a turn runs.
    pub fn mode(&self) -> &LiveMode {
        &self.driver.parts.policy.mode
    }

    /// What it may do.
    pub fn policy_mut(&mut self) -> &mut Policy {
        &mut self.driver.parts.policy
    }

    /// Lets commands run in a sandbox from now on, or in none.
    pub fn set_sandbox(&mut self, sandbox: Option<Sandbox>, choice: Choice) {
        self.sandbox = choice;
        self.driver.scope.set_sandbox(sandbox.map(Arc::new));
    }

    /// The hooks that run.
    pub fn hooks(&self) -> &Hooks {
        &self.driver.parts.hooks
    }

    /// Where its tools run.
    pub fn scope(&self) -> &Scope {
        &self.driver.scope
    }

    /// The session, to write to.
    pub fn session_mut(&mut self) -> &mut Session {
        &mut self.driver.session
    }

    /// The request that would be sent now.
    pub fn request(&self) -> Option<Request> {
        self.driver.request()
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
        if let Err(error) = self.driver.ended(&turn.end, cancel).await {
            turn.end = End::NotWritten(error);
        }
        if let Some(knowledge) = &mut self.knowledge {
            let (session, model) = (&self.driver.session, self.driver.parts.name.clone());
            let origin = Origin {
                session: Some(session.id().to_owned()),
                message: session.log().tip().map(ToString::to_string),
                model: Some(model),
                at: Some(session.world().now()),
                agent: None,
            };
            knowledge.turn_ended(&self.driver.scope, &origin);
        }
        if matches!(turn.end, End::Ended(Ending::Answered))
            && let Err(error) = self.learn(Occasion::Turn)
        {
            turn.end = End::NotWritten(error);
        }
        if let Err(error) = self.dream().await {
            turn.end = End::NotWritten(error);
        }
        self.driver.tell(Event::TurnEnded { usage: turn.usage });
        turn
    }

    /// Runs a command the user typed. Nothing is asked and no model is called; the model sees command and output with
    /// the user's next words.
    pub async fn shell(&mut self, command: &str, cancel: &CancellationToken) -> Turn {
        let mut turn =
            Turn { end: End::Ended(Ending::Answered), text: String::new(), rounds: 0, usage: Usage::default() };
        let id = format!("shell-{}", self.session().world().fresh_id());
        let (tool, input) = ("Bash".to_owned(), serde_json::json!({"command": command}));
        self.driver.tell(Event::ToolStarted { id: id.clone(), tool: tool.clone(), input: input.clone() });
        let scope = self.driver.scope.clone().with_cancel(cancel.clone());
        let mut call = Call::new(tool.clone(), input);
        if scope.sandbox().is_some() {
            call.input["dangerouslyDisableSandbox"] = true.into(); // it is the model that is kept in there
        }
        let bash: [Arc<dyn Tool>; 1] = [Arc::new(Bash)]; // what the model may use is no limit to the user
        let output = run_all(vec![call], &bash, &scope, |_, _| {}).await.pop();
        let output = output.unwrap_or_else(|| Output::failed(NOT_RUN));
        turn.text = output.text();
        let shown = self.driver.bounded_output(&id, &turn.text);
        let text = format!("I ran a command.\n<command>{command}</command>\n<output>\n{shown}\n</output>");
        let body = Body::User { blocks: vec![Block::text(text)], source: Source::Injected };
        if let Err(error) = self.driver.session.append(body) {
            turn.end = End::NotWritten(error);
        }
        self.driver.tell(Event::ToolEnded { id, tool, output });
        turn
    }

    async fn steps(&mut self, said: Vec<Block>, cancel: &CancellationToken, turn: &mut Turn) -> Result<End, Error> {
        self.doing = Doing::default();
        if let Some(start) = self.start.take() {
            let words = self.driver.gate_start(&start, cancel).await?;
            self.driver.attach_words(words)?;
            let files = self.knowledge.as_ref().map(|known| known.instructions().files.clone()).unwrap_or_default();
            self.driver.loaded(&files, None, cancel).await?;
        }
        if let Some(why) = self.hear(said, cancel).await? {
            return Ok(End::Stopped(why));
        }
        let mut blocks = 0;
        let mut run = Run::new(self.driver.parts.limits);
        loop {
            if cancel.is_cancelled() {
                self.driver.interrupt(Vec::new())?;
                return Ok(End::Cancelled);
            }
            let mut step = run.next(self.session().log());
            if !matches!(step, Step::CallTools(_))
                && let Some(said) = self.inbox.next()
            {
                // What was said meanwhile joins this round; after an answer it begins a turn of its own.
                if matches!(step, Step::Done(_)) {
                    self.driver.answer_open_calls(NOT_RUN)?;
                    run = Run::new(self.driver.parts.limits);
                }
                step = Step::CallModel;
                let mut said = Some(said);
                while let Some(words) = said {
                    if let Some(why) = self.hear(words, cancel).await? {
                        self.driver.tell(Event::Warning(format!("what you said was held back by a hook: {why}")));
                    }
                    said = self.inbox.next();
                }
            }
            if matches!(step, Step::CallModel) {
                self.reload(cancel).await?;
                self.driver.look_at_files(cancel).await?;
                let meanwhile = self.driver.parts.hooks.said_meanwhile().await;
                self.driver.take_in(&meanwhile)?;
                self.driver.attach_words(meanwhile.context())?;
            }
            match step {
                Step::CallModel => match self.ask(run.rounds() + 1, cancel).await? {
                    Replied::NoRoom(why) => return Ok(End::NoRoom(why)),
                    Replied::Whole(reply) => {
                        turn.usage += reply.usage;
                        turn.text = text_of(&reply.blocks);
                        run.replied(&reply);
                        turn.rounds += 1;
                    }
                    Replied::Cancelled => return Ok(End::Cancelled),
                    Replied::Failed(error) => return Ok(End::Failed(error)),
                },
                Step::CallTools(calls) => {
                    let calls = self.driver.call_tools(calls, run.repeats(), cancel).await?;
                    self.touched(&calls, cancel).await?;
                    if let Some(why) = self.driver.take_stopped() {
                        return Ok(End::Stopped(why));
                    }
                }
                Step::Done(Ending::WindowFull) if self.driver.overflowed(&mut self.knowledge, cancel).await? => {
                    run.goes_on();
                }
                Step::Done(Ending::Answered) if self.driver.gate_end(&turn.text, &mut blocks, cancel).await? => {
                    run.goes_on();
                }
                Step::Done(ending) => {
                    self.driver.answer_open_calls(NOT_RUN)?;
                    self.driver.turn_ends(&mut self.knowledge, cancel).await?;
                    return Ok(End::Ended(ending));
                }
            }
        }
    }

    /// Asks the model, with what was recalled meanwhile.
    async fn ask(&mut self, round: u32, cancel: &CancellationToken) -> Result<Replied, Error> {
        if let Some(knowledge) = &mut self.knowledge {
            let chosen = knowledge.chosen().await;
            self.attach(chosen)?;
        }
        self.driver.ask(round, &mut self.knowledge, cancel).await
    }

    /// Takes in what was said, unless a hook holds it back; says why then.
    async fn hear(&mut self, said: Vec<Block>, cancel: &CancellationToken) -> Result<Option<String>, Error> {
        let text = text_of(&said);
        let words: Vec<Word> = match self.driver.gate_prompt(&text, cancel).await? {
            Ok(words) => words,
            Err(why) => return Ok(Some(why)),
        };
        let said = self.bounded(said);
        self.driver.turn_begins();
        self.take_in_learnt()?;
        if let Some(knowledge) = &mut self.knowledge {
            knowledge.remember(&self.driver.session);
        }
        if let Some(beginning) = self.knowledge.as_mut().and_then(Knowledge::beginning) {
            self.attach(vec![beginning])?;
        }
        let learnt = self.what_was_learnt();
        self.attach(learnt.into_iter().collect())?;
        let new_day = self.knowledge.as_mut().and_then(Knowledge::new_day);
        self.attach(new_day.into_iter().collect())?;
        self.driver.session.append(Body::User { blocks: said, source: Source::Said })?;
        self.driver.tell(Event::PromptSubmitted { line: self.session().log().tip().cloned(), text: text.clone() });
        let recalled = self.knowledge.as_mut().map(|knowledge| knowledge.said(&text, &self.doing, &self.driver.scope));
        self.attach(recalled.unwrap_or_default())?;
        self.driver.attach_words(words)?;
        Ok(None)
    }

    /// What the user said, where it would not fit the window: it goes to a file, and its beginning and end stay.
    fn bounded(&self, said: Vec<Block>) -> Vec<Block> {
        let (session, layers) = (self.session(), self.layers());
        let view = session.log().view();
        let before = view.prologue().map_or(0, |prologue| view.tally().of_prologue(prologue));
        let tokens = view.tally().estimate(said.iter().map(Block::size).sum());
        if !layers.spill || before + tokens <= layers.window.threshold(AutoCompact::On) {
            return said;
        }
        let (text, id) = (text_of(&said), format!("prompt-{}", session.world().fresh_id()));
        let Ok(path) = session.keep_result(&id, "txt", &text) else { return said };
        let kept = context::spill::long_prompt(&text, &path.display().to_string());
        let others = said.into_iter().filter(|block| *block.kind() != Kind::Text);
        std::iter::once(Block::text(kept)).chain(others).collect()
    }

    /// What the calls of a reply touched: its instructions are loaded, and the user hears of saved memories.
    async fn touched(&mut self, calls: &[Asked], cancel: &CancellationToken) -> Result<(), Error> {
        for call in calls {
            self.doing.tools.push(doing(call));
            let known = self.driver.parts.tools.iter().find(|known| known.name() == call.tool).cloned();
            let (subject, changes) = match &known {
                Some(tool) => (
                    tool.subject(&call.input, &self.driver.scope),
                    tool.changes(&call.input, &self.driver.scope).is_some(),
                ),
                None => continue,
            };
            let tools::Subject::Path { real, .. } = subject else { continue };
            self.doing.files.push(real.display().to_string());
            let Some(knowledge) = &mut self.knowledge else { continue };
            if knowledge.is_memory(&real) && changes {
                self.driver.tell(Event::MemorySaved { path: real.clone() });
                let warned = knowledge.wrote(&real);
                self.attach(warned.into_iter().collect())?;
            }
            let Some(knowledge) = &mut self.knowledge else { continue };
            let touched = knowledge.touched(&real);
            if let Some((files, _)) = &touched {
                self.driver.loaded(files, Some(&real), cancel).await?;
            }
            self.load(touched)?;
            self.ask_about_outside(&real, cancel).await?;
            for note in self.knowledge.as_mut().map(Knowledge::left_out).unwrap_or_default() {
                self.driver.tell(Event::Warning(note));
            }
        }
        let recalled = self.knowledge.as_mut().map(|knowledge| knowledge.does(&self.doing, &self.driver.scope));
        self.attach(recalled.unwrap_or_default())
    }

    /// Puts instruction files beside what was said.
    fn load(&mut self, loaded: Option<(Vec<Loaded>, Attached)>) -> Result<(), Error> {
        let Some((files, attached)) = loaded else { return Ok(()) };
        self.driver.tell(Event::InstructionsLoaded { files });
        self.attach(vec![attached])
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
            self.driver.attach(vec![one.block], &one.beside)?;
        }
        if !memories.is_empty() {
            self.driver.tell(Event::Recalled { memories });
        }
        Ok(())
    }

    /// Ends what the session started: commands that run in the background, and notes that are being written. What is
    /// written by now is taken in.
    pub async fn close(self) {
        self.leave(Leaving::Other).await;
    }

    /// The same, with why, for the hooks that run then.
    pub async fn leave(mut self, why: Leaving) {
        // A session in which nothing was said has not started.
        if self.start.is_none() {
            let _ = self.driver.hooked(&Happening::session_end(why), &CancellationToken::new()).await;
        }
        self.driver.parts.hooks.end();
        if let Some(extraction) = &mut self.extraction {
            extraction.stop();
        }
        let _ = self.take_in_learnt(); // there is nobody left to tell
        let now = CancellationToken::new();
        now.cancel();
        let _ = self.finish_dreams(Duration::ZERO, &now).await; // there is nobody left to tell
        self.driver.close().await;
    }
}

fn text_of(blocks: &[Block]) -> String {
    let texts: Vec<String> = blocks.iter().filter_map(Block::as_text).collect();
    texts.join("\n")
}

/// What a call does, in words: the tool's name, and the command it runs.
fn doing(call: &Asked) -> String {
    match call.input["command"].as_str() {
        Some(command) => format!("{} {command:.200}", call.tool),
        None => call.tool.clone(),
    }
}
