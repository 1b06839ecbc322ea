//! All agents, from all sources, and what is wrong with definitions.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use tools::permission::Rules;

use super::agent_definition::{Definition, DefinitionStatus, KEYS, OfferedTools, is_denied};
use super::agent_hooks::hooks_of;
use super::agent_servers::servers_in;
use super::definition_lint::doubts;
use super::find::{self, DefinitionFile, DefinitionPlace, DefinitionSources};
use super::tool_restriction::agents_named;
use super::{FORK, built_in};
use crate::effective_values::BasePaths;
use crate::trust::Trust;
use crate::{Weight, rules};

/// Source of a definition; the later wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DefinitionSource {
    /// Part of this program.
    BuiltIn,
    /// A plugin.
    Plugin,
    /// The user.
    User,
    /// The project.
    Project,
    /// The command line, or the controlling program.
    Flag,
    /// The organisation.
    Policy,
}

impl DefinitionSource {
    /// Its name.
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

/// A problem with a definition. An error leaves the agent out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionTrouble {
    /// The file, or the flag.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The message.
    pub what: String,
    /// Its severity.
    pub weight: Weight,
}

impl fmt::Display for DefinitionTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let follows = if self.weight == Weight::Error { "; this agent is left out" } else { "" };
        write!(f, "{}:{}: {}{follows}", self.file.display(), self.line, self.what)
    }
}

/// An agent in the list of all.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedAgent {
    /// The agent.
    pub agent: Definition,
    /// The source that replaces it, if one does.
    pub replaced_by: Option<DefinitionSource>,
}

/// The keys that do not count in a plugin's definition.
const NOT_OF_PLUGINS: [&str; 3] = ["hooks", "mcpServers", "permissionMode"];

/// All agents.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Registry {
    all: Vec<ListedAgent>,
    troubles: Vec<DefinitionTrouble>,
    /// Agents that definitions name, with their places; checked once all are read.
    named: Vec<(String, PathBuf, usize)>,
    missed: Vec<DefinitionTrouble>,
}

impl Registry {
    /// Reads all definitions. It never fails: what cannot be read is listed in [`Registry::troubles`].
    pub fn load(sources: &DefinitionSources) -> Self {
        let mut registry = Self::default();
        for text in built_in::ALL {
            let at = DefinitionPlace { file: Path::new("built-in").to_owned(), line: None, text: text.to_owned() };
            registry.add(DefinitionFile { read: Definition::of_file(text, DefinitionSource::BuiltIn), at }, None);
        }
        let (found, troubles) = find::all(sources);
        registry.troubles = troubles;
        for one in found {
            registry.add(one, sources.trust.as_ref());
        }
        registry.settle();
        registry
    }

    /// Adds agents that a controlling program has defined.
    #[must_use]
    pub fn with(mut self, defined: &Map<String, Value>) -> Self {
        let (found, troubles) = find::of_flag(defined, "initialize.agents");
        self.troubles.extend(troubles);
        for one in found {
            self.add(one, None);
        }
        self.settle();
        self
    }

    fn add(&mut self, found: DefinitionFile, trust: Option<&Trust>) {
        let DefinitionFile { read, at } = found;
        let agent = match read {
            Ok(agent) => agent,
            Err((key, what)) => return self.trouble(&at, key, what, Weight::Error),
        };
        let fields = at.fields();
        // Whoever only uses a plugin cannot mend it.
        let is_plugins = agent.source == DefinitionSource::Plugin;
        let weight = |weight: Weight| if is_plugins { weight.min(Weight::Note) } else { weight };
        for key in fields.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            self.trouble(&at, Some(key), format!("{key} is not a key of an agent"), weight(Weight::Warning));
        }
        for (key, what, of_doubt) in doubts(&agent, &fields) {
            self.trouble(&at, Some(key), what, weight(of_doubt));
        }
        for key in NOT_OF_PLUGINS.into_iter().filter(|key| is_plugins && fields.contains_key(*key)) {
            self.trouble(&at, Some(key), format!("{key} has no effect in a plugin's agent"), Weight::Note);
        }
        if let OfferedTools::Only(tools) = &agent.tools
            && !is_plugins
        {
            let names = tools.iter().filter_map(|tool| agents_named(tool)).flatten();
            self.named.extend(names.map(|name| (name.to_owned(), at.file.clone(), at.line_of(Some("tools")))));
        }
        for what in hooks_of(&agent).1 {
            self.trouble(&at, Some("hooks"), what, Weight::Warning);
        }
        for what in servers_in(&agent).findings {
            self.trouble(&at, Some("mcpServers"), what, Weight::Warning);
        }
        let is_strange = agent.source == DefinitionSource::Project
            && at.line.is_none() // those of settings have come through trust already
            && !trust.is_some_and(|trust| trust.covers(&agent.claim(&at.text, &at.place(trust.site()), trust.site())));
        let asks = if is_strange { agent.asks_for() } else { Vec::new() };
        if !asks.is_empty() {
            let what = format!("{} does not get this until you trust it: {}", agent.name, asks.join(", "));
            self.trouble(&at, None, what, Weight::Warning);
        }
        let file =
            Some(at.file).filter(|_| !matches!(agent.source, DefinitionSource::BuiltIn | DefinitionSource::Flag));
        let agent = Definition { file, ..agent };
        let agent = if is_strange { agent.narrowed() } else { agent };
        self.all.push(ListedAgent { agent, replaced_by: None });
    }

    fn trouble(&mut self, at: &DefinitionPlace, key: Option<&str>, what: String, weight: Weight) {
        self.troubles.push(DefinitionTrouble { file: at.file.clone(), line: at.line_of(key), what, weight });
    }

    /// Lets the strongest of each name win; within one source, the later.
    fn settle(&mut self) {
        let rank = |one: &ListedAgent| match one.agent.standing {
            // A stranger's replaces nothing: it would do more than what is known by that name.
            DefinitionStatus::Narrowed => (one.agent.name.clone(), None, one.agent.source),
            DefinitionStatus::Whole => (one.agent.name.clone(), Some(one.agent.source), one.agent.source),
        };
        let ranks: Vec<_> = self.all.iter().map(rank).collect();
        for (at, one) in self.all.iter_mut().enumerate() {
            let rivals = ranks.iter().enumerate().filter(|(_, (name, ..))| *name == one.agent.name);
            let strongest = rivals.max_by_key(|(place, (_, rank, _))| (*rank, *place));
            one.replaced_by = strongest.filter(|(place, _)| *place != at).map(|(_, (.., source))| *source);
        }
        self.all
            .sort_by(|one, other| (one.agent.source, &one.agent.name).cmp(&(other.agent.source, &other.agent.name)));
        self.look_for_named();
    }

    /// Reports agents that are named but do not exist, among all that are known by now.
    fn look_for_named(&mut self) {
        let base_paths = BasePaths { directory: Path::new("/"), home: None };
        let is_there = |name: &str| {
            // What the rule denies is what it is about.
            let about =
                Rules { deny: rules(&[format!("Agent({name})")], &base_paths).unwrap_or_default(), ..Rules::default() };
            is_denied(FORK, &about) || self.agents().any(|agent| agent.is_denied(&about))
        };
        let missing = |(name, file, line): &(String, PathBuf, usize)| {
            if is_there(name) {
                return None;
            }
            let meant = self.agents().find(|agent| agent.name.eq_ignore_ascii_case(name));
            let meant = meant.map(|agent| format!("; did you mean {}?", agent.name)).unwrap_or_default();
            let what = format!("tools names the agent {name:?}, but there is no such agent{meant}");
            Some(DefinitionTrouble { file: file.clone(), line: *line, what, weight: Weight::Warning })
        };
        let missed: Vec<DefinitionTrouble> = self.named.iter().filter_map(missing).collect();
        self.troubles.retain(|trouble| !self.missed.contains(trouble));
        self.troubles.extend(missed.iter().cloned());
        self.missed = missed;
    }

    /// All definitions that could be read, including those replaced by another of their name.
    pub fn all(&self) -> &[ListedAgent] {
        &self.all
    }

    /// The agents that can be started.
    pub fn agents(&self) -> impl Iterator<Item = &Definition> {
        self.all.iter().filter(|one| one.replaced_by.is_none()).map(|one| &one.agent)
    }

    /// The agent of a name.
    pub fn find(&self, name: &str) -> Option<&Definition> {
        self.agents().find(|agent| agent.name == name)
    }

    /// Problems with definitions.
    pub fn troubles(&self) -> &[DefinitionTrouble] {
        &self.troubles
    }
}
