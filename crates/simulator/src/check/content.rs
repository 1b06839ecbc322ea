//! Messages and their blocks: roles, types, fields, texts, images, signatures.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{CheckedBody, Context, invalid, is_name, no_other_fields, required_text, system_messages};
use crate::cached_prompt::items;

/// Most messages in a request.
const MOST_MESSAGES: usize = 100_000;
/// Longest name in a `tool_use` block.
const LONGEST_NAME: usize = 200;

/// The largest picture.
const IMAGE_BYTES: usize = 5 * 1024 * 1024;
const IMAGE_TYPES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];

/// Block types whose fields are checked here, with the fields.
const BLOCKS: &[(&str, &[&str])] = &[
    ("text", &["type", "text", "cache_control", "citations"]),
    ("thinking", &["type", "thinking", "signature"]),
    ("redacted_thinking", &["type", "data"]),
    ("tool_use", &["type", "id", "name", "input", "cache_control", "caller", "toolset_name"]),
    (
        "tool_result",
        &["type", "tool_use_id", "content", "is_error", "cache_control", "cache_reference", "toolset_name"],
    ),
    ("image", &["type", "source", "cache_control"]),
    ("document", &["type", "source", "cache_control", "citations", "context", "title"]),
    ("cache_edits", &["type", "edits"]),
];

/// Block types that are accepted as they are.
const OTHER_BLOCKS: &[&str] = &[
    "search_result",
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "mcp_tool_use",
    "mcp_tool_result",
    "container_upload",
    "compaction",
];

/// Block types allowed in a tool result.
const RESULT_BLOCKS: &[&str] = &["text", "image", "document", "search_result", "tool_reference"];

/// The system prompt: text blocks only.
pub(super) fn system(body: &Value) -> CheckedBody {
    for (index, block) in items(&body["system"]).enumerate() {
        let path = format!("system.{index}");
        refuse_if!(block["type"] != "text", &format!("{path}.type"), "Input should be 'text'");
        no_other_fields(&path, block, fields_of("text").unwrap_or_default())?;
        if required_text(&path, block, "text")?.trim().is_empty() {
            return Err(invalid("system", "text content blocks must be non-empty"));
        }
    }
    Ok(())
}

/// All messages.
pub(super) fn messages(body: &Value, context: &Context<'_>) -> CheckedBody {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    refuse_if!(messages.is_empty(), "messages", "at least one message is required");
    refuse_if!(messages.len() > MOST_MESSAGES, "messages", format!("List should have at most {MOST_MESSAGES} items"));
    for (index, message) in messages.iter().enumerate() {
        let path = format!("messages.{index}");
        role(&path, message)?;
        if message["role"] == "system" {
            system_messages::message(&path, message, context)?;
            continue;
        }
        no_other_fields(&path, message, &["role", "content"])?;
        let Some(content) = message["content"].as_array() else {
            let problem = if message["content"].is_null() { "Field required" } else { "Input should be a valid list" };
            return Err(invalid(&format!("{path}.content"), problem));
        };
        let is_last_reply = index + 1 == messages.len() && message["role"] == "assistant";
        if content.is_empty() && !is_last_reply {
            let problem = "all messages must have non-empty content except for the optional final assistant message";
            return Err(invalid(&path, problem));
        }
        for (inner, value) in content.iter().enumerate() {
            block(&format!("{path}.content.{inner}"), value, &message["role"], context)?;
        }
    }
    refuse_if!(messages[0]["role"] == "assistant", "messages", "first message must use the \"user\" role");
    prefill(messages)
}

fn role(path: &str, message: &Value) -> CheckedBody {
    match required_text(path, message, "role")? {
        "user" | "assistant" | "system" => Ok(()),
        other => Err(invalid(
            "messages",
            format!("Unexpected role \"{other}\". Allowed roles are \"user\" or \"assistant\"."),
        )),
    }
}

/// A last message of the assistant is the beginning of the reply, and a reply never begins before a blank.
fn prefill(messages: &[Value]) -> CheckedBody {
    let last = messages.last().filter(|message| message["role"] == "assistant");
    let text = last.and_then(|message| message["content"].as_array()?.last()?["text"].as_str());
    match text {
        Some(text) if text.ends_with(char::is_whitespace) => {
            Err(invalid("messages", "final assistant content cannot end with trailing whitespace"))
        }
        _ => Ok(()),
    }
}

pub(super) fn fields_of(kind: &str) -> Option<&'static [&'static str]> {
    BLOCKS.iter().find(|(name, _)| *name == kind).map(|(_, fields)| *fields)
}

fn block(path: &str, block: &Value, role: &Value, context: &Context<'_>) -> CheckedBody {
    refuse_if!(!block.is_object(), path, "Input should be a valid dictionary");
    let kind = required_text(path, block, "type")?;
    let Some(fields) = fields_of(kind).filter(|_| kind != "cache_edits" || context.cache_edits) else {
        return if OTHER_BLOCKS.contains(&kind) { Ok(()) } else { Err(unknown_tag(path, kind)) };
    };
    let path_of_kind = format!("{path}.{kind}");
    no_other_fields(&path_of_kind, block, fields)?;
    if !context.cache_edits && !block["cache_reference"].is_null() {
        return Err(invalid(&format!("{path_of_kind}.cache_reference"), "Extra inputs are not permitted"));
    }
    let wrong_role = |allowed: &str| {
        let problem = format!("`{kind}` blocks can only be in `{allowed}` messages");
        if role == allowed { Ok(()) } else { Err(invalid(path, problem)) }
    };
    match kind {
        "text" => text(&path_of_kind, block),
        "thinking" => {
            wrong_role("assistant")?;
            let text = required_text(&path_of_kind, block, "thinking")?;
            let signature = required_text(&path_of_kind, block, "signature")?;
            if signature == context.ids.signature(text) {
                Ok(())
            } else {
                Err(invalid(path, "Invalid `signature` in `thinking` block"))
            }
        }
        "redacted_thinking" => {
            wrong_role("assistant")?;
            required_text(&path_of_kind, block, "data").map(|_| ())
        }
        "tool_use" => {
            wrong_role("assistant")?;
            tool_use(&path_of_kind, block)
        }
        "tool_result" => {
            wrong_role("user")?;
            tool_result(&path_of_kind, block)
        }
        "image" => image(&path_of_kind, block),
        "cache_edits" => wrong_role("user"),
        _ => Ok(()),
    }
}

fn unknown_tag(path: &str, kind: &str) -> crate::refusal::Refusal {
    let expected: Vec<String> = BLOCKS
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| *name != "cache_edits")
        .chain(OTHER_BLOCKS.iter().copied())
        .map(|name| format!("'{name}'"))
        .collect();
    let expected = expected.join(", ");
    let problem = format!("Input tag '{kind}' found using 'type' does not match any of the expected tags: {expected}");
    invalid(path, problem)
}

pub(super) fn text(path: &str, block: &Value) -> CheckedBody {
    let text = required_text(path, block, "text")?;
    if text.is_empty() && block["cache_control"].is_object() {
        return Err(invalid(path, "cache_control cannot be set for empty text blocks"));
    }
    refuse_if!(text.is_empty(), "messages", "text content blocks must be non-empty");
    refuse_if!(text.trim().is_empty(), "messages", "text content blocks must contain non-whitespace text");
    Ok(())
}

fn tool_use(path: &str, block: &Value) -> CheckedBody {
    let id = required_text(path, block, "id")?;
    refuse_if!(!is_name(id, usize::MAX), &format!("{path}.id"), "String should match pattern '^[a-zA-Z0-9_-]+$'");
    let name = required_text(path, block, "name")?;
    refuse_if!(name.is_empty(), &format!("{path}.name"), "String should have at least 1 character");
    if name.chars().count() > LONGEST_NAME {
        let problem = format!("String should have at most {LONGEST_NAME} characters");
        return Err(invalid(&format!("{path}.name"), problem));
    }
    match &block["input"] {
        Value::Null => Err(invalid(&format!("{path}.input"), "Field required")),
        Value::Object(_) => Ok(()),
        _ => Err(invalid(&format!("{path}.input"), "Input should be a valid dictionary")),
    }
}

fn tool_result(path: &str, block: &Value) -> CheckedBody {
    required_text(path, block, "tool_use_id")?;
    if !matches!(block["is_error"], Value::Null | Value::Bool(_)) {
        return Err(invalid(&format!("{path}.is_error"), "Input should be a valid boolean"));
    }
    if !matches!(block["content"], Value::Null | Value::String(_) | Value::Array(_)) {
        return Err(invalid(&format!("{path}.content"), "Input should be a valid list"));
    }
    for (index, inner) in items(&block["content"]).enumerate() {
        let path = format!("{path}.content.{index}");
        let kind = required_text(&path, inner, "type")?;
        if !RESULT_BLOCKS.contains(&kind) {
            return Err(invalid(
                &path,
                format!("Input tag '{kind}' found using 'type' is not allowed in a tool result"),
            ));
        }
        if block["is_error"] == true && kind != "text" {
            return Err(invalid(&path, "all content must be type \"text\" if \"is_error\" is true"));
        }
        no_other_fields(
            &format!("{path}.{kind}"),
            inner,
            fields_of(kind).unwrap_or(&[
                "type",
                "tool_name",
                "source",
                "title",
                "content",
                "citations",
                "cache_control",
            ]),
        )?;
        match kind {
            "text" => text(&format!("{path}.text"), inner)?,
            "image" => image(&format!("{path}.image"), inner)?,
            _ => {}
        }
    }
    Ok(())
}

fn image(path: &str, block: &Value) -> CheckedBody {
    let source = &block["source"];
    match required_text(&format!("{path}.source"), source, "type")? {
        "base64" => {
            let path = format!("{path}.source.base64");
            let media = required_text(&path, source, "media_type")?;
            if !IMAGE_TYPES.contains(&media) {
                let problem = "Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'";
                return Err(invalid(&format!("{path}.media_type"), problem));
            }
            let data = required_text(&path, source, "data")?;
            refuse_if!(data.is_empty(), &path, "image cannot be empty");
            match STANDARD.decode(data) {
                Err(_) => Err(invalid(&format!("{path}.data"), "Input should be valid base64 data")),
                Ok(bytes) if bytes.len() > IMAGE_BYTES => {
                    let problem = format!("image exceeds 5 MB maximum: {} bytes > {IMAGE_BYTES} bytes", bytes.len());
                    Err(invalid(&path, problem))
                }
                Ok(_) => Ok(()),
            }
        }
        "url" => required_text(&format!("{path}.source.url"), source, "url").map(|_| ()),
        "file" => required_text(&format!("{path}.source.file"), source, "file_id").map(|_| ()),
        other => Err(invalid(
            &format!("{path}.source"),
            format!(
                "Input tag '{other}' found using 'type' does not match any of the expected tags: 'base64', 'file', 'url'"
            ),
        )),
    }
}
