//! The tools of MCP servers, as one agent is told of them: their names, once, and what changed since.
//!
//! What is told stays where it was told. A server that comes, goes or changes its tools adds a reminder at the end of the
//! conversation and touches nothing before it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use memory::quoting::quoted;
use session::{Error, LineMeta};
use tools::Tool;
use transcript::{Id, Injected, Purpose, tool_names};

use crate::live::LiveSession;
use crate::servers::{OfferedTool, ServerTools};

/// The most names of one server that are listed; the others are found by searching.
const MOST_NAMES: usize = 100;

/// Time that a session without a person waits for its servers, as Claude Code has it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Tools by server.
type ToolListing = BTreeMap<String, Vec<String>>;

/// Servers as one agent was told of them.
#[derive(Default)]
pub(super) struct AgentServers {
    /// Lines that list tools; unknown until first looked for.
    listings: Option<Vec<(Id, ToolListing)>>,
    /// True if they were waited for.
    waited: bool,
}

impl AgentServers {
    /// Waits once, at most for a moment, until the servers are there. Nobody types meanwhile: without this the first
    /// request would find none.
    pub(super) async fn wait(&mut self, live: &LiveSession) {
        if !std::mem::replace(&mut self.waited, true)
            && let Some(servers) = &live.work.servers
        {
            servers.servers().settled(PATIENCE, |_| true).await;
        }
    }

    /// Makes sure that the tools which are there are listed in view, and that those which are gone are said to be.
    pub(super) fn show(&mut self, live: &mut LiveSession) -> Result<(), Error> {
        let is_offered = live.work.tools.iter().any(|tool| tool.name() == tool_names::TOOL_SEARCH);
        let Some(servers) = live.work.servers.clone().filter(|_| is_offered) else { return Ok(()) };
        let listings = self.listings.get_or_insert_with(|| live.session.server_listings());
        let view = live.session.log().view();
        listings.retain(|(line, _)| view.shows(line));
        let mut told = ToolListing::new();
        listings.iter().for_each(|(_, listing)| told.extend(listing.clone()));
        let now = on_demand(&servers, &live.work.tools);
        let mut changed: ToolListing =
            now.iter().filter(|(server, tools)| told.get(*server) != Some(tools)).map(owned).collect();
        let gone = told.iter().filter(|(server, tools)| !tools.is_empty() && !now.contains_key(*server));
        changed.extend(gone.map(|(server, _)| (server.clone(), Vec::new())));
        if changed.is_empty() {
            return Ok(());
        }
        let text = listing(&changed, &told, &servers);
        let meta = LineMeta { servers: changed.clone(), ..LineMeta::default() };
        live.session.inject(&Injected::new(Purpose::Servers, &text), meta)?;
        listings.extend(live.session.log().tip().cloned().map(|line| (line, changed)));
        Ok(())
    }
}

fn owned((server, tools): (&String, &Vec<String>)) -> (String, Vec<String>) {
    (server.clone(), tools.clone())
}

/// The tools that are found by searching, by server: those that no request declares from the start.
fn on_demand(servers: &ServerTools, declared: &[Arc<dyn Tool>]) -> ToolListing {
    let mut listing = ToolListing::new();
    let is_declared = |tool: &OfferedTool| declared.iter().any(|one| one.name() == tool.name);
    for tool in servers.offered().into_iter().filter(|tool| !is_declared(tool)) {
        listing.entry(tool.server.name.clone()).or_default().push(tool.name);
    }
    listing
}

/// What is said about servers that changed.
fn listing(changed: &ToolListing, told: &ToolListing, servers: &ServerTools) -> String {
    let mut text = String::from("Tools of MCP servers; load them with ToolSearch before you call them:\n");
    for (server, tools) in changed {
        let before = told.get(server).filter(|before| !before.is_empty());
        let name = quoted(server);
        let _ = match before {
            _ if tools.is_empty() => writeln!(text, "\n{name} is not connected any more: its tools cannot be called."),
            None => writeln!(text, "\n{name}: {}", shortened(tools)),
            Some(before) => {
                let more: Vec<String> = tools.iter().filter(|tool| !before.contains(tool)).cloned().collect();
                let less: Vec<String> = before.iter().filter(|tool| !tools.contains(tool)).cloned().collect();
                let said = |what: &str, names: &[String]| match names {
                    [] => String::new(),
                    names => format!(" {what}: {}.", shortened(names)),
                };
                writeln!(text, "\n{name} changed.{}{}", said("New", &more), said("Gone", &less))
            }
        };
        let instructions = servers.servers().find(server).and_then(|server| server.status()?.instructions.clone());
        if let Some(instructions) = instructions.filter(|_| before.is_none() && !tools.is_empty()) {
            let _ = writeln!(text, "The server describes itself:\n{}", indented(&quoted(&instructions)));
        }
    }
    text.trim_end().to_owned()
}

fn shortened(names: &[String]) -> String {
    match names.split_at_checked(MOST_NAMES) {
        Some((first, rest)) if !rest.is_empty() => {
            format!("{} and {} more, which ToolSearch finds", first.join(", "), rest.len())
        }
        _ => names.join(", "),
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}
