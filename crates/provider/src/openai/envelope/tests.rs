use std::sync::Arc;

use proptest::prelude::*;
use transcript::Outcome;
use transcript::mark::{BlockPlace, Marks};

use super::*;
use crate::sample::{message, prologue, words};

fn request(messages: Vec<Message>) -> Request {
    let marks = Marks { system: vec![1], messages: vec![BlockPlace { message: 0, block: 0 }], ..Marks::default() };
    Request { prologue: Arc::new(prologue()), messages, marks }
}

fn user_said(blocks: Vec<Block>) -> Message {
    Message { role: Role::User, blocks }
}

fn assistant_said(blocks: Vec<Block>) -> Message {
    Message { role: Role::Assistant, blocks }
}

fn sent(messages: Vec<Message>) -> Vec<Value> {
    let body: Value = serde_json::from_slice(&completions(&request(messages), OutputLimit::MaxTokens)).unwrap();
    body["messages"].as_array().unwrap()[1..].to_vec()
}

/// LOOP-2: what stays the same in a conversation stands first; breakpoints, thinking and betas are not told.
#[test]
fn a_body_is_laid_out_with_what_stays_first() {
    let body = completions(&request(vec![user_said(vec![Block::text("hi")])]), OutputLimit::MaxCompletionTokens);
    let expected = concat!(
        r#"{"model":"m\"1","tools":[{"type":"function","function":{"name":"Bash","description":"runs","#,
        r#""parameters":{"type":"object"}}}],"#,
        r#""messages":[{"role":"system","content":"one\n\ntwo"},{"role":"user","content":"hi"}],"#,
        r#""max_completion_tokens":64,"stream":true,"stream_options":{"include_usage":true}}"#,
    );
    assert_eq!(body, expected);
    let mut bare = request(vec![]);
    Arc::make_mut(&mut bare.prologue).system.clear();
    Arc::make_mut(&mut bare.prologue).tools.clear();
    let body: Value = serde_json::from_slice(&completions(&bare, OutputLimit::MaxTokens)).unwrap();
    let keys: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["model", "messages", "max_tokens", "stream", "stream_options"]);
}

#[test]
fn calls_and_their_results_stand_together() {
    let thinking = Block::from_value(json!({"type": "thinking", "thinking": "hm", "signature": "s"}));
    let messages = sent(vec![
        assistant_said(vec![
            thinking.clone(),
            Block::text("look"),
            Block::tool_use("t1", "Bash", &json!({"command": "ls \"a\""})),
            Block::tool_use("t2", "Bash", &json!({})),
        ]),
        user_said(vec![
            Block::text("and be quick"),
            Block::tool_result("t1", &[Block::text("x"), Block::text("y")], Outcome::Done),
            Block::tool_result("t2", &[Block::text("no such file")], Outcome::Failed),
            Block::tool_result("t3", &[], Outcome::Done),
        ]),
        assistant_said(vec![Block::tool_use("t4", "Bash", &json!({"_invalid_json": "{"}))]),
        assistant_said(vec![thinking]),
    ]);
    let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "Bash", "arguments": arguments}});
    let expected = [
        json!({"role": "assistant", "content": "look", "tool_calls": [call("t1", r#"{"command":"ls \"a\""}"#), call("t2", "{}")]}),
        json!({"role": "tool", "tool_call_id": "t1", "content": "x\ny"}),
        json!({"role": "tool", "tool_call_id": "t2", "content": "Error: no such file"}),
        json!({"role": "tool", "tool_call_id": "t3", "content": "(no output)"}),
        json!({"role": "user", "content": "and be quick"}),
        json!({"role": "assistant", "content": null, "tool_calls": [call("t4", r#"{"_invalid_json":"{"}"#)]}),
        json!({"role": "assistant", "content": ""}),
    ];
    assert_eq!(messages, expected);
}

#[test]
fn pictures_in_results_move_to_the_user_message_behind_them() {
    let picture = Block::image("image/png", "AAAA");
    let messages = sent(vec![user_said(vec![
        Block::tool_result("t1", &[Block::text("seen:"), picture.clone()], Outcome::Done),
        Block::tool_result("t2", &[Block::text("x")], Outcome::Done),
        Block::text("and this?"),
        picture,
        Block::from_value(json!({"type": "image", "source": {"type": "url", "url": "https://x/y.png"}})),
    ])]);
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}});
    let expected = [
        json!({"role": "tool", "tool_call_id": "t1", "content": "seen:\n[picture 1, shown in the next user message]"}),
        json!({"role": "tool", "tool_call_id": "t2", "content": "x"}),
        json!({"role": "user", "content": [
            {"type": "text", "text": "Picture 1 from the result of tool call t1:"},
            image,
            {"type": "text", "text": "and this?"},
            image,
            {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
        ]}),
    ];
    assert_eq!(messages, expected);
}

#[test]
fn what_cannot_be_sent_leaves_a_note() {
    let plain = json!({"type": "document", "title": "t", "source": {"type": "text", "media_type": "text/plain", "data": "words"}});
    let messages = sent(vec![user_said(vec![
        Block::document("application/pdf", "AAAA"),
        Block::from_value(plain),
        Block::from_value(json!({"type": "image", "source": {"type": "file", "file_id": "f"}})),
        Block::from_value(json!({"type": "hologram"})),
    ])]);
    let expected = concat!(
        "[document (application/pdf): documents cannot be sent to this model]\n\n",
        "[document \"t\"]\nwords\n\n",
        "[a picture that is stored with another provider and cannot be sent to this model]\n\n",
        "[a block of the kind hologram, which cannot be sent to this model]",
    );
    assert_eq!(messages, [json!({"role": "user", "content": expected})]);
}

fn block() -> impl Strategy<Value = Block> {
    prop_oneof![
        words().prop_map(Block::text),
        (words(), words()).prop_map(|(id, command)| Block::tool_use(&id, "Bash", &json!({"command": command}))),
        (words(), words()).prop_map(|(id, out)| Block::tool_result(
            &id,
            &[Block::text(out), Block::image("image/png", "AA")],
            Outcome::Failed
        )),
        Just(Block::document("application/pdf", "AA")),
        Just(Block::from_value(json!({}))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// A conversation that goes on keeps the bytes it began with, and no text is lost.
    #[test]
    fn a_longer_conversation_has_the_same_beginning(
        mut messages in prop::collection::vec(message(block()), 1..5),
        next in prop::collection::vec(message(block()), 0..3),
    ) {
        let short = completions(&request(messages.clone()), OutputLimit::MaxTokens);
        messages.extend(next);
        let long = completions(&request(messages.clone()), OutputLimit::MaxTokens);
        let end = b"],\"max_tokens\":";
        let shared = short.windows(end.len()).rposition(|window| window == end).unwrap();
        prop_assert_eq!(&short[..shared], &long[..shared]);
        let value: Value = serde_json::from_slice(&long).unwrap();
        let said = value["messages"].to_string();
        for text in messages.iter().flat_map(|message| &message.blocks).filter_map(text) {
            let quoted = Value::String(text).to_string();
            prop_assert!(said.contains(&quoted[1..quoted.len() - 1]));
        }
    }
}

/// SEARCH-1: tools that were loaded later are functions like the others, behind them.
#[test]
fn loaded_tools_are_functions_behind_the_others() {
    let mut one = request(vec![]);
    Arc::make_mut(&mut one.prologue).loaded = vec![crate::sample::loaded()];
    let body: Value = serde_json::from_slice(&completions(&one, OutputLimit::MaxTokens)).unwrap();
    let names: Vec<&Value> = body["tools"].as_array().unwrap().iter().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(names, ["Bash", "mcp__db__query"]);
}
