//! The driver of a conversation: a session, a model, and the layers that keep the one within the window of the other.
//!
//! It sends the view, logs the reply, runs its calls, and makes room before each request. Everything around it
//! (approvers, knowledge, incoming messages) belongs to the agent; a subagent owns a driver of its own. Its parts share
//! the live session (`live`) and keep their own state: cache checks (`cache_watch`), side work (`side_work`), the
//! listing of agents (`agent_listing`).

mod agent_listing;
mod ask_model;
mod cache_watch;
mod called_skills;
mod calls;
mod collapse_ahead;
mod gated;
mod guarded_paths;
mod media;
mod memory_places;
mod notes;
mod run_layers;
mod shorten;
mod side_work;
mod task_reminder;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use context::Layers;
use memory::store::IndexUpkeep;
use session::{Error, Session};
use settings::permission::NoApprover;
use tokio_util::sync::CancellationToken;
use tools::Output;
use transcript::Request;

use crate::gate::Gate;
use crate::live::LiveSession;
use crate::parts::DriverParts;

pub(crate) use agent_listing::{AgentListing, SubagentHost};
pub(crate) use ask_model::ReplyResult;
use cache_watch::CacheWatch;
pub(crate) use memory_places::{MemoryOwner, MemoryPlaces};
use side_work::SideWork;
pub(crate) use task_reminder::TaskReminder;

/// A memory saved or removed by the conversation's own model.
pub(crate) enum MemoryChange {
    Saved(PathBuf),
    Removed(PathBuf),
}

/// A session, a model, and the layers between them.
pub struct Driver {
    pub(crate) live: LiveSession,
    pub(crate) gate: Gate,
    cache: CacheWatch,
    side: SideWork,
    pub(crate) listing: AgentListing,
    /// Number of regrets already reported.
    reported_regrets: u32,
    /// True if a request of this turn was shortened because the provider refused it.
    reacted: bool,
    /// Memory directories that it may write to.
    pub(crate) memories: MemoryPlaces,
    /// Memories saved or removed that are not yet reported.
    pub(crate) memory_changes: Vec<MemoryChange>,
}

impl Driver {
    /// Creates a driver. Logs the prologue if it is not there yet; a resumed session remembers the files it has seen
    /// and its working directory.
    pub fn new(session: Session, given: DriverParts) -> Result<Self, Error> {
        let (live, consent) = LiveSession::new(session, given)?;
        let cache = CacheWatch::of(&live.session);
        let (side, listing) = (SideWork::default(), AgentListing::default());
        let reported_regrets = live.session.state().clearing.regrets;
        Ok(Self {
            live,
            gate: Gate::new(consent),
            cache,
            side,
            listing,
            reported_regrets,
            reacted: false,
            memories: MemoryPlaces::default(),
            memory_changes: Vec::new(),
        })
    }

    /// Sets the directory of an owner's memories, or none.
    pub(crate) fn keep_memories(&mut self, directory: Option<&Path>, indexing: IndexUpkeep, owner: MemoryOwner) {
        self.memories.keep(owner, directory, indexing, &self.live.session);
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.live.session
    }

    /// The layers that keep it within the window.
    pub fn layers(&self) -> &Layers {
        &self.live.talk.layers
    }

    /// The request that would be sent now.
    pub fn request(&self) -> Option<Request> {
        self.live.request()
    }

    /// The notes of this session.
    pub fn notes_path(&self) -> PathBuf {
        self.live.notes_path()
    }

    /// Starts a new turn.
    pub(crate) fn turn_begins(&mut self) {
        self.reacted = false;
    }

    /// Waits until no notes are being written, unless they are stuck.
    pub(crate) async fn wait_for_notes(&mut self) -> Result<(), Error> {
        self.side.wait_for_notes(&mut self.live).await
    }

    /// Makes sure that the listing of agents is in view: a layer may have removed it.
    pub(crate) fn list_agents(&mut self) -> Result<(), Error> {
        self.listing.show(&mut self.live.session, &self.gate.consent.policy.rules)
    }

    /// Ends what it started: background commands and the writing of notes. Work that has finished is taken in.
    pub(crate) async fn close(&mut self) {
        self.side.close(&mut self.live).await;
        let jobs = self.live.scope.jobs();
        jobs.stop_all().await;
        let made = Output { made: jobs.take_made(), ..Output::done("", "") };
        if !made.made.is_empty() {
            self.gate.consent.approver = Arc::new(NoApprover);
            guarded_paths::settle(&mut self.gate, &self.live.site(), made, &CancellationToken::new()).await;
        }
    }
}
