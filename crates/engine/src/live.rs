//! A session at work: its log, the model it talks to, where its tools run, and who hears of it.
//!
//! The driver and what it is made of share it: each takes what it needs of it and leaves its own state out.

use std::path::{Path, PathBuf};

use context::Fact;
use context::account::ClearingFigures;
use context::spill::Fresh;
use session::{Error, LineMeta, Session};
use tools::Scope;
use transcript::block::Kind;
use transcript::line::{Body, TextSource};
use transcript::mark::{mark, mark_answered};
use transcript::{Block, Injected, Outcome, Prologue, Purpose, Request, tool_names};

use crate::event::Event;
use crate::gate::GateSite;
use crate::parts::{Consent, DriverParts, Lineage, Outlets, PromptParts, Talk, Workplace};

/// So much of what a command prints that the user typed stays in view, in characters.
const SHELL_CHARACTERS: usize = 30_000;

/// A session at work.
pub(crate) struct LiveSession {
    pub(crate) session: Session,
    pub(crate) talk: Talk,
    pub(crate) prompt: PromptParts,
    pub(crate) work: Workplace,
    pub(crate) lineage: Lineage,
    pub(crate) out: Outlets,
    pub(crate) scope: Scope,
}

impl LiveSession {
    /// Puts one together, and says who decides in it. What stands before the messages is written to the log where it is not there yet; a resumed
    /// session remembers the files it has seen and where it worked.
    pub(crate) fn new(mut session: Session, given: DriverParts) -> Result<(Self, Consent), Error> {
        let DriverParts { mut talk, prompt, work, consent, lineage, out } = given;
        talk.layers.cache_edits &= talk.model.edits_cache();
        session.use_estimator(talk.layers.estimator);
        let prologue = prompt.prologue(&talk, &work, &session, session.known_prologue());
        let scope = work.scope(&session, &consent.policy);
        remember_files(&session, &scope);
        if session.log().view().prologue().map(|known| &**known) != Some(&prologue) {
            session.append(Body::Prologue(prologue))?;
        }
        Ok((Self { session, talk, prompt, work, lineage, out, scope }, consent))
    }

    /// The session, as the gate is asked about it.
    pub(crate) fn site(&self) -> GateSite<'_> {
        let Self { session, scope, talk, work, lineage, out, .. } = self;
        GateSite { session, scope, talk, work, lineage, out }
    }

    /// Tells who listens.
    pub(crate) fn tell(&self, event: Event) {
        (self.out.listener)(event);
    }

    /// Tells what the ledger has to say: that work in the background pauses, say.
    pub(crate) fn tell_news(&self) {
        self.out.ledger.news().into_iter().for_each(|text| self.tell(Event::Warning(text)));
    }

    /// What clearing saved and cost in this session; without dollars where the model's price is not known.
    pub(crate) fn clearing_figures(&self) -> ClearingFigures {
        let clearing = &self.session.state().clearing;
        let unpriced = ClearingFigures { regrets: clearing.regrets, ..ClearingFigures::default() };
        self.talk.layers.price.map_or(unpriced, |price| clearing.figures(price, self.talk.ttl))
    }

    /// Writes a fact into the log.
    pub(crate) fn record(&mut self, fact: Fact) -> Result<(), Error> {
        self.session.note(&serde_json::to_value(fact).unwrap_or_default())
    }

    /// Puts in a text that nobody said.
    pub(crate) fn inject(&mut self, purpose: Purpose, text: &str) -> Result<(), Error> {
        self.session.inject(&Injected::new(purpose, text), LineMeta::default())?;
        Ok(())
    }

    /// What stands before the messages; of a session that goes on, as it was sent before.
    pub(crate) fn prologue(&self) -> Prologue {
        self.prompt.prologue(&self.talk, &self.work, &self.session, self.session.known_prologue())
    }

    /// The request that would be sent now.
    pub(crate) fn request(&self) -> Option<Request> {
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

    /// The request of a fork about the items before one, with breakpoints only where the cache is.
    pub(crate) fn fork_request(&self, end: usize) -> Option<Request> {
        let view = self.session.log().view();
        let prologue = view.prologue()?.clone();
        let messages = view.messages_before(end);
        let marks = mark_answered(&prologue, &messages, &view.seams(), self.talk.ttl);
        Some(Request { prologue, messages, marks })
    }

    /// The notes of this session.
    pub(crate) fn notes_path(&self) -> PathBuf {
        self.session.folder().join("session-memory").join("summary.md")
    }

    /// The part that stays in view of a command's output that the user typed; all of it is in a file where it is too long.
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

    /// Answers what was called and never ran.
    pub(crate) fn answer_open_calls(&mut self, text: &str) -> Result<(), Error> {
        for call in self.session.log().view().open_calls() {
            if let Kind::ToolUse { id, .. } = call.kind() {
                let result = Block::tool_result(id, &[Block::text(text)], Outcome::Failed);
                self.session.append(Body::User { blocks: vec![result], source: TextSource::Said })?;
            }
        }
        Ok(())
    }
}

/// What a resumed session says was seen, or where it says the work went on, counts inside the working directories.
fn remember_files(session: &Session, scope: &Scope) {
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
}
