//! A reply on the wire: one JSON message, or server-sent events.
//!
//! The events are the provider's: `message_start` with the input side of usage, each block as start, deltas and stop,
//! a `ping` after the first start, `message_delta` with the stop reason and the cumulative usage, `message_stop`. Texts
//! come in several pieces whose borders fall anywhere, also inside a JSON string of a tool's input.

use serde_json::{Value, json};

use crate::cache::Split;
use crate::script::render::Reply;

/// Characters in a piece, at least.
const PIECE_CHARS: usize = 24;
/// Pieces in a text, at most.
const MOST_PIECES: usize = 256;

/// Metadata of a reply.
#[derive(Debug, Clone)]
pub(crate) struct Envelope {
    pub(crate) split: Split,
    /// `context_management` of the reply, when the request had any.
    pub(crate) context_management: Option<Value>,
    /// `diagnostics` of the reply, when the request asked for it.
    pub(crate) diagnostics: Option<Value>,
}

/// The unstreamed reply.
pub(crate) fn message(reply: &Reply, envelope: &Envelope) -> Value {
    let mut message = head(reply, envelope);
    message["content"] = Value::Array(reply.content.clone());
    message["stop_reason"] = json!(reply.stop_reason);
    message["stop_sequence"] = json!(reply.stop_sequence);
    message["usage"] = usage(envelope.split, reply);
    if let Some(applied) = &envelope.context_management {
        message["context_management"] = applied.clone();
    }
    message
}

/// The streamed reply, as events ready to send.
pub(crate) fn events(reply: &Reply, envelope: &Envelope) -> Vec<String> {
    let mut events = Vec::new();
    let mut send = |event: Value| {
        let name = event["type"].as_str().unwrap_or_default();
        events.push(format!("event: {name}\ndata: {event}\n\n"));
    };
    send(json!({"type": "message_start", "message": head(reply, envelope)}));
    for (index, block) in reply.content.iter().enumerate() {
        let (start, deltas) = pieces_of(block);
        send(json!({"type": "content_block_start", "index": index, "content_block": start}));
        if index == 0 {
            send(json!({"type": "ping"}));
        }
        for delta in deltas {
            send(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        send(json!({"type": "content_block_stop", "index": index}));
    }
    let mut end = json!({
        "type": "message_delta",
        "delta": {"stop_reason": reply.stop_reason, "stop_sequence": reply.stop_sequence},
        "usage": usage(envelope.split, reply),
    });
    if let Some(applied) = &envelope.context_management {
        end["context_management"] = applied.clone();
    }
    send(end);
    send(json!({"type": "message_stop"}));
    events
}

/// An error that arrives inside a stream.
pub(crate) fn error_event(body: &Value) -> String {
    format!("event: error\ndata: {body}\n\n")
}

/// The message as far as it is known when the reply begins.
fn head(reply: &Reply, envelope: &Envelope) -> Value {
    let mut head = json!({
        "id": reply.id,
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": if reply.after_summary.is_some() { counts(Split::default(), 0) } else { counts(envelope.split, 1) },
    });
    if let Some(diagnostics) = &envelope.diagnostics {
        head["diagnostics"] = diagnostics.clone();
    }
    head
}

/// Usage of a reply. A summary of the provider's own is counted beside the reply.
fn usage(split: Split, reply: &Reply) -> Value {
    let Some((read, written)) = reply.after_summary else {
        let searches = reply.content.iter().filter(|block| block["type"] == "web_search_tool_result").count();
        let mut counts = counts(split, reply.output_tokens);
        if searches > 0 {
            counts["server_tool_use"] = json!({"web_search_requests": searches});
        }
        return counts;
    };
    let step = |kind: &str, mut counts: Value| {
        counts["type"] = json!(kind);
        counts
    };
    let mut usage = counts(Split { uncached: read, ..Split::default() }, written);
    let mut steps = vec![step("compaction", counts(split, reply.output_tokens))];
    steps.extend((read > 0).then(|| step("message", usage.clone())));
    usage["iterations"] = Value::Array(steps);
    usage
}

fn counts(split: Split, output: u64) -> Value {
    json!({
        "input_tokens": split.uncached,
        "cache_creation_input_tokens": split.written(),
        "cache_read_input_tokens": split.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": split.write_5m,
            "ephemeral_1h_input_tokens": split.write_1h,
        },
        "output_tokens": output,
        "service_tier": "standard",
    })
}

/// A block as it starts, empty, and the deltas that fill it.
fn pieces_of(block: &Value) -> (Value, Vec<Value>) {
    let mut start = block.clone();
    let deltas = match block["type"].as_str() {
        Some("text") => {
            start["text"] = json!("");
            pieces(&block["text"]).map(|piece| json!({"type": "text_delta", "text": piece})).collect()
        }
        Some("thinking") => {
            start["thinking"] = json!("");
            start["signature"] = json!("");
            pieces(&block["thinking"])
                .map(|piece| json!({"type": "thinking_delta", "thinking": piece}))
                .chain([json!({"type": "signature_delta", "signature": block["signature"]})])
                .collect()
        }
        Some("tool_use" | "server_tool_use") => {
            start["input"] = json!({});
            let input = Value::String(block["input"].to_string());
            let piece = |part: &str| json!({"type": "input_json_delta", "partial_json": part});
            // The provider opens every input with an empty piece.
            [piece("")].into_iter().chain(pieces(&input).map(|part| piece(&part))).collect()
        }
        Some("compaction") => {
            start["content"] = Value::Null;
            vec![json!({"type": "compaction_delta", "content": block["content"]})]
        }
        _ => Vec::new(),
    };
    (start, deltas)
}

/// Cuts a string into at least two pieces where it can be cut.
fn pieces(text: &Value) -> impl Iterator<Item = String> {
    let chars: Vec<char> = text.as_str().unwrap_or_default().chars().collect();
    let size = chars.len().div_ceil(MOST_PIECES).max(PIECE_CHARS).min(chars.len().div_ceil(2)).max(1);
    chars.chunks(size).map(|piece| piece.iter().collect()).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_several_and_make_the_whole() {
        for length in [0, 1, 2, 5, 100, 100_000] {
            let text = "ä".repeat(length);
            let parts: Vec<String> = pieces(&json!(text)).collect();
            assert_eq!(parts.concat(), text);
            assert!(length < 2 || parts.len() >= 2);
            assert!(parts.len() <= MOST_PIECES);
        }
    }
}
