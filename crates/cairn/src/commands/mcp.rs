//! `cairn mcp`: the MCP servers there are, and what they offer.

mod change;
mod login;

use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use engine::servers::{SessionServer, SessionServers};
use mcp::{ServerState, ServerTransport};
use serde_json::{Value, json};
use settings::servers::{DefinedServer, ServerApproval};

use crate::exit::Code;
use crate::out::{self, data, talk};
use crate::program_paths::ProgramPaths;
use crate::server_setup;
use crate::styled_text::{bold, dim, one_line};
use crate::trusted_settings::{self, RunTrust};

/// The most characters of a description in a list.
const ABOUT: usize = 100;
/// Time that servers have to answer a check.
const PATIENCE: Duration = Duration::from_secs(35);

/// List, add, check and log in to MCP servers.
///
/// Servers come from your settings and Claude Code's file, from a project's `.mcp.json` once you trust it, and from
/// `--mcp-config` for one session. Claude Code's file is read and never written.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    command: McpCommand,
}

const EXAMPLES: &str = "\
Examples:
  cairn mcp add db -- npx -y db-server --read-only    a program, in your settings
  cairn mcp add db --env DB_TOKEN='${DB_TOKEN}' -- npx -y db-server
  cairn mcp add docs https://example.com/mcp          an address
  cairn mcp add --project docs https://example.com/mcp     in .mcp.json, for everybody
  cairn mcp list                                      all servers, and whether they may be started
  cairn mcp check db                                  start it, and show its tools
  cairn mcp login docs                                log in with your browser";

#[derive(Debug, Subcommand)]
enum McpCommand {
    /// Print the servers there are, without starting them.
    List {
        /// One JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Print one server's definition.
    Get {
        /// Its name.
        name: String,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Add a server to your settings, or to the project's `.mcp.json`.
    Add(change::AddArgs),
    /// Remove a server from your settings, or from the project's `.mcp.json`.
    Remove {
        /// Its name.
        name: String,
        /// From the project's `.mcp.json`.
        #[arg(long)]
        project: bool,
    },
    /// Start servers, and print what they offer or why they fail.
    Check {
        /// Its name; all of them if none is given.
        name: Option<String>,
        /// One JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Log in to a server in your browser.
    Login {
        /// Its name.
        name: String,
        /// Do not open a browser: print the address, and read the one that the browser ended up at.
        #[arg(long)]
        no_browser: bool,
    },
    /// Forget the login to a server.
    Logout {
        /// Its name.
        name: String,
    },
}

/// Runs a command about servers.
pub(crate) async fn run(args: &McpArgs) -> anyhow::Result<Code> {
    let place = ProgramPaths::from_env()?;
    match &args.command {
        McpCommand::List { json } => list(&place, *json),
        McpCommand::Get { name, json } => get(&place, name, *json),
        McpCommand::Add(added) => change::add(&place, added),
        McpCommand::Remove { name, project } => change::remove(&place, name, *project),
        McpCommand::Check { name, json } => check(&place, name.as_deref(), *json).await,
        McpCommand::Login { name, no_browser } => login::login(&place, name, *no_browser).await,
        McpCommand::Logout { name } => login::logout(&place, name),
    }
}

/// The servers that are defined here, with problems told.
fn defined(place: &ProgramPaths) -> anyhow::Result<Vec<DefinedServer>> {
    let judged = trusted_settings::judge(place, None, RunTrust::No)?;
    let defined = server_setup::defined(place, &judged);
    defined.findings.iter().for_each(|finding| out::warn(finding));
    Ok(defined.servers.into_values().collect())
}

/// The server of a name.
fn named(place: &ProgramPaths, name: &str) -> anyhow::Result<DefinedServer> {
    let all = defined(place)?;
    let names: Vec<&str> = all.iter().map(|server| server.name.as_str()).collect();
    let unknown = match names.as_slice() {
        [] => anyhow::anyhow!("there are no MCP servers here; `cairn mcp add` adds one"),
        names => anyhow::anyhow!("there is no MCP server {name}; there are {}", names.join(", ")),
    };
    all.iter().find(|server| server.name == name).cloned().ok_or(unknown)
}

fn list(place: &ProgramPaths, as_json: bool) -> anyhow::Result<Code> {
    let all = defined(place)?;
    if as_json {
        data!("{}", all.iter().map(line).collect::<Value>())?;
        return Ok(Code::Success);
    }
    if all.is_empty() {
        talk!("There are no MCP servers; `cairn mcp add` adds one.");
    }
    for server in &all {
        data!([bold(&server.name), "  ", way(server), dim(&format!("  {}", status_text(server)))])?;
    }
    Ok(Code::Success)
}

fn get(place: &ProgramPaths, name: &str, as_json: bool) -> anyhow::Result<Code> {
    let server = named(place, name)?;
    if as_json {
        data!("{}", line(&server))?;
        return Ok(Code::Success);
    }
    data!([bold(&server.name)])?;
    data!(["  ", way(&server)])?;
    data!(["  defined in ", server.place.as_str()])?;
    data!(["  ", status_text(&server)])?;
    for variable in server.definition.variables() {
        data!(["  gets your variable ", variable.name.as_str()])?;
    }
    Ok(Code::Success)
}

/// A server for scripts: without values, which may be secrets.
fn line(server: &DefinedServer) -> Value {
    let variables: Vec<String> = server.definition.variables().into_iter().map(|variable| variable.name).collect();
    let (kind, mut line) = match &server.definition.transport {
        ServerTransport::Stdio(stdio) => ("stdio", json!({"command": stdio.command, "args": stdio.args})),
        ServerTransport::Http(http) => ("http", json!({"url": http.url})),
    };
    line["name"] = json!(server.name);
    line["type"] = json!(kind);
    line["author"] = json!(server.author.name());
    line["file"] = json!(server.place);
    line["approved"] = json!(server.approval == ServerApproval::Approved);
    line["variables"] = json!(variables);
    line
}

/// The program or the address.
fn way(server: &DefinedServer) -> String {
    match &server.definition.transport {
        ServerTransport::Stdio(stdio) => {
            let words: Vec<&str> = [&stdio.command].into_iter().chain(&stdio.args).map(String::as_str).collect();
            words.join(" ")
        }
        ServerTransport::Http(http) => http.url.clone(),
    }
}

/// Its author, and its approval.
fn status_text(server: &DefinedServer) -> String {
    let whose = server.author.name();
    match &server.approval {
        ServerApproval::Approved => format!("({whose})"),
        ServerApproval::Needed(_) => format!("({whose}, not trusted yet: a session in a terminal asks)"),
        ServerApproval::Disabled(place) => format!("({whose}, switched off in {place})"),
    }
}

async fn check(place: &ProgramPaths, name: Option<&str>, as_json: bool) -> anyhow::Result<Code> {
    let chosen = match name {
        Some(name) => vec![named(place, name)?],
        None => defined(place)?,
    };
    let judged = trusted_settings::judge(place, None, RunTrust::No)?;
    let environment = engine::configuration::environment(&judged.settings);
    let surroundings = server_setup::surroundings(place, Vec::new(), environment, std::collections::BTreeMap::new());
    let defined = settings::servers::DefinedServers {
        servers: chosen.into_iter().map(|server| (server.name.clone(), server)).collect(),
        findings: Vec::new(),
    };
    let servers = SessionServers::new(&defined, &surroundings);
    servers.findings().iter().for_each(|finding| out::warn(finding));
    talk!("Connecting…");
    servers.start();
    servers.settled(PATIENCE, |_| true).await;
    let all = servers.all();
    let is_fine = |server: &Arc<SessionServer>| server.status().is_none_or(|status| status.state == ServerState::Ready);
    let code = if all.iter().all(is_fine) { Code::Success } else { Code::Failure };
    if as_json {
        data!("{}", all.iter().map(server_setup::server_line).collect::<Value>())?;
    } else {
        all.iter().try_for_each(show)?;
    }
    servers.close().await;
    Ok(code)
}

fn show(server: &Arc<SessionServer>) -> anyhow::Result<()> {
    let Some(status) = server.status() else {
        let status = server.defined.as_ref().map(status_text).unwrap_or_default();
        return Ok(data!([bold(&server.name), "  not started ", dim(&status)])?);
    };
    data!([bold(&server.name), "  ", server_setup::state_words(server)])?;
    for (name, tool) in server.tool_names().iter().zip(&status.tools) {
        data!(["  ", name.as_str(), dim(&format!("  {}", one_line(&tool.description, ABOUT)))])?;
    }
    for resource in &status.resources {
        data!(["  @", server.name.as_str(), ":", resource.uri.as_str()])?;
    }
    for prompt in server.prompt_names() {
        data!(["  /", prompt.as_str()])?;
    }
    for problem in &status.problems {
        data!(["  ", dim(problem)])?;
    }
    Ok(())
}
