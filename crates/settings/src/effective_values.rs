//! Reads the effective values by key.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::keys::{SettingKey, ValuePart};
use crate::load::SetValue;
use crate::source::ValueOrigin;

/// Directories from which paths in settings start.
#[derive(Debug, Clone)]
pub struct BasePaths<'a> {
    /// The working directory.
    pub directory: &'a Path,
    /// The user's home.
    pub home: Option<&'a Path>,
}

/// The effective values.
pub(crate) struct EffectiveValues<'a> {
    pub(crate) sets: Vec<&'a SetValue>,
}

impl<'a> EffectiveValues<'a> {
    pub(crate) fn of(&self, key: &SettingKey) -> impl Iterator<Item = &'a SetValue> {
        self.sets.iter().copied().filter(move |set| set.key.name == key.name)
    }

    pub(crate) fn one<T: DeserializeOwned>(&self, key: &SettingKey) -> Option<T> {
        self.of(key).find_map(|set| serde_json::from_value(set.value.clone()).ok())
    }

    pub(crate) fn texts(&self, key: &SettingKey) -> Vec<String> {
        self.of(key).filter_map(|set| set.value.as_str().map(str::to_owned)).collect()
    }

    pub(crate) fn entries<T: DeserializeOwned>(&self, key: &SettingKey) -> Vec<(String, T)> {
        let entry = |set: &SetValue| match &set.part {
            ValuePart::Entry(name) => Some((name.clone(), serde_json::from_value(set.value.clone()).ok()?)),
            _ => None,
        };
        self.of(key).filter_map(entry).collect()
    }

    pub(crate) fn paths(&self, key: &SettingKey, base_paths: &BasePaths<'_>) -> Vec<PathBuf> {
        self.of(key).filter_map(|set| Some(path(set.value.as_str()?, &set.origin, base_paths))).collect()
    }
}

pub(crate) fn expand(path: &str, base_paths: &BasePaths<'_>) -> PathBuf {
    match (path.strip_prefix("~/"), base_paths.home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

/// The directory that a settings file belongs to: for `.claude/settings.json`, the one above `.claude`.
pub(crate) fn settings_root(path: &Path) -> PathBuf {
    let parent = path.parent().unwrap_or(path);
    let root = if parent.ends_with(".claude") { parent.parent().unwrap_or(parent) } else { parent };
    root.to_owned()
}

/// A path as the sandbox's keys write it: `//` starts at the root, `~/` at the home directory, `/` at the settings
/// file's directory, anything else in the working directory.
pub(crate) fn path(text: &str, origin: &ValueOrigin, base_paths: &BasePaths<'_>) -> PathBuf {
    if let Some(absolute) = text.strip_prefix("//") {
        return PathBuf::from("/").join(absolute);
    }
    match (text.strip_prefix('/'), &origin.file) {
        (Some(rest), Some(file)) => settings_root(file).join(rest),
        (Some(rest), None) => base_paths.directory.join(rest),
        (None, _) => base_paths.directory.join(expand(text, base_paths)),
    }
}
