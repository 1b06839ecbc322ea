//! A running session: its log, its model, the scope of its tools, and its listeners.
//!
//! The driver and its parts share it: each uses what it needs, and keeps its own state elsewhere.

use std::path::{Path, PathBuf};

use context::Fact;
use context::account::ClearingFigures;
use context::spill::UnseenResult;
use session::{Error, LineMeta, Session};
use tools::Scope;
use transcript::block::Kind;
use transcript::line::{Body, TextSource};
use transcript::mark::{mark, mark_answered};
use transcript::{Block, Injected, Outcome, Prologue, Purpose, Request, tool_names};

use crate::event::Event;
use crate::gate::GateSite;
use crate::parts::{Consent, DriverParts, Lineage, Outlets, PromptParts, Talk, Workplace};
use crate::servers::LoadedTools;

/// Characters of the output of a command typed by the user that stay in view.
const SHELL_CHARACTERS: usize = 30_000;

/// A running session.
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
    /// Creates one, and returns its deciders. Logs the prologue if it is not there yet; a resumed session remembers the
    /// files it has seen and its working directory.
    pub(crate) fn new(mut session: Session, given: DriverParts) -> Result<(Self, Consent), Error> {
        let DriverParts { mut talk, prompt, work, consent, lineage, out } = given;
        talk.layers.cache_edits &= talk.model.edits_cache();
        session.use_estimator(talk.layers.estimator);
        let loaded = LoadedTools::of(&session, &work.tools, work.servers.as_ref());
        let prologue = prompt.prologue(&talk, &work, &session, (session.known_prologue(), loaded));
        let scope = work.scope(&session, &consent.policy);
        remember_files(&session, &scope);
        if session.log().view().prologue().map(|known| &**known) != Some(&prologue) {
            session.append(Body::Prologue(prologue))?;
        }
        Ok((Self { session, talk, prompt, work, lineage, out, scope }, consent))
    }

    /// The session, for the gate.
    pub(crate) fn site(&self) -> GateSite<'_> {
        let Self { session, scope, talk, work, lineage, out, .. } = self;
        GateSite { session, scope, talk, work, lineage, out }
    }

    /// Sends an event.
    pub(crate) fn tell(&self, event: Event) {
        (self.out.listener)(event);
    }

    /// Passes on the ledger's news, such as that background work is paused.
    pub(crate) fn tell_news(&self) {
        self.out.ledger.news().into_iter().for_each(|text| self.tell(Event::Warning(text)));
    }

    /// Savings and costs of clearing in this session; without dollars if the model's price is unknown.
    pub(crate) fn clearing_figures(&self) -> ClearingFigures {
        let clearing = &self.session.state().clearing;
        let unpriced = ClearingFigures { regrets: clearing.regrets, ..ClearingFigures::default() };
        self.talk.layers.price.map_or(unpriced, |price| clearing.figures(price))
    }

    /// Writes a fact to the log.
    pub(crate) fn record(&mut self, fact: Fact) -> Result<(), Error> {
        self.session.note(&serde_json::to_value(fact).unwrap_or_default())
    }

    /// Injects a text that nobody said.
    pub(crate) fn inject(&mut self, purpose: Purpose, text: &str) -> Result<(), Error> {
        self.session.inject(&Injected::new(purpose, text), LineMeta::default())?;
        Ok(())
    }

    /// The prologue; for a resumed session, as it was sent before.
    pub(crate) fn prologue(&self) -> Prologue {
        let loaded = LoadedTools::of(&self.session, &self.work.tools, self.work.servers.as_ref());
        self.prompt.prologue(&self.talk, &self.work, &self.session, (self.session.known_prologue(), loaded))
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

    /// The request of a fork over the items before an end, with breakpoints only where the cache is.
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

    /// The part of a typed command's output that stays in view; if it is too long, a file holds all of it.
    pub(crate) fn bounded_output(&self, id: &str, text: &str) -> String {
        let result = Block::tool_result(id, &[Block::text(text)], Outcome::Done);
        let limit = self.talk.layers.spill.then_some(SHELL_CHARACTERS);
        let fresh = UnseenResult { id, tool: tool_names::BASH, result: &result, limit };
        match context::spill::choose(&[fresh], usize::MAX).into_iter().find(|spilled| spilled.file.is_some()) {
            None => text.to_owned(),
            Some(spilled) => match self.session.keep_result(id, "txt", text) {
                Ok(path) => spilled.replacement(&path.display().to_string()),
                Err(error) => spilled.truncated(&error.to_string()),
            },
        }
    }

    /// Answers calls that never ran.
    pub(crate) fn answer_open_calls(&mut self, text: &str) -> Result<(), Error> {
        for call in self.session.log().view().open_calls() {
            if let Kind::ToolUse { id, .. } = call.kind() {
                let result = Block::tool_result(id, &[Block::text(text)], Outcome::Failed);
                self.session.append(Body::User { blocks: vec![result], source: TextSource::Direct })?;
            }
        }
        Ok(())
    }
}

/// Restores the seen files and the working directory of a resumed session, as far as they are inside the working
/// directories.
fn remember_files(session: &Session, scope: &Scope) {
    let inside = |path: &Path| {
        let real = files::real(path).unwrap_or_default();
        scope.directories().iter().any(|directory| real.starts_with(directory))
    };
    for meta in session.line_metas() {
        if let Some(seen) = meta.seen.filter(|seen| inside(&seen.path))
            && let Ok(hash) = seen.hash.parse()
        {
            scope.note(&seen.path, files::Stamp { modified: None, len: seen.len, hash });
        }
        if let Some(directory) = meta.directory.filter(|directory| inside(directory)) {
            scope.set_directory(directory);
        }
    }
}
