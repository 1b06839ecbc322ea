//! The shape of a stream.

use serde_json::{Value, json};

use crate::client::{Client, body};

const SCRIPT: &str = r#"
    [[rule]]
    name = "all"
    think = "First I think about it."
    say = "Then I say something long enough to be cut."
    call = [
        { tool = "Bash", input = { command = "echo \"quoted\" and ünïcode", timeout = 5 } },
        { tool = "Bash", input = {} },
    ]
"#;

fn ask(stream: bool) -> Value {
    let mut body = body(json!([{"role": "user", "content": "go"}]));
    body["tools"] = json!([{"name": "Bash", "input_schema": {"type": "object"}}]);
    body["thinking"] = json!({"type": "adaptive"});
    body["stream"] = json!(stream);
    body
}

#[tokio::test]
async fn events_come_in_the_documented_order() {
    let client = Client::new(SCRIPT).await;
    let answer = client.send(&ask(true)).await;
    assert!(answer.headers["content-type"].to_str().unwrap().starts_with("text/event-stream"));
    let events = answer.events();
    assert!(events.iter().all(|(name, data)| data["type"] == *name));
    let mut names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    names.dedup();
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    let expected = [
        &["message_start", "content_block_start", "ping", "content_block_delta", "content_block_stop"][..],
        &block,
        &block,
        &block,
        &["message_delta", "message_stop"],
    ];
    assert_eq!(names, expected.concat());
    let start = &events[0].1["message"];
    assert_eq!(start["content"], json!([]));
    assert_eq!(start["stop_reason"], Value::Null);
    assert!(start["usage"]["input_tokens"].as_u64().unwrap() > 0);
    let delta = &events[events.len() - 2].1;
    assert_eq!(delta["delta"]["stop_reason"], "tool_use");
    assert!(delta["usage"]["output_tokens"].as_u64().unwrap() > 20);
}

#[tokio::test]
async fn the_pieces_make_the_unstreamed_reply() {
    let client = Client::new(SCRIPT).await;
    let mut blocks: Vec<Value> = Vec::new();
    let mut inputs = vec![String::new(); 4];
    let mut kinds: Vec<String> = Vec::new();
    for (_, data) in client.send(&ask(true)).await.events() {
        let index = usize::try_from(data["index"].as_u64().unwrap_or_default()).unwrap();
        if data["type"] == "content_block_start" {
            blocks.push(data["content_block"].clone());
        }
        let delta = &data["delta"];
        let mut grow = |key: &str| {
            let grown = format!("{}{}", blocks[index][key].as_str().unwrap(), delta[key].as_str().unwrap());
            blocks[index][key] = json!(grown);
        };
        let Some(kind) = delta["type"].as_str() else { continue };
        kinds.push(kind.to_owned());
        match kind {
            "text_delta" => grow("text"),
            "thinking_delta" => grow("thinking"),
            "signature_delta" => grow("signature"),
            _ => inputs[index].push_str(delta["partial_json"].as_str().unwrap()),
        }
    }
    for (block, input) in blocks.iter_mut().zip(&inputs).filter(|(_, input)| !input.is_empty()) {
        block["input"] = serde_json::from_str(input).unwrap();
    }
    let count = |kind: &str| kinds.iter().filter(|other| *other == kind).count();
    assert!(count("text_delta") > 1 && count("thinking_delta") > 1 && count("input_json_delta") > 3);
    assert_eq!(count("signature_delta"), 1);

    let mut whole = client.reply(&ask(false)).await["content"].as_array().unwrap().clone();
    // The ids follow from the request, and the two requests differ in `stream`.
    for block in whole.iter_mut().chain(&mut blocks).filter(|block| block["type"] == "tool_use") {
        assert!(block["id"].as_str().unwrap().starts_with("toolu_"));
        block["id"] = json!("");
    }
    assert_eq!(blocks, whole);
}

#[tokio::test]
async fn the_same_request_gets_the_same_bytes() {
    let client = Client::new(SCRIPT).await;
    let other = Client::new(SCRIPT).await;
    let first = client.send(&ask(true)).await.text;
    assert_eq!(first, client.send(&ask(true)).await.text);
    assert_eq!(first, other.send(&ask(true)).await.text);
}
