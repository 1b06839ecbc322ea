use serde_json::json;

use super::*;
use crate::exchange::ReplyDraft as _;
use crate::invalid_input;

fn start() -> Value {
    json!({"type": "message_start", "message": {"id": "msg_1", "model": "m", "usage": {
        "input_tokens": 3, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 5,
        "cache_creation": {"ephemeral_5m_input_tokens": 5, "ephemeral_1h_input_tokens": 0}, "output_tokens": 1}}})
}

fn delta(index: u64, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn call(index: u64, pieces: &[&str]) -> Vec<Value> {
    let block = json!({"type": "tool_use", "id": format!("t{index}"), "name": "Bash", "input": {}});
    let mut events = vec![json!({"type": "content_block_start", "index": index, "content_block": block})];
    events.extend(pieces.iter().map(|piece| delta(index, &json!({"type": "input_json_delta", "partial_json": piece}))));
    events.push(stop(index));
    events
}

fn draft(events: impl IntoIterator<Item = Value>) -> Result<Draft, String> {
    let mut draft = Draft::default();
    for event in std::iter::once(start()).chain(events) {
        draft.take(serde_json::from_value(event).unwrap())?;
    }
    Ok(draft)
}

fn reply(events: impl IntoIterator<Item = Value>) -> Reply {
    draft(events).unwrap().finish().unwrap()
}

/// The counts of message_delta are cumulative; what it leaves out or nulls stays as message_start had it.
#[test]
fn usage_is_merged_field_by_field() {
    let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 77, "input_tokens": null, "cache_read_input_tokens": 41, "server_tool_use": {}}});
    let usage = reply([end]).usage;
    assert_eq!((usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens), (3, 41, 77));
    assert_eq!((usage.cache_creation_input_tokens, usage.cache_creation.ephemeral_5m_input_tokens), (5, 5));
}

/// The session goes on with anything the model writes: a call's input is an object, and nothing of the text is lost.
#[test]
fn an_input_that_is_no_object_is_kept_as_text() {
    let deep = format!("{}1{}", "{\"a\":".repeat(110), "}".repeat(110));
    let deeper = "[".repeat(10_000);
    for text in ["{\"command\": \"ls", "[1]", "\"x\"", "null", "{} {}", &deep, &deeper] {
        let mut events = call(0, &[text]);
        events.push(json!({"type": "message_stop"}));
        let reply = reply(events);
        assert_eq!(invalid_input(&reply.blocks[0]).as_deref(), Some(text));
        assert_eq!(reply.stop, StopReason::ToolUse);
    }
}

#[test]
fn an_input_in_pieces_is_joined_and_none_is_an_empty_object() {
    let mut events = call(0, &["", "{\"a\": 1, ", "\"b\": [\"", "\\u00e4\"]}"]);
    events.extend(call(1, &[]));
    events.push(json!({"type": "message_stop"}));
    let reply = reply(events);
    assert_eq!(reply.blocks[0].json(), r#"{"type":"tool_use","id":"t0","name":"Bash","input":{"a":1,"b":["ä"]}}"#);
    assert_eq!(reply.blocks[1].json(), r#"{"type":"tool_use","id":"t1","name":"Bash","input":{}}"#);
}

#[test]
fn a_stream_without_its_farewell_is_complete_only_if_everything_else_came() {
    let end = json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}});
    let mut events = call(0, &["{}"]);
    assert!(draft(events.clone()).unwrap().finish().is_none(), "no stop reason yet");
    events.push(end.clone());
    assert!(draft(events.clone()).unwrap().finish().is_some());
    let without_stop = events.into_iter().filter(|event| *event != stop(0));
    assert!(draft(without_stop).unwrap().finish().is_none(), "a block is open");
}

#[test]
fn stop_reasons_of_the_future_are_carried_along() {
    for (name, reason) in [
        ("refusal", StopReason::Refusal),
        ("model_context_window_exceeded", StopReason::ModelContextWindowExceeded),
        ("compaction", StopReason::Other("compaction".into())),
    ] {
        assert_eq!(reply([json!({"type": "message_delta", "delta": {"stop_reason": name}})]).stop, reason);
    }
}

#[test]
fn blocks_and_deltas_of_the_future_do_no_harm() {
    let reply = reply([
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "hologram", "depth": 3}}),
        delta(0, &json!({"type": "light_delta", "photons": 9})),
        stop(0),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "a"}}),
        delta(1, &json!({"type": "citations_delta", "citation": {"n": 1}})),
        delta(1, &json!({"type": "text_delta", "text": "b"})),
        delta(1, &json!({"type": "citations_delta", "citation": {"n": 2}})),
        stop(1),
        json!({"type": "aurora", "colour": "green"}),
        json!({"type": "message_stop"}),
    ]);
    assert_eq!(reply.blocks[0].json(), r#"{"type":"hologram","depth":3}"#);
    assert_eq!(reply.blocks[1].json(), r#"{"type":"text","text":"ab","citations":[{"n":1},{"n":2}]}"#);
    assert_eq!(reply.stop, StopReason::EndTurn);
}

#[test]
fn streams_that_make_no_sense_are_refused() {
    let text = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
    for events in [
        vec![start()],
        vec![delta(0, &json!({"type": "text_delta", "text": "x"}))],
        vec![stop(0)],
        vec![text.clone(), text.clone()],
        vec![text, stop(0), stop(0)],
        vec![json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "name": "x"}})],
    ] {
        assert!(draft(events.clone()).is_err(), "{events:?}");
    }
    assert!(Draft::default().take(WireEvent::MessageStop).is_err());
}

#[test]
fn interleaved_blocks_come_out_in_their_order() {
    let begin = |index: u64| json!({"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}});
    let add = |index: u64, text: &str| delta(index, &json!({"type": "text_delta", "text": text}));
    let done = json!({"type": "message_stop"});
    let reply = reply([begin(1), begin(0), add(1, "b"), add(0, "a"), stop(1), stop(0), done]);
    assert_eq!(reply.blocks, [Block::text("a"), Block::text("b")]);
}
