//! Permission rules from settings and flags.

use std::path::Path;

use tools::permission::{BadRule, Places, Rule, Rules};

use super::keys::{self, SettingKey};
use super::{SettingsFinding, ValueOrigin, Weight};
use crate::effective_values::{BasePaths, EffectiveValues, settings_root};

/// Directories from which the paths in a file's rules start.
pub(super) fn places(origin: &ValueOrigin, base_paths: &BasePaths<'_>) -> Places {
    Places {
        directory: base_paths.directory.to_owned(),
        settings: origin.file.as_deref().map_or_else(|| base_paths.directory.to_owned(), settings_root),
        home: base_paths.home.map(Path::to_owned),
        file: origin.file.clone(),
    }
}

/// The permission rules; invalid ones become findings.
pub(super) fn rules_of(
    counting: &EffectiveValues<'_>,
    base_paths: &BasePaths<'_>,
    findings: &mut Vec<SettingsFinding>,
) -> Rules {
    let mut of = |key: &SettingKey| {
        let mut rules = Vec::new();
        for set in counting.of(key) {
            match Rule::parse(set.value.as_str().unwrap_or_default(), &places(&set.origin, base_paths)) {
                Ok(rule) => rules.push(rule),
                Err(error) => {
                    findings.push(SettingsFinding::at(&set.origin, Weight::Error, key.name, error.to_string()));
                }
            }
        }
        rules
    };
    Rules { allow: of(&keys::ALLOW), ask: of(&keys::ASK), deny: of(&keys::DENY) }
}

/// Rules given in flags, `Bash(git *),Read` or one by one.
pub fn rules(texts: &[String], base_paths: &BasePaths<'_>) -> Result<Vec<Rule>, BadRule> {
    let places = Places {
        directory: base_paths.directory.to_owned(),
        settings: base_paths.directory.to_owned(),
        home: base_paths.home.map(Path::to_owned),
        file: None,
    };
    let split = texts.iter().flat_map(|text| split(text));
    split.map(|text| Rule::parse(text, &places)).collect()
}

/// Splits at commas and spaces outside parentheses.
pub fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_i32, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' | ' ' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}
