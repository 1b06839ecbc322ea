//! Claims of the servers in a project's file.

use std::path::Path;

use mcp::{ServerDefinition, VariableKind};
use serde_json::Value;

use super::{Claim, Kind, TrustSite};

/// The project's file of servers.
pub const PROJECT_SERVERS: &str = ".mcp.json";
/// The largest file of servers that is read.
const SERVERS_LIMIT: u64 = 1_000_000;

/// A project's file of servers.
pub(crate) struct ProjectServers {
    pub(crate) place: String,
    pub(crate) servers: Value,
}

impl ProjectServers {
    /// Those of a directory and of the top of its project, the nearest first. A broken file has none.
    pub(crate) fn read(site: &TrustSite) -> Vec<Self> {
        let mut folders: Vec<&Path> = vec![&site.directory, &site.top];
        folders.dedup();
        let file = |folder: &Path| {
            let path = folder.join(PROJECT_SERVERS);
            let file = files::read(&path, SERVERS_LIMIT).ok()?;
            let mut file: Value = serde_json::from_slice(&file.bytes).ok()?;
            Some(Self { place: site.short(&path), servers: file["mcpServers"].take() })
        };
        folders.into_iter().filter_map(file).collect()
    }

    /// Claims of its servers.
    pub(crate) fn claims(&self, site: &TrustSite) -> Vec<Claim> {
        let servers = self.servers.as_object().into_iter().flatten();
        servers.map(|(name, entry)| self.claim(name, entry, site)).collect()
    }

    pub(crate) fn claim(&self, name: &str, entry: &Value, site: &TrustSite) -> Claim {
        Claim::new(Kind::Server, claim_words(name, entry), &format!("{name}\n{entry}"), &self.place, site)
    }
}

/// A server in one line: what is started or connected to, and which variables it gets.
pub(crate) fn claim_words(name: &str, entry: &Value) -> String {
    let arguments = texts(&entry["args"]);
    let words: Vec<&str> = entry["command"].as_str().or(entry["url"].as_str()).into_iter().chain(arguments).collect();
    let helper = entry["headersHelper"].as_str().map(|helper| format!(", and runs {helper}")).unwrap_or_default();
    let variables = ServerDefinition::from_json(entry).map(|definition| definition.variables()).unwrap_or_default();
    let given = variables.iter().filter(|variable| variable.kind != VariableKind::ProviderKey);
    let given: Vec<&str> = given.map(|variable| variable.name.as_str()).collect();
    // Before the rest, which may be cut where it is shown.
    let gets = if given.is_empty() { String::new() } else { format!(" (gets your {})", given.join(", ")) };
    format!("{name}{gets}: {}{helper}", words.join(" "))
}

/// The texts of a list.
pub(crate) fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}
