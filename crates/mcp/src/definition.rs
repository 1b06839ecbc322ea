//! Definitions of servers, as `mcpServers` of `.mcp.json` and its like has them.
//!
//! Broken entries are findings and do not hide the others. Nothing is expanded while reading: what an entry asks for is
//! known before the user is asked about it.

mod definition_from_json;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::expand_variables::{self, NamedVariable};
use crate::token_files::LoginClient;

/// One server, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerDefinition {
    /// The way to it.
    pub transport: ServerTransport,
    /// Limit on each call; none: the default.
    pub call_timeout: Option<Duration>,
    /// Loading of its tools.
    pub loading: ToolLoading,
    /// True if it is not to be started.
    pub disabled: bool,
}

/// The way to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerTransport {
    /// A process of ours.
    Stdio(StdioDefinition),
    /// An address.
    Http(HttpDefinition),
}

/// Loading of tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolLoading {
    /// By name, when the model asks for them.
    #[default]
    OnDemand,
    /// In every request from the start.
    Always,
}

/// A program to start. Values of its variables may be credentials, so they are never in Debug.
#[derive(Clone, PartialEq, Eq)]
pub struct StdioDefinition {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its variables, beside those that the caller gives.
    pub env: BTreeMap<String, String>,
}

/// An address. Values of its headers may be credentials, so they are never in Debug.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpDefinition {
    /// The address.
    pub url: String,
    /// Headers of every request.
    pub headers: BTreeMap<String, String>,
    /// Command that prints more headers as a JSON object.
    pub headers_helper: Option<String>,
    /// Client of a login.
    pub oauth: OAuthSettings,
}

/// Client of a login, as an entry's `oauth` has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OAuthSettings {
    /// Client that was registered beforehand.
    pub client_id: Option<String>,
    /// Port of the callback that was registered with it.
    pub callback_port: Option<u16>,
    /// Scopes to ask for, in place of those that the server names.
    pub scopes: Vec<String>,
    /// Address of the authorization server's metadata, in place of discovery.
    pub metadata_url: Option<String>,
}

/// The entries of an `mcpServers` object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerDefinitions {
    /// The good ones by name.
    pub servers: BTreeMap<String, ServerDefinition>,
    /// Problems of the others.
    pub findings: Vec<DefinitionFinding>,
}

/// A problem of an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("MCP server {server:?}: {problem}")]
pub struct DefinitionFinding {
    /// The entry's name.
    pub server: String,
    /// The problem.
    pub problem: DefinitionError,
}

/// Problem of an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// Not an object.
    #[error("the entry must be an object")]
    NotAnObject,
    /// No name, or one that cannot be shown.
    #[error("the name must have 1 to {most} characters and no control characters")]
    Name {
        /// The most characters.
        most: usize,
    },
    /// A name that Claude Code keeps for itself.
    #[error("the name is reserved; choose another one")]
    Reserved,
    /// The HTTP+SSE transport.
    #[error("the transport \"sse\" is not supported; most servers that have it also speak \"http\" at another path")]
    Sse,
    /// The WebSocket transport.
    #[error("the transport \"ws\" is not supported; use \"http\" or \"stdio\"")]
    WebSocket,
    /// A server within another program.
    #[error("the transport \"sdk\" is for servers within the program that started the session")]
    Sdk,
    /// Another `type`.
    #[error("the transport {0:?} is unknown; use \"stdio\" or \"http\"")]
    UnknownTransport(String),
    /// An address without `type`.
    #[error("`url` without `type`; add \"type\": \"http\"")]
    UrlWithoutType,
    /// A required key.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// A key with a value of another kind.
    #[error("`{key}` must be {wanted}")]
    Wrong {
        /// The key.
        key: &'static str,
        /// The expected value.
        wanted: &'static str,
    },
    /// A variable without value or default.
    #[error("the variable {0} is not set; its name stays in the text")]
    Unset(String),
    /// A key of a model provider.
    #[error("the variable {0} holds a model provider's key, which no server gets")]
    ProviderKey(String),
}

/// A definition with values in place of variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpandedDefinition {
    /// The definition.
    pub definition: ServerDefinition,
    /// Variables without value or default, once each.
    pub problems: Vec<DefinitionError>,
}

impl ServerDefinition {
    /// Reads one entry.
    pub fn from_json(entry: &Value) -> Result<Self, DefinitionError> {
        definition_from_json::definition(entry)
    }

    /// Variables that it names in command, arguments, environment, address and headers, in order of their names.
    pub fn variables(&self) -> Vec<NamedVariable> {
        let mut found = BTreeMap::new();
        for text in self.texts() {
            expand_variables::named(text, &mut found);
        }
        found.into_values().collect()
    }

    /// The definition with values in place of variables. `look_up` answers for those that may be seen.
    pub fn expand(&self, look_up: &dyn Fn(&str) -> Option<String>) -> ExpandedDefinition {
        let mut unset = Vec::new();
        let mut text = |text: &String| expand_variables::expanded(text, look_up, &mut unset);
        let mut definition = self.clone();
        match &mut definition.transport {
            ServerTransport::Stdio(stdio) => {
                stdio.command = text(&stdio.command);
                stdio.args.iter_mut().for_each(|arg| *arg = text(arg));
                stdio.env.values_mut().for_each(|value| *value = text(value));
            }
            ServerTransport::Http(http) => {
                http.url = text(&http.url);
                http.headers.values_mut().for_each(|value| *value = text(value));
            }
        }
        let unset: BTreeSet<String> = unset.into_iter().collect();
        let problem = |name: String| match expand_variables::is_provider_key(&name) {
            true => DefinitionError::ProviderKey(name),
            false => DefinitionError::Unset(name),
        };
        ExpandedDefinition { definition, problems: unset.into_iter().map(problem).collect() }
    }

    fn texts(&self) -> Vec<&String> {
        match &self.transport {
            ServerTransport::Stdio(stdio) => {
                [&stdio.command].into_iter().chain(&stdio.args).chain(stdio.env.values()).collect()
            }
            ServerTransport::Http(http) => [&http.url].into_iter().chain(http.headers.values()).collect(),
        }
    }
}

impl HttpDefinition {
    /// The client of its logins.
    pub fn login_client(&self) -> LoginClient {
        LoginClient {
            id: self.oauth.client_id.clone(),
            scopes: self.oauth.scopes.clone(),
            metadata_url: self.oauth.metadata_url.clone(),
            ..LoginClient::default()
        }
    }
}

impl ServerDefinitions {
    /// Reads an `mcpServers` object.
    pub fn from_json(servers: &Value) -> Self {
        definition_from_json::definitions(servers)
    }
}

impl fmt::Debug for StdioDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.env.keys().collect::<Vec<_>>();
        f.debug_struct("StdioDefinition").field("command", &self.command).field("env", &names).finish_non_exhaustive()
    }
}

impl fmt::Debug for HttpDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.headers.keys().collect::<Vec<_>>();
        f.debug_struct("HttpDefinition").field("headers", &names).field("oauth", &self.oauth).finish_non_exhaustive()
    }
}
