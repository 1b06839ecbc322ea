//! A session that is an agent of a type from its beginning: a teammate with a definition.
//!
//! The definition takes away from what the session may, and adds nothing to it. What it needs to work in a team stays.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use session::Error;
use settings::Ground;
use settings::agents::{Definition, built_in, narrow, offers};
use tools::Tool;
use transcript::tool_names;

use crate::agent::Parts;
use crate::send_message::SendMessage;

/// Makes of a session, by its file, what a definition says. The model is chosen before. Says where it keeps memories of its own,
/// if it does.
pub fn take_role(
    parts: &mut Parts,
    definition: &Definition,
    ground: &Ground<'_>,
    session: &Path,
) -> Result<Option<PathBuf>, Error> {
    let mut definition = definition.clone();
    let memory = parts.agents.as_ref().and_then(|children| super::memory::place(&definition, children));
    if let Some(memory) = &memory {
        super::memory::add_tools(&mut definition);
        parts.sections.push(memory.prompt());
        parts.policy.rules.allow.extend(memory.rules(ground)?);
    }
    let definition = &definition;
    let of_a_team = |tool: &Arc<dyn Tool>| {
        tool.name() == <SendMessage as tools::Typed>::NAME || settings::agents::OF_PLANS.contains(&tool.name())
    };
    let (kept, others): (Vec<_>, Vec<_>) = std::mem::take(&mut parts.tools).into_iter().partition(of_a_team);
    let (offered, narrowed) = narrow(definition, &others, ground)?;
    parts.tools = offered.into_iter().chain(kept).collect();
    parts.agents = parts.agents.take().filter(|_| offers(definition, tool_names::AGENT));
    parts.policy.narrowed = parts.policy.narrowed.below(narrowed);
    if let Some(mode) = definition.mode {
        parts.policy.mode.narrow(mode);
    }
    parts.limits.max_rounds = parts.limits.max_rounds.into_iter().chain(definition.max_turns).min();
    parts.limits.budget = parts.limits.budget.into_iter().chain(definition.budget).min();
    parts.effort = definition.effort.or(parts.effort);
    parts.system = Some(built_in::prompt(definition, &session::folder_of(session), session)?);
    Ok(memory.map(|memory| memory.directory))
}
