//! The agent: a driver, and everything around it.

mod agent_servers;
mod agent_skills;
mod attachments;
mod changed_files;
mod incoming;
mod knowledge;
mod learn;
mod parent_snapshot;
mod parts;
mod reload;
mod reports;
mod server_mentions;
mod turn;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use context::account::ClearingFigures;
use context::standing_instructions::StandingInstruction;
use context::{CompactionReach, Fact, Layers, keep};
use learning::dream::session_dreams::SessionDreams;
use learning::extract::Extraction;
use learning::knowledge::Knowledge;
use learning::ledger::{LABEL, Ledger};
use memory::store::IndexUpkeep;
use session::window_usage::WindowUsage;
use session::{Error, Session};
use settings::hook_definitions::Hook;
use settings::permission::{ChosenBy, Policy, Respondent, SharedMode};
use tokio_util::sync::CancellationToken;
use tools::Scope;
use tools::sandbox::Sandbox;
use transcript::block::Kind;
use transcript::line::{Body, TextSource};
use transcript::window::AutoCompact;
use transcript::{Block, Request};

use crate::activity::ActivityReporter;
use crate::agents::Subagents;
use crate::configuration::Configuration;
use crate::driver::{Driver, MemoryOwner, MemoryPlaces, ReplyResult, SubagentHost, TaskReminder};
use crate::event::Event;
use crate::hooks::{ExitReason, HookCallbacks, HookInput, HookMessage, Hooks, SessionStart};
use crate::journal::Journal;
use crate::live::LiveSession;
use crate::parts::DriverParts;
use crate::prompt::scratchpad;
use crate::queued_messages::QueuedMessages;
use crate::run::{RunEnd, TurnEnd};
use crate::servers::{ServerTools, SessionServers};
use crate::skills::Skills;
use agent_servers::AgentServers;
use agent_skills::AgentSkills;
use changed_files::ChangedFiles;
use knowledge::AgentKnowledge;
pub use mail::{Mail, Neighbours};
use reports::SubagentReports;

pub use attachments::AttachmentSource;
pub use parts::{Contacts, NoSubagents, Parts};
pub use reload::{ChangedSettings, Reload};
pub use turn::Turn;

/// Name of the agent's scratchpad folder, within the session folder.
const SCRATCHPAD: &str = "scratchpad";

/// An agent: a driver, its knowledge, and the messages that arrive while it works.
pub struct Agent {
    driver: Driver,
    contacts: Contacts,
    /// Last configuration from settings, flags and location.
    configuration: Configuration,
    reload: Option<Reload>,
    inbox: QueuedMessages,
    mail: Mail,
    known: AgentKnowledge,
    extraction: Option<Extraction>,
    /// Memories saved by learning since the user's last message.
    learnt: Vec<String>,
    dreaming: Option<SessionDreams>,
    /// Source of the sandbox setting: the settings or the user.
    sandbox: ChosenBy,
    /// Reason for the session's start, until its hooks have run.
    start: Option<SessionStart>,
    /// Reason for having no subagents, if it has none.
    alone: Option<NoSubagents>,
    reports: SubagentReports,
    tasks: TaskReminder,
    skills: AgentSkills,
    servers: AgentServers,
    changed_files: ChangedFiles,
    /// The text whose files are attached.
    attaches: AttachmentSource,
    /// Journal of events.
    journal: Journal,
}

impl Agent {
    /// Creates an agent.
    pub fn new(session: Session, parts: Parts) -> Result<Self, Error> {
        let (mut parts, alone) = parts.fitted(&session);
        // Those that it sends out share it.
        let own = session.folder().join(SCRATCHPAD);
        parts.work.scratchpad =
            Some(parts.work.scratchpad.unwrap_or_else(|| scratchpad(own, session.known_prologue())));
        parts.consent.policy.rules.allow.extend(parts::kept(&session, parts.work.scratchpad.as_deref())?);
        let path = parts.out.signals.event_log.clone();
        let own = || Journal::new(session.id(), session.world().clone(), path);
        let journal = parts.out.journal.take().unwrap_or_else(own);
        if parts.lineage.sent.is_none() {
            // News of a subagent reaches the listener of the session it works for.
            parts.out.listener = journal.hearing(parts.out.listener);
        }
        if let Some(teammates) = &parts.contacts.teammates {
            teammates.answered_by(parts.consent.approver.clone(), parts.out.listener.clone());
        }
        if let Some(subagents) = &parts.contacts.agents {
            subagents.held_to(&parts.consent.policy.rules);
        }
        let Parts { talk, prompt, work, consent, lineage, contacts, out, configuration, reload } = parts;
        let mut driver = Driver::new(session, DriverParts { talk, prompt, work, consent, lineage, out })?;
        driver.listing.subagents = contacts.agents.clone().map(|subagents| subagents as Arc<dyn SubagentHost>);
        driver.live.tell(Event::SessionStarted {
            session: driver.live.session.id().to_owned(),
            file: driver.live.session.path().to_owned(),
            model: driver.live.talk.name.clone(),
            tools: driver.live.work.tools.iter().map(|tool| tool.name().to_owned()).collect(),
            mode: driver.gate.consent.policy.mode.get(),
        });
        let reports = SubagentReports::of(contacts.agents.clone(), &mut driver.live)?;
        Ok(Self {
            driver,
            contacts,
            configuration,
            reload,
            inbox: QueuedMessages::default(),
            mail: Mail::default(),
            known: AgentKnowledge::default(),
            extraction: None,
            learnt: Vec::new(),
            dreaming: None,
            sandbox: ChosenBy::Settings,
            alone,
            reports,
            tasks: TaskReminder::default(),
            skills: AgentSkills::default(),
            servers: AgentServers::default(),
            changed_files: ChangedFiles::default(),
            attaches: AttachmentSource::default(),
            start: Some(SessionStart::Startup),
            journal,
        })
    }

    /// The journal of events. Whatever reports events from outside the agent does so through this.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.driver.live.session
    }

    /// Adds instruction files and memory.
    #[must_use]
    pub fn with_knowledge(mut self, knowledge: Knowledge) -> Self {
        self.driver.keep_memories(knowledge.memory_directory(), knowledge.indexing(), MemoryOwner::Users);
        self.known.knowledge = Some(knowledge);
        self
    }

    /// Sets the reason for the session's start, for the hooks that run with the first turn.
    #[must_use]
    pub fn starting(mut self, start: SessionStart) -> Self {
        self.start = Some(start);
        self
    }

    /// Instruction files and memory.
    pub fn knowledge(&self) -> Option<&Knowledge> {
        self.known.knowledge.as_ref()
    }

    /// Notes that the user edited an instruction file or a memory by hand.
    pub fn edited_by_hand(&mut self, path: &Path) {
        if let Some(knowledge) = &mut self.known.knowledge {
            knowledge.edited_by_hand(path);
        }
    }

    /// The layers that keep it within the window.
    pub fn layers(&self) -> &Layers {
        self.driver.layers()
    }

    /// Breakdown of the window's contents.
    pub fn window_usage(&self) -> WindowUsage {
        WindowUsage::of(self.session().log().view())
    }

    /// Savings and costs of clearing so far.
    pub fn clearing_figures(&self) -> ClearingFigures {
        self.driver.live.clearing_figures()
    }

    /// Compacts at the user's request.
    pub async fn compact(
        &mut self,
        instructions: Option<String>,
        reach: CompactionReach,
        cancel: &CancellationToken,
    ) -> Result<Result<(), String>, Error> {
        self.starts(cancel).await?;
        self.driver.compact(instructions, reach, &mut self.known.knowledge, cancel).await
    }

    /// Compacts at the user's request, as a turn of its own.
    pub async fn compaction(
        &mut self,
        instructions: Option<String>,
        reach: CompactionReach,
        cancel: &CancellationToken,
    ) -> Turn {
        let end = match self.compact(instructions, reach, cancel).await {
            Ok(Ok(())) => TurnEnd::Ended(RunEnd::Answered),
            Ok(Err(_)) if cancel.is_cancelled() => TurnEnd::Cancelled,
            Ok(Err(why)) => TurnEnd::NoRoom(format!("not compacted: {why}")),
            Err(error) => TurnEnd::NotWritten(error),
        };
        Turn::new(end)
    }

    /// The ledger: money spent, and budgets.
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.driver.live.out.ledger
    }

    /// The notes of its session.
    pub fn notes_path(&self) -> std::path::PathBuf {
        self.driver.live.notes_path()
    }

    /// Waits until no notes are being written, for callers that need their result.
    pub async fn settled(&mut self) -> Result<(), Error> {
        self.driver.wait_for_notes().await
    }

    /// Messages that arrived while a turn runs; each joins the next round.
    pub fn inbox(&self) -> &QueuedMessages {
        &self.inbox
    }

    /// The permission mode. It can be changed while a turn runs.
    pub fn mode(&self) -> &SharedMode {
        &self.driver.gate.consent.policy.mode
    }

    /// The permission policy.
    pub fn policy_mut(&mut self) -> &mut Policy {
        &mut self.driver.gate.consent.policy
    }

    /// Turns the sandbox for commands on or off from now on.
    pub fn set_sandbox(&mut self, sandbox: Option<Sandbox>, choice: ChosenBy) {
        self.sandbox = choice;
        self.driver.live.scope.set_sandbox(sandbox.map(Arc::new));
    }

    /// Notification settings.
    pub fn signals(&self) -> &settings::Notifications {
        &self.driver.live.out.signals
    }

    /// The definitions it can start subagents from, and its subagents.
    pub fn agents(&self) -> Option<&Arc<Subagents>> {
        self.contacts.agents.as_ref()
    }

    /// The skills that can be called.
    pub fn skills(&self) -> Option<&Arc<Skills>> {
        self.driver.live.work.skills.as_ref()
    }

    /// The MCP servers.
    pub fn servers(&self) -> Option<&Arc<SessionServers>> {
        self.driver.live.work.servers.as_ref().map(ServerTools::servers)
    }

    /// Reason for having no subagents, if it has none.
    pub fn alone(&self) -> Option<NoSubagents> {
        self.alone
    }

    /// The model's name.
    pub(crate) fn model(&self) -> &str {
        &self.driver.live.talk.name
    }

    /// A reporter of this agent's activity, fed by its requests where they are kept for that.
    pub fn labels(&self) -> ActivityReporter {
        let LiveSession { session, talk, out, lineage, .. } = &self.driver.live;
        ActivityReporter {
            latest: lineage.latest.clone().unwrap_or_default(),
            model: talk.model.clone(),
            small: talk.small.clone(),
            ledger: out.ledger.clone(),
            world: session.world().clone(),
            every: self.contacts.label_interval,
            known: 0,
            used: Vec::new(),
        }
    }

    /// Records the tokens that labels used.
    pub fn account_for_labels(&mut self, labels: ActivityReporter) -> Result<(), Error> {
        let used = labels.used.into_iter().filter(|(_, usage)| usage.total() > 0);
        used.map(|(model, usage)| (LABEL.to_owned(), model, usage))
            .try_for_each(|(agent, model, usage)| self.driver.live.record(Fact::Side { agent, model, usage }))
    }

    /// Lets the agent keep its own memories in a directory; text with a secret in it is refused.
    #[must_use]
    pub fn remembering(mut self, directory: &Path) -> Self {
        self.driver.keep_memories(Some(directory), IndexUpkeep::Kept, MemoryOwner::Agents);
        self
    }

    /// Lets the agent save to the memory directories of the agent that sent it out, in the same way.
    #[must_use]
    pub(crate) fn sharing_memories(mut self, parent: &MemoryPlaces) -> Self {
        self.driver.memories.inherit(parent);
        self
    }

    /// Returns whether the model thinks before it answers.
    pub fn thinks(&self) -> bool {
        self.driver.live.talk.thinking.is_some_and(|budget| budget > 0)
    }

    /// Tells hooks that the user has been idle for a while.
    pub fn waits(&self) {
        self.driver.gate.notify(&self.driver.live.site(), "Cairn is waiting for your input", "idle_prompt");
    }

    /// The hooks that run.
    pub fn hooks(&self) -> &Hooks {
        &self.driver.gate.consent.hooks
    }

    /// Adds hooks of the embedding program, after all others.
    pub fn call_back(&mut self, hooks: Vec<Hook>, program: Arc<dyn HookCallbacks>) {
        self.driver.gate.consent.hooks = self.driver.gate.consent.hooks.clone().driven(hooks, program);
    }

    /// The scope in which its tools run.
    pub fn scope(&self) -> &Scope {
        &self.driver.live.scope
    }

    /// The session, for writing.
    pub fn session_mut(&mut self) -> &mut Session {
        &mut self.driver.live.session
    }

    /// The request that would be sent now.
    pub fn request(&self) -> Option<Request> {
        self.driver.live.request()
    }

    /// Asks the model, with the memories recalled so far.
    async fn ask(&mut self, round: u32, cancel: &CancellationToken) -> Result<ReplyResult, Error> {
        if let Some(knowledge) = &mut self.known.knowledge {
            let chosen = knowledge.chosen().await;
            self.known.attach(chosen, &mut self.driver.live)?;
        }
        self.driver.list_agents()?;
        self.skills.show(&mut self.driver.live)?;
        let has_own = self.driver.live.work.servers.as_ref().is_some_and(ServerTools::has_own);
        if has_own || self.driver.gate.consent.approver.respondent() != Respondent::Person {
            self.servers.wait(&self.driver.live).await;
        }
        self.servers.show(&mut self.driver.live)?;
        if let Some(teammates) = &self.contacts.teammates {
            teammates.judged_by(self.driver.gate.consent.policy.clone(), self.driver.live.scope.clone());
        }
        self.driver.ask(round, &mut self.known.knowledge, cancel).await
    }

    /// Takes in the user's message, unless a hook blocks it, or what it calls cannot be called; returns that end if so.
    async fn hear(&mut self, said: Vec<Block>, cancel: &CancellationToken) -> Result<Option<TurnEnd>, Error> {
        let text = text_of(&said);
        let words: Vec<HookMessage> = match self.driver.gate_prompt(&text, cancel).await? {
            Ok(words) => words,
            Err(why) => return Ok(Some(TurnEnd::Stopped(why))),
        };
        let called = match agent_skills::skills_in(self, &text, cancel).await {
            Ok(called) => called,
            Err(why) => return Ok(Some(TurnEnd::NotCalled(why))),
        };
        let prompt = match server_mentions::prompt_in(self, &text, cancel).await {
            Ok(prompt) => prompt,
            Err(why) => return Ok(Some(TurnEnd::NotCalled(why))),
        };
        let mut attachments = attachments::attachments_of(self, &text, cancel).await?;
        let mut blocks = std::mem::take(&mut attachments.media);
        blocks.extend(prompt.media);
        blocks.extend(self.bounded(said));
        let said = blocks;
        self.begin()?;
        let before = self.standing_instructions().to_vec();
        self.driver.live.session.append(Body::User { blocks: said, source: TextSource::Direct })?;
        self.tell_of_standing(&before);
        self.driver.live.tell(Event::PromptSubmitted { line: self.session().log().tip().cloned(), text: text.clone() });
        attachments::attach(self, attachments)?;
        if let Some((text, meta)) = prompt.text {
            self.driver.live.session.inject(&text, meta)?;
        }
        called.into_iter().try_for_each(|skill| agent_skills::put_in(self, skill))?;
        self.known.recall_for(&text, &mut self.driver.live)?;
        self.changed_files.tell(&mut self.driver.live)?;
        self.driver.attach_words(words)?;
        self.reports.point_at_agents(&text, &mut self.driver.live)?;
        Ok(None)
    }

    /// Attaches the files that this text names from now on.
    pub fn attach_files_of(&mut self, source: AttachmentSource) {
        self.attaches = source;
    }

    /// The user's standing instructions that are still in force.
    pub fn standing_instructions(&self) -> &[StandingInstruction] {
        &self.session().state().standing
    }

    /// Lifts a standing instruction.
    pub fn lift(&mut self, text: &str) -> Result<(), Error> {
        self.driver.live.record(Fact::Lifted { text: text.to_owned() })
    }

    /// Tells the user which standing instructions their message has lifted, and whether there are more than are kept in
    /// view.
    fn tell_of_standing(&self, before: &[StandingInstruction]) {
        let now = self.standing_instructions();
        let is_lifted = |one: &&StandingInstruction| now.iter().all(|other| other.text != one.text);
        for one in before.iter().filter(is_lifted) {
            self.driver.live.tell(Event::Warning(format!("no longer in force, as you said: {}", one.on_one_line())));
        }
        let left_out = |all: &[StandingInstruction]| all.len() - keep::fitting(all).len();
        let gone = left_out(now);
        if gone > left_out(before) {
            let text = format!("{gone} of your standing instructions do not fit into view: /keep shows them");
            self.driver.live.tell(Event::Warning(text));
        }
    }

    /// Adds the text that has to precede the user's message.
    fn begin(&mut self) -> Result<(), Error> {
        self.driver.turn_begins();
        self.tell_of_teammates()?;
        self.take_in_learnt()?;
        self.known.begin(&mut self.driver.live)?;
        if let (Some(subagents), Some(knowledge)) = (&self.contacts.agents, &self.known.knowledge) {
            subagents.instruct(Some(knowledge.for_agents()));
        }
        let learnt = self.what_was_learnt();
        self.known.attach(learnt, &mut self.driver.live)?;
        let new_day = self.known.knowledge.as_mut().and_then(Knowledge::new_day);
        self.known.attach(new_day, &mut self.driver.live)?;
        self.driver.list_agents()
    }

    /// Bounds a message that would not fit the window: it is written to a file, and its beginning and end stay.
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

    /// Ends what the session started: background commands and the writing of notes. Work that has finished is taken in.
    pub async fn close(self) {
        self.leave(ExitReason::Other).await;
    }

    /// Like [`close`](Self::close), with a reason for the hooks that run at the end.
    pub async fn leave(mut self, why: ExitReason) {
        self.contacts.teammates.iter().for_each(|teammates| teammates.leave());
        // A session in which nothing was said has not started.
        self.reports.end_agents(&mut self.driver.live).await;
        if self.driver.live.lineage.sent.is_none() {
            if self.start.is_none() {
                let _ = self.driver.hooked(&HookInput::session_end(why), &CancellationToken::new()).await;
            }
            self.driver.gate.consent.hooks.end().await;
            if let Some(servers) = self.servers() {
                servers.close().await;
            }
        }
        if let Some(extraction) = &mut self.extraction {
            extraction.stop().await;
        }
        let _ = self.take_in_learnt(); // there is nobody left to tell
        if let Some(extraction) = &mut self.extraction {
            extraction.leave(&self.driver.live.session);
        }
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
