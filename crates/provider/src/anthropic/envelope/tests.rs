use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use transcript::Outcome;

use super::*;
use crate::sample::{message, prologue, words};

fn request(messages: Vec<Message>, marks: Marks) -> Request {
    Request { prologue: Arc::new(prologue()), messages, marks }
}

fn text(body: &Bytes) -> &str {
    std::str::from_utf8(body).unwrap()
}

/// LOOP-2: the order is that of the provider's cache, and marks stand on the blocks they were given for.
#[test]
fn a_body_is_laid_out_in_the_order_of_the_cache() {
    let messages = vec![
        Message { role: Role::User, blocks: vec![Block::text("hi"), Block::text("there")] },
        Message { role: Role::Assistant, blocks: vec![Block::text("yes")] },
    ];
    let marks = Marks {
        system: vec![1],
        messages: vec![BlockPlace { message: 0, block: 1 }],
        ttl: Ttl::OneHour,
        ..Marks::default()
    };
    let body = super::messages(&request(messages, marks));
    let expected = concat!(
        r#"{"model":"m\"1","max_tokens":64,"#,
        r#""tools":[{"name":"Bash","description":"runs","input_schema":{"type":"object"}}],"#,
        r#""system":[{"type":"text","text":"one"},"#,
        r#"{"type":"text","text":"two","cache_control":{"type":"ephemeral","ttl":"1h"}}],"#,
        r#""messages":[{"role":"user","content":[{"type":"text","text":"hi"},"#,
        r#"{"type":"text","text":"there","cache_control":{"type":"ephemeral","ttl":"1h"}}]},"#,
        r#"{"role":"assistant","content":[{"type":"text","text":"yes"}]}],"#,
        r#""thinking":{"type":"enabled","budget_tokens":32},"stream":true}"#,
    );
    assert_eq!(text(&body), expected);
}

#[test]
fn a_count_has_no_marks_and_asks_for_no_reply() {
    let marks = Marks { system: vec![0], ..Marks::default() };
    let body = count(&request(vec![Message { role: Role::User, blocks: vec![Block::text("hi")] }], marks));
    let body: Value = serde_json::from_slice(&body).unwrap();
    let keys: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["model", "tools", "system", "messages", "thinking"]);
    assert!(!body.to_string().contains("cache_control"));
}

#[test]
fn what_is_absent_is_left_out_and_five_minutes_are_not_named() {
    let prologue = Prologue { system: vec![], tools: vec![], thinking: None, ..prologue() };
    let messages = vec![Message { role: Role::User, blocks: vec![Block::from_value(json!({}))] }];
    let marks = Marks { messages: vec![BlockPlace { message: 0, block: 0 }], ..Marks::default() };
    let body = super::messages(&Request { prologue: Arc::new(prologue), messages, marks });
    let expected = concat!(
        r#"{"model":"m\"1","max_tokens":64,"#,
        r#""messages":[{"role":"user","content":[{"cache_control":{"type":"ephemeral"}}]}],"stream":true}"#
    );
    assert_eq!(text(&body), expected);
}

fn block() -> impl Strategy<Value = Block> {
    prop_oneof![
        words().prop_map(Block::text),
        (words(), words()).prop_map(|(id, command)| Block::tool_use(&id, "Bash", &json!({"command": command}))),
        (words(), words()).prop_map(|(id, out)| Block::tool_result(&id, &[Block::text(out)], Outcome::Failed)),
        (words(), words()).prop_map(|(thinking, signature)| Block::from_value(
            json!({"signature": signature, "thinking": thinking, "type": "thinking"})
        )),
        Just(Block::from_value(json!({}))),
    ]
}

fn marks() -> impl Strategy<Value = Marks> {
    let place = (0..6usize, 0..4usize).prop_map(|(message, block)| BlockPlace { message, block });
    let ttl = prop_oneof![Just(Ttl::FiveMinutes), Just(Ttl::OneHour)];
    (prop::collection::vec(0..4usize, 0..3), prop::collection::vec(place, 0..4), ttl)
        .prop_map(|(system, messages, ttl)| Marks { system, messages, ttl, ..Marks::default() })
}

/// A body with its breakpoints cut out again. No generated text contains one: quotes in text are escaped.
fn unmarked(body: &Bytes) -> String {
    let mut body = text(body).to_owned();
    for ttl in [Ttl::FiveMinutes, Ttl::OneHour] {
        body = body.replace(&format!(",{}}}", mark(ttl)), "}").replace(&format!("{{{}}}", mark(ttl)), "{}");
    }
    body
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// The body is JSON that says what the request says, in the blocks' own bytes, written into the room set aside.
    #[test]
    fn a_body_holds_the_blocks_own_bytes(messages in prop::collection::vec(message(block()), 0..5), marks in marks()) {
        let request = request(messages, marks);
        let body = super::messages(&request);
        let value: Value = serde_json::from_slice(&body).unwrap();
        let sent = value["messages"].as_array().unwrap();
        prop_assert_eq!(sent.len(), request.messages.len());

        let bare = unmarked(&body);
        let mut at = bare.find("\"messages\":[").unwrap();
        for (index, (message, sent)) in request.messages.iter().zip(sent).enumerate() {
            for (number, block) in message.blocks.iter().enumerate() {
                let found = bare[at..].find(block.json());
                prop_assert!(found.is_some(), "block {}.{} is not in the body", index, number);
                at += found.unwrap() + block.json().len();
                let marked = request.marks.messages.contains(&BlockPlace { message: index, block: number });
                prop_assert_eq!(sent["content"][number].get("cache_control").is_some(), marked);
            }
        }
        let (model, tools) = (serialise(&request.prologue.model), serialise(&request.prologue.tools));
        prop_assert!(body.len() <= room(&request, model.len() + tools.len()));
    }

    /// A request that continues another is the same bytes up to the end of the last block they share.
    #[test]
    fn a_longer_conversation_has_the_same_beginning(
        mut messages in prop::collection::vec(message(block()), 1..5),
        last in block(),
        more in prop::collection::vec(block(), 0..3),
        next in prop::collection::vec(message(block()), 0..3),
        before in marks(),
        after in marks(),
    ) {
        messages.last_mut().unwrap().blocks.push(last);
        let short = unmarked(&super::messages(&request(messages.clone(), before)));
        messages.last_mut().unwrap().blocks.extend(more);
        messages.extend(next);
        let long = unmarked(&super::messages(&request(messages, after)));
        let shared = short.rfind("]}],\"thinking\":").unwrap();
        prop_assert_eq!(&short[..shared], &long[..shared]);
    }
}

/// SEARCH-1: tools that were loaded later stand behind the others, whose bytes stay as they are, and say that they are no part
/// of the prefix.
#[test]
fn loaded_tools_stand_behind_the_others() {
    let mut one = request(vec![], Marks::default());
    let before = String::from_utf8(messages(&one).to_vec()).unwrap();
    let tools = before[before.find("\"tools\":[").unwrap()..before.find("}],").unwrap() + 1].to_owned();
    Arc::make_mut(&mut one.prologue).loaded = vec![crate::sample::loaded()];
    let after = String::from_utf8(messages(&one).to_vec()).unwrap();
    let loaded =
        r#",{"name":"mcp__db__query","description":"asks","input_schema":{"type":"object"},"defer_loading":true}]"#;
    assert!(after.contains(&format!("{tools}{loaded}")), "{after}");
}
