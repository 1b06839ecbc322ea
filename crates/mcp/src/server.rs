//! One server: its connection, its state, and what it offers.
//!
//! A server that fails, hangs or lies costs its own calls and nothing else. It never starts by itself: [`McpServer::connect`] does,
//! and after it a connection over HTTP that broke is tried again. One over pipes is not.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::watch;

use crate::elicitation::Elicitation;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::offer::{PromptOffer, ResourceOffer, ResourceTemplateOffer, ToolOffer};
use crate::outcome::{OnProgress, PromptReply, ServerReply};

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
    name: String,
    status: watch::Sender<Arc<ServerStatus>>,
}

impl McpServer {
    /// A server that is not started yet.
    pub fn new(name: &str, _endpoint: Endpoint, _options: ServerOptions) -> Self {
        let (status, _) = watch::channel(Arc::new(ServerStatus::off()));
        Self { name: name.to_owned(), status }
    }

    /// Its name, from its definition.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its state and offers now.
    pub fn status(&self) -> Arc<ServerStatus> {
        self.status.borrow().clone()
    }

    /// Its state and offers as they change.
    pub fn watch(&self) -> watch::Receiver<Arc<ServerStatus>> {
        self.status.subscribe()
    }

    /// Connects it, again if it was connected, and waits until it is ready or is not going to be.
    pub async fn connect(&self) -> Arc<ServerStatus> {
        self.status()
    }

    /// Ends the connection and forgets the offers.
    pub async fn switch_off(&self) {}

    /// Folders that it may know about, from now on.
    pub fn set_roots(&self, _roots: Vec<PathBuf>) {}

    /// Calls a tool by its name on the wire. Dropping the future cancels the call.
    pub async fn call(
        &self,
        _tool: &str,
        _arguments: Map<String, Value>,
        _progress: Option<OnProgress>,
    ) -> Result<ServerReply, Error> {
        Err(self.not_connected())
    }

    /// Reads a resource.
    pub async fn read_resource(&self, _uri: &str) -> Result<ServerReply, Error> {
        Err(self.not_connected())
    }

    /// A prompt with its arguments filled in.
    pub async fn prompt(&self, _prompt: &str, _arguments: BTreeMap<String, String>) -> Result<PromptReply, Error> {
        Err(self.not_connected())
    }

    fn not_connected(&self) -> Error {
        Error::NotConnected { server: self.name.clone(), why: "not started".to_owned() }
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
