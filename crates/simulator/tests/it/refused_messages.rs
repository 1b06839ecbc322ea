//! Refusals of what was said: messages, blocks, pairs of calls and results, thinking.

use serde_json::{Value, json};

use crate::client::{Client, body};
use crate::refusals::{SAY, call, hello_with, messages, refused, refused_with, result, tool};

#[tokio::test]
async fn system_messages_amid_the_conversation() {
    let client = Client::new(SAY).await;
    let amid = |after: &[(&str, Value)]| {
        let mut turns = vec![("user", json!("a")), ("assistant", json!("b")), ("user", json!("c"))];
        turns.extend_from_slice(after);
        messages(&turns)
    };
    client.reply(&amid(&[("system", json!("Be brief."))])).await;
    client.reply(&amid(&[("system", json!("Be brief.")), ("assistant", json!("d")), ("user", json!("e"))])).await;
    let mut configured = amid(&[("system", json!([{"type": "text", "text": "Be brief."}]))]);
    configured["messages"][3]["output_config"] = json!({"effort": "low"});
    assert_eq!(client.send_with_beta(&configured, "per-turn-control-2026-07-01").await.status, 200);
    let mut old = amid(&[("system", json!("Be brief."))]);
    old["model"] = json!("claude-opus-4-7");
    refused_with(
        &client,
        "",
        &[
            (messages(&[("system", json!("hi"))]), "messages.0: use the top-level 'system' parameter"),
            (amid(&[("system", json!("x")), ("system", json!("y"))]), "messages.3: a system message must be last or"),
            (amid(&[("system", json!("x")), ("user", json!("y"))]), "messages.3: a system message must be last or"),
            (amid(&[("assistant", json!("x")), ("system", json!("y"))]), "messages.4: a system message must follow"),
            (amid(&[("system", json!([call("a")]))]), "messages.3.content.0: `tool_use` blocks are not allowed"),
            (configured, "messages.3.output_config: Extra inputs are not permitted"),
            (old, "role 'system' is not supported on this model"),
        ],
    )
    .await;
}

#[tokio::test]
async fn messages_and_blocks() {
    let image = |media: &str, data: &str| {
        messages(&[(
            "user",
            json!([{"type": "image", "source": {"type": "base64", "media_type": media, "data": data}}]),
        )])
    };
    let spoken = |text: &str| messages(&[("user", json!([{"type": "text", "text": text}]))]);
    refused(&[
        (messages(&[]), "messages: at least one message is required"),
        (messages(&[("assistant", json!("hi"))]), "messages: first message must use the \"user\" role"),
        (messages(&[("tool", json!("hi"))]), "messages: Unexpected role \"tool\""),
        (messages(&[("user", json!([]))]), "messages.0: all messages must have non-empty content"),
        (messages(&[("user", json!(3))]), "messages.0.content: Input should be a valid list"),
        (messages(&[("user", json!(""))]), "messages: text content blocks must be non-empty"),
        (spoken(""), "messages: text content blocks must be non-empty"),
        (spoken(" \n\t"), "messages: text content blocks must contain non-whitespace text"),
        (
            messages(&[("user", json!([{"type": "sound"}]))]),
            "messages.0.content.0: Input tag 'sound' found using 'type'",
        ),
        (
            messages(&[("user", json!([{"type": "text", "text": "x", "uuid": 1}]))]),
            "messages.0.content.0.text.uuid: Extra",
        ),
        (messages(&[("user", json!([{"text": "x"}]))]), "messages.0.content.0.type: Field required"),
        (
            messages(&[("user", json!("a")), ("assistant", json!("so "))]),
            "final assistant content cannot end with trailing",
        ),
        (image("image/bmp", "AAAA"), "image.source.base64.media_type: Input should be 'image/jpeg'"),
        (image("image/png", "not base64!"), "image.source.base64.data: Input should be valid base64"),
        (image("image/png", ""), "image cannot be empty"),
        (hello_with("system", json!([{"type": "image"}])), "system.0.type: Input should be 'text'"),
        (
            messages(&[("user", json!([call("a")]))]),
            "messages.0.content.0: `tool_use` blocks can only be in `assistant`",
        ),
        (messages(&[("user", json!([{"type": "cache_edits", "edits": []}]))]), "Input tag 'cache_edits' found"),
    ])
    .await;
}

#[tokio::test]
async fn calls_and_results_come_in_pairs() {
    let open = "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: a. Each `tool_use` \
                block must have a corresponding `tool_result` block in the next message.";
    let ask = || ("user", json!("do"));
    let late = json!([{"type": "text", "text": "first"}, result("a")]);
    let long_name = json!([{"type": "tool_use", "id": "a", "name": "x".repeat(201), "input": {}}]);
    refused(&[
        (messages(&[ask(), ("assistant", json!([call("a")]))]), open),
        (messages(&[ask(), ("assistant", json!([call("a")])), ("user", json!("go on"))]), open),
        (messages(&[ask(), ("assistant", json!([call("a")])), ("user", late)]), open),
        (
            messages(&[ask(), ("assistant", json!([call("a"), call("b")])), ("user", json!([result("b")]))]),
            "immediately after: a. Each",
        ),
        (
            messages(&[("user", json!([result("z")]))]),
            "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: z. Each `tool_result` block must \
             have a corresponding `tool_use` block in the previous message.",
        ),
        (
            messages(&[ask(), ("assistant", json!([call("a")])), ("user", json!([result("a"), result("a")]))]),
            "messages.2.content.1: each tool_use must have a single result",
        ),
        (
            messages(&[ask(), ("assistant", json!([call("a"), call("a")])), ("user", json!([result("a")]))]),
            "messages: `tool_use` ids must be unique",
        ),
        (messages(&[ask(), ("assistant", long_name)]), "tool_use.name: String should have at most 200 characters"),
        (
            messages(&[ask(), ("assistant", json!([{"type": "tool_use", "id": "a b", "name": "x", "input": {}}]))]),
            "messages.1.content.0.tool_use.id: String should match pattern",
        ),
        (
            messages(&[ask(), ("assistant", json!([{"type": "tool_use", "id": "a", "name": "x", "input": "{}"}]))]),
            "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
        ),
    ])
    .await;
}

#[tokio::test]
async fn consecutive_messages_of_one_role_are_one_turn() {
    let client = Client::new(SAY).await;
    let merged = messages(&[
        ("user", json!("do")),
        ("user", json!("it")),
        ("assistant", json!([call("a")])),
        ("assistant", json!([call("b")])),
        ("user", json!([result("b")])),
        ("user", json!([result("a"), {"type": "text", "text": "there"}])),
    ]);
    client.reply(&merged).await;
}

#[tokio::test]
async fn thinking_must_come_back_as_it_was_signed() {
    let client = Client::new("[[rule]]\nname = \"think\"\nthink = \"Deep.\"\nsay = \"So.\"").await;
    let mut ask = hello_with("thinking", json!({"type": "adaptive"}));
    let content = client.reply(&ask).await["content"].clone();
    assert_eq!(content[0]["thinking"], "Deep.");
    let mut with = |content: &Value| {
        ask["messages"] = json!([
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": content},
            {"role": "user", "content": "and?"},
        ]);
        ask.clone()
    };
    assert_eq!(client.send(&with(&content)).await.status, 200);
    for (key, value) in [("thinking", "Shallow."), ("signature", "Eu0")] {
        let mut changed = content.clone();
        changed[0][key] = json!(value);
        let answer = client.send(&with(&changed)).await;
        assert_eq!(answer.status, 400);
        assert_eq!(answer.message(), "messages.1.content.0: Invalid `signature` in `thinking` block");
    }
    let mut carrying = content.clone();
    carrying[0]["cache_control"] = json!({"type": "ephemeral"});
    let answer = client.send(&with(&carrying)).await;
    assert_eq!(answer.message(), "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted");
}

#[tokio::test]
async fn thinking_must_come_back_with_the_calls_it_led_to() {
    let script = r#"
        [[rule]]
        name = "call"
        when = { user = "go", missing = "done" }
        think = "A tool will help."
        call = [{ tool = "Bash" }]
        [[rule]]
        name = "say"
        say = "Fine."
    "#;
    let client = Client::new(script).await;
    let mut ask = body(json!([{"role": "user", "content": "go"}]));
    ask["tools"] = json!([tool("Bash", json!({"type": "object"}))]);
    ask["thinking"] = json!({"type": "adaptive"});
    let content = client.reply(&ask).await["content"].clone();
    let (thought, called) = (content[0].clone(), content[1].clone());
    let answer = json!([{"type": "tool_result", "tool_use_id": called["id"], "content": "done"}]);
    let mut history = |reply: Value, more: &[Value]| {
        let start = [
            json!({"role": "user", "content": "go"}),
            json!({"role": "assistant", "content": reply}),
            json!({"role": "user", "content": answer}),
        ];
        ask["messages"] = json!([&start, more].concat());
        ask.clone()
    };
    assert_eq!(client.send(&history(json!([thought, called]), &[])).await.status, 200);
    let bare = json!([called]);
    let refused = client.send(&history(bare.clone(), &[])).await;
    let words = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.";
    assert!(refused.message().starts_with(words), "{}", refused.text);
    let later = [json!({"role": "assistant", "content": "Fine."}), json!({"role": "user", "content": "thanks"})];
    assert_eq!(client.send(&history(bare.clone(), &later)).await.status, 200, "the loop is closed");
    let mut off = history(bare, &[]);
    off["thinking"] = json!({"type": "disabled"});
    assert_eq!(client.send(&off).await.status, 200, "nothing is asked for when thinking is off");
}
