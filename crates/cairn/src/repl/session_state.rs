//! The session that is open: its agent, and what is known of it while the agent works.
//!
//! All of it is new where another session is opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::servers::SessionServers;
use engine::skills::Skills;
use engine::{Agent, QueuedMessages};
use settings::{BypassPermission, Notifications};
use tools::Scope;

use super::background_list::Background;
use super::learnt_memory::{self, LearntMemory};
use super::status_line::StatusLine;
use super::status_line_input::SessionFigures;
use crate::event_text;
use crate::setup::PreparedSession;

/// The index of memories, which is neither a memory nor an instruction file.
const INDEX: &str = "MEMORY.md";

/// A session, and what belongs to it alone.
pub(super) struct SessionState {
    /// Not here while it works.
    pub(super) agent: Option<Agent>,
    pub(super) inbox: QueuedMessages,
    pub(super) status: StatusLine,
    /// Figures for the custom status line and for notifications.
    pub(super) figures: SessionFigures,
    pub(super) signals: Notifications,
    /// The agent's working directories.
    pub(super) scope: Scope,
    /// Availability of the mode `bypassPermissions`.
    pub(super) bypass: BypassPermission,
    /// The memory directory, if memory is on.
    pub(super) memory: Option<PathBuf>,
    /// Memories learnt in this session, the newest first.
    pub(super) learnt: Vec<LearntMemory>,
    /// The skills that can be called.
    pub(super) skills: Option<Arc<Skills>>,
    /// The MCP servers.
    pub(super) servers: Option<Arc<SessionServers>>,
    /// Names of other servers in the settings.
    pub(super) providers: Vec<String>,
    /// Background work.
    pub(super) background: Background,
}

impl SessionState {
    /// Facts found for the model: the branch, instruction files, memories.
    pub(super) fn found(&self) -> Vec<String> {
        let branch = session::home::git_branch(&self.scope.directory());
        let knowledge = self.agent.as_ref().and_then(|agent| agent.knowledge());
        let is_index = |path: &Path| path.file_name().is_some_and(|name| name == INDEX);
        let instructions =
            knowledge.map_or(0, |known| known.instructions().files.iter().filter(|file| !is_index(&file.path)).count());
        let is_memory = |entry: &files::DirectoryEntry| {
            let name = entry.name.to_string_lossy();
            name.ends_with(".md") && name != INDEX
        };
        let listed = self.memory.as_ref().and_then(|folder| files::list(folder).ok()).unwrap_or_default();
        let memories = listed.iter().filter(|entry| is_memory(entry)).count();
        let count = |number, one, many| (number > 0).then(|| event_text::count(number, one, many));
        let facts = [
            Some(branch).filter(|branch| !branch.is_empty()),
            count(instructions, "instruction file", "instruction files"),
            count(memories, "memory", "memories"),
        ];
        facts.into_iter().flatten().collect()
    }

    /// The session's file, also while the agent works.
    pub(super) fn file(&self) -> PathBuf {
        self.background.folder.with_extension("jsonl")
    }

    /// With an agent that was just made.
    pub(super) fn of(ready: PreparedSession) -> Self {
        let agent = &ready.agent;
        Self {
            status: StatusLine::of(&ready),
            figures: SessionFigures::new(),
            signals: agent.signals().clone(),
            scope: agent.scope().clone(),
            bypass: ready.bypass,
            inbox: agent.inbox().clone(),
            memory: agent.knowledge().and_then(|knowledge| knowledge.memory_directory().map(Path::to_owned)),
            learnt: learnt_memory::of(agent.session()),
            skills: agent.skills().cloned(),
            servers: agent.servers().cloned(),
            providers: ready.providers,
            background: Background::of(agent, ready.mailing),
            agent: Some(ready.agent),
        }
    }
}
