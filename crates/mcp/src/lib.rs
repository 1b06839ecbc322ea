//! The client of the Model Context Protocol: servers that offer tools, resources and prompts.
//!
//! A [`ServerDefinition`] is read from JSON, an [`Endpoint`] is the way to the server, and an [`McpServer`] is one
//! connection with its state. What it offers is a value, [`ServerStatus`], that a caller can watch.
//!
//! What this crate refuses to do: start a process (the caller opens the pipes), read the environment (the caller looks
//! variables up), decide about trust or permissions, open a browser, answer for the user, or let a server sample
//! the model. A server's text is data: it is cut, never interpreted.

mod authorization;
mod begin_login;
mod callback;
mod definition;
mod elicitation;
mod endpoint;
mod error;
mod expand_variables;
mod http;
mod input_schema;
mod names;
mod offer;
mod origin;
mod outcome;
mod server;
mod token_files;

pub use begin_login::Login;
pub use callback::{Callback, CallbackListener};
pub use definition::{
    DefinitionError, DefinitionFinding, ExpandedDefinition, HttpDefinition, OAuthSettings, ServerDefinition,
    ServerDefinitions, ServerTransport, StdioDefinition, ToolLoading,
};
pub use elicitation::form::{FieldKind, FieldOption, FormField, form_fields, form_values};
pub use elicitation::{Elicitation, ElicitationAnswer, ElicitationRequest};
pub use endpoint::{Endpoint, HeadersHelper, HttpEndpoint, LastWords, OpenPipes, Pipes};
pub use error::Error;
pub use expand_variables::{NamedVariable, VariableKind, is_credential, is_provider_key};
pub use input_schema::{SchemaProblem, flat_schema};
pub use names::{
    LONGEST_TOOL_NAME, RESERVED_SERVERS, is_reserved, plugin_server, server_keys, short_description, tool_names,
};
pub use offer::{PromptArgument, PromptOffer, ResourceOffer, ResourceTemplateOffer, ToolInteraction, ToolOffer};
pub use outcome::{CallProgress, OnProgress, PromptReply, ServerReply};
pub use server::{McpServer, ServerLimits, ServerOptions, ServerState, ServerStatus};
pub use token_files::{LoginClient, TokenFiles, TokenStore, Tokens};
