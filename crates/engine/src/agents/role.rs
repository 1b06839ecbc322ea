//! A session that is an agent of a type from its beginning: a teammate with a definition.
//!
//! The definition takes away from what the session may, and adds nothing to it. What it needs to work in a team stays.

use std::path::Path;
use std::sync::Arc;

use tools::Tool;

use super::built_in;
use super::definition::Definition;
use super::narrow::{narrow, offers};
use crate::agent::Parts;
use crate::error::Error;
use crate::mail::SendMessage;
use crate::settings::Ground;

/// Makes of a session, by its file, what a definition says. The model is chosen before.
pub fn take_role(parts: &mut Parts, definition: &Definition, ground: &Ground<'_>, session: &Path) -> Result<(), Error> {
    let of_a_team = |tool: &Arc<dyn Tool>| {
        tool.name() == <SendMessage as tools::Typed>::NAME || crate::plan::NAMES.contains(&tool.name())
    };
    let (kept, others): (Vec<_>, Vec<_>) = std::mem::take(&mut parts.tools).into_iter().partition(of_a_team);
    let (offered, narrowed) = narrow(definition, &others, ground)?;
    parts.tools = offered.into_iter().chain(kept).collect();
    parts.agents = parts.agents.take().filter(|_| offers(definition, "Agent"));
    parts.policy.narrowed = parts.policy.narrowed.below(narrowed);
    if let Some(mode) = definition.mode {
        let stricter = parts.policy.mode.below(mode).get();
        parts.policy.mode.set(stricter);
    }
    parts.limits.max_rounds = parts.limits.max_rounds.into_iter().chain(definition.max_turns).min();
    parts.limits.budget = parts.limits.budget.into_iter().chain(definition.budget).min();
    parts.effort = definition.effort.or(parts.effort);
    parts.system = Some(built_in::prompt(definition, &session.with_extension(""), session)?);
    Ok(())
}
