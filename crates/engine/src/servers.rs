//! The MCP servers of a session, shared by an agent and those it starts.
//!
//! They are connected in the background and never hold up a conversation. Their tools are found by name: the model is told
//! the names, and loads definitions when it needs them, so that a server that comes or goes changes nothing that was sent.
//! What a server says of its tools is data; whether a call runs is for the gate.

mod connect;
mod loaded;
mod questions;
mod search;
mod server_tool;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcp::{McpServer, ServerState, ServerStatus, ToolLoading, ToolOffer, server_keys, tool_names};
use settings::servers::{DefinedServer, DefinedServers, ServerApproval};
use tokio::sync::Semaphore;
use tools::{Environment, Tool};

pub use connect::http_endpoint;
pub(crate) use loaded::LoadedTools;
pub use questions::elicitation;
pub(crate) use search::loaded;
pub use search::{ToolSearch, ToolSearchInput};
use server_tool::ServerTool;

/// Programs that are started at the same time, as Claude Code has it.
const PROGRAMS_AT_ONCE: usize = 3;
/// Addresses that are connected to at the same time, as Claude Code has it.
const ADDRESSES_AT_ONCE: usize = 20;

/// Everything that servers are started with.
#[derive(Clone)]
pub struct ServerSurroundings {
    /// The directory of the session.
    pub directory: PathBuf,
    /// Folders that servers may know about.
    pub roots: Vec<PathBuf>,
    /// Environment variables of commands.
    pub environment: Environment,
    /// The [guard](tools::guard) program.
    pub guard: Option<PathBuf>,
    /// Reads an environment variable of this program.
    pub variable: fn(&str) -> Option<String>,
    /// The folder with the tokens of logins.
    pub tokens: PathBuf,
    /// Ways to servers within the program that drives the session, by name.
    pub hosted: BTreeMap<String, Arc<dyn mcp::OpenPipes>>,
    /// The way to the user, for questions of servers.
    pub elicitation: Option<Arc<dyn mcp::Elicitation>>,
}

/// The MCP servers of a session.
pub struct SessionServers {
    servers: Vec<Arc<SessionServer>>,
    findings: Vec<String>,
    surroundings: ServerSurroundings,
}

/// One server of a session.
pub struct SessionServer {
    /// Its name.
    pub name: String,
    /// Its definition and author; none if the program that drives the session has it.
    pub defined: Option<DefinedServer>,
    /// The part of its tools' names that stands for it.
    key: String,
    /// The connection; none if it may not be started.
    connection: Option<McpServer>,
}

/// A tool that is there now.
#[derive(Clone)]
pub(crate) struct OfferedTool {
    /// Its name for the model.
    pub(crate) name: String,
    pub(crate) offer: ToolOffer,
    pub(crate) server: Arc<SessionServer>,
}

impl SessionServers {
    /// Those that are defined. None of them is started yet.
    pub fn new(defined: &DefinedServers, surroundings: &ServerSurroundings) -> Self {
        let hosted = surroundings.hosted.keys().filter(|name| !defined.servers.contains_key(*name));
        let names = defined.servers.keys().chain(hosted.clone()).map(String::as_str);
        let keys = server_keys(names);
        let key = |name: &str| keys.get(name).cloned().unwrap_or_else(|| name.to_owned());
        let of_program = hosted.map(|name| SessionServer {
            name: name.clone(),
            defined: None,
            key: key(name),
            connection: connect::hosted(name, surroundings),
        });
        let mut findings = defined.findings.clone();
        let of_files = defined.servers.values().map(|server| {
            let connection = match server.approval {
                ServerApproval::Approved => Some(connect::server(server, surroundings, &mut findings)),
                ServerApproval::Needed(_) | ServerApproval::Disabled(_) => None,
            };
            SessionServer {
                name: server.name.clone(),
                defined: Some(server.clone()),
                key: key(&server.name),
                connection,
            }
        });
        let servers: Vec<Arc<SessionServer>> = of_program.chain(of_files).map(Arc::new).collect();
        Self { servers, findings, surroundings: surroundings.clone() }
    }

    /// These, and those of an agent alone, which are connected in the background and end with it. One of the agent's takes
    /// the place of another with its name.
    pub(crate) fn with_own(&self, defined: &DefinedServers) -> Self {
        let surroundings = ServerSurroundings { hosted: BTreeMap::new(), ..self.surroundings.clone() };
        let mut own = Self::new(defined, &surroundings);
        own.start();
        // One that would share a key with another could not be told apart from it.
        let others = self.servers.iter().filter(|server| own.servers.iter().all(|one| one.key != server.key));
        let others: Vec<Arc<SessionServer>> = others.cloned().collect();
        own.servers.extend(others);
        own
    }

    /// All of them, by name.
    pub fn all(&self) -> Vec<Arc<SessionServer>> {
        let mut all = self.servers.clone();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// The server of a name.
    pub fn find(&self, name: &str) -> Option<Arc<SessionServer>> {
        self.servers.iter().find(|server| server.name == name).cloned()
    }

    /// Problems with definitions.
    pub fn findings(&self) -> &[String] {
        &self.findings
    }

    /// True if there is none that may be started.
    pub fn is_empty(&self) -> bool {
        self.servers.iter().all(|server| server.connection.is_none())
    }

    /// Connects all that may be started, in the background.
    pub fn start(&self) {
        let programs = Arc::new(Semaphore::new(PROGRAMS_AT_ONCE));
        let addresses = Arc::new(Semaphore::new(ADDRESSES_AT_ONCE));
        for server in self.all().into_iter().filter(|server| server.connection.is_some()) {
            let room = if server.is_program() { programs.clone() } else { addresses.clone() };
            tokio::spawn(async move {
                let _turn = room.acquire_owned().await;
                server.connect().await;
            });
        }
    }

    /// Waits until each is ready or is not going to be, but no longer than this.
    pub async fn settled(&self, limit: Duration, which: impl Fn(&SessionServer) -> bool) {
        let waits = self.all().into_iter().filter(|server| which(server)).map(|server| async move {
            let Some(connection) = &server.connection else { return };
            let mut watch = connection.watch();
            let is_settled =
                |status: &Arc<ServerStatus>| !matches!(status.state, ServerState::Connecting | ServerState::Off);
            let _ = watch.wait_for(is_settled).await;
        });
        let _ = tokio::time::timeout(limit, futures_util::future::join_all(waits)).await;
    }

    /// Ends all connections.
    pub async fn close(&self) {
        let all = self.all();
        let off = all.iter().filter_map(|server| server.connection.as_ref()).map(McpServer::switch_off);
        futures_util::future::join_all(off).await;
    }

    /// The tools that are there now, by server.
    fn offered(&self) -> Vec<OfferedTool> {
        self.all().into_iter().flat_map(|server| server.offered()).collect()
    }

    /// The folders that servers may know about, from now on.
    pub async fn set_roots(&self, roots: &[PathBuf]) {
        for server in self.all() {
            if let Some(connection) = &server.connection {
                connection.set_roots(roots.to_vec()).await;
            }
        }
    }
}

impl SessionServer {
    /// Its state and offers now; none if it may not be started.
    pub fn status(&self) -> Option<Arc<ServerStatus>> {
        self.connection.as_ref().map(McpServer::status)
    }

    /// Connects it, again if it was connected.
    pub async fn connect(&self) -> Option<Arc<ServerStatus>> {
        Some(self.connection.as_ref()?.connect().await)
    }

    /// Ends its connection until it is connected again.
    pub async fn switch_off(&self) {
        if let Some(connection) = &self.connection {
            connection.switch_off().await;
        }
    }

    /// The connection, if it may be started.
    pub fn connection(&self) -> Option<&McpServer> {
        self.connection.as_ref()
    }

    /// True if its tools are in every request.
    pub fn is_always_loaded(&self) -> bool {
        self.defined.as_ref().is_some_and(|defined| defined.definition.loading == ToolLoading::Always)
    }

    /// Names of its tools for the model.
    pub fn tool_names(&self) -> Vec<String> {
        let Some(status) = self.status().filter(|status| status.state == ServerState::Ready) else { return Vec::new() };
        let names: Vec<&str> = status.tools.iter().map(|tool| tool.name.as_str()).collect();
        tool_names(&self.key, &names)
    }

    /// Names of its prompts, as users call them.
    pub fn prompt_names(&self) -> Vec<String> {
        let Some(status) = self.status().filter(|status| status.state == ServerState::Ready) else { return Vec::new() };
        let names: Vec<&str> = status.prompts.iter().map(|prompt| prompt.name.as_str()).collect();
        tool_names(&self.key, &names)
    }

    /// The name that a tool of its would have, for rules.
    pub(crate) fn tool_name(&self, tool: &str) -> String {
        tool_names(&self.key, &[tool]).concat()
    }

    fn is_program(&self) -> bool {
        let transport = self.defined.as_ref().map(|defined| &defined.definition.transport);
        matches!(transport, Some(mcp::ServerTransport::Stdio(_)))
    }

    fn offered(self: Arc<Self>) -> Vec<OfferedTool> {
        let Some(status) = self.status().filter(|status| status.state == ServerState::Ready) else { return Vec::new() };
        let offers = self.tool_names().into_iter().zip(status.tools.iter().cloned());
        offers.map(|(name, offer)| OfferedTool { name, offer, server: self.clone() }).collect()
    }
}

/// The servers' tools, as far as one agent may use them.
#[derive(Clone)]
pub struct ServerTools {
    servers: Arc<SessionServers>,
    allows: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    /// True if some of them are the agent's alone.
    has_own: bool,
}

impl ServerTools {
    /// All of them.
    pub fn of(servers: Arc<SessionServers>) -> Self {
        Self { servers, allows: Arc::new(|_| true), has_own: false }
    }

    /// Those of them that also pass a test of their name.
    #[must_use]
    pub(crate) fn only(&self, allows: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        let before = self.allows.clone();
        let allows = Arc::new(move |name: &str| before(name) && allows(name));
        Self { servers: self.servers.clone(), allows, has_own: self.has_own }
    }

    /// These, and the servers that a definition brings along.
    #[must_use]
    pub(crate) fn with_own(&self, defined: &DefinedServers) -> Self {
        let servers = Arc::new(self.servers.with_own(defined));
        Self { servers, allows: self.allows.clone(), has_own: true }
    }

    /// True if some of them are the agent's alone.
    pub(crate) fn has_own(&self) -> bool {
        self.has_own
    }

    /// The beginnings of the names of tools of some servers.
    pub(crate) fn prefixes<'n>(&self, names: impl Iterator<Item = &'n String>) -> Vec<String> {
        names.filter_map(|name| Some(format!("mcp__{}__", self.servers.find(name)?.key))).collect()
    }

    /// The servers.
    pub fn servers(&self) -> &Arc<SessionServers> {
        &self.servers
    }

    /// The tools that are there now.
    pub(crate) fn offered(&self) -> Vec<OfferedTool> {
        self.servers.offered().into_iter().filter(|tool| (self.allows)(&tool.name)).collect()
    }

    /// The tool of a name.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let offered = self.offered().into_iter().find(|tool| tool.name == name)?;
        Some(Arc::new(ServerTool::of(offered)))
    }

    /// Tools that belong into every request.
    pub fn always_loaded(&self) -> Vec<Arc<dyn Tool>> {
        let is_always =
            |tool: &OfferedTool| tool.offer.loading == ToolLoading::Always || tool.server.is_always_loaded();
        let always = self.offered().into_iter().filter(is_always);
        always.map(|tool| Arc::new(ServerTool::of(tool)) as Arc<dyn Tool>).collect()
    }
}
