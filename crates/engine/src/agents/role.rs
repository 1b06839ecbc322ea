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
    let memory = parts.contacts.agents.as_ref().and_then(|children| super::memory::place(&definition, children));
    if let Some(memory) = &memory {
        super::memory::add_tools(&mut definition);
        parts.prompt.sections.push(memory.prompt());
        parts.consent.policy.rules.allow.extend(memory.rules(ground)?);
    }
    let definition = &definition;
    let of_a_team = |tool: &Arc<dyn Tool>| {
        tool.name() == <SendMessage as tools::Typed>::NAME || settings::agents::OF_PLANS.contains(&tool.name())
    };
    let (kept, others): (Vec<_>, Vec<_>) = std::mem::take(&mut parts.work.tools).into_iter().partition(of_a_team);
    let (offered, narrowed) = narrow(definition, &others, ground)?;
    parts.work.tools = offered.into_iter().chain(kept).collect();
    parts.contacts.agents = parts.contacts.agents.take().filter(|_| offers(definition, tool_names::AGENT));
    parts.consent.policy.narrowed = parts.consent.policy.narrowed.below(narrowed);
    if let Some(mode) = definition.mode {
        parts.consent.policy.mode.narrow(mode);
    }
    parts.talk.limits.max_rounds = parts.talk.limits.max_rounds.into_iter().chain(definition.max_turns).min();
    parts.talk.limits.budget = parts.talk.limits.budget.into_iter().chain(definition.budget).min();
    parts.talk.effort = definition.effort.or(parts.talk.effort);
    parts.prompt.system = Some(built_in::prompt(definition, &session::folder_of(session), session)?);
    Ok(memory.map(|memory| memory.directory))
}
