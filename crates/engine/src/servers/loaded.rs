//! Definitions of servers' tools in the requests of a session.
//!
//! A tool that was loaded is declared beside the prefix, from the result that refers to it, in the bytes in which it was first
//! declared. A compaction takes that result out of view and writes the prefix anew anyway: then the tool joins the others.

use std::sync::Arc;

use session::Session;
use tools::Tool;
use transcript::message::ToolDefinition;

use super::ServerTools;

/// The beginning of the names of servers' tools.
const SERVERS: &str = "mcp__";
/// The most characters of definitions that join the others at a compaction: 5,000 tokens.
const MOST_CHARACTERS: usize = 20_000;

/// Definitions of servers' tools, besides those that are always there.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoadedTools {
    /// Declared like the others.
    pub(crate) declared: Vec<ToolDefinition>,
    /// Declared beside the prefix.
    pub(crate) deferred: Vec<ToolDefinition>,
}

impl LoadedTools {
    /// Those of a session now.
    pub(crate) fn of(session: &Session, tools: &[Arc<dyn Tool>], servers: Option<&ServerTools>) -> Self {
        let is_own = |name: &str| tools.iter().any(|tool| tool.name() == name);
        let known = session.known_prologue();
        let before = known.iter().flat_map(|known| &known.tools);
        let declared: Vec<ToolDefinition> =
            before.filter(|tool| tool.name.starts_with(SERVERS) && !is_own(&tool.name)).cloned().collect();
        let mut deferred: Vec<ToolDefinition> = Vec::new();
        for name in session.line_metas_in_view().flat_map(|line| line.loaded) {
            let is_there = |known: &[ToolDefinition]| known.iter().any(|tool| tool.name == name);
            if is_own(&name) || is_there(&declared) || is_there(&deferred) {
                continue;
            }
            let sent = known.and_then(|known| known.loaded.iter().find(|tool| tool.name == name).cloned());
            deferred.extend(sent.or_else(|| Some(servers?.find(&name)?.definition())));
        }
        Self { declared, deferred }
    }

    /// Those after a compaction: what was loaded before and is out of view joins the others, the newest first where there is
    /// no room for all.
    pub(crate) fn after_compaction(session: &Session, tools: &[Arc<dyn Tool>], servers: Option<&ServerTools>) -> Self {
        let mut now = Self::of(session, tools, servers);
        let mut room = MOST_CHARACTERS;
        let before = session.known_prologue().iter().flat_map(|known| &known.loaded).cloned().collect::<Vec<_>>();
        for tool in before.into_iter().rev() {
            let length = tool.description.len() + tool.input_schema.to_string().len();
            let can_run = servers.is_some_and(|servers| servers.find(&tool.name).is_some());
            if can_run && length <= room && now.deferred.iter().all(|other| other.name != tool.name) {
                room -= length;
                now.declared.push(tool);
            }
        }
        now.declared.sort_by(|one, other| one.name.cmp(&other.name));
        now
    }
}
