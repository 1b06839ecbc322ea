//! Reading the values that count, by key.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::keys::{Key, Part};
use crate::load::Set;
use crate::source::Origin;

/// Where the paths in settings start from.
#[derive(Debug, Clone)]
pub struct Ground<'a> {
    /// The working directory.
    pub directory: &'a Path,
    /// The user's home.
    pub home: Option<&'a Path>,
}

/// The values that count.
pub(crate) struct Counting<'a> {
    pub(crate) sets: Vec<&'a Set>,
}

impl<'a> Counting<'a> {
    pub(crate) fn of(&self, key: &Key) -> impl Iterator<Item = &'a Set> {
        self.sets.iter().copied().filter(move |set| set.key.name == key.name)
    }

    pub(crate) fn one<T: DeserializeOwned>(&self, key: &Key) -> Option<T> {
        self.of(key).find_map(|set| serde_json::from_value(set.value.clone()).ok())
    }

    pub(crate) fn texts(&self, key: &Key) -> Vec<String> {
        self.of(key).filter_map(|set| set.value.as_str().map(str::to_owned)).collect()
    }

    pub(crate) fn entries<T: DeserializeOwned>(&self, key: &Key) -> Vec<(String, T)> {
        let entry = |set: &Set| match &set.part {
            Part::Entry(name) => Some((name.clone(), serde_json::from_value(set.value.clone()).ok()?)),
            _ => None,
        };
        self.of(key).filter_map(entry).collect()
    }

    pub(crate) fn paths(&self, key: &Key, ground: &Ground<'_>) -> Vec<PathBuf> {
        self.of(key).filter_map(|set| Some(path(set.value.as_str()?, &set.origin, ground))).collect()
    }
}

pub(crate) fn expand(path: &str, ground: &Ground<'_>) -> PathBuf {
    match (path.strip_prefix("~/"), ground.home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

/// The directory a settings file speaks of: that of `.claude/settings.json` is the one above.
pub(crate) fn settings_root(path: &Path) -> PathBuf {
    let parent = path.parent().unwrap_or(path);
    let root = if parent.ends_with(".claude") { parent.parent().unwrap_or(parent) } else { parent };
    root.to_owned()
}

/// A path as the sandbox's keys write it: `//` starts at the root, `~/` at home, `/` where the settings file speaks of,
/// anything else in the working directory.
pub(crate) fn path(text: &str, origin: &Origin, ground: &Ground<'_>) -> PathBuf {
    if let Some(absolute) = text.strip_prefix("//") {
        return PathBuf::from("/").join(absolute);
    }
    match (text.strip_prefix('/'), &origin.file) {
        (Some(rest), Some(file)) => settings_root(file).join(rest),
        (Some(rest), None) => ground.directory.join(rest),
        (None, _) => ground.directory.join(expand(text, ground)),
    }
}
