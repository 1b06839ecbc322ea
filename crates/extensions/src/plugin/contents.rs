//! The parts of a plugin: in the folders that every plugin has, and where its manifest says.
//!
//! `skills`, `hooks` and `mcpServers` of a manifest add to the usual places; `commands`, `agents` and `outputStyles` replace
//! them.

use std::path::{Path, PathBuf};

use files::EntryKind;
use memory::frontmatter;
use serde_json::{Map, Value, json};
use settings::agent_definitions::PluginAgent;
use settings::servers::PluginServers;

use super::folder::{PluginFile, PluginFolder, below};
use super::manifest::PluginManifest;
use super::{MANIFEST, PluginHooks, PluginStyle, fill};
use crate::skill::{PluginFolders, Skill, SkillKind, SkillSource};

const SKILL: &str = "SKILL.md";
const SKILLS: &str = "skills";
const COMMANDS: &str = "commands";
const AGENTS: &str = "agents";
const STYLES: &str = "output-styles";
const HOOKS: &str = "hooks/hooks.json";
const SERVERS: &str = ".mcp.json";

/// The parts of a plugin.
pub(super) struct PluginContents {
    pub(super) skills: Vec<Skill>,
    pub(super) agents: Vec<PluginAgent>,
    pub(super) styles: Vec<PluginStyle>,
    pub(super) hooks: Vec<PluginHooks>,
    pub(super) servers: Vec<PluginServers>,
}

impl PluginContents {
    pub(super) fn read(
        folder: &mut PluginFolder,
        manifest: &PluginManifest,
        name: &str,
        folders: &PluginFolders,
    ) -> Self {
        let mut skills = Vec::new();
        for (file, own_name) in skill_files(folder, manifest) {
            skills.extend(skill(folder, &file, &own_name, name, SkillKind::Skill, folders));
        }
        for (own_name, file) in markdown(folder, manifest, "commands", COMMANDS) {
            skills.extend(skill(folder, &file, &own_name, name, SkillKind::Command, folders));
        }
        skills.extend(inline_commands(folder, manifest, name, folders));
        let mut agents = Vec::new();
        for (own_name, path) in markdown(folder, manifest, "agents", AGENTS) {
            let Some(PluginFile { relative, text }) = folder.file(path) else { continue };
            let prefix = match own_name.rsplit_once(':') {
                Some((folders, _)) => format!("{name}:{folders}"),
                None => name.to_owned(),
            };
            let text = fill(&text, folders);
            agents.push(PluginAgent { prefix, file: folder.path().join(relative), text });
        }
        let mut styles = Vec::new();
        for (own_name, path) in markdown(folder, manifest, "outputStyles", STYLES) {
            let Some(PluginFile { text, .. }) = folder.file(path) else { continue };
            let top = frontmatter::read(&text);
            let style = top.text("name").filter(|name| !name.is_empty()).unwrap_or(own_name);
            let text = fill(text[top.body_start()..].trim(), folders);
            styles.push(PluginStyle { name: format!("{name}:{style}"), text });
        }
        Self {
            skills,
            agents,
            styles,
            hooks: hooks(folder, manifest),
            servers: servers(folder, manifest, name, folders),
        }
    }
}

/// The files of its skills, with the names of their folders.
fn skill_files(folder: &mut PluginFolder, manifest: &PluginManifest) -> Vec<(PathBuf, String)> {
    let named = manifest.paths("skills").unwrap_or_default();
    let mut places = vec![PathBuf::from(SKILLS)];
    places.extend(named.iter().map(|path| below(path)));
    // A plugin can be one skill.
    if !folder.has_folder(Path::new(SKILLS)) && named.is_empty() {
        places.push(PathBuf::from("."));
    }
    let own_name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let root_name = folder.path().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut found = Vec::new();
    for place in places {
        let names = folder.names(&place);
        if names.iter().any(|(name, kind)| name == SKILL && *kind == EntryKind::File) {
            let name = own_name(&place).unwrap_or_else(|| root_name.clone());
            found.push((place.join(SKILL), name));
            continue;
        }
        if place == Path::new(".") {
            continue;
        }
        if names.is_empty() && place != Path::new(SKILLS) && !folder.has_folder(&place) {
            folder.trouble(&place, "there is no such folder of skills");
        }
        for (name, _) in names.into_iter().filter(|(_, kind)| *kind == EntryKind::Directory) {
            found.push((place.join(&name).join(SKILL), name));
        }
    }
    found
}

fn skill(
    folder: &mut PluginFolder,
    file: &Path,
    own_name: &str,
    plugin: &str,
    kind: SkillKind,
    folders: &PluginFolders,
) -> Option<Skill> {
    let PluginFile { relative, text } = folder.file(file.to_owned())?;
    Some(parsed(folder, &relative, &text, own_name, plugin, kind, folders))
}

fn parsed(
    folder: &mut PluginFolder,
    relative: &Path,
    text: &str,
    own_name: &str,
    plugin: &str,
    kind: SkillKind,
    folders: &PluginFolders,
) -> Skill {
    let path = folder.path().join(relative);
    let (skill, odd) = Skill::parse(text, String::new(), kind, SkillSource::Plugin, &path);
    folder.troubles.extend(odd);
    Skill { name: format!("{plugin}:{own_name}"), plugin: Some(folders.clone()), ..skill }
}

/// Commands that the manifest describes by name: each with its text, or with the file of it.
fn inline_commands(
    folder: &mut PluginFolder,
    manifest: &PluginManifest,
    plugin: &str,
    folders: &PluginFolders,
) -> Vec<Skill> {
    let mut found = Vec::new();
    for (name, described) in manifest.objects("commands").flatten() {
        let text = |key: &str| described.get(key).and_then(Value::as_str).map(str::to_owned);
        let read = match (text("source"), text("content")) {
            (Some(source), _) => folder.file(below(&source)),
            (None, content) => content.map(|text| PluginFile { relative: MANIFEST.into(), text }),
        };
        let Some(PluginFile { relative, text: body }) = read else {
            folder.trouble(Path::new(MANIFEST), format!("the command {name} has no text; it is left out"));
            continue;
        };
        let skill = parsed(folder, &relative, &body, name, plugin, SkillKind::Command, folders);
        found.push(Skill {
            description: text("description").unwrap_or(skill.description),
            argument_hint: text("argumentHint").or(skill.argument_hint),
            ..skill
        });
    }
    found
}

/// The Markdown files of a key, else those of the usual folder.
fn markdown(folder: &mut PluginFolder, manifest: &PluginManifest, key: &str, usual: &str) -> Vec<(String, PathBuf)> {
    let Some(paths) = manifest.paths(key) else { return folder.markdown(Path::new(usual)) };
    paths.into_iter().flat_map(|path| folder.markdown(&below(path))).collect()
}

/// Its hooks: of the usual file, of those that the manifest names, and those in the manifest.
fn hooks(folder: &mut PluginFolder, manifest: &PluginManifest) -> Vec<PluginHooks> {
    let of = |file, object: &Map<String, Value>| {
        let events = object.get("hooks").cloned().unwrap_or_else(|| Value::Object(object.clone()));
        PluginHooks { file, events }
    };
    objects(folder, manifest, "hooks", HOOKS).into_iter().map(|(file, object)| of(file, &object)).collect()
}

/// Its servers: the same. Programs among them know the plugin's folders by variables, too.
fn servers(
    folder: &mut PluginFolder,
    manifest: &PluginManifest,
    plugin: &str,
    folders: &PluginFolders,
) -> Vec<PluginServers> {
    let variables = folders.variables();
    let of = |(file, object): (PathBuf, Map<String, Value>)| {
        let mut servers = object.get("mcpServers").and_then(Value::as_object).cloned().unwrap_or(object);
        for server in servers.values_mut() {
            fill_all(server, folders);
            if let Some(server) = server.as_object_mut().filter(|server| server.contains_key("command"))
                && let Some(given) = server.entry("env").or_insert_with(|| json!({})).as_object_mut()
            {
                variables.iter().for_each(|(name, value)| {
                    given.entry(*name).or_insert_with(|| json!(value));
                });
            }
        }
        PluginServers { plugin: plugin.to_owned(), servers: servers.into(), place: file.display().to_string() }
    };
    objects(folder, manifest, "mcpServers", SERVERS).into_iter().map(of).collect()
}

/// Fills the plugin's folders into each text of a value.
fn fill_all(value: &mut Value, folders: &PluginFolders) {
    match value {
        Value::String(text) => *text = fill(text, folders),
        Value::Array(items) => items.iter_mut().for_each(|item| fill_all(item, folders)),
        Value::Object(fields) => fields.values_mut().for_each(|item| fill_all(item, folders)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The objects of a usual file and of a key, each with the file it is in.
fn objects(
    folder: &mut PluginFolder,
    manifest: &PluginManifest,
    key: &str,
    usual: &str,
) -> Vec<(PathBuf, Map<String, Value>)> {
    let named = manifest.paths(key).unwrap_or_default();
    let paths = std::iter::once((PathBuf::from(usual), false)).chain(named.into_iter().map(|path| (below(path), true)));
    let mut found = Vec::new();
    for (path, is_named) in paths {
        let before = folder.troubles.len();
        let Some(PluginFile { relative, text }) = folder.file(path.clone()) else {
            if is_named && folder.troubles.len() == before && files::real(folder.path().join(&path)).is_err() {
                folder.trouble(&path, "there is no such file");
            }
            continue;
        };
        match serde_json::from_str(&text) {
            Ok(Value::Object(object)) => found.push((folder.path().join(relative), object)),
            Ok(_) => folder.trouble(&relative, "this is not a JSON object; it is left out"),
            Err(error) => folder.trouble(&relative, format!("this is not JSON: {error}; it is left out")),
        }
    }
    let file = folder.path().join(MANIFEST);
    found.extend(manifest.objects(key).map(|object| (file.clone(), object.clone())));
    found
}
