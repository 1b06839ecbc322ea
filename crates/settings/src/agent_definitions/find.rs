//! Finds definitions in folders, in settings and on the command line.
//!
//! Within one source the later wins: settings, then files, then the command line or a controlling program.

use std::path::{Path, PathBuf};

use memory::frontmatter;
use serde_json::{Map, Value};

use super::agent_definition::{Definition, DefinitionFault};
use super::registry::{DefinitionSource, DefinitionTrouble};
use crate::kind::ValuePart;
use crate::trust::{Claim, Trust, TrustSite};
use crate::{SetValue, Weight};

/// The largest definition that is read.
const MOST_BYTES: u64 = 200_000;
/// The most files of one folder that are read.
const MOST_FILES: usize = 500;
/// The deepest level of folders that is searched.
const DEPTH: usize = 4;

/// The places where definitions are looked for.
#[derive(Debug, Clone, Default)]
pub struct DefinitionSources {
    /// Effective definitions from settings, the weakest first.
    pub settings: Vec<SetValue>,
    /// Folders with their sources; the later one of a source wins.
    pub folders: Vec<(DefinitionSource, PathBuf)>,
    /// Definitions of plugins.
    pub plugins: Vec<PluginAgent>,
    /// Objects by name, from the flag.
    pub flag: Option<Map<String, Value>>,
    /// The user's trust in the project's definitions; without it they can only restrict.
    pub trust: Option<Trust>,
}

/// A definition that a plugin brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginAgent {
    /// The plugin's name, and the folders below its own; a colon and the agent's own name follow.
    pub prefix: String,
    /// Its file.
    pub file: PathBuf,
    /// The text of the file.
    pub text: String,
}

/// A definition, or the reason why it cannot be read, with its place.
pub(super) struct DefinitionFile {
    pub(super) read: Result<Definition, DefinitionFault>,
    pub(super) at: DefinitionPlace,
}

/// The place and text of a definition.
pub(super) struct DefinitionPlace {
    /// The file, or the flag.
    pub(super) file: PathBuf,
    /// The line, if it shares its file with others.
    pub(super) line: Option<usize>,
    /// The text as written.
    pub(super) text: String,
}

impl DefinitionPlace {
    /// The line of a key, from 1; the first line if the key is missing.
    pub(super) fn line_of(&self, key: Option<&str>) -> usize {
        let (Some(key), None) = (key, self.line) else { return self.line.unwrap_or(1) };
        let names =
            |line: &str| line.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(':'));
        self.text.lines().position(names).map_or(1, |line| line + 1)
    }

    /// Its keys, as written.
    pub(super) fn fields(&self) -> Map<String, Value> {
        match self.line {
            None => frontmatter::read(&self.text).fields.clone(),
            Some(_) => serde_json::from_str(&self.text).unwrap_or_default(),
        }
    }

    /// Its place, for messages.
    pub(super) fn place(&self, site: &TrustSite) -> String {
        format!("{}:{}", site.short(&self.file), self.line.unwrap_or(1))
    }
}

/// The claims of the readable definitions in a project's folders.
pub fn claims(sources: &DefinitionSources, site: &TrustSite) -> Vec<Claim> {
    let (found, _) = all(sources);
    let claim = |DefinitionFile { read, at }: DefinitionFile| {
        let agent = read.ok().filter(|agent| agent.source == DefinitionSource::Project && at.line.is_none())?;
        Some(agent.claim(&at.text, &at.place(site), site))
    };
    found.into_iter().filter_map(claim).collect()
}

/// All definitions but the built-in ones, and what cannot be read.
pub(super) fn all(sources: &DefinitionSources) -> (Vec<DefinitionFile>, Vec<DefinitionTrouble>) {
    let mut found: Vec<DefinitionFile> = sources.settings.iter().filter_map(of_settings).collect();
    found.extend(sources.plugins.iter().filter_map(of_plugin));
    let mut troubles = Vec::new();
    for (source, folder) in &sources.folders {
        let mut paths = Vec::new();
        markdown(folder, *source, DEPTH, &mut paths);
        for path in paths {
            match files::read(&path, MOST_BYTES) {
                Ok(file) => {
                    let text = String::from_utf8_lossy(&file.bytes).into_owned();
                    let read = Definition::of_file(&text, *source);
                    found.push(DefinitionFile { read, at: DefinitionPlace { file: path, line: None, text } });
                }
                Err(error) => {
                    troubles.push(DefinitionTrouble {
                        file: path,
                        line: 1,
                        what: error.to_string(),
                        weight: Weight::Error,
                    });
                }
            }
        }
    }
    if let Some(flag) = &sources.flag {
        let (of_flag, wrong) = of_flag(flag, "--agents");
        found.extend(of_flag);
        troubles.extend(wrong);
    }
    (found, troubles)
}

/// Definitions from the command line or a controlling program, by name.
pub(super) fn of_flag(objects: &Map<String, Value>, flag: &str) -> (Vec<DefinitionFile>, Vec<DefinitionTrouble>) {
    let (mut found, mut troubles) = (Vec::new(), Vec::new());
    for (name, value) in objects {
        let file = PathBuf::from(flag);
        match value {
            Value::Object(fields) => {
                let read = Definition::of_object(name, fields, DefinitionSource::Flag);
                found.push(DefinitionFile {
                    read,
                    at: DefinitionPlace { file, line: Some(1), text: value.to_string() },
                });
            }
            _ => {
                let what = format!("{name} must be an object");
                troubles.push(DefinitionTrouble { file, line: 1, what, weight: Weight::Error });
            }
        }
    }
    (found, troubles)
}

/// The definition of a plugin. A Markdown file without keys is a text about agents, not one of them.
fn of_plugin(agent: &PluginAgent) -> Option<DefinitionFile> {
    let text = without_comment(&agent.text);
    if !frontmatter::read(text).is_present() {
        return None;
    }
    let at = DefinitionPlace { file: agent.file.clone(), line: None, text: text.to_owned() };
    Some(DefinitionFile { read: Definition::of_plugin(text, agent), at })
}

/// The text behind a comment, such as a licence, that stands before the keys.
fn without_comment(text: &str) -> &str {
    let comment = text.trim_start().strip_prefix("<!--").and_then(|rest| rest.split_once("-->"));
    comment.map_or(text, |(_, rest)| rest.trim_start())
}

fn of_settings(set: &SetValue) -> Option<DefinitionFile> {
    let (ValuePart::Entry(name), Value::Object(fields)) = (&set.part, &set.value) else { return None };
    let source = match set.origin.source {
        crate::SettingsSource::User => DefinitionSource::User,
        crate::SettingsSource::Project | crate::SettingsSource::Local => DefinitionSource::Project,
        crate::SettingsSource::Flag => DefinitionSource::Flag,
        crate::SettingsSource::Managed => DefinitionSource::Policy,
    };
    let file = set.origin.file.clone().unwrap_or_else(|| "--settings".into());
    let at = DefinitionPlace { file, line: Some(set.origin.line), text: set.value.to_string() };
    Some(DefinitionFile { read: Definition::of_object(name, fields, source), at })
}

/// The Markdown files below a folder, sorted by name. Symlinks are followed in the user's folders, not in a project's.
fn markdown(folder: &Path, source: DefinitionSource, depth: usize, found: &mut Vec<PathBuf>) {
    let mut entries = files::list(folder).unwrap_or_default();
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    for entry in entries {
        if found.len() >= MOST_FILES {
            return;
        }
        let path = folder.join(&entry.name);
        let is_markdown = path.extension().is_some_and(|extension| extension == "md");
        match entry.kind {
            files::EntryKind::Directory if depth > 0 => markdown(&path, source, depth - 1, found),
            files::EntryKind::File if is_markdown => found.push(path),
            files::EntryKind::Link if is_markdown && source != DefinitionSource::Project => found.push(path),
            _ => {}
        }
    }
}
