//! Hooks of a definition: they run while its agent works, through the same gate as all others.
//!
//! `Stop` here means the end of the agent. The hooks also apply to subagents it starts, since none has more permissions
//! than its parent; only `Stop` is the agent's alone.

use std::path::Path;

use super::agent_definition::Definition;
use super::registry::DefinitionSource;
use crate::ValueOrigin;
use crate::hook_definitions::{Hook, HookEvent, Matcher, in_text};

/// The valid hooks of a definition, and warnings about the others.
pub(super) fn hooks_of(definition: &Definition) -> (Vec<Hook>, Vec<String>) {
    hooks_in(definition, Path::new("/"))
}

/// The same for a working directory, from which paths in conditions start.
pub fn hooks_in(definition: &Definition, directory: &Path) -> (Vec<Hook>, Vec<String>) {
    let Some(value) = &definition.hooks else { return (Vec::new(), Vec::new()) };
    let source = match definition.source {
        DefinitionSource::BuiltIn | DefinitionSource::Plugin | DefinitionSource::User => crate::SettingsSource::User,
        DefinitionSource::Project => crate::SettingsSource::Project,
        DefinitionSource::Flag => crate::SettingsSource::Flag,
        DefinitionSource::Policy => crate::SettingsSource::Managed,
    };
    let origin = ValueOrigin { source, file: definition.file.clone(), line: 1, column: 1 };
    let (mut hooks, told) = in_text(value, &origin, directory);
    for hook in hooks.iter_mut().filter(|hook| hook.hook_event == HookEvent::Stop) {
        (hook.hook_event, hook.matcher) = (HookEvent::SubagentStop, Matcher::Names(vec![definition.name.clone()]));
    }
    (hooks, told)
}
