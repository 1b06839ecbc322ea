//! The scripted model reacts to what is visible, and to nothing else.

use serde_json::{Value, json};
use simulator::{Options, Script, ScriptRule, When};

use crate::client::{Client, body};

fn user(words: &str) -> Value {
    json!({"role": "user", "content": words})
}

fn assistant(words: &str) -> Value {
    json!({"role": "assistant", "content": words})
}

async fn said(client: &Client, messages: Value) -> String {
    client.reply(&body(messages)).await["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn lost_context_shows_as_rework() {
    let script = r#"
        [[rule]]
        name = "remember"
        when = { user = "which port", visible = "the port is (?P<port>\\d+)" }
        say = "It is {{ port }}."
        [[rule]]
        name = "look it up again"
        when = { user = "which port", missing = "the port is" }
        say = "I have to look."
    "#;
    let client = Client::new(script).await;
    let full = json!([user("look"), assistant("the port is 8080"), user("which port?")]);
    assert_eq!(said(&client, full).await, "It is 8080.");
    assert_eq!(said(&client, json!([user("which port?")])).await, "I have to look.");
}

#[tokio::test]
async fn counting_works_by_capturing() {
    let script = r#"
        [[rule]]
        name = "count"
        when = { visible = "(?s).*step (?P<n>\\d+) done" }
        say = "step {{ n|int + 1 }} done"
        [[rule]]
        name = "begin"
        say = "step 1 done"
    "#;
    let client = Client::new(script).await;
    let mut messages = vec![user("go")];
    for step in 1..=12 {
        let reply = said(&client, json!(messages)).await;
        assert_eq!(reply, format!("step {step} done"));
        messages.extend([assistant(&reply), user("next")]);
    }
}

#[tokio::test]
async fn rules_look_at_results_tools_system_and_model() {
    let script = r#"
        [[rule]]
        name = "bash answered"
        when = { tool = "Bash", result = "exit (?P<code>\\d+)" }
        say = "code {{ code }}"
        [[rule]]
        name = "other result"
        when = { result = "." }
        say = "got: {{ result }}"
        [[rule]]
        name = "haiku"
        when = { model = "haiku" }
        say = "five seven five"
        [[rule]]
        name = "system"
        when = { system = "pirate" }
        say = "{{ greeting }}, {{ user }}"
        [[rule]]
        name = "with tools"
        when = { offered = ["Bash", "Read"] }
        say = "both"
        [vars]
        greeting = "Ahoy"
    "#;
    let client = Client::new(script).await;
    let answered = |tool: &str, text: &str| {
        json!([
            user("do"),
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": tool, "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": text}]},
        ])
    };
    assert_eq!(said(&client, answered("Bash", "exit 3")).await, "code 3");
    assert_eq!(said(&client, answered("Read", "exit 3")).await, "got: exit 3");
    let mut request = body(json!([user("mate")]));
    request["system"] = json!("You are a pirate.");
    assert_eq!(client.reply(&request).await["content"][0]["text"], "Ahoy, mate");
    request["model"] = json!("claude-haiku-4-5");
    assert_eq!(client.reply(&request).await["content"][0]["text"], "five seven five");
    let tool = |name: &str| json!({"name": name, "input_schema": {"type": "object"}});
    let mut request = body(json!([user("mate")]));
    request["tools"] = json!([tool("Read"), tool("Bash")]);
    assert_eq!(client.reply(&request).await["content"][0]["text"], "both");
    request["tools"] = json!([tool("Read")]);
    let fallback = client.reply(&request).await;
    assert!(fallback["content"][0]["text"].as_str().unwrap().contains("\"with tools\""));
    assert_eq!(fallback["stop_reason"], "end_turn");
}

#[tokio::test]
async fn a_script_that_no_model_could_follow_is_an_error_that_names_the_rule() {
    let script = r#"
        [[rule]]
        name = "wild call"
        when = { user = "call" }
        call = [{ tool = "Bash" }]
        [[rule]]
        name = "undefined"
        when = { user = "name" }
        say = "{{ nobody }}"
        [[rule]]
        name = "not json"
        say = "words"
    "#;
    let client = Client::new(script).await;
    let problem = async |request: Value, words: &str| {
        let answer = client.send(&request).await;
        assert_eq!((answer.status, answer.json()["error"]["type"].as_str()), (500, Some("api_error")));
        assert!(answer.message().contains(words), "{}", answer.message());
    };
    problem(body(json!([user("call")])), "rule \"wild call\": calls `Bash`, which the request does not offer").await;
    let mut none = body(json!([user("call")]));
    none["tools"] = json!([{"name": "Bash", "input_schema": {"type": "object"}}]);
    none["tool_choice"] = json!({"type": "none"});
    problem(none, "although tool_choice is none").await;
    for choice in [json!({"type": "any"}), json!({"type": "tool", "name": "Bash"})] {
        let mut forced = body(json!([user("words")]));
        forced["tools"] = json!([{"name": "Bash", "input_schema": {"type": "object"}}]);
        forced["tool_choice"] = choice;
        problem(forced, "rule \"not json\": ").await;
    }
    problem(body(json!([user("name")])), "rule \"undefined\"").await;
    let mut structured = body(json!([user("x")]));
    structured["output_config"] = json!({"format": {"type": "json_schema", "schema": {"type": "string"}}});
    problem(structured, "rule \"not json\"").await;
}

#[tokio::test]
async fn structured_output_is_the_json_of_the_rule_and_obeys_the_schema() {
    let script = r#"
        [[rule]]
        name = "good"
        when = { user = "good (?P<what>\\w+)" }
        json = { chosen = ["{{ what }}.md"] }
        [[rule]]
        name = "bad"
        json = { chosen = 3 }
    "#;
    let client = Client::new(script).await;
    let ask = |words: &str| {
        let mut request = body(json!([user(words)]));
        let list = json!({"type": "array", "items": {"type": "string"}});
        let schema = json!({"type": "object", "additionalProperties": false, "required": ["chosen"], "properties": {"chosen": list}});
        request["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}});
        request
    };
    assert_eq!(client.reply(&ask("good memory")).await["content"][0]["text"], r#"{"chosen":["memory.md"]}"#);
    let answer = client.send(&ask("else")).await;
    assert_eq!(answer.status, 500);
    assert!(answer.message().contains("rule \"bad\": the reply violates the requested schema"));
}

#[tokio::test]
async fn a_reply_ends_where_its_limits_end_it() {
    let script = r#"
        [[rule]]
        name = "huge"
        when = { user = "huge" }
        say_bytes = 3000000
        output_tokens = 5
        [[rule]]
        name = "long"
        when = { user = "long" }
        say_bytes = 100000
        [[rule]]
        name = "stops"
        when = { user = "stop" }
        say = "one two three"
        [[rule]]
        name = "refuses"
        say = "No."
        stop = "refusal"
    "#;
    let client = Client::with(script, Options { window: Some(5000), ..Options::default() }).await;
    let ask = |words: &str, max: u64| {
        let mut request = body(json!([user(words)]));
        request["max_tokens"] = json!(max);
        request["stop_sequences"] = json!([" three", "two"]);
        request
    };
    let cut = client.reply(&ask("long", 50)).await;
    assert_eq!((&cut["stop_reason"], &cut["usage"]["output_tokens"]), (&json!("max_tokens"), &json!(50)));
    assert!((100..300).contains(&cut["content"][0]["text"].as_str().unwrap().len()));
    let full = client.reply(&ask("long", 9000)).await;
    assert_eq!(full["stop_reason"], "model_context_window_exceeded");
    let stopped = client.reply(&ask("stop", 50)).await;
    assert_eq!((&stopped["stop_reason"], &stopped["stop_sequence"]), (&json!("stop_sequence"), &json!("two")));
    assert_eq!(stopped["content"][0]["text"], "one ");
    let huge = client.reply(&ask("huge", 50)).await;
    assert_eq!(huge["content"][0]["text"].as_str().unwrap().len(), 3_000_000);
    assert_eq!(huge["usage"]["output_tokens"], 5);
    assert_eq!(client.reply(&ask("x", 50)).await["stop_reason"], "refusal");
}

#[tokio::test]
async fn inputs_take_the_type_that_the_schema_wants() {
    let script = r#"
        [[rule]]
        name = "call"
        when = { user = "read (?P<n>\\d+)" }
        call = [{ tool = "Read", input = { limit = "{{ n|int * 2 }}", path = "{{ n }}", all = "true" } }]
    "#;
    let client = Client::new(script).await;
    let mut request = body(json!([user("read 21")]));
    let properties = json!({"limit": {"type": "integer"}, "path": {"type": "string"}, "all": {"type": "boolean"}});
    request["tools"] = json!([{"name": "Read", "input_schema": {"type": "object", "properties": properties}}]);
    let reply = client.reply(&request).await;
    assert_eq!(reply["content"][0]["input"], json!({"limit": 42, "path": "21", "all": true}));
    assert_eq!(reply["stop_reason"], "tool_use");
}

#[tokio::test]
async fn thinking_is_sent_only_when_the_request_enables_it() {
    let client = Client::new("[[rule]]\nname = \"t\"\nthink = \"hm\"\nsay = \"so\"").await;
    let kinds = |reply: &Value| {
        reply["content"].as_array().unwrap().iter().map(|block| block["type"].clone()).collect::<Vec<_>>()
    };
    let mut request = body(json!([user("x")]));
    assert_eq!(kinds(&client.reply(&request).await), ["text"]);
    request["thinking"] = json!({"type": "adaptive"});
    assert_eq!(kinds(&client.reply(&request).await), ["thinking", "text"]);
    request["thinking"]["display"] = json!("omitted");
    let omitted = client.reply(&request).await;
    assert_eq!(omitted["content"][0]["thinking"], "");
    assert_ne!(omitted["content"][0]["signature"], "");
}

#[tokio::test]
async fn a_rule_may_apply_only_so_often_and_scripts_can_be_built_in_rust() {
    let rule = |name: &str, times| ScriptRule {
        name: name.into(),
        when: When { user: Some("x".into()), ..When::default() },
        say: Some(name.into()),
        times,
        ..ScriptRule::default()
    };
    let script = Script { rules: vec![rule("first", Some(2)), rule("then", None)], ..Script::default() };
    let mut client = Client::new("").await;
    client.simulator = simulator::Simulator::start(script, Options::default()).await.unwrap();
    let mut replies = Vec::new();
    for _ in 0..3 {
        replies.push(said(&client, json!([user("x")])).await);
    }
    assert_eq!(replies, ["first", "first", "then"]);
}
