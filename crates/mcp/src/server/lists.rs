//! The lists that a server offers, page by page, within limits.
//!
//! Entries are read one by one: a broken one is a problem of its own and hides no other.

use std::collections::{BTreeMap, BTreeSet};

use rmcp::RoleClient;
use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest, ListToolsRequest,
    PaginatedRequestParams, ServerResult,
};
use rmcp::service::{Peer, ServiceError};
use serde_json::Value;

use super::ServerLimits;
use super::fault::words;
use crate::definition::ToolLoading;
use crate::input_schema::flat_schema;
use crate::names::{cut, short_description};
use crate::offer::{PromptArgument, PromptOffer, ResourceOffer, ResourceTemplateOffer, ToolInteraction, ToolOffer};

/// The most bytes of a name or an address.
const LONGEST_NAME: usize = 512;
/// The most problems of one list that are told.
const MOST_PROBLEMS: usize = 20;
/// The upper limit of `anthropic/maxResultSizeChars`, as Claude Code has it.
const MOST_RESULT_CHARS: u64 = 500_000;

/// Entries of one list, with the problems of those that were left out.
pub(super) struct OfferList<T> {
    pub(super) entries: Vec<T>,
    pub(super) problems: Vec<String>,
}

/// A list of the protocol.
#[derive(Clone, Copy)]
pub(super) enum ListKind {
    Tools,
    Resources,
    Templates,
    Prompts,
}

impl ListKind {
    fn key(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    fn request(self, cursor: Option<String>) -> ClientRequest {
        let mut page = PaginatedRequestParams::default();
        page.cursor = cursor;
        let page = Some(page);
        match self {
            Self::Tools => ClientRequest::ListToolsRequest(ListToolsRequest {
                method: Default::default(),
                params: page,
                extensions: Default::default(),
            }),
            Self::Resources => ClientRequest::ListResourcesRequest(ListResourcesRequest {
                method: Default::default(),
                params: page,
                extensions: Default::default(),
            }),
            Self::Templates => ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest {
                method: Default::default(),
                params: page,
                extensions: Default::default(),
            }),
            Self::Prompts => ClientRequest::ListPromptsRequest(ListPromptsRequest {
                method: Default::default(),
                params: page,
                extensions: Default::default(),
            }),
        }
    }
}

/// All tools, sorted by name.
pub(super) async fn tools(
    peer: &Peer<RoleClient>,
    limits: &ServerLimits,
) -> Result<OfferList<ToolOffer>, ServiceError> {
    read(peer, limits, ListKind::Tools, tool, |tool| tool.name.clone()).await
}

/// All resources, sorted by address.
pub(super) async fn resources(
    peer: &Peer<RoleClient>,
    limits: &ServerLimits,
) -> Result<OfferList<ResourceOffer>, ServiceError> {
    read(peer, limits, ListKind::Resources, resource, |resource| resource.uri.clone()).await
}

/// All patterns of resources, sorted.
pub(super) async fn templates(
    peer: &Peer<RoleClient>,
    limits: &ServerLimits,
) -> Result<OfferList<ResourceTemplateOffer>, ServiceError> {
    read(peer, limits, ListKind::Templates, template, |template| template.uri_template.clone()).await
}

/// All prompts, sorted by name.
pub(super) async fn prompts(
    peer: &Peer<RoleClient>,
    limits: &ServerLimits,
) -> Result<OfferList<PromptOffer>, ServiceError> {
    read(peer, limits, ListKind::Prompts, prompt, |prompt| prompt.name.clone()).await
}

async fn read<T>(
    peer: &Peer<RoleClient>,
    limits: &ServerLimits,
    kind: ListKind,
    parse: fn(&Value) -> Result<T, String>,
    name: fn(&T) -> String,
) -> Result<OfferList<T>, ServiceError> {
    let mut entries = BTreeMap::new();
    let mut problems = Vec::new();
    let mut problem = |text: String| {
        if problems.len() < MOST_PROBLEMS {
            problems.push(words(&text));
        }
    };
    let (mut cursor, mut seen, mut count) = (None, BTreeSet::new(), 0);
    for page in 0.. {
        if page == limits.pages {
            problem(format!("its list of {} has more than {} pages; the rest is left out", kind.key(), limits.pages));
            break;
        }
        let result = value(peer.send_request(kind.request(cursor.take())).await?);
        let Some(list) = result[kind.key()].as_array() else { return Err(ServiceError::UnexpectedResponse) };
        for entry in list {
            count += 1;
            if count > limits.entries {
                break;
            }
            match parse(entry) {
                Ok(offer) if entries.contains_key(&name(&offer)) => {
                    problem(format!("it names {:?} twice in its list of {}", name(&offer), kind.key()));
                }
                Ok(offer) => _ = entries.insert(name(&offer), offer),
                Err(text) => problem(text),
            }
        }
        if count > limits.entries {
            problem(format!("its list of {} is longer than {}; the rest is left out", kind.key(), limits.entries));
            break;
        }
        match result["nextCursor"].as_str().filter(|next| !next.is_empty()) {
            Some(next) if seen.insert(next.to_owned()) => cursor = Some(next.to_owned()),
            Some(_) => {
                problem(format!("the pages of its list of {} go in a circle", kind.key()));
                break;
            }
            None => break,
        }
    }
    Ok(OfferList { entries: entries.into_values().collect(), problems })
}

/// The answer as JSON, whether rmcp understood all of it or not.
pub(super) fn value(result: ServerResult) -> Value {
    match result {
        ServerResult::CustomResult(custom) => custom.0,
        known => serde_json::to_value(known).unwrap_or(Value::Null),
    }
}

fn tool(entry: &Value) -> Result<ToolOffer, String> {
    let name = name_of(entry, "tool", "name")?;
    let schema = entry.get("inputSchema").unwrap_or(&Value::Null);
    let input_schema = flat_schema(schema).map_err(|problem| format!("its tool {name:?} is left out: {problem}"))?;
    let meta = &entry["_meta"];
    let is_set = |key: &str| meta[key].as_bool().unwrap_or(false);
    let most = meta["anthropic/maxResultSizeChars"].as_u64().map(|most| most.min(MOST_RESULT_CHARS));
    Ok(ToolOffer {
        name,
        title: title_of(entry),
        description: short_description(&text_of(entry, "description").unwrap_or_default()).into_owned(),
        input_schema,
        claims_read_only: entry["annotations"]["readOnlyHint"].as_bool().unwrap_or(false),
        loading: if is_set("anthropic/alwaysLoad") { ToolLoading::Always } else { ToolLoading::OnDemand },
        interaction: match is_set("anthropic/requiresUserInteraction") {
            true => ToolInteraction::EachTime,
            false => ToolInteraction::ByRules,
        },
        most_result_chars: most.and_then(|most| usize::try_from(most).ok()),
    })
}

fn resource(entry: &Value) -> Result<ResourceOffer, String> {
    let uri = name_of(entry, "resource", "uri")?;
    Ok(ResourceOffer {
        name: title_of(entry).or_else(|| text_of(entry, "name")).unwrap_or_else(|| uri.clone()),
        description: description_of(entry),
        media_type: text_of(entry, "mimeType").map(|kind| cut(&kind, LONGEST_NAME).into_owned()),
        size: entry["size"].as_u64(),
        uri,
    })
}

fn template(entry: &Value) -> Result<ResourceTemplateOffer, String> {
    let uri_template = name_of(entry, "resource template", "uriTemplate")?;
    let name = title_of(entry).or_else(|| text_of(entry, "name")).unwrap_or_else(|| uri_template.clone());
    Ok(ResourceTemplateOffer { name, description: description_of(entry), uri_template })
}

fn prompt(entry: &Value) -> Result<PromptOffer, String> {
    let name = name_of(entry, "prompt", "name")?;
    let argument = |argument: &Value| {
        Ok(PromptArgument {
            name: name_of(argument, "argument", "name")?,
            description: description_of(argument),
            required: argument["required"].as_bool().unwrap_or(false),
        })
    };
    let arguments = entry["arguments"].as_array().into_iter().flatten().map(argument);
    Ok(PromptOffer { description: description_of(entry), arguments: arguments.collect::<Result<_, String>>()?, name })
}

fn name_of(entry: &Value, what: &str, key: &str) -> Result<String, String> {
    let name = entry[key].as_str().ok_or_else(|| format!("one {what} has no `{key}`"))?;
    match name.is_empty() || name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
        true => Err(format!("a {what} has an invalid `{key}`: {:?}", cut(name, 60))),
        false => Ok(name.to_owned()),
    }
}

fn title_of(entry: &Value) -> Option<String> {
    let title = text_of(entry, "title").or_else(|| text_of(&entry["annotations"], "title"))?;
    Some(cut(&title, LONGEST_NAME).into_owned())
}

fn description_of(entry: &Value) -> Option<String> {
    text_of(entry, "description").map(|text| short_description(&text).into_owned())
}

fn text_of(entry: &Value, key: &str) -> Option<String> {
    entry[key].as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned)
}
