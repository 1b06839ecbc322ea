//! Events as JSON lines.

use std::path::Path;

use engine::Event;
use serde_json::{Value, json};

/// What is printed of an event, if anything; without the names that every line carries.
pub(super) fn of(event: &Event, directory: &Path, partial: bool) -> Option<Value> {
    let delta = |delta: Value| {
        json!({
            "type": "stream_event", "parent_tool_use_id": null,
            "event": {"type": "content_block_delta", "index": 0, "delta": delta},
        })
    };
    Some(match event {
        Event::SessionStarted { model, tools, mode, .. } => json!({
            "type": "system", "subtype": "init", "cwd": directory, "model": model,
            "tools": tools, "permissionMode": mode, "mcp_servers": [], "slash_commands": [],
        }),
        Event::Replied { reply } => json!({
            "type": "assistant", "parent_tool_use_id": null,
            "message": {
                "id": reply.id, "type": "message", "role": "assistant", "model": reply.model,
                "content": reply.blocks, "stop_reason": reply.stop, "stop_sequence": null, "usage": reply.usage,
            },
        }),
        Event::ToolEnded { id, output, .. } => {
            let result = transcript::Block::tool_result(id, &output.content, output.outcome);
            json!({
                "type": "user", "parent_tool_use_id": null,
                "message": {"role": "user", "content": [result]},
            })
        }
        Event::Text(text) if partial => delta(json!({"type": "text_delta", "text": text})),
        Event::Thinking(text) if partial => delta(json!({"type": "thinking_delta", "thinking": text})),
        Event::MessageArrived { from, text } => json!({
            "type": "system", "subtype": "message", "from": from, "text": text,
        }),
        Event::Retrying { attempt, after, why } => json!({
            "type": "system", "subtype": "api_retry",
            "attempt": attempt, "retry_delay_ms": after.as_millis(), "error": why,
        }),
        Event::Compacted { before, after, .. } => json!({
            "type": "system", "subtype": "compact_boundary",
            "compact_metadata": {"trigger": "auto", "pre_tokens": before, "post_tokens": after},
        }),
        Event::Snipped { messages, freed } => json!({
            "type": "system", "subtype": "snip_boundary",
            "snip_metadata": {"messages": messages, "tokens_saved": freed},
        }),
        Event::Collapsed { messages, freed } => json!({
            "type": "system", "subtype": "collapse_boundary",
            "collapse_metadata": {"messages": messages, "tokens_saved": freed},
        }),
        Event::Cleared { results, freed, .. } => json!({
            "type": "system", "subtype": "microcompact_boundary",
            "microcompact_metadata": {"results": results, "tokens_saved": freed},
        }),
        _ => return None,
    })
}
