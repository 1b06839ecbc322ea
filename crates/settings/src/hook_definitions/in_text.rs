//! Hooks that a text other than a settings file brings: the definition of an agent, or a skill.

use std::path::Path;

use serde_json::Value;
use tools::permission::Places;

use super::Hook;
use crate::keys::SettingKey;
use crate::{SetValue, ValueOrigin, ValueStatus};

/// The valid hooks of an object that is written as in the settings, and warnings about the others. Paths in conditions
/// start from the directory.
pub fn in_text(value: &Value, origin: &ValueOrigin, directory: &Path) -> (Vec<Hook>, Vec<String>) {
    let (mut hooks, mut told) = (Vec::new(), Vec::new());
    let Some(moments) = value.as_object() else { return (hooks, vec!["hooks must be an object".to_owned()]) };
    let places = Places {
        directory: directory.to_owned(),
        settings: directory.to_owned(),
        home: None,
        file: origin.file.clone(),
    };
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
            let value = part.of(groups).filter(|_| fits);
            let set = |value| SetValue { key, part, value, origin: origin.clone(), standing: ValueStatus::Counts };
            match value.map(set).and_then(|set| Hook::of(&set, &places)) {
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
