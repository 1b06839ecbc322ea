//! All agents there are, from all sources, and what is wrong with the others.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::definition::{Definition, KEYS};

/// The largest definition that is read.
const MOST_BYTES: u64 = 200_000;
/// So many files of one folder are looked at.
const MOST_FILES: usize = 500;
/// How deep folders are looked into.
const DEPTH: usize = 4;

/// Where a definition comes from; the later wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Part of this program.
    BuiltIn,
    /// A plugin.
    Plugin,
    /// The user.
    User,
    /// The project.
    Project,
    /// The command line, or the program that drives this one.
    Flag,
    /// The organisation.
    Policy,
}

impl Source {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::Plugin => "plugin",
            Self::User => "user",
            Self::Project => "project",
            Self::Flag => "flag",
            Self::Policy => "policy",
        }
    }
}

/// Where definitions are looked for.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// Folders, each with whose it is; a later one of a source wins.
    pub folders: Vec<(Source, PathBuf)>,
    /// Objects by name, as the flag gives them.
    pub flag: Option<Map<String, Value>>,
    /// Whether the project is trusted: else its definitions only take away.
    pub trusted: bool,
}

/// Something that is wrong with a definition. One that is wrong is left out, unless it says otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The file, or the flag.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// What.
    pub what: String,
    /// Whether the definition counts all the same.
    pub counts: bool,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let follows = if self.counts { "" } else { "; this agent is left out" };
        write!(f, "{}:{}: {}{follows}", self.file.display(), self.line, self.what)
    }
}

/// An agent in the list of all there are.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// The agent.
    pub agent: Definition,
    /// By which source it is replaced, if it is.
    pub replaced_by: Option<Source>,
}

/// The agents there are.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    all: Vec<Listed>,
    troubles: Vec<Trouble>,
}

/// The agents that are part of this program.
const BUILT_IN: [&str; 3] = [
    include_str!("../prompts/agents/general-purpose.md"),
    include_str!("../prompts/agents/explore.md"),
    include_str!("../prompts/agents/plan.md"),
];

impl Registry {
    /// Reads all definitions. It never fails: what cannot be read is named in [`Registry::troubles`].
    pub fn load(sources: &Sources) -> Self {
        let mut registry = Self::default();
        for text in BUILT_IN {
            registry.add(Definition::of_file(text, Source::BuiltIn), Path::new("built-in"), text);
        }
        for (source, folder) in &sources.folders {
            let mut paths = Vec::new();
            markdown(folder, *source, DEPTH, &mut paths);
            for path in paths {
                match files::read(&path, MOST_BYTES) {
                    Ok(file) => {
                        let text = String::from_utf8_lossy(&file.bytes);
                        let read = Definition::of_file(&text, *source).map(|agent| match source {
                            Source::Project if !sources.trusted => agent.narrowed(),
                            _ => agent,
                        });
                        let read = read.map(|agent| Definition { file: Some(path.clone()), ..agent });
                        registry.add(read, &path, &text);
                    }
                    Err(error) => registry.trouble(&path, 1, error.to_string(), false),
                }
            }
        }
        for (name, value) in sources.flag.iter().flatten() {
            let at = PathBuf::from("--agents");
            match value {
                Value::Object(fields) => registry.add(Definition::of_object(name, fields, Source::Flag), &at, ""),
                _ => registry.trouble(&at, 1, format!("{name} is to be an object"), false),
            }
        }
        registry.settle(sources.trusted);
        registry
    }

    fn add(&mut self, read: Result<Definition, super::definition::Wrong>, file: &Path, text: &str) {
        match read {
            Ok(agent) => {
                for key in memory::frontmatter::read(text).fields.keys().filter(|key| !KEYS.contains(&key.as_str())) {
                    self.trouble(file, line_of(text, key), format!("{key} is no key of an agent"), true);
                }
                self.all.push(Listed { agent, replaced_by: None });
            }
            Err((key, what)) => self.trouble(file, key.map_or(1, |key| line_of(text, key)), what, false),
        }
    }

    fn trouble(&mut self, file: &Path, line: usize, what: String, counts: bool) {
        self.troubles.push(Trouble { file: file.to_owned(), line, what, counts });
    }

    /// Lets the strongest of each name win; of one source, the later.
    fn settle(&mut self, trusted: bool) {
        let ranks: Vec<(String, Source)> =
            self.all.iter().map(|one| (one.agent.name.clone(), one.agent.source)).collect();
        for (at, one) in self.all.iter_mut().enumerate() {
            let rivals = ranks.iter().enumerate().filter(|(_, (name, _))| *name == one.agent.name);
            let strongest = rivals.max_by_key(|(place, (_, source))| match source {
                // A stranger's replaces nothing: it would do more than what is known by that name.
                Source::Project if !trusted => (None, *place),
                source => (Some(*source), *place),
            });
            one.replaced_by = strongest.filter(|(place, _)| *place != at).map(|(_, (_, source))| *source);
        }
        self.all
            .sort_by(|one, other| (one.agent.source, &one.agent.name).cmp(&(other.agent.source, &other.agent.name)));
    }

    /// All definitions that could be read, those too that are replaced by another of their name.
    pub fn all(&self) -> &[Listed] {
        &self.all
    }

    /// The agents that can be sent out.
    pub fn agents(&self) -> impl Iterator<Item = &Definition> {
        self.all.iter().filter(|one| one.replaced_by.is_none()).map(|one| &one.agent)
    }

    /// The agent of a name.
    pub fn find(&self, name: &str) -> Option<&Definition> {
        self.agents().find(|agent| agent.name == name)
    }

    /// What is wrong with definitions.
    pub fn troubles(&self) -> &[Trouble] {
        &self.troubles
    }
}

/// The Markdown files below a folder, in order of their names. People link theirs from elsewhere; a project's links are
/// not followed.
fn markdown(folder: &Path, source: Source, depth: usize, found: &mut Vec<PathBuf>) {
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
            files::EntryKind::Link if is_markdown && source != Source::Project => found.push(path),
            _ => {}
        }
    }
}

/// The line a key stands on, from 1; the first if it stands on none.
fn line_of(text: &str, key: &str) -> usize {
    let names = |line: &str| line.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(':'));
    text.lines().position(names).map_or(1, |line| line + 1)
}
