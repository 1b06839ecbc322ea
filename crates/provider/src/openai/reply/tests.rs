use serde_json::{Value, json};

use super::*;
use crate::exchange::ReplyDraft as _;

fn chunk(delta: &Value, finish_reason: Option<&str>) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish_reason});
    json!({"id": "chatcmpl-abcdefgh", "model": "m", "object": "chat.completion.chunk", "choices": [choice]}).to_string()
}

fn text(text: &str) -> String {
    chunk(&json!({"content": text}), None)
}

fn end(reason: &str) -> String {
    chunk(&json!({}), Some(reason))
}

fn draft(events: &[String]) -> (Draft, Vec<Event>) {
    let mut draft = Draft::of(b"request");
    let shown = events.iter().flat_map(|data| draft.read_event(None, data).unwrap()).collect();
    (draft, shown)
}

fn reply(events: &[String]) -> Reply {
    draft(events).0.finish().unwrap()
}

#[test]
fn a_finish_reason_completes_a_reply_and_the_farewell_may_be_missing() {
    assert_eq!(reply(&[text("a"), text("b"), end("stop")]).blocks, [Block::text("ab")]);
    assert_eq!(reply(&[text("a"), DONE.into()]).stop, StopReason::EndTurn, "a farewell without a reason");
    assert!(draft(&[text("a")]).0.finish().is_none());
    assert!(draft(&[DONE.into()]).0.finish().is_none(), "a farewell and nothing else");
}

#[test]
fn blocks_are_handed_over_once() {
    let (_, shown) = draft(&[text("a"), end("stop"), end("stop"), DONE.into()]);
    assert_eq!(shown.iter().filter(|event| matches!(event, Event::Block(_))).count(), 1, "{shown:?}");
}

#[test]
fn reasons_are_mapped_by_what_the_reply_holds() {
    let call = || chunk(&json!({"tool_calls": [{"index": 0, "id": "x", "function": {"name": "Stop"}}]}), None);
    for (reason, alone, with_a_call) in [
        ("stop", StopReason::EndTurn, StopReason::ToolUse),
        ("tool_calls", StopReason::EndTurn, StopReason::ToolUse),
        ("length", StopReason::MaxTokens, StopReason::MaxTokens),
        ("content_filter", StopReason::Refusal, StopReason::Refusal),
        ("aurora", StopReason::Other("aurora".into()), StopReason::Other("aurora".into())),
    ] {
        assert_eq!(reply(&[text("a"), end(reason)]).stop, alone);
        assert_eq!(reply(&[text("a"), call(), end(reason)]).stop, with_a_call);
    }
}

/// Thinking is shown under either name, once, and not kept.
#[test]
fn thinking_is_shown_and_not_kept() {
    let both = chunk(&json!({"reasoning_content": "hm", "reasoning": "hm"}), None);
    let events =
        [both, chunk(&json!({"reasoning": "so", "content": ""}), None), text("yes"), end("stop"), DONE.to_owned()];
    let (draft, shown) = draft(&events);
    let thoughts: Vec<&Event> = shown.iter().filter(|event| matches!(event, Event::Thinking(_))).collect();
    assert_eq!(thoughts, [&Event::Thinking("hm".into()), &Event::Thinking("so".into())]);
    assert_eq!(draft.finish().unwrap().blocks, [Block::text("yes")]);
}

#[test]
fn counts_may_come_anywhere_and_tell_the_cache_apart() {
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 60}});
    let last = json!({"id": "i", "choices": [], "usage": usage}).to_string();
    let found = reply(&[text("a"), end("stop"), last, DONE.into()]).usage;
    assert_eq!((found.input_tokens, found.cache_read_input_tokens, found.output_tokens), (40, 60, 7));
    assert_eq!(found.context(), 100);
    let bare = json!({"usage": {"prompt_tokens": 3, "prompt_tokens_details": null}}).to_string();
    let empty = json!({"choices": [], "usage": null}).to_string();
    assert_eq!(reply(&[text("a"), end("stop"), bare, empty]).usage.context(), 3);
    assert_eq!(reply(&[text("a"), end("stop")]).usage, Usage::default());
}

/// Ollama calls a reply `chatcmpl-` and a number below 1,000; others leave the id out.
#[test]
fn an_id_that_will_come_again_is_made_unique() {
    let id = |id: Value, request: &[u8]| {
        let mut draft = Draft::of(request);
        draft.read_event(None, &json!({"id": id, "choices": [{"finish_reason": "stop"}]}).to_string()).unwrap();
        draft.finish().unwrap().id
    };
    assert_eq!(id(json!("chatcmpl-b9d1d1c0"), b""), "chatcmpl-b9d1d1c0");
    for weak in [json!("chatcmpl-417"), json!(""), json!(null)] {
        assert_eq!(id(weak.clone(), b"one"), id(weak.clone(), b"one"));
        assert_ne!(id(weak.clone(), b"one"), id(weak, b"two"));
    }
}

#[test]
fn content_in_parts_and_declined_answers_are_text() {
    let parts = chunk(&json!({"content": [{"type": "text", "text": "a"}, {"type": "thinking", "thinking": []}]}), None);
    let declined = chunk(&json!({"content": null, "refusal": "no"}), None);
    assert_eq!(reply(&[parts, declined, end("stop")]).blocks, [Block::text("ano")]);
}

#[test]
fn other_choices_and_fields_of_the_future_do_no_harm() {
    let filter = json!({"id": "", "model": "", "prompt_filter_results": [], "choices": []});
    let other = json!({"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "stop"}], "x": 1});
    let events = [filter.to_string(), text("a"), other.to_string()];
    let (mut draft, shown) = draft(&events);
    assert!(matches!(&shown[0], Event::Started { id, .. } if id == "chatcmpl-abcdefgh"), "{shown:?}");
    assert!(draft.read_event(Some("novelty"), "not json").unwrap().is_empty());
    assert!(matches!(draft.read_event(None, "not json"), Err(AnswerFault::Unreadable(_))));
    assert!(matches!(draft.read_event(None, r#"{"error":"oops"}"#), Err(AnswerFault::Complaint(_))));
    draft.read_event(None, &end("stop")).unwrap();
    assert_eq!(draft.finish().unwrap().blocks, [Block::text("a")]);
}
