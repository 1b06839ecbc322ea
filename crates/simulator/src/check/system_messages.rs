//! System messages in the middle of the conversation: which models take them, where they may stand, and what they may hold.
//!
//! They follow what a user said and stand last or before a reply, so that an instruction can be added without touching
//! the cached prefix. What they hold is text, and under a beta tools that come and go.

use serde_json::Value;

use super::content::{fields_of, text};
use super::{CheckedBody, Context, invalid, no_other_fields, required_text};
use crate::cached_prompt::items;

/// Either allows `output_config` on a system message.
const OUTPUT_BETAS: &[&str] = &["mid-conversation-output-config-2026-07-01", "per-turn-control-2026-07-01"];
/// Allows tools to come and go.
const TOOL_BETA: &str = "mid-conversation-tool-changes-2026-07-01";

/// One system message.
pub(super) fn message(path: &str, message: &Value, context: &Context<'_>) -> CheckedBody {
    refuse_if!(!context.system_messages, "", "role 'system' is not supported on this model");
    no_other_fields(path, message, &["role", "content", "output_config"])?;
    let configures = !message["output_config"].is_null();
    if configures && !OUTPUT_BETAS.iter().any(|beta| context.has_beta(beta)) {
        return Err(invalid(&format!("{path}.output_config"), "Extra inputs are not permitted"));
    }
    no_other_fields(&format!("{path}.output_config"), &message["output_config"], &["effort"])?;
    match &message["content"] {
        Value::Null if configures => {}
        Value::Null => return Err(invalid(&format!("{path}.content"), "Field required")),
        Value::Array(blocks) if blocks.is_empty() && !configures => {
            return Err(invalid(path, "system messages must have non-empty content"));
        }
        Value::Array(_) => {}
        _ => return Err(invalid(&format!("{path}.content"), "Input should be a valid list")),
    }
    for (index, value) in items(&message["content"]).enumerate() {
        block(&format!("{path}.content.{index}"), value, context)?;
    }
    Ok(())
}

fn block(path: &str, block: &Value, context: &Context<'_>) -> CheckedBody {
    let kind = required_text(path, block, "type")?;
    let path_of_kind = format!("{path}.{kind}");
    match kind {
        "text" => {
            no_other_fields(&path_of_kind, block, fields_of("text").unwrap_or_default())?;
            text(&path_of_kind, block)
        }
        "tool_addition" | "tool_removal" if context.has_beta(TOOL_BETA) => {
            no_other_fields(&path_of_kind, block, &["type", "tool", "cache_control"])?;
            match block["tool"].is_object() {
                true => Ok(()),
                false => Err(invalid(&format!("{path_of_kind}.tool"), "Field required")),
            }
        }
        _ => {
            let problem = format!("`{kind}` blocks are not allowed in `system` messages");
            Err(invalid(path, problem))
        }
    }
}

/// Each stands after a user's turn, or after a reply that ends with a call of the server's own tools, and last or
/// before a reply.
pub(super) fn places(body: &Value) -> CheckedBody {
    let messages: Vec<&Value> = items(&body["messages"]).collect();
    for (index, _) in messages.iter().enumerate().filter(|(_, message)| message["role"] == "system") {
        let path = format!("messages.{index}");
        let Some(before) = index.checked_sub(1).and_then(|before| messages.get(before)) else {
            return Err(invalid(&path, "use the top-level 'system' parameter for the initial system prompt"));
        };
        let waits = items(&before["content"]).last().is_some_and(|block| block["type"] == "server_tool_use");
        if before["role"] != "user" && !(before["role"] == "assistant" && waits) {
            return Err(invalid(&path, "a system message must follow a user message"));
        }
        if messages.get(index + 1).is_some_and(|next| next["role"] != "assistant") {
            return Err(invalid(&path, "a system message must be last or be followed by an assistant message"));
        }
    }
    Ok(())
}
