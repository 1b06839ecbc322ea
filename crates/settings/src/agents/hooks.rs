//! Hooks of a definition: they run while its agent works, through the same gate as all others.
//!
//! `Stop` here means the end of the agent. The hooks also apply to subagents it starts, since none has more permissions
//! than its parent; only `Stop` is the agent's alone.

use std::path::Path;

use serde_json::Value;
use tools::permission::Places;

use super::definition::Definition;
use super::registry::DefinitionSource;
use crate::hooks::{Hook, HookEvent, Matcher};
use crate::keys::SettingKey;
use crate::kind::ValuePart;
use crate::{SetValue, ValueOrigin, ValueStatus};

/// The valid hooks of a definition, and warnings about the others.
pub(super) fn hooks_of(definition: &Definition) -> (Vec<Hook>, Vec<String>) {
    hooks_in(definition, Path::new("/"))
}

/// The same for a working directory, from which paths in conditions start.
pub fn hooks_in(definition: &Definition, directory: &Path) -> (Vec<Hook>, Vec<String>) {
    let (mut hooks, mut told) = (Vec::new(), Vec::new());
    let Some(value) = &definition.hooks else { return (hooks, told) };
    let Some(moments) = value.as_object() else { return (hooks, vec!["hooks must be an object".to_owned()]) };
    for (name, groups) in moments {
        let Some(key) = SettingKey::named(&format!("hooks.{name}")) else {
            told.push(format!("there is no hook event {name}"));
            continue;
        };
        let Some(parts) = key.kind.parts(groups) else {
            told.push(format!("hooks.{name} must be {}", key.kind.words()));
            continue;
        };
        for (part, fits) in parts {
            match part.of(groups).filter(|_| fits).and_then(|hook| one(definition, key, part, hook, directory)) {
                Some((hook, said)) => {
                    told.extend(said.into_iter().map(|text| format!("a {name} hook: {text}")));
                    hooks.push(hook);
                }
                None => told.push(format!("a {name} hook must be {}", key.kind.part_words())),
            }
        }
    }
    (hooks, told)
}

fn one(
    definition: &Definition,
    key: &'static SettingKey,
    part: ValuePart,
    value: Value,
    directory: &Path,
) -> Option<(Hook, Vec<String>)> {
    let source = match definition.source {
        DefinitionSource::BuiltIn | DefinitionSource::Plugin | DefinitionSource::User => crate::SettingsSource::User,
        DefinitionSource::Project => crate::SettingsSource::Project,
        DefinitionSource::Flag => crate::SettingsSource::Flag,
        DefinitionSource::Policy => crate::SettingsSource::Managed,
    };
    let origin = ValueOrigin { source, file: definition.file.clone(), line: 1, column: 1 };
    let places = Places {
        directory: directory.to_owned(),
        settings: directory.to_owned(),
        home: None,
        file: definition.file.clone(),
    };
    let (mut hook, told) = Hook::of(&SetValue { key, part, value, origin, standing: ValueStatus::Counts }, &places)?;
    if hook.moment == HookEvent::Stop {
        (hook.moment, hook.matcher) = (HookEvent::SubagentStop, Matcher::Names(vec![definition.name.clone()]));
    }
    Some((hook, told))
}
