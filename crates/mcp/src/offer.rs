//! Offers of a server: tools, resources and prompts, as its text describes them, cut to size.

use serde_json::Value;
use transcript::ToolDefinition;

use crate::definition::ToolLoading;

/// A tool of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOffer {
    /// Its name on the wire, for [`crate::McpServer::call`].
    pub name: String,
    /// Its name for people.
    pub title: Option<String>,
    /// Its description, at most 2 KB.
    pub description: String,
    /// Schema of its input: an object, without alternatives at the root.
    pub input_schema: Value,
    /// The server's claim that it only reads. A hint: no permission follows from it.
    pub claims_read_only: bool,
    /// Present in each request, or loaded on demand.
    pub loading: ToolLoading,
    /// Need of the user's consent for each call, in every mode.
    pub interaction: ToolInteraction,
    /// Size of its results in characters up to which they may stay in the conversation, if it asks for one (≤ 500,000).
    pub most_result_chars: Option<usize>,
}

impl ToolOffer {
    /// The definition for a request, under the name that the caller gave it.
    pub fn definition(&self, name: &str) -> ToolDefinition {
        ToolDefinition {
            name: name.to_owned(),
            description: self.description.clone(),
            input_schema: self.input_schema.clone(),
        }
    }
}

/// Need of the user's consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolInteraction {
    /// Rules and modes decide, as for other tools.
    ByRules,
    /// The user is asked each time, without "always".
    EachTime,
}

/// A resource of a server, named `@server:uri` by users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceOffer {
    /// Its address.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// Its media type.
    pub media_type: Option<String>,
    /// Its size in bytes.
    pub size: Option<u64>,
}

/// A pattern of resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceTemplateOffer {
    /// Pattern of addresses (RFC 6570).
    pub uri_template: String,
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
}

/// A prompt of a server, a command to users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptOffer {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// Its arguments, in order.
    pub arguments: Vec<PromptArgument>,
}

/// An argument of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// True if it must be given.
    pub required: bool,
}
