//! The driver of a conversation: a session, a model, and the layers that keep one within the window of the other.
//!
//! It sends the view and writes what comes back, runs the calls of a reply, and makes room before each request. What
//! goes on around it (who may be asked, what is known beside, what is said meanwhile) is the agent's; a child agent owns
//! a driver of its own.

mod account;
mod calls;
mod carry;
mod gated;
mod listing;
mod made;
mod media;
mod notes;
mod react;
mod reply;
mod shorten;
mod staging;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use context::breaks::Detector;
use context::spill::Fresh;
use context::{Fact, Layers, Occasion};
use learning::background::Background;
use learning::knowledge::Knowledge;
use session::{Error, Session};
use settings::permission::Nobody;
use tokio_util::sync::CancellationToken;
use tools::{Output, Scope};
use transcript::block::Kind;
use transcript::line::{Body, Source};
use transcript::mark::{mark, mark_answered};
use transcript::{Block, Id, Outcome, Prologue, Request, tool_names};

use crate::event::Event;
use crate::event::Listener;
use crate::gate::Gate;
use crate::parts::{Consent, Lineage, Outlets, PromptParts, Talk, Workplace};

use gated::gate;
pub(crate) use listing::Subagents;
pub(crate) use reply::Replied;

/// What is still under way when a session ends is waited for so long.
const CLOSING: Duration = Duration::ZERO;
/// So much of what a command prints that the user typed stays in view, in characters.
const SHELL_CHARACTERS: usize = 30_000;

/// What came of work beside the conversation.
#[derive(Debug)]
enum Ended {
    Notes(notes::Updated),
    Collapse(staging::Summarised),
}

/// What a driver is put together from.
pub struct DriverParts {
    /// The model that is talked to, and how.
    pub talk: Talk,
    /// What the system prompt is made of.
    pub prompt: PromptParts,
    /// The tools, and where they run.
    pub work: Workplace,
    /// Who decides whether something happens.
    pub consent: Consent,
    /// Whose child it is, where another sent it out.
    pub lineage: Lineage,
    /// Where what happens is told and written down.
    pub out: Outlets,
}

/// A session, a model, and the layers between them.
pub struct Driver {
    pub(crate) session: Session,
    pub(crate) talk: Talk,
    pub(crate) prompt: PromptParts,
    pub(crate) work: Workplace,
    pub(crate) lineage: Lineage,
    pub(crate) out: Outlets,
    pub(crate) gate: Gate,
    pub(crate) scope: Scope,
    detector: Detector,
    /// Lines of the log that the detector knows of.
    accounted: usize,
    background: Background<Ended>,
    /// Files that were read to be shown again.
    read: Vec<(PathBuf, files::Stamp)>,
    /// Whether a request of this turn was made shorter because the provider refused it.
    reacted: bool,
    /// Where memories lie: nothing that holds a secret is written there.
    pub(crate) memories: Option<PathBuf>,
    /// Its subagents, where it may have any.
    pub(crate) subagents: Option<Arc<dyn Subagents>>,
    /// The line that lists them, as it was last seen.
    pub(crate) listed: Option<Id>,
}

impl Driver {
    /// Puts one together. What stands before the messages is written to the log where it is not there yet; a resumed
    /// session remembers the files it has seen and where it worked.
    pub fn new(mut session: Session, given: DriverParts) -> Result<Self, Error> {
        let DriverParts { mut talk, prompt, work, consent, lineage, out } = given;
        talk.layers.cache_edits &= talk.model.edits_cache();
        session.use_estimator(talk.layers.estimator);
        let prologue = prompt.prologue(&talk, &work, &session, session.known_prologue());
        let scope = work.scope(&session, &consent.policy);
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
            session.append(Body::Prologue(prologue))?;
        }
        let accounted = session.log().lines().len();
        let (detector, background) = (Detector::default(), Background::default());
        Ok(Self {
            session,
            talk,
            prompt,
            work,
            lineage,
            out,
            gate: Gate::new(consent),
            scope,
            detector,
            accounted,
            background,
            read: Vec::new(),
            reacted: false,
            memories: None,
            subagents: None,
            listed: None,
        })
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// How it keeps within the window.
    pub fn layers(&self) -> &Layers {
        &self.talk.layers
    }

    /// Tells who listens.
    pub(crate) fn tell(&self, event: Event) {
        let listener: &Listener = &self.out.listener;
        listener(event);
    }

    /// Tells what the ledger has to say: that work in the background pauses, say.
    pub(crate) fn tell_news(&self) {
        self.out.ledger.news().into_iter().for_each(|text| self.tell(Event::Warning(text)));
    }

    /// A new turn begins.
    pub(crate) fn turn_begins(&mut self) {
        self.reacted = false;
    }

    /// What stands before the messages; of a session that goes on, as it was sent before.
    pub(crate) fn prologue(&self) -> Prologue {
        self.prompt.prologue(&self.talk, &self.work, &self.session, self.session.known_prologue())
    }

    /// The request that would be sent now.
    pub fn request(&self) -> Option<Request> {
        let view = self.session.log().view();
        let prologue = view.prologue()?.clone();
        let messages = view.messages();
        let mut marks = mark(&prologue, &messages, &view.seams(), self.talk.ttl);
        if self.talk.layers.cache_diagnosis {
            marks.after = self.session.log().lines().iter().rev().find_map(|line| match &line.body {
                Body::Assistant { id, .. } if !line.sidechain => Some(id.clone()),
                _ => None,
            });
        }
        let request = Request { prologue, messages, marks };
        Some(match &self.lineage.branch {
            Some(branch) => learning::fork::following(branch, request),
            None => request,
        })
    }

    /// What a fork about the items before one sends, with breakpoints only where the cache is.
    pub(crate) fn fork_request(&self, end: usize) -> Option<Request> {
        let view = self.session.log().view();
        let prologue = view.prologue()?.clone();
        let messages = view.messages_before(end);
        let marks = mark_answered(&prologue, &messages, &view.seams(), self.talk.ttl);
        Some(Request { prologue, messages, marks })
    }

    /// The notes of this session.
    pub fn notes_path(&self) -> PathBuf {
        self.session.folder().join("session-memory").join("summary.md")
    }

    /// Writes a fact into the log.
    pub(crate) fn record(&mut self, fact: Fact) -> Result<(), Error> {
        self.session.note(&serde_json::to_value(fact).unwrap_or_default())
    }

    /// What stays in view of a command's output that the user typed; all of it is in a file where it is too long.
    pub(crate) fn bounded_output(&self, id: &str, text: &str) -> String {
        let result = Block::tool_result(id, &[Block::text(text)], Outcome::Done);
        let limit = self.talk.layers.spill.then_some(SHELL_CHARACTERS);
        let fresh = Fresh { id, tool: tool_names::BASH, result: &result, limit };
        match context::spill::choose(&[fresh], usize::MAX).into_iter().find(|spilled| spilled.file.is_some()) {
            None => text.to_owned(),
            Some(spilled) => match self.session.keep_result(id, "txt", text) {
                Ok(path) => spilled.replacement(&path.display().to_string()),
                Err(error) => spilled.truncated(&error.to_string()),
            },
        }
    }

    /// The turn is over: what may be done now is done.
    pub(crate) async fn turn_ends(
        &mut self,
        knowledge: &mut Option<Knowledge>,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        self.walk(&Occasion::End, knowledge, cancel).await?;
        self.tell_news();
        Ok(())
    }

    /// Takes in what is over in the background.
    async fn take_in_ended(&mut self) -> Result<(), Error> {
        for ended in self.background.take_ended().await {
            self.took_in(ended)?;
        }
        self.tell_news();
        Ok(())
    }

    fn took_in(&mut self, ended: Ended) -> Result<(), Error> {
        match ended {
            Ended::Notes(updated) => self.updated_notes(updated),
            Ended::Collapse(summarised) => self.summarised(summarised),
        }
    }

    /// Answers what was called and never ran.
    pub(crate) fn answer_open_calls(&mut self, text: &str) -> Result<(), Error> {
        for call in self.session.log().view().open_calls() {
            if let Kind::ToolUse { id, .. } = call.kind() {
                let result = Block::tool_result(id, &[Block::text(text)], Outcome::Failed);
                self.session.append(Body::User { blocks: vec![result], source: Source::Said })?;
            }
        }
        Ok(())
    }

    /// Ends what it started: commands that run in the background, and notes that are being written. What is written by
    /// now is taken in.
    pub(crate) async fn close(&mut self) {
        for ended in self.background.close(CLOSING).await {
            let _ = self.took_in(ended); // there is nobody left to tell
        }
        self.scope.jobs().stop_all().await;
        let made = Output { made: self.scope.jobs().take_made(), ..Output::done("", "") };
        if !made.made.is_empty() {
            self.gate.consent.approver = Arc::new(Nobody);
            let scope = self.scope.clone();
            self.settle_made(made, &scope, &CancellationToken::new()).await;
        }
    }
}
