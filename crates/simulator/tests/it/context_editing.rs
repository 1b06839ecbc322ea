//! Context management and cache edits change what is counted and seen.

use serde_json::{Value, json};
use simulator::Options;

use crate::client::{Client, body, marked, read};

const SCRIPT: &str = r#"
    [[rule]]
    name = "sees"
    when = { visible = "needle" }
    say = "I see it."
    [[rule]]
    name = "blind"
    think = "Where is it?"
    say = "I do not."
"#;
const BETA: &str = "context-management-2025-06-27";

/// A history with this many calls; the first result holds the needle.
fn history(calls: usize) -> Value {
    let mut messages = vec![json!({"role": "user", "content": "work"})];
    for index in 0..calls {
        let id = format!("toolu_{index}");
        let words = if index == 0 { "needle ".repeat(400) } else { "hay ".repeat(400) };
        let input = json!({"command": "cat hay ".repeat(20)});
        messages.push(
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "Bash", "input": input}]}),
        );
        messages
            .push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": words}]}));
    }
    body(json!(messages))
}

#[tokio::test]
async fn cleared_results_are_neither_counted_nor_seen() {
    let client = Client::new(SCRIPT).await;
    let mut request = history(6);
    let before = client.reply(&request).await;
    assert_eq!(before["content"][0]["text"], "I see it.");
    let edit = json!({"type": "clear_tool_uses_20250919", "trigger": {"type": "tool_uses", "value": 5}});
    request["context_management"] = json!({"edits": [edit]});
    let after = client.send_with_beta(&request, BETA).await.json();
    assert_eq!(after["content"][0]["text"], "I do not.");
    let applied = &after["context_management"]["applied_edits"][0];
    assert_eq!(applied["cleared_tool_uses"], 3, "three of six are kept");
    let input = |reply: &Value| reply["usage"]["input_tokens"].as_u64().unwrap();
    assert_eq!(input(&before) - input(&after), applied["cleared_input_tokens"].as_u64().unwrap());

    let counted = client.post("/v1/messages/count_tokens").header("anthropic-beta", BETA).body(request.to_string());
    let counted = read(counted).await.json();
    assert_eq!(counted["input_tokens"], after["usage"]["input_tokens"]);
    assert_eq!(counted["context_management"]["original_input_tokens"], before["usage"]["input_tokens"]);

    request["stream"] = json!(true);
    let events = client.send_with_beta(&request, BETA).await.events();
    assert_eq!(events[events.len() - 2].1["context_management"]["applied_edits"][0], *applied);
}

#[tokio::test]
async fn triggers_exclusions_and_minimums_hold() {
    let client = Client::new(SCRIPT).await;
    let mut cleared = Vec::new();
    for edit in [
        json!({"trigger": {"type": "tool_uses", "value": 6}}),
        json!({"trigger": {"type": "input_tokens", "value": 100}, "keep": {"type": "tool_uses", "value": 5}}),
        json!({"trigger": {"type": "tool_uses", "value": 1}, "exclude_tools": ["Bash"]}),
        json!({"trigger": {"type": "tool_uses", "value": 1}, "clear_at_least": {"type": "input_tokens", "value": 90000}}),
        json!({}),
    ] {
        let mut request = history(6);
        let mut edit = edit.clone();
        edit["type"] = json!("clear_tool_uses_20250919");
        request["context_management"] = json!({"edits": [edit]});
        let reply = client.send_with_beta(&request, BETA).await.json();
        cleared.push(reply["context_management"]["applied_edits"][0]["cleared_tool_uses"].as_u64());
    }
    assert_eq!(cleared, [None, Some(1), None, None, None]);
}

#[tokio::test]
async fn inputs_are_cleared_when_asked() {
    let client = Client::new(SCRIPT).await;
    let tokens = async |clear: Value| {
        let mut request = history(6);
        let trigger = json!({"type": "tool_uses", "value": 1});
        request["context_management"] =
            json!({"edits": [{"type": "clear_tool_uses_20250919", "trigger": trigger, "clear_tool_inputs": clear}]});
        client.send_with_beta(&request, BETA).await.json()["usage"]["input_tokens"].as_u64().unwrap()
    };
    assert!(tokens(json!(true)).await + 100 < tokens(json!(false)).await);
    assert_eq!(tokens(json!(["Bash"])).await, tokens(json!(true)).await);
    assert_eq!(tokens(json!(["Read"])).await, tokens(json!(false)).await);
}

#[tokio::test]
async fn old_thinking_is_cleared() {
    let client = Client::new(SCRIPT).await;
    let mut request = body(json!([{"role": "user", "content": "go"}]));
    request["thinking"] = json!({"type": "adaptive"});
    for _ in 0..3 {
        let reply = client.reply(&request).await;
        let messages = request["messages"].as_array_mut().unwrap();
        messages.push(json!({"role": "assistant", "content": reply["content"]}));
        messages.push(json!({"role": "user", "content": "again"}));
    }
    let cleared = async |keep: Value| {
        let mut request = request.clone();
        request["context_management"] = json!({"edits": [{"type": "clear_thinking_20251015", "keep": keep}]});
        let reply = client.send_with_beta(&request, BETA).await.json();
        reply["context_management"]["applied_edits"][0]["cleared_thinking_turns"].as_u64()
    };
    assert_eq!(cleared(json!({"type": "thinking_turns", "value": 1})).await, Some(2));
    assert_eq!(cleared(json!("all")).await, None);
    assert_eq!(cleared(Value::Null).await, Some(2));
}

#[tokio::test]
async fn a_cache_edit_deletes_without_breaking_the_prefix() {
    let client = Client::with(SCRIPT, Options { cache_edits: true, ..Options::default() }).await;
    let mut request = history(4);
    for index in [2, 4, 6, 8] {
        let id = request["messages"][index]["content"][0]["tool_use_id"].clone();
        request["messages"][index]["content"][0]["cache_reference"] = id;
    }
    let last = request["messages"][8]["content"][0].clone();
    request["messages"][8]["content"][0] = marked(last, "5m");
    let first = client.usage(&request).await;

    let mut edited = request.clone();
    let delete = json!({"type": "cache_edits", "edits": [{"type": "delete", "cache_reference": "toolu_0"}]});
    let messages = edited["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": "Good."}));
    messages.push(json!({"role": "user", "content": [delete, {"type": "text", "text": "on"}]}));
    let reply = client.reply(&edited).await;
    assert_eq!(reply["content"][0]["text"], "I do not.", "the deleted result is not seen");
    let read = reply["usage"]["cache_read_input_tokens"].as_u64().unwrap();
    assert!(read > 500 && read + 600 < first[1], "the rest of the prefix is read: {read} of {}", first[1]);
    assert_eq!(client.simulator.report().requests[1].broke, None);

    let mut forgotten = edited.clone();
    forgotten["messages"][10]["content"].as_array_mut().unwrap().remove(0);
    forgotten["messages"]
        .as_array_mut()
        .unwrap()
        .extend([json!({"role": "assistant", "content": "Good."}), json!({"role": "user", "content": "on"})]);
    client.reply(&forgotten).await;
    let broke = client.simulator.report().requests[2].broke.clone().unwrap();
    assert_eq!(broke.place, "messages[10].content[0]", "who forgets the edit breaks the prefix there");
}

#[tokio::test]
async fn cache_edits_are_checked() {
    let client = Client::with(SCRIPT, Options { cache_edits: true, ..Options::default() }).await;
    let with = |edits: Value, reference: Value, is_marked: bool| {
        let mut request = history(1);
        let mut result = request["messages"][2]["content"][0].clone();
        result["cache_reference"] = reference;
        request["messages"][2]["content"][0] = if is_marked { marked(result, "5m") } else { result };
        request["messages"][2]["content"].as_array_mut().unwrap().push(json!({"type": "cache_edits", "edits": edits}));
        request
    };
    let delete = |reference: &str| json!({"type": "delete", "cache_reference": reference});
    let id = || json!("toolu_0");
    assert_eq!(client.send(&with(json!([delete("toolu_0")]), id(), true)).await.status, 200);
    let cases = [
        (with(json!([delete("toolu_9")]), id(), true), "no `tool_result` with cache_reference toolu_9"),
        (with(json!([delete("toolu_0"), delete("toolu_0")]), id(), true), "is deleted twice"),
        (with(json!([{"type": "move", "cache_reference": "toolu_0"}]), id(), true), "Input should be 'delete'"),
        (with(json!([]), json!("other"), true), "must be the block's `tool_use_id`"),
        (with(json!([delete("toolu_0")]), id(), false), "must not come after the last `cache_control` block"),
    ];
    for (request, words) in cases {
        let answer = client.send(&request).await;
        assert_eq!(answer.status, 400, "{words}");
        assert!(answer.message().contains(words), "{}", answer.message());
    }
}

#[tokio::test]
async fn the_provider_compacts_and_pauses_or_goes_on() {
    let script = r#"
        [[rule]]
        when = { visible = "Summarise the conversation" }
        say = "<summary>It was long.</summary>"
        [[rule]]
        when = { visible = "It was long" }
        say = "I go on from there."
        [[rule]]
        say = "yes"
    "#;
    let client = Client::new(script).await;
    let asked = async |words: usize, pause: bool| {
        let mut request = body(json!([{"role": "user", "content": "word ".repeat(words)}]));
        let trigger = json!({"type": "input_tokens", "value": 50_000});
        request["context_management"] = json!({"edits": [
            {"type": "compact_20260112", "trigger": trigger, "pause_after_compaction": pause}
        ]});
        client.send_with_beta(&request, "compact-2026-01-12").await.json()
    };
    assert_eq!(asked(100, true).await["content"][0]["text"], "yes");
    let paused = asked(60_000, true).await;
    assert_eq!(paused["stop_reason"], "compaction");
    assert_eq!(paused["content"], json!([{"type": "compaction", "content": "<summary>It was long.</summary>"}]));
    let steps = |reply: &Value| reply["usage"]["iterations"].as_array().unwrap().clone();
    assert_eq!((steps(&paused).len(), paused["usage"]["output_tokens"].as_u64()), (1, Some(0)));
    assert!(steps(&paused)[0]["input_tokens"].as_u64() > Some(50_000), "{paused}");
    let whole = asked(60_000, false).await;
    assert_eq!((whole["content"][1]["text"].as_str(), steps(&whole).len()), (Some("I go on from there."), 2));
    let mut next = body(json!([
        {"role": "user", "content": "word ".repeat(60_000)},
        {"role": "assistant", "content": whole["content"]},
        {"role": "user", "content": "and now"},
    ]));
    next["context_management"] = json!({"edits": [{"type": "compact_20260112"}]});
    let reply = client.send_with_beta(&next, "compact-2026-01-12").await.json();
    assert!(
        reply["usage"]["input_tokens"].as_u64() < Some(2_000),
        "what stands before its summary is dropped: {reply}"
    );
}
