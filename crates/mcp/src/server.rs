//! One server: its connection, its state, and what it offers.
//!
//! A server that fails, hangs or lies costs its own calls and nothing else. It never starts by itself: [`McpServer::connect`] does,
//! and after it a connection over HTTP that broke is tried again. One over pipes is not.

mod client_side;
mod content;
mod exchange;
mod fault;
mod listen;
mod lists;
mod open;
mod oversized;
mod shared;
mod supervise;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, GetPromptRequestParams, ReadResourceRequestParams};
use serde_json::{Map, Value};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::elicitation::Elicitation;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::offer::{PromptOffer, ResourceOffer, ResourceTemplateOffer, ToolOffer};
use crate::outcome::{OnProgress, PromptReply, ServerReply};
use exchange::{RoundTrip, exchange};
use shared::ServerCore;
use supervise::supervise;

/// State of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerState {
    /// Being connected, or connected again.
    Connecting,
    /// Answers.
    Ready,
    /// Wants a login.
    NeedsLogin,
    /// Cannot be used, and why, in its own words where it has any.
    Failed(String),
    /// Switched off, or never started.
    Off,
}

/// A server's state and offers at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerStatus {
    /// Its state.
    pub state: ServerState,
    /// Its tools, sorted by name. Those of the last connection while it is connected again.
    pub tools: Vec<ToolOffer>,
    /// Its resources, sorted by address.
    pub resources: Vec<ResourceOffer>,
    /// Its patterns of resources, sorted.
    pub templates: Vec<ResourceTemplateOffer>,
    /// Its prompts, sorted by name.
    pub prompts: Vec<PromptOffer>,
    /// Its instructions for the model, at most 2 KB.
    pub instructions: Option<String>,
    /// Its name and version, in its own words.
    pub identity: Option<String>,
    /// Revision of the protocol that is spoken.
    pub protocol: Option<String>,
    /// Problems that cost only a part, such as a tool whose schema no provider takes, or a list that could not be read again.
    pub problems: Vec<String>,
}

/// Limits on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerLimits {
    /// For starting: pipes, handshake and the first lists.
    pub start: Duration,
    /// For the probe of the protocol's revision, part of the start.
    pub probe: Duration,
    /// For a call as a whole.
    pub call: Duration,
    /// For a call without any sign of progress; none: as the transport has it.
    pub idle: Option<Duration>,
    /// For one message.
    pub message_bytes: usize,
    /// For the content of one reply.
    pub reply_bytes: usize,
    /// For the entries of a list.
    pub entries: usize,
    /// For the pages of a list.
    pub pages: usize,
}

impl Default for ServerLimits {
    /// Those of Claude Code where it documents them.
    fn default() -> Self {
        Self {
            start: Duration::from_secs(30),
            probe: Duration::from_secs(3),
            call: Duration::from_secs(28 * 3600),
            idle: None,
            message_bytes: 16 << 20,
            reply_bytes: 8 << 20,
            entries: 1000,
            pages: 100,
        }
    }
}

/// Everything about a server besides the way to it.
#[derive(Clone, Default)]
pub struct ServerOptions {
    /// Its limits.
    pub limits: ServerLimits,
    /// Folders that it may know about.
    pub roots: Vec<PathBuf>,
    /// The way to the user; none: every question is declined.
    pub elicitation: Option<Arc<dyn Elicitation>>,
}

/// One server. Dropping it ends the connection.
pub struct McpServer {
    shared: Arc<ServerCore>,
    running: tokio::sync::Mutex<Option<ConnectionTask>>,
}

/// The task that looks after a connection. Dropping it stops the task.
struct ConnectionTask {
    stop: DropGuard,
    task: JoinHandle<()>,
}

impl McpServer {
    /// A server that is not started yet.
    pub fn new(name: &str, endpoint: Endpoint, options: ServerOptions) -> Self {
        Self { shared: Arc::new(ServerCore::new(name, endpoint, options)), running: tokio::sync::Mutex::default() }
    }

    /// Its name, from its definition.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Its state and offers now.
    pub fn status(&self) -> Arc<ServerStatus> {
        self.shared.status.borrow().clone()
    }

    /// Its state and offers as they change.
    pub fn watch(&self) -> watch::Receiver<Arc<ServerStatus>> {
        self.shared.status.subscribe()
    }

    /// Connects it, again if it was connected, and waits until it is ready or is not going to be.
    pub async fn connect(&self) -> Arc<ServerStatus> {
        let mut running = self.running.lock().await;
        end(running.take()).await;
        let stop = CancellationToken::new();
        let (told, settled) = oneshot::channel();
        self.shared.set_state(ServerState::Connecting);
        let task = tokio::spawn(supervise(self.shared.clone(), stop.clone(), told));
        *running = Some(ConnectionTask { stop: stop.drop_guard(), task });
        drop(running);
        let _ = settled.await;
        self.status()
    }

    /// Challenge with which the server last wanted a login, for [`crate::Login::begin`].
    pub fn challenge(&self) -> Option<String> {
        self.shared.challenge.lock().clone()
    }

    /// Ends the connection and forgets the offers.
    pub async fn switch_off(&self) {
        let mut running = self.running.lock().await;
        end(running.take()).await;
        self.shared.update(|status| *status = ServerStatus::off());
    }

    /// Folders that it may know about, from now on.
    pub async fn set_roots(&self, roots: Vec<PathBuf>) {
        let is_same = {
            let mut own = self.shared.roots.lock();
            let is_same = *own == roots;
            *own = roots;
            is_same
        };
        let link = self.shared.link.lock().clone();
        // Only older revisions know this message.
        if let Some(link) = link.filter(|link| !is_same && link.has_handshake()) {
            let _ = link.peer.notify_roots_list_changed().await;
        }
    }

    /// Calls a tool by its name on the wire. Dropping the future cancels the call.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        progress: Option<OnProgress>,
    ) -> Result<ServerReply, Error> {
        let mut params = CallToolRequestParams::new(tool.to_owned());
        params.arguments = Some(arguments);
        let result = self.exchange(RoundTrip::Call(params), progress).await?;
        Ok(content::reply(&result, self.shared.limits.reply_bytes))
    }

    /// Reads a resource.
    pub async fn read_resource(&self, uri: &str) -> Result<ServerReply, Error> {
        let result = self.exchange(RoundTrip::Resource(ReadResourceRequestParams::new(uri)), None).await?;
        Ok(content::resource(&result, self.shared.limits.reply_bytes))
    }

    /// A prompt with its arguments filled in.
    pub async fn prompt(&self, prompt: &str, arguments: BTreeMap<String, String>) -> Result<PromptReply, Error> {
        let mut params = GetPromptRequestParams::new(prompt);
        let arguments: Map<String, Value> = arguments.into_iter().map(|(name, value)| (name, value.into())).collect();
        params.arguments = (!arguments.is_empty()).then_some(arguments);
        let result = self.exchange(RoundTrip::Prompt(params), None).await?;
        Ok(content::prompt(&result, self.shared.limits.reply_bytes))
    }

    async fn exchange(&self, request: RoundTrip, progress: Option<OnProgress>) -> Result<Value, Error> {
        let link = self.shared.link.lock().clone().ok_or_else(|| self.not_connected())?;
        let answer = exchange(&self.shared, &link, request, self.shared.limits.call, progress).await;
        match answer {
            Err(Error::NeedsLogin { server }) if self.shared.rejected() != ServerState::NeedsLogin => {
                Err(Error::Broken { server, message: "it rejected the headers of its definition".to_owned() })
            }
            answer => answer,
        }
    }

    fn not_connected(&self) -> Error {
        let server = self.shared.name.clone();
        let why = match &self.status().state {
            ServerState::NeedsLogin => return Error::NeedsLogin { server },
            ServerState::Connecting | ServerState::Ready => "it is being connected".to_owned(),
            ServerState::Off => "it is switched off".to_owned(),
            ServerState::Failed(why) => why.clone(),
        };
        Error::NotConnected { server, why }
    }
}

async fn end(running: Option<ConnectionTask>) {
    if let Some(ConnectionTask { stop, task }) = running {
        drop(stop);
        let _ = task.await;
    }
}

impl ServerStatus {
    fn off() -> Self {
        Self {
            state: ServerState::Off,
            tools: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            prompts: Vec::new(),
            instructions: None,
            identity: None,
            protocol: None,
            problems: Vec::new(),
        }
    }
}
