//! The agent: a driver, and what goes on around it.

mod dreams;
mod extraction;
mod incoming;
mod outside;
mod parts;
mod reload;
mod sending;
mod shell;
mod touched;
mod turn;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use context::{Layers, Reach};
use memory::rank::Doing;
use session::filling::Filling;
use session::history::History;
use session::{Error, Session};
use settings::hooks::Hook;
use settings::permission::{ChosenBy, LiveMode, Policy};
use tokio_util::sync::CancellationToken;
use tools::sandbox::Sandbox;
use tools::{Scope, Tool, Typed};
use transcript::block::Kind;
use transcript::line::{Body, Source};
use transcript::window::AutoCompact;
use transcript::{Block, Request, Usage};

use crate::agents::InTeam;
use crate::agents::{SendOut, knowing};
use crate::configuration::Configuration;
use crate::driver::{Driver, DriverParts, Replied, Subagents};
use crate::event::Event;
use crate::hooks::{CallsBack, Happening, Hooks, Leaving, Start, Word};
use crate::inbox::Inbox;
use crate::journal::Journal;
use crate::prompt::scratchpad;
use crate::run::{End, Ending};
use crate::send_message::SendMessage;
use learning::dream::beside::Dreaming;
use learning::extract::Extraction;
use learning::knowledge::Knowledge;
use learning::ledger::Ledger;
pub use mail::{Mail, Neighbours};

pub use parts::{Contacts, Parts};
pub use reload::{Changed, Reload};
pub use sending::Alone;
pub use turn::Turn;

/// The folder for files of its own, beside what else a session keeps.
const SCRATCHPAD: &str = "scratchpad";

/// An agent: a driver, what it knows, and what is said to it meanwhile.
pub struct Agent {
    driver: Driver,
    contacts: Contacts,
    /// What settings, flags and place decided last.
    said: Configuration,
    reload: Option<Reload>,
    inbox: Inbox,
    mail: Mail,
    knowledge: Option<Knowledge>,
    extraction: Option<Extraction>,
    /// The memories that were saved by learning since the user last said something.
    learnt: Vec<String>,
    dreaming: Option<Dreaming>,
    /// What the turn has touched and used, for what has to be known about it.
    doing: Doing,
    /// Who has chosen whether commands run in a sandbox.
    sandbox: ChosenBy,
    /// Why the session starts, until its hooks have run.
    start: Option<Start>,
    /// Why it sends nobody out, where it does not.
    alone: Option<Alone>,
    /// What agents used that were sent out in this turn, in tokens.
    below: u64,
    /// What is written down of what happens.
    journal: Journal,
}

impl Agent {
    /// Puts an agent together.
    pub fn new(session: Session, mut parts: Parts) -> Result<Self, Error> {
        if let (Some(post), Some(children)) = (&parts.contacts.post, &parts.contacts.agents) {
            post.sends_out(&(children.clone() as Arc<dyn Neighbours>));
        }
        if !parts.work.tools.is_empty() {
            parts.work.tools.push(Arc::new(History::new(session.path())));
            if let Some(children) = &parts.contacts.agents {
                parts.work.tools = knowing(parts.work.tools, children);
                let tool: Arc<dyn Tool> = Arc::new(SendOut::of(children.clone()));
                parts.work.tools.push(match parts.contacts.teammates.clone() {
                    Some(teammates) => Arc::new(InTeam::new(tool, teammates, children.clone())),
                    None => tool,
                });
            }
        }
        let mut alone = parts.contacts.agents.is_none().then_some(Alone::NotGiven);
        if let Some(known) = session.known_prologue().filter(|_| session.idle() < parts.talk.ttl.duration()) {
            // While its cache may hold, a session that began without them goes on without: others would cost all of it.
            let names: Vec<&str> = known.tools.iter().map(|tool| tool.name.as_str()).collect();
            parts.work.tools.retain(|tool| !added_later(tool.name()) || names.contains(&tool.name()));
            if !names.contains(&SendOut::NAME) && parts.contacts.agents.take().is_some() {
                alone = Some(Alone::BeganWithout(parts.talk.ttl.duration()));
            }
        }
        let mut parts = parts.without_forbidden_tools();
        if !parts.work.tools.iter().any(|tool| tool.name() == SendOut::NAME) && parts.contacts.agents.take().is_some() {
            alone = Some(Alone::Forbidden);
        }
        // Those that it sends out share it.
        let own = session.folder().join(SCRATCHPAD);
        parts.work.scratchpad =
            Some(parts.work.scratchpad.unwrap_or_else(|| scratchpad(own, session.known_prologue())));
        parts.consent.policy.rules.allow.extend(parts::kept(&session, parts.work.scratchpad.as_deref())?);
        let path = parts.out.signals.event_log.clone();
        let own = || Journal::new(session.id(), session.world().clone(), path);
        let journal = parts.out.journal.take().unwrap_or_else(own);
        if parts.lineage.sent.is_none() {
            // What an agent tells that was sent out reaches that of the session it works for.
            parts.out.listener = journal.hearing(parts.out.listener);
        }
        if let Some(teammates) = &parts.contacts.teammates {
            teammates.answered_by(parts.consent.approver.clone(), parts.out.listener.clone());
        }
        if let Some(children) = &parts.contacts.agents {
            children.held_to(&parts.consent.policy.rules);
        }
        let Parts { talk, prompt, work, consent, lineage, contacts, out, said, reload } = parts;
        let mut driver = Driver::new(session, DriverParts { talk, prompt, work, consent, lineage, out })?;
        driver.subagents = contacts.agents.clone().map(|children| children as Arc<dyn Subagents>);
        driver.tell(Event::SessionStarted {
            session: driver.session.id().to_owned(),
            file: driver.session.path().to_owned(),
            model: driver.talk.name.clone(),
            tools: driver.work.tools.iter().map(|tool| tool.name().to_owned()).collect(),
            mode: driver.gate.consent.policy.mode.get(),
        });
        let mut agent = Self {
            driver,
            contacts,
            said,
            reload,
            inbox: Inbox::default(),
            mail: Mail::default(),
            knowledge: None,
            extraction: None,
            learnt: Vec::new(),
            dreaming: None,
            doing: Doing::default(),
            sandbox: ChosenBy::Settings,
            alone,
            below: 0,
            start: Some(Start::Startup),
            journal,
        };
        agent.tell_of_lost()?;
        Ok(agent)
    }

    /// What is written down of what happens: those who tell something beside it go through this.
    pub fn journal(&self) -> &Journal {
        &self.journal
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

    /// The user has changed an instruction file or a memory by hand.
    pub fn edited_by_hand(&mut self, path: &Path) {
        if let Some(knowledge) = &mut self.knowledge {
            knowledge.edited_by_hand(path);
        }
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
        self.starts(cancel).await?;
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
        Turn { end, text: String::new(), rounds: 0, usage: Usage::default(), below: 0 }
    }

    /// What was spent, and what may still be.
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.driver.out.ledger
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
        &self.driver.gate.consent.policy.mode
    }

    /// What it may do.
    pub fn policy_mut(&mut self) -> &mut Policy {
        &mut self.driver.gate.consent.policy
    }

    /// Lets commands run in a sandbox from now on, or in none.
    pub fn set_sandbox(&mut self, sandbox: Option<Sandbox>, choice: ChosenBy) {
        self.sandbox = choice;
        self.driver.scope.set_sandbox(sandbox.map(Arc::new));
    }

    /// How it makes itself known.
    pub fn signals(&self) -> &settings::Signals {
        &self.driver.out.signals
    }

    /// Whether the model thinks before it answers.
    pub fn thinks(&self) -> bool {
        self.driver.talk.thinking.is_some_and(|budget| budget > 0)
    }

    /// The user has said nothing for a while: hooks are told.
    pub fn waits(&self) {
        self.driver.gate.notify(&self.driver.site(), "Cairn is waiting for your input", "idle_prompt");
    }

    /// The hooks that run.
    pub fn hooks(&self) -> &Hooks {
        &self.driver.gate.consent.hooks
    }

    /// Lets the program that drives it have hooks of its own, after the others.
    pub fn call_back(&mut self, hooks: Vec<Hook>, program: Arc<dyn CallsBack>) {
        self.driver.gate.consent.hooks = self.driver.gate.consent.hooks.clone().driven(hooks, program);
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

    /// Asks the model, with what was recalled meanwhile.
    async fn ask(&mut self, round: u32, cancel: &CancellationToken) -> Result<Replied, Error> {
        if let Some(knowledge) = &mut self.knowledge {
            let chosen = knowledge.chosen().await;
            self.attach(chosen)?;
        }
        self.driver.list_agents()?;
        if let Some(teammates) = &self.contacts.teammates {
            teammates.judged_by(self.driver.gate.consent.policy.clone(), self.driver.scope.clone());
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
        self.begin()?;
        self.driver.session.append(Body::User { blocks: said, source: Source::Said })?;
        self.driver.tell(Event::PromptSubmitted { line: self.session().log().tip().cloned(), text: text.clone() });
        let recalled = self.knowledge.as_mut().map(|knowledge| knowledge.said(&text, &self.doing, &self.driver.scope));
        self.attach(recalled.unwrap_or_default())?;
        self.driver.attach_words(words)?;
        self.point_at_agents(&text)?;
        Ok(None)
    }

    /// Puts before what is said what has to stand there.
    fn begin(&mut self) -> Result<(), Error> {
        self.driver.turn_begins();
        self.tell_of_teammates()?;
        self.take_in_learnt()?;
        if let Some(knowledge) = &mut self.knowledge {
            knowledge.remember(&self.driver.session);
        }
        let by_hand = self.knowledge.as_mut().and_then(Knowledge::changed_by_hand);
        self.load(by_hand)?;
        if let Some(beginning) = self.knowledge.as_mut().and_then(Knowledge::beginning) {
            self.attach(vec![beginning])?;
        }
        if let (Some(children), Some(knowledge)) = (&self.contacts.agents, &self.knowledge) {
            children.instruct(Some(knowledge.for_agents()));
        }
        let learnt = self.what_was_learnt();
        self.attach(learnt.into_iter().collect())?;
        let new_day = self.knowledge.as_mut().and_then(Knowledge::new_day);
        self.attach(new_day.into_iter().collect())?;
        self.driver.list_agents()
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

    /// Ends what the session started: commands that run in the background, and notes that are being written. What is
    /// written by now is taken in.
    pub async fn close(self) {
        self.leave(Leaving::Other).await;
    }

    /// The same, with why, for the hooks that run then.
    pub async fn leave(mut self, why: Leaving) {
        self.contacts.teammates.iter().for_each(|teammates| teammates.leave());
        // A session in which nothing was said has not started.
        self.end_agents().await;
        if self.driver.lineage.sent.is_none() {
            if self.start.is_none() {
                let _ = self.driver.hooked(&Happening::session_end(why), &CancellationToken::new()).await;
            }
            self.driver.gate.consent.hooks.end().await;
        }
        if let Some(extraction) = &mut self.extraction {
            extraction.stop().await;
        }
        let _ = self.take_in_learnt(); // there is nobody left to tell
        let now = CancellationToken::new();
        now.cancel();
        let _ = self.finish_dreams(Duration::ZERO, &now).await; // there is nobody left to tell
        self.driver.close().await;
    }
}

/// Whether a session may have begun without a tool that others have.
fn added_later(tool: &str) -> bool {
    settings::agents::OF_PLANS.contains(&tool) || [SendOut::NAME, SendMessage::NAME].contains(&tool)
}

fn text_of(blocks: &[Block]) -> String {
    let texts: Vec<String> = blocks.iter().filter_map(Block::as_text).collect();
    texts.join("\n")
}
