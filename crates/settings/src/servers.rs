//! MCP servers that are defined for a session: by whom, and which of them may be started.
//!
//! Of several with one name the strongest source wins whole. What a project's files define needs trust, by content; nothing
//! is expanded or started here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use mcp::{ServerDefinition, ServerDefinitions};
use serde_json::Value;

use crate::kind::ValuePart;
use crate::trust::{Claim, ProjectServers, Trust, TrustSite, texts};

pub use crate::trust::PROJECT_SERVERS as PROJECT_FILE;
use crate::{SetValue, Settings, SettingsSource, ValueOrigin, ValueStatus, keys};

/// The largest file of Claude Code that is read: it has much else in it.
const CLAUDE_LIMIT: u64 = 64 * 1024 * 1024;

/// The places where servers are defined, besides settings.
#[derive(Debug, Default)]
pub struct ServerSources {
    /// Given by flags, each with the place to name in messages, the strongest first.
    pub flags: Vec<(String, Value)>,
    /// True if flags alone count.
    pub only_flags: bool,
    /// Claude Code's file of the user's servers.
    pub claude_json: Option<PathBuf>,
    /// True if the project's file counts.
    pub project: bool,
    /// True if the user's file counts.
    pub user: bool,
    /// Servers of plugins.
    pub plugins: Vec<PluginServers>,
}

/// The servers of a plugin.
#[derive(Debug, Clone)]
pub struct PluginServers {
    /// The plugin's name.
    pub plugin: String,
    /// Its `mcpServers` object.
    pub servers: Value,
    /// The file it comes from.
    pub place: String,
}

/// The author of a definition, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerAuthor {
    /// Given for this run, or managed by an organisation.
    Given,
    /// The user, for this project.
    Local,
    /// The project.
    Project,
    /// The user, everywhere.
    User,
    /// A plugin.
    Plugin,
}

/// Whether a server may be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerApproval {
    /// It may.
    Approved,
    /// The user has not agreed to it yet.
    Needed(Claim),
    /// It is switched off, by this file or key.
    Disabled(String),
}

/// A server, as it is defined.
#[derive(Debug, Clone)]
pub struct DefinedServer {
    /// Its name.
    pub name: String,
    /// Its definition, with variables as they are written.
    pub definition: ServerDefinition,
    /// Its author.
    pub author: ServerAuthor,
    /// The file it comes from.
    pub place: String,
    /// Whether it may be started.
    pub approval: ServerApproval,
}

/// All servers that are defined, by name.
#[derive(Debug, Clone, Default)]
pub struct DefinedServers {
    /// The servers.
    pub servers: BTreeMap<String, DefinedServer>,
    /// Problems of entries.
    pub findings: Vec<String>,
}

impl ServerAuthor {
    /// A word for lists.
    pub fn name(self) -> &'static str {
        match self {
            Self::Given => "flag",
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
            Self::Plugin => "plugin",
        }
    }
}

impl DefinedServers {
    /// Reads all sources.
    pub fn read(sources: &ServerSources, settings: &Settings, trust: &Trust) -> Self {
        let mut defined = Self::default();
        for (place, servers) in &sources.flags {
            defined.add(servers, ServerAuthor::Given, place, &|_, _| ServerApproval::Approved);
        }
        if sources.only_flags {
            return defined;
        }
        let claude = sources.claude_json.as_deref().filter(|_| sources.user).map(ClaudeServers::read);
        let claude = claude.unwrap_or_default();
        defined
            .add_settings(settings, trust, |source| matches!(source, SettingsSource::Managed | SettingsSource::Flag));
        let of_project = claude.of(trust.site());
        let approved = |_: &str, _: &Value| ServerApproval::Approved;
        defined.add(&of_project["mcpServers"], ServerAuthor::Local, &claude.place, &approved);
        if sources.project {
            for file in ProjectServers::read(trust.site()) {
                let approval = |name: &str, entry: &Value| {
                    let claim = file.claim(name, entry, trust.site());
                    if trust.covers(&claim) { ServerApproval::Approved } else { ServerApproval::Needed(claim) }
                };
                defined.add(&file.servers, ServerAuthor::Project, &file.place, &approval);
            }
        }
        defined.add_settings(settings, trust, SettingsSource::is_below_project);
        defined.add_settings(settings, trust, |source| source == SettingsSource::User);
        defined.add(&claude.file["mcpServers"], ServerAuthor::User, &claude.place, &approved);
        for plugin in &sources.plugins {
            defined.add_plugin(plugin);
        }
        let off = ["disabledMcpServers", "disabledMcpjsonServers"].into_iter();
        let off: BTreeSet<&str> = off.flat_map(|key| texts(&of_project[key])).collect();
        defined.switch_off(&settings.disabled_servers, &off, &claude.place);
        defined
    }

    pub(crate) fn add(
        &mut self,
        servers: &Value,
        author: ServerAuthor,
        place: &str,
        approval: &dyn Fn(&str, &Value) -> ServerApproval,
    ) {
        if servers.is_null() {
            return;
        }
        let read = ServerDefinitions::from_json(servers);
        self.findings.extend(read.findings.iter().map(|finding| format!("{place}: {finding}")));
        for (name, definition) in read.servers {
            if self.servers.contains_key(&name) {
                continue;
            }
            let approval = approval(&name, &servers[&name]);
            let place = place.to_owned();
            self.servers.insert(name.clone(), DefinedServer { name, definition, author, place, approval });
        }
    }

    fn add_plugin(&mut self, plugin: &PluginServers) {
        let own = |(name, entry): (&String, &Value)| (mcp::plugin_server(&plugin.plugin, name), entry.clone());
        let servers: Value = plugin.servers.as_object().into_iter().flatten().map(own).collect();
        self.add(&servers, ServerAuthor::Plugin, &plugin.place, &|_, _| ServerApproval::Approved);
    }

    /// Adds the servers of settings files of some sources.
    fn add_settings(&mut self, settings: &Settings, trust: &Trust, counts: impl Fn(SettingsSource) -> bool) {
        let is_untrusted =
            |set: &&SetValue| set.key.name == keys::SERVERS.name && set.standing == ValueStatus::Untrusted;
        let untrusted = settings.sets.iter().filter(is_untrusted);
        for set in settings.servers.iter().rev().chain(untrusted).filter(|set| counts(set.origin.source)) {
            let ValuePart::Entry(name) = &set.part else { continue };
            let approval = match set.standing {
                ValueStatus::Untrusted => ServerApproval::Needed(Claim::of_set(set, trust.site())),
                _ => ServerApproval::Approved,
            };
            let servers = Value::from_iter([(name.clone(), set.value.clone())]);
            self.add(&servers, author(set), &set.origin.to_string(), &|_, _| approval.clone());
        }
    }

    fn switch_off(&mut self, disabled: &[(String, ValueOrigin)], in_claude: &BTreeSet<&str>, place: &str) {
        for server in self.servers.values_mut() {
            if let Some((_, origin)) = disabled.iter().find(|(name, _)| *name == server.name) {
                server.approval = ServerApproval::Disabled(origin.to_string());
            } else if in_claude.contains(server.name.as_str()) {
                server.approval = ServerApproval::Disabled(place.to_owned());
            } else if server.definition.disabled {
                server.approval = ServerApproval::Disabled(server.place.clone());
            }
        }
    }
}

fn author(set: &SetValue) -> ServerAuthor {
    match set.origin.source {
        SettingsSource::User => ServerAuthor::User,
        SettingsSource::Project => ServerAuthor::Project,
        SettingsSource::Local => ServerAuthor::Local,
        SettingsSource::Flag | SettingsSource::Managed => ServerAuthor::Given,
    }
}

/// The servers in Claude Code's own file.
#[derive(Default)]
struct ClaudeServers {
    file: Value,
    place: String,
}

impl ClaudeServers {
    fn read(path: &Path) -> Self {
        Self { file: read_json(path, CLAUDE_LIMIT).unwrap_or_default(), place: path.display().to_string() }
    }

    /// What it has about a project: of its directory, or of the nearest one above it in the checkout.
    fn of(&self, site: &TrustSite) -> Value {
        let above = site.directory().ancestors().take_while(|above| above.starts_with(site.top()));
        let mut known = above.map(|directory| &self.file["projects"][directory.to_string_lossy().as_ref()]);
        known.find(|project| project.is_object()).cloned().unwrap_or_default()
    }
}

fn read_json(path: &Path, limit: u64) -> Option<Value> {
    serde_json::from_slice(&files::read(path, limit).ok()?.bytes).ok()
}
