//! The Messages API's dialect, and what only it does.

use std::sync::Arc;

use provider::anthropic::{Anthropic, Auth, Config};
use provider::{Model, Patience, Retry};
use serde_json::{Value, json};
use transcript::block::Kind;
use transcript::{Block, Reply};

use crate::suite::{self, Dialect, KEY, conformance};
use crate::wire::{self, Server, pieces};

struct Messages;

conformance! { Messages;
    with
    thinking_keeps_its_signature,
    cache_marks_are_on_the_wire,
    tokens_are_counted,
    a_wrong_key_is_told_when_counting_too;
    without
}

impl Dialect for Messages {
    fn model(&self, url: &str, retry: Retry, patience: Patience) -> Arc<dyn Model> {
        let config = Config { retry, patience, ..Config::new(url, Auth::ApiKey(KEY.into())) };
        Arc::new(Anthropic::new(config).unwrap())
    }

    fn events(&self, reply: &Reply) -> Vec<String> {
        let mut events = vec![start(reply), event(&json!({"type": "ping"}))];
        for (index, block) in reply.blocks.iter().enumerate() {
            let value = block.value();
            let (start, deltas) = match block.kind() {
                Kind::Text => (json!({"type": "text", "text": ""}), deltas("text", &value)),
                Kind::Thinking if value["data"].is_null() => (
                    json!({"type": "thinking", "thinking": "", "signature": ""}),
                    [deltas("thinking", &value), deltas("signature", &value)].concat(),
                ),
                Kind::ToolUse { id, name } => {
                    let start = json!({"type": "tool_use", "id": **id, "name": **name, "input": {}});
                    let input = value["input"].to_string();
                    (start, if input == "{}" { vec![] } else { inputs(&input) })
                }
                _ => (value, vec![]),
            };
            events.extend(block_events(index, &start, &deltas));
        }
        events.push(end(&reply.stop, reply.usage.output_tokens));
        events.push(event(&json!({"type": "message_stop"})));
        events
    }

    fn call(&self, input_text: &str) -> Vec<String> {
        let usage = transcript::Usage::default();
        let stop = transcript::StopReason::ToolUse;
        let empty = Reply {
            id: "msg_1".into(),
            model: "m".into(),
            blocks: vec![],
            stop: stop.clone(),
            usage,
            remarks: transcript::Remarks::default(),
        };
        let block = json!({"type": "tool_use", "id": "t1", "name": "Bash", "input": {}});
        let mut events = vec![start(&empty)];
        events.extend(block_events(0, &block, &inputs(input_text)));
        events.push(end(&stop, 5));
        events.push(event(&json!({"type": "message_stop"})));
        events
    }

    fn whole(&self, reply: &Reply) -> String {
        let content: Vec<Value> = reply.blocks.iter().map(Block::value).collect();
        json!({"id": reply.id, "type": "message", "role": "assistant", "model": reply.model, "content": content,
            "stop_reason": reply.stop, "stop_sequence": null, "usage": reply.usage})
        .to_string()
    }

    fn refusal(&self, message: &str) -> String {
        json!({"type": "error", "error": {"type": "some_error", "message": message}, "request_id": "req_1"}).to_string()
    }

    fn too_long(&self, tokens: u64, limit: u64) -> String {
        format!("prompt is too long: {tokens} tokens > {limit} maximum")
    }

    fn overloaded(&self) -> String {
        event(&json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}))
    }

    fn marked(&self, body: &Value) -> Vec<String> {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let mut blocks = list(&body["system"]);
        blocks.extend(list(&body["messages"]).iter().flat_map(|message| list(&message["content"])));
        let marked = blocks.iter().filter(|block| block["cache_control"] == json!({"type": "ephemeral"}));
        marked.map(|block| block["text"].as_str().unwrap_or_default().to_owned()).collect()
    }

    fn count(&self, tokens: u64) -> String {
        json!({ "input_tokens": tokens }).to_string()
    }
}

fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap())
}

fn start(reply: &Reply) -> String {
    let mut usage = json!(reply.usage);
    usage["output_tokens"] = json!(1);
    let message = json!({"id": reply.id, "type": "message", "role": "assistant", "model": reply.model, "content": [],
        "stop_reason": null, "usage": usage});
    event(&json!({"type": "message_start", "message": message}))
}

fn end(stop: &transcript::StopReason, output_tokens: u64) -> String {
    let usage = json!({"output_tokens": output_tokens, "input_tokens": null});
    event(&json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": usage}))
}

fn block_events(index: usize, block: &Value, deltas: &[Value]) -> Vec<String> {
    let mut events = vec![event(&json!({"type": "content_block_start", "index": index, "content_block": block}))];
    events.extend(
        deltas.iter().map(|delta| event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))),
    );
    events.push(event(&json!({"type": "content_block_stop", "index": index})));
    events
}

fn deltas(key: &str, block: &Value) -> Vec<Value> {
    let pieces = pieces(block[key].as_str().unwrap_or_default());
    pieces.iter().map(|piece| json!({"type": format!("{key}_delta"), key: piece})).collect()
}

fn inputs(text: &str) -> Vec<Value> {
    pieces(text).iter().map(|piece| json!({"type": "input_json_delta", "partial_json": piece})).collect()
}

async fn received(auth: Auth) -> wire::Received {
    let server = Server::start(vec![wire::whole(400, &[], "")]).await;
    let url = format!("{}/gateway/", server.url);
    let config = Config { app: "bench/1.2".into(), retry: Retry::never(), ..Config::new(url, auth) };
    let events: Vec<provider::Event> =
        futures_util::StreamExt::collect(Anthropic::new(config).unwrap().stream(suite::request())).await;
    assert_eq!(events.len(), 1);
    server.received().remove(0)
}

#[tokio::test]
async fn a_request_says_who_asks_and_for_what() {
    let request = received(Auth::ApiKey(KEY.into())).await;
    assert_eq!(request.path(), "/gateway/v1/messages");
    for (name, value) in [
        ("x-api-key", Some(KEY)),
        ("authorization", None),
        ("anthropic-version", Some("2023-06-01")),
        ("anthropic-beta", Some("interleaved-thinking-2025-05-14,other-2026-01-01")),
        ("content-type", Some("application/json")),
        ("accept", Some("text/event-stream")),
        ("user-agent", Some("bench/1.2")),
    ] {
        assert_eq!(request.header(name), value, "{name}");
    }
    let body: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!((&body["stream"], &body["max_tokens"]), (&json!(true), &json!(2048)));

    let request = received(Auth::AuthToken(KEY.into())).await;
    assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(request.header("x-api-key"), None);
}

#[test]
fn neither_a_config_nor_a_client_shows_the_key() {
    let config = Config::new("http://localhost:1", Auth::AuthToken(KEY.into()));
    let shown = format!("{config:?} {:?}", Anthropic::new(config.clone()).unwrap());
    assert!(!shown.contains(KEY), "{shown}");
    let unsendable = Config::new("http://localhost:1", Auth::ApiKey(format!("{KEY}\n").into()));
    let error = Anthropic::new(unsendable).unwrap_err();
    assert!(!format!("{error} {error:?}").contains(KEY));
}

/// The proxy is nobody's; a server on this machine is reached all the same.
#[test]
fn this_machine_is_reached_without_the_proxy() {
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy"] {
        again.env(name, "http://127.0.0.1:1");
    }
    let output =
        again.env_remove("NO_PROXY").env_remove("no_proxy").args(["--exact", "anthropic::text_streams"]).output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
