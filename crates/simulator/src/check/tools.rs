//! Tool definitions and the choice among them.

use std::collections::HashSet;

use serde_json::Value;

use super::{CheckedBody, invalid, is_name, no_other_fields, required_text};
use crate::cached_prompt::items;
use crate::schema::is_schema;

/// Longest name of a tool.
const LONGEST_NAME: usize = 128;

const CUSTOM_FIELDS: &[&str] = &[
    "type",
    "name",
    "description",
    "input_schema",
    "cache_control",
    "strict",
    "defer_loading",
    "allowed_callers",
    "input_examples",
    "eager_input_streaming",
];

/// Tools that the provider defines: the name before the date in their type.
const SERVER_TOOLS: &[&str] = &[
    "web_search",
    "web_fetch",
    "memory",
    "bash",
    "text_editor",
    "computer",
    "code_execution",
    "tool_search_tool_regex",
    "tool_search_tool_bm25",
    "advisor",
];

/// Every definition, and that their names differ.
pub(super) fn definitions(body: &Value) -> CheckedBody {
    let mut names = HashSet::new();
    for (index, tool) in items(&body["tools"]).enumerate() {
        let path = format!("tools.{index}");
        refuse_if!(!tool.is_object(), &path, "Input should be a valid dictionary");
        match tool["type"].as_str() {
            None | Some("custom") => custom(&format!("{path}.custom"), tool)?,
            Some("mcp_toolset") => continue,
            Some(kind) => {
                let known = kind.rsplit_once('_').is_some_and(|(name, date)| {
                    SERVER_TOOLS.contains(&name) && date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit())
                });
                if !known {
                    let problem =
                        format!("Input tag '{kind}' found using 'type' does not match any of the expected tags");
                    return Err(invalid(&path, problem));
                }
                required_text(&format!("{path}.{kind}"), tool, "name")?;
            }
        }
        refuse_if!(!names.insert(tool["name"].as_str().unwrap_or_default()), "tools", "Tool names must be unique.");
    }
    Ok(())
}

fn custom(path: &str, tool: &Value) -> CheckedBody {
    no_other_fields(path, tool, CUSTOM_FIELDS)?;
    if !is_name(required_text(path, tool, "name")?, LONGEST_NAME) {
        return Err(invalid(&format!("{path}.name"), "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"));
    }
    if !matches!(tool["description"], Value::Null | Value::String(_)) {
        return Err(invalid(&format!("{path}.description"), "Input should be a valid string"));
    }
    let schema = &tool["input_schema"];
    let path = format!("{path}.input_schema");
    match schema {
        Value::Null => return Err(invalid(&path, "Field required")),
        Value::Object(_) => {}
        _ => return Err(invalid(&path, "Input should be a valid dictionary")),
    }
    match &schema["type"] {
        Value::Null => return Err(invalid(&format!("{path}.type"), "Field required")),
        kind if kind == "object" => {}
        _ => return Err(invalid(&format!("{path}.type"), "Input should be 'object'")),
    }
    if ["oneOf", "allOf", "anyOf"].iter().any(|key| !schema[*key].is_null()) {
        return Err(invalid(&path, "input_schema does not support oneOf, allOf, or anyOf at the top level"));
    }
    if is_schema(schema) {
        return Ok(());
    }
    let problem = "JSON schema is invalid. It must match JSON Schema draft 2020-12 \
                   (https://json-schema.org/draft/2020-12). Learn more about tool use at \
                   https://docs.claude.com/en/docs/tool-use.";
    Err(invalid(&path, problem))
}

/// `tool_choice` names something that is there.
pub(super) fn choice(body: &Value) -> CheckedBody {
    let choice = &body["tool_choice"];
    if choice.is_null() {
        return Ok(());
    }
    let kind = required_text("tool_choice", choice, "type")?;
    match kind {
        "none" => no_other_fields("tool_choice.none", choice, &["type"])?,
        "auto" | "any" => {
            no_other_fields(&format!("tool_choice.{kind}"), choice, &["type", "disable_parallel_tool_use"])?;
        }
        "tool" => {
            no_other_fields("tool_choice.tool", choice, &["type", "name", "disable_parallel_tool_use"])?;
            let name = required_text("tool_choice.tool", choice, "name")?;
            if !items(&body["tools"]).any(|tool| tool["name"] == name) {
                return Err(invalid("", format!("Tool '{name}' not found in provided tools")));
            }
        }
        other => {
            let problem = format!(
                "Input tag '{other}' found using 'type' does not match any of the expected tags: 'any', 'auto', 'none', \
                 'tool'"
            );
            return Err(invalid("tool_choice", problem));
        }
    }
    if kind != "none" && items(&body["tools"]).next().is_none() {
        return Err(invalid("tool_choice", "may only be specified while providing tools"));
    }
    Ok(())
}
