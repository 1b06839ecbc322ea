//! Plugins: folders that bring skills, commands, agents, hooks, output styles and servers, all under the plugin's name.
//!
//! [`Plugin::load`] reads one, [`installed`] finds those that Claude Code has installed. A plugin counts because the user
//! installed and enabled it, or named its folder: its texts are as trusted as the user's own. Nothing in it can lead to files
//! outside of it, and nothing of it runs here: hooks and servers are definitions for others to judge.

mod contents;
mod folder;
pub mod installed;
mod manifest;
mod plugin_hooks;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use settings::agent_definitions::PluginAgent;
use settings::servers::PluginServers;

use crate::expand::{ExpandValues, fill_folders};
use crate::skill::{PluginFolders, Skill};
use crate::trouble::ExtensionTrouble;
use contents::PluginContents;
use folder::PluginFolder;
use manifest::PluginManifest;

/// The manifest of a plugin.
const MANIFEST: &str = ".claude-plugin/plugin.json";

/// A plugin.
#[derive(Debug, Clone)]
pub struct Plugin {
    /// The name before the colon.
    pub name: String,
    /// The name with where it is from: `name@marketplace`.
    pub id: String,
    /// Its purpose.
    pub description: String,
    /// Its version, if it has one.
    pub version: Option<String>,
    /// Reason it is used.
    pub origin: PluginOrigin,
    /// Its folder, and the one for what it keeps.
    pub folders: PluginFolders,
    /// Skills and commands, by their complete names.
    pub skills: Vec<Skill>,
    /// Definitions of agents.
    pub agents: Vec<PluginAgent>,
    /// Output styles.
    pub styles: Vec<PluginStyle>,
    /// Objects of hooks by event, as settings write them.
    pub hook_files: Vec<PluginHooks>,
    /// Definitions of servers, by file: with the plugin's folders filled in, and variables of the environment still to be.
    pub servers: Vec<PluginServers>,
    /// Problems with its files.
    pub troubles: Vec<ExtensionTrouble>,
}

/// Reason a plugin is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PluginOrigin {
    /// The user installed it, and the user's settings enable it.
    Installed,
    /// The user installed it, and the project's settings, which are trusted, enable it.
    EnabledByProject,
    /// The user's settings name its folder.
    Setting,
    /// A flag names its folder.
    Flag,
}

impl PluginOrigin {
    /// In a few words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::EnabledByProject => "installed, enabled by the project",
            Self::Setting => "named by your settings",
            Self::Flag => "named by a flag",
        }
    }
}

/// An output style of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginStyle {
    /// Its complete name: `plugin:style`.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Hooks of a plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginHooks {
    /// The file they are in.
    pub file: PathBuf,
    /// By event.
    pub events: Value,
}

/// The place of a plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginPlace {
    /// Its folder.
    pub folder: PathBuf,
    /// Its name and where it is from.
    pub id: String,
    /// Reason it is used.
    pub origin: PluginOrigin,
    /// The entry of its marketplace, if it was installed.
    pub entry: Option<MarketplaceEntry>,
}

/// The entry of a plugin in a marketplace.
#[derive(Debug, Clone, PartialEq)]
pub struct MarketplaceEntry {
    /// The file it is in.
    pub file: PathBuf,
    /// As it is written.
    pub fields: Map<String, Value>,
}

impl PluginPlace {
    /// The place of a folder that the user named. Where it has no manifest, its name is the folder's.
    pub fn named(folder: &Path, origin: PluginOrigin) -> Self {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Self { folder: folder.to_owned(), id: format!("{name}@inline"), origin, entry: None }
    }
}

impl Plugin {
    /// Reads a plugin. `data` is the folder in which each keeps its own. An error leaves all of it out.
    pub fn load(place: &PluginPlace, data: &Path) -> Result<Self, ExtensionTrouble> {
        let mut folder = PluginFolder::open(&place.folder)?;
        let file = folder.path().join(MANIFEST);
        let own = match folder.bytes(Path::new(MANIFEST)) {
            Some(text) => Some(PluginManifest::parse(&text, &file)?),
            None => folder.troubles.pop().map_or(Ok(None), Err)?,
        };
        let (by_id, from) = place.id.split_once('@').unwrap_or((place.id.as_str(), "inline"));
        let manifest = described(own, place.entry.as_ref())?;
        let name = manifest.text("name").unwrap_or_else(|| by_id.to_owned());
        if !manifest::is_name(&name) {
            let what = format!("{name:?} cannot be the name of a plugin: use letters, digits and -; it is left out");
            return Err(ExtensionTrouble::error(&place.folder, 1, what));
        }
        let id = format!("{name}@{from}");
        let folders = PluginFolders { root: folder.path().to_owned(), data: data.join(data_name(&id)) };
        let contents = PluginContents::read(&mut folder, &manifest, &name, &folders);
        Ok(Self {
            description: manifest.text("description").unwrap_or_default(),
            version: manifest.text("version"),
            origin: place.origin,
            skills: contents.skills,
            agents: contents.agents,
            styles: contents.styles,
            hook_files: contents.hooks,
            servers: contents.servers,
            troubles: folder.troubles,
            folders,
            name,
            id,
        })
    }

    /// The names of its servers.
    pub fn server_names(&self) -> impl Iterator<Item = &str> {
        self.servers.iter().filter_map(|of| of.servers.as_object()).flatten().map(|(name, _)| name.as_str())
    }

    /// A text with the plugin's folders filled in.
    pub fn fill(&self, text: &str) -> String {
        fill(text, &self.folders)
    }
}

fn fill(text: &str, folders: &PluginFolders) -> String {
    fill_folders(text, &ExpandValues { plugin: Some(folders), ..ExpandValues::default() })
}

/// Manifest of a plugin: its own with what the marketplace adds; the marketplace's entry alone if that says so.
fn described(
    own: Option<PluginManifest>,
    entry: Option<&MarketplaceEntry>,
) -> Result<PluginManifest, ExtensionTrouble> {
    let Some(MarketplaceEntry { file, fields }) = entry else { return Ok(own.unwrap_or_default()) };
    let of_entry = PluginManifest::of_entry(fields, file)?;
    let is_strict = fields.get("strict").and_then(Value::as_bool) != Some(false);
    match own {
        Some(own) if !is_strict && own.has_parts() => {
            let what = "both plugin.json and this entry, which is not strict, list parts of the plugin; the plugin is left out";
            Err(ExtensionTrouble::error(file, 1, what))
        }
        Some(own) => Ok(own.joined(&of_entry)),
        None => Ok(of_entry),
    }
}

/// The folder's name for what a plugin keeps.
fn data_name(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests;
