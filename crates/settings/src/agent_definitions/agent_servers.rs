//! The servers that an agent's definition brings along: an object of entries, or a list of such and of names.
//!
//! Names are those of the session's servers, which its agents have anyway. Whether a definition counts is decided before.

use serde_json::{Map, Value};

use super::{Definition, DefinitionSource};
use crate::servers::{DefinedServers, ServerApproval, ServerAuthor};

/// The servers of a definition, and the problems of its entries.
pub fn servers_in(definition: &Definition) -> DefinedServers {
    let mut defined = DefinedServers::default();
    let (own, findings) = entries(definition);
    let place = definition.file.as_ref().map(|file| file.display().to_string());
    let place = place.unwrap_or_else(|| format!("the agent {}", definition.name));
    let author = match definition.source {
        DefinitionSource::Project => ServerAuthor::Project,
        DefinitionSource::User => ServerAuthor::User,
        DefinitionSource::Plugin => ServerAuthor::Plugin,
        DefinitionSource::BuiltIn | DefinitionSource::Flag | DefinitionSource::Policy => ServerAuthor::Given,
    };
    defined.add(&Value::Object(own), author, &place, &|_, _| ServerApproval::Approved);
    defined.findings.extend(findings);
    defined
}

/// The entries of a definition, and what is neither an entry nor a name.
pub(super) fn entries(definition: &Definition) -> (Map<String, Value>, Vec<String>) {
    let (mut own, mut findings) = (Map::new(), Vec::new());
    match &definition.servers {
        None | Some(Value::String(_)) => {}
        Some(Value::Object(entries)) => own.extend(entries.clone()),
        Some(Value::Array(entries)) => {
            for entry in entries {
                match entry {
                    Value::Object(entries) => own.extend(entries.clone()),
                    Value::String(_) => {}
                    other => findings.push(format!("mcpServers: {other} is neither a name nor an entry")),
                }
            }
        }
        Some(_) => findings.push("mcpServers should be a list of names and entries".to_owned()),
    }
    (own, findings)
}
