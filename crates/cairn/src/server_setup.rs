//! The MCP servers of a session: from flags, settings and files to connections.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use engine::agent::Parts;
use engine::servers::{ServerSurroundings, SessionServer, SessionServers, elicitation};
use mcp::{OpenPipes, ServerState};
use serde_json::{Map, Value, json};
use settings::servers::{DefinedServers, ServerSources};

use crate::args::RunArgs;
use crate::env;
use crate::program_paths::ProgramPaths;
use crate::trusted_settings::TrustedSettings;

/// The largest file of servers that a flag may name.
const FILE_LIMIT: u64 = 1_000_000;
/// The `type` of a server within the program that drives the session.
const HOSTED: &str = "sdk";
/// The folder below the config home with the tokens of logins.
const TOKENS: &str = "cairn/mcp-logins";

/// Servers of flags: definitions, and the names of those that the driving program has.
struct FlagServers {
    defined: Vec<(String, Value)>,
    hosted: Vec<String>,
}

impl FlagServers {
    /// Reads the values of `--mcp-config`, the last of which is the strongest.
    fn read(values: &[String], place: &ProgramPaths) -> anyhow::Result<Self> {
        let mut flags = Self { defined: Vec::new(), hosted: Vec::new() };
        for value in values.iter().rev() {
            let (from, text) = match value.trim_start().starts_with('{') {
                true => ("--mcp-config".to_owned(), value.clone()),
                false => {
                    let path = place.directory.join(value);
                    let file = files::read(&path, FILE_LIMIT).with_context(|| format!("--mcp-config {value}"))?;
                    (place.short(&path), String::from_utf8_lossy(&file.bytes).into_owned())
                }
            };
            let mut config: Value =
                serde_json::from_str(&text).with_context(|| format!("--mcp-config: {from} is not JSON"))?;
            let servers = config["mcpServers"].take();
            anyhow::ensure!(servers.is_object(), "--mcp-config: {from} has no object `mcpServers`");
            let Value::Object(servers) = servers else { continue };
            let (hosted, own): (Map<String, Value>, Map<String, Value>) =
                servers.into_iter().partition(|(_, entry)| entry["type"] == HOSTED);
            flags.hosted.extend(hosted.into_iter().map(|(name, _)| name));
            flags.defined.push((from, Value::Object(own)));
        }
        Ok(flags)
    }
}

/// The servers that are defined for a session here.
pub(crate) fn defined(place: &ProgramPaths, judged: &TrustedSettings) -> DefinedServers {
    DefinedServers::read(&sources(Vec::new(), false, place, judged), &judged.settings, &judged.trust)
}

fn sources(
    flags: Vec<(String, Value)>,
    only_flags: bool,
    place: &ProgramPaths,
    judged: &TrustedSettings,
) -> ServerSources {
    ServerSources {
        flags,
        only_flags,
        claude_json: Some(place.claude_json()),
        project: place.sources.project,
        user: place.sources.user,
        plugins: judged.plugins.servers(),
    }
}

/// The servers of a session, none of them started.
pub(crate) fn servers(
    args: &RunArgs,
    place: &ProgramPaths,
    judged: &TrustedSettings,
    roots: Vec<PathBuf>,
    parts: &Parts,
) -> anyhow::Result<SessionServers> {
    let flags = FlagServers::read(&args.mcp_config, place)?;
    let sources = sources(flags.defined, args.strict_mcp_config, place, judged);
    let defined = DefinedServers::read(&sources, &judged.settings, &judged.trust);
    let mut hosted: BTreeMap<String, Arc<dyn OpenPipes>> = BTreeMap::new();
    if let Some((program, servers)) = args.server_host.get() {
        let names = flags.hosted.iter().chain(servers);
        hosted.extend(names.map(|name| (name.clone(), program.clone().pipes(name))));
    }
    let surroundings = surroundings(place, roots, parts.work.environment.clone(), hosted);
    let elicitation = elicitation(&parts.consent.approver);
    Ok(SessionServers::new(&defined, &ServerSurroundings { elicitation, ..surroundings }))
}

/// Everything that servers are started with.
pub(crate) fn surroundings(
    place: &ProgramPaths,
    roots: Vec<PathBuf>,
    environment: tools::Environment,
    hosted: BTreeMap<String, Arc<dyn OpenPipes>>,
) -> ServerSurroundings {
    ServerSurroundings {
        directory: place.directory.clone(),
        roots: [place.directory.clone()].into_iter().chain(roots).collect(),
        environment,
        guard: env::program(),
        variable: env::named,
        tokens: place.home.path().join(TOKENS),
        hosted,
        elicitation: None,
    }
}

/// A server, as a program is told of it.
pub(crate) fn server_line(server: &Arc<SessionServer>) -> Value {
    let mut line = json!({"name": server.name, "status": status_word(server)});
    if let Some(defined) = &server.defined {
        line["scope"] = json!(defined.author.name());
    }
    let Some(status) = server.status() else { return line };
    if let ServerState::Failed(why) = &status.state {
        line["error"] = json!(why);
    }
    if let Some(identity) = &status.identity {
        line["serverInfo"] = json!({"name": identity});
    }
    let tool = |tool: &mcp::ToolOffer| json!({"name": tool.name, "description": tool.description});
    line["tools"] = status.tools.iter().map(tool).collect();
    line
}

/// The state of a server, in the words of Claude Code.
pub(crate) fn status_word(server: &SessionServer) -> &'static str {
    match server.status().map(|status| status.state.clone()) {
        Some(ServerState::Ready) => "connected",
        Some(ServerState::Connecting) => "pending",
        Some(ServerState::NeedsLogin) => "needs-auth",
        Some(ServerState::Failed(_)) => "failed",
        Some(ServerState::Off) | None => "disabled",
    }
}

/// The state of a server, in words for people.
pub(crate) fn state_words(server: &SessionServer) -> String {
    let Some(status) = server.status() else { return "not started".to_owned() };
    match &status.state {
        ServerState::Ready => {
            let count = |count: usize, one: &str| match count {
                0 => None,
                1 => Some(format!("1 {one}")),
                many => Some(format!("{many} {one}s")),
            };
            let (tools, resources) = (status.tools.len(), status.resources.len() + status.templates.len());
            let parts = [count(tools, "tool"), count(resources, "resource"), count(status.prompts.len(), "prompt")];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            if parts.is_empty() { "connected".to_owned() } else { format!("connected, with {}", parts.join(", ")) }
        }
        ServerState::Connecting => "connecting".to_owned(),
        ServerState::NeedsLogin => format!("needs a login: cairn mcp login {}", server.name),
        ServerState::Failed(why) => format!("failed: {why}"),
        ServerState::Off => "off".to_owned(),
    }
}
