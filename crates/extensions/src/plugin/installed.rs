//! The plugins that Claude Code has installed: its `installed_plugins.json`, the marketplaces it knows, and what the settings
//! enable. They are read, never written.
//!
//! A plugin of a marketplace that is a directory is read from there, not from the copy that was made when it was installed.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{MarketplaceEntry, PluginOrigin, PluginPlace};
use crate::trouble::ExtensionTrouble;

/// In place of a marketplace, for plugins among the user's skills.
const IN_SKILLS: &str = "skills-dir";
/// The version of the list that is read.
const VERSION: u64 = 2;
/// Size limit of each of the files.
const MOST_BYTES: u64 = 8_000_000;

/// A plugin that the settings name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnabledPlugin {
    /// `name@marketplace`.
    pub id: String,
    /// Reason it is used.
    pub origin: PluginOrigin,
}

/// The places of those that are enabled, and problems with the others.
pub fn places(
    config_home: &Path,
    directory: &Path,
    enabled: &[EnabledPlugin],
) -> (Vec<PluginPlace>, Vec<ExtensionTrouble>) {
    let (mut places, mut troubles) = (Vec::new(), Vec::new());
    if enabled.is_empty() {
        return (places, troubles);
    }
    let folder = config_home.join("plugins");
    let (list, marketplaces) = (folder.join("installed_plugins.json"), folder.join("known_marketplaces.json"));
    let installed = object(&list, &mut troubles).unwrap_or_default();
    let known = object(&marketplaces, &mut troubles).unwrap_or_default();
    if !installed.is_empty() && installed.get("version").and_then(Value::as_u64) != Some(VERSION) {
        let what = format!("it is not of version {VERSION}; start Claude Code once, which brings it up to date");
        troubles.push(ExtensionTrouble::error(&list, 1, what));
        return (places, troubles);
    }
    for EnabledPlugin { id, origin } in enabled {
        // Those that are built into Claude Code are no folders, and those among the skills are installed by being there.
        let is_listed = |(_, from): &(&str, &str)| *from != "builtin" && *from != IN_SKILLS;
        let Some((name, marketplace)) = id.split_once('@').filter(is_listed) else { continue };
        let entries = installed.get("plugins").and_then(|plugins| plugins.get(id)).and_then(Value::as_array);
        let copy = entries.and_then(|entries| copy_for(entries, directory));
        let (entry, in_place) = match known.get(marketplace) {
            Some(known) => of_marketplace(known, name, &mut troubles),
            None => (None, None),
        };
        let is_installed = copy.is_some();
        match in_place.filter(|_| is_installed).or(copy) {
            Some(folder) => places.push(PluginPlace { folder, id: id.clone(), origin: *origin, entry }),
            None => {
                let what = format!("{id} is enabled but not installed; install it in Claude Code, or disable it");
                troubles.push(ExtensionTrouble::warning(&list, 1, what));
            }
        }
    }
    (places, troubles)
}

/// Plugins among the user's skills: folders there that have a manifest.
pub fn in_skills(config_home: &Path) -> Vec<PluginPlace> {
    let folder = config_home.join("skills");
    let entries = files::list(&folder).unwrap_or_default();
    let mut names: Vec<String> = entries.into_iter().map(|entry| entry.name.to_string_lossy().into_owned()).collect();
    names.sort();
    let place = |name: String| PluginPlace {
        folder: folder.join(&name),
        id: format!("{name}@{IN_SKILLS}"),
        origin: PluginOrigin::Installed,
        entry: None,
    };
    names.into_iter().map(place).filter(|place| place.folder.join(super::MANIFEST).is_file()).collect()
}

/// The installed copy that counts in a directory: the one for its project, else the user's.
fn copy_for(entries: &[Value], directory: &Path) -> Option<PathBuf> {
    let text = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).map(PathBuf::from);
    let is_here = |entry: &&Value| text(entry, "projectPath").is_some_and(|project| directory.starts_with(project));
    let is_everywhere = |entry: &&Value| text(entry, "projectPath").is_none();
    let found = entries.iter().find(is_here).or_else(|| entries.iter().find(is_everywhere))?;
    text(found, "installPath")
}

/// The entry of a plugin in a marketplace, and its folder there if it is read in place.
fn of_marketplace(
    known: &Value,
    name: &str,
    troubles: &mut Vec<ExtensionTrouble>,
) -> (Option<MarketplaceEntry>, Option<PathBuf>) {
    let source = &known["source"];
    let own = source["path"].as_str().filter(|_| source["source"] == "directory");
    let Some(top) = own.or_else(|| known["installLocation"].as_str()).map(PathBuf::from) else { return (None, None) };
    let file = top.join(".claude-plugin/marketplace.json");
    let Some(marketplace) = object(&file, troubles) else { return (None, None) };
    let listed = marketplace.get("plugins").and_then(Value::as_array).into_iter().flatten();
    let Some(fields) = listed.filter_map(Value::as_object).find(|entry| entry.get("name").is_some_and(|it| it == name))
    else {
        return (None, None);
    };
    let below = marketplace.get("metadata").and_then(|about| about["pluginRoot"].as_str()).unwrap_or_default();
    let relative = fields.get("source").and_then(Value::as_str).filter(|_| own.is_some());
    let folder = relative.and_then(|source| inside(&top, below, source));
    if let (Some(source), None) = (relative, &folder) {
        let what = format!("the source of {name}, {source:?}, is not a folder of the marketplace");
        troubles.push(ExtensionTrouble::error(&file, 1, what));
    }
    (Some(MarketplaceEntry { file, fields: fields.clone() }), folder)
}

/// A folder of a marketplace, if it does not lead out of it.
fn inside(top: &Path, below: &str, source: &str) -> Option<PathBuf> {
    let top = files::real(top).ok()?;
    let joined = |path: &str| files::real(top.join(path)).ok().filter(|real| real.starts_with(&top));
    let source = source.strip_prefix("./").unwrap_or(source);
    joined(&format!("{below}/{source}")).filter(|_| !below.is_empty()).or_else(|| joined(source))
}

/// A JSON object; none if there is no such file.
fn object(file: &Path, troubles: &mut Vec<ExtensionTrouble>) -> Option<Map<String, Value>> {
    let read = match files::read(file, MOST_BYTES) {
        Ok(read) => read,
        Err(files::Error::NotFound { .. }) => return None,
        Err(error) => {
            troubles.push(ExtensionTrouble::error(file, 1, error.to_string()));
            return None;
        }
    };
    match serde_json::from_slice(&read.bytes) {
        Ok(Value::Object(object)) => Some(object),
        Ok(_) => {
            troubles.push(ExtensionTrouble::error(file, 1, "this is not a JSON object"));
            None
        }
        Err(error) => {
            troubles.push(ExtensionTrouble::error(file, error.line(), format!("this is not JSON: {error}")));
            None
        }
    }
}
