//! Every refusal, in the provider's words.

use serde_json::{Value, json};
use simulator::Options;

use crate::client::{Client, MODEL, body, marked, read, text};

pub(crate) const SAY: &str = "[[rule]]\nname = \"say\"\nsay = \"Fine.\"";
pub(crate) const CONTEXT_BETA: &str = "context-management-2025-06-27";

pub(crate) fn hello() -> Value {
    body(json!([{"role": "user", "content": "hello"}]))
}

pub(crate) fn hello_with(key: &str, value: Value) -> Value {
    let mut body = hello();
    body[key] = value;
    body
}

pub(crate) fn messages(turns: &[(&str, Value)]) -> Value {
    body(turns.iter().map(|(role, content)| json!({"role": role, "content": content})).collect())
}

pub(crate) fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Bash", "input": {}})
}

pub(crate) fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "ok"})
}

pub(crate) fn tool(name: &str, schema: Value) -> Value {
    json!({"name": name, "input_schema": schema})
}

/// Sends each body and expects a 400 whose message holds the words.
pub(crate) async fn refused(cases: &[(Value, &str)]) {
    refused_with(&Client::new(SAY).await, "", cases).await;
}

pub(crate) async fn refused_with(client: &Client, beta: &str, cases: &[(Value, &str)]) {
    for (body, words) in cases {
        let answer = client.send_with_beta(body, beta).await;
        assert_eq!(answer.status, 400, "expected: {words}\ngot: {}", answer.text);
        assert_eq!(answer.json()["error"]["type"], "invalid_request_error");
        assert!(answer.message().contains(words), "expected: {words}\ngot: {}", answer.message());
    }
}

#[tokio::test]
async fn every_answer_has_the_shape_of_the_provider() {
    let client = Client::new(SAY).await;
    let answer = client.send(&json!({"model": MODEL, "max_tokens": 1, "messages": []})).await;
    let id = answer.headers["request-id"].to_str().unwrap();
    assert!(id.starts_with("req_"));
    let expected = json!({
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "messages: at least one message is required"},
        "request_id": id,
    });
    assert_eq!(answer.json(), expected);
}

#[tokio::test]
async fn keys_versions_models_and_routes() {
    let client = Client::new(SAY).await;
    let url = format!("{}/v1/messages?beta=true", client.simulator.url());
    let bare = || super::client::http().build().unwrap().post(&url).body(hello().to_string());
    let versioned = || bare().header("anthropic-version", "2023-06-01");
    let cases = [
        (versioned(), 401, "authentication_error", "x-api-key header is required"),
        (versioned().header("x-api-key", "invalid"), 401, "authentication_error", "invalid x-api-key"),
        (versioned().header("authorization", "Bearer invalid"), 401, "authentication_error", "invalid x-api-key"),
        (bare().header("x-api-key", "k"), 400, "invalid_request_error", "anthropic-version: header is required"),
        (client.post("/v1/messages").body("{"), 400, "invalid_request_error", "not valid JSON"),
        (client.post("/v1/nothing"), 404, "not_found_error", "Not found"),
        (client.get("/v1/messages"), 405, "invalid_request_error", "Method Not Allowed"),
        (client.get("/v1/models").header("x-api-key", "invalid"), 401, "authentication_error", "invalid"),
        (client.get("/v1/models/gpt").header("x-api-key", "k"), 404, "not_found_error", "model: gpt"),
    ];
    for (request, status, kind, words) in cases {
        let answer = read(request).await;
        assert_eq!(answer.status, status, "{words}: {}", answer.text);
        assert_eq!(answer.json()["error"]["type"], kind);
        assert!(answer.message().contains(words), "{}", answer.message());
        assert!(answer.headers.contains_key("request-id"));
    }
    assert_eq!(read(versioned().header("authorization", "Bearer token")).await.status, 200);
    assert_eq!(client.send(&hello_with("model", json!("gpt-4"))).await.status, 404);
    let health = client.get("/health").send().await.unwrap();
    assert_eq!(health.status(), 200);
}

#[tokio::test]
async fn a_body_beyond_32_megabytes_is_too_large() {
    let client = Client::new(SAY).await;
    let answer = client.send(&hello_with("system", json!("x".repeat(32 * 1024 * 1024)))).await;
    assert_eq!(answer.status, 413);
    assert_eq!(answer.json()["error"]["type"], "request_too_large");
}

#[tokio::test]
async fn fields_at_the_top() {
    let without = |key: &str| {
        let mut body = hello();
        body.as_object_mut().unwrap().remove(key);
        body
    };
    refused(&[
        (without("model"), "model: Field required"),
        (without("max_tokens"), "max_tokens: Field required"),
        (without("messages"), "messages: Field required"),
        (hello_with("model", json!(3)), "model: Input should be a valid string"),
        (hello_with("max_tokens", json!("many")), "max_tokens: Input should be a valid integer"),
        (hello_with("max_tokens", json!(-1)), "max_tokens: Input should be greater than or equal to 0"),
        (hello_with("max_tokens", json!(128_001)), "max_tokens: 128001 > 128000, which is the maximum allowed number"),
        (hello_with("messages", json!("hello")), "messages: Input should be a valid list"),
        (hello_with("stream", json!("yes")), "stream: Input should be a valid boolean"),
        (hello_with("temperature", json!(1.5)), "temperature: range: 0..1"),
        (hello_with("colour", json!("red")), "colour: Extra inputs are not permitted"),
        (hello_with("metadata", json!({"agent": "x"})), "metadata.agent: Extra inputs are not permitted"),
        (hello_with("context_management", json!({"edits": []})), "context_management: Extra inputs are not permitted"),
        (hello_with("output_format", json!({})), "output_format: Extra inputs are not permitted"),
        (hello_with("output_config", json!({"effort": "huge"})), "output_config.effort: Input should be 'low'"),
        (json!([]), "Field required"),
    ])
    .await;
}

#[tokio::test]
async fn optional_fields_are_accepted() {
    let client = Client::new(SAY).await;
    let mut body = hello();
    let fields = json!({
        "system": "Be brief.", "temperature": 0.5, "top_p": 0.9, "top_k": 5, "stop_sequences": ["STOP"],
        "metadata": {"user_id": "u"}, "service_tier": "auto", "stream": false, "container": "c",
        "mcp_servers": [], "output_config": {"effort": "high"}, "speed": "standard",
        "inference_geo": "eu", "diagnostics": {"previous_message_id": null},
        "cache_control": {"type": "ephemeral"},
        "tools": [
            {"type": "web_search_20250305", "name": "web_search"},
            {"type": "memory_20250818", "name": "memory"},
            {"type": "custom", "name": "Bash", "description": "runs", "strict": true, "input_schema": {"type": "object"}},
        ],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": true},
        "thinking": {"type": "disabled"},
    });
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    client.reply(&body).await;
    let adaptive = hello_with("thinking", json!({"type": "adaptive", "display": "omitted"}));
    client.reply(&adaptive).await;
}

#[tokio::test]
async fn tools_and_the_choice_among_them() {
    let object = || json!({"type": "object"});
    let with = |tools: Value| hello_with("tools", tools);
    let choosing = |choice: Value| {
        let mut body = with(json!([tool("Bash", object())]));
        body["tool_choice"] = choice;
        body
    };
    refused(&[
        (
            with(json!([tool("a b", object())])),
            "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
        ),
        (with(json!([tool(&"x".repeat(129), object())])), "tools.0.custom.name: String should match pattern"),
        (with(json!([tool("a", object()), tool("a", object())])), "tools: Tool names must be unique."),
        (with(json!([{"name": "a"}])), "tools.0.custom.input_schema: Field required"),
        (with(json!([tool("a", json!({}))])), "tools.0.custom.input_schema.type: Field required"),
        (with(json!([tool("a", json!({"type": "string"}))])), "input_schema.type: Input should be 'object'"),
        (with(json!([tool("a", json!({"type": "object", "required": "x"}))])), "input_schema: JSON schema is invalid"),
        (with(json!([tool("a", json!({"type": "object", "anyOf": []}))])), "does not support oneOf, allOf, or anyOf"),
        (with(json!([{"name": "a", "input_schema": object(), "handler": 1}])), "tools.0.custom.handler: Extra inputs"),
        (with(json!([{"type": "magic_20250101", "name": "magic"}])), "tools.0: Input tag 'magic_20250101'"),
        (hello_with("tool_choice", json!({"type": "any"})), "tool_choice: may only be specified while providing tools"),
        (choosing(json!({"type": "tool", "name": "Read"})), "Tool 'Read' not found in provided tools"),
        (choosing(json!({"type": "perhaps"})), "tool_choice: Input tag 'perhaps'"),
        (
            choosing(json!({"type": "none", "disable_parallel_tool_use": true})),
            "tool_choice.none.disable_parallel_tool_use",
        ),
    ])
    .await;
}

#[tokio::test]
async fn cache_marks() {
    let marks = |ttls: &[&str]| {
        let blocks: Vec<Value> = ttls.iter().map(|ttl| marked(text("x", 5), ttl)).collect();
        messages(&[("user", json!(blocks))])
    };
    let mut automatic = marks(&["5m", "5m", "5m", "5m"]);
    automatic["cache_control"] = json!({"type": "ephemeral"});
    let mut across = marks(&["1h"]);
    across["system"] = json!([marked(text("s", 5), "5m")]);
    let empty = json!([{"type": "text", "text": "", "cache_control": {"type": "ephemeral"}}]);
    let mut odd = marks(&["2h"]);
    refused(&[
        (marks(&["5m"; 5]), "A maximum of 4 blocks with cache_control may be provided. Found 5."),
        (automatic, "A maximum of 4 blocks with cache_control may be provided. Found 5."),
        (
            marks(&["5m", "1h"]),
            "messages.0.content.1.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m'",
        ),
        (across, "messages.0.content.0.cache_control.ttl: a ttl='1h'"),
        (messages(&[("user", empty)]), "cache_control cannot be set for empty text blocks"),
        (odd.take(), "messages.0.content.0.cache_control.ephemeral.ttl: Input should be '5m' or '1h'"),
    ])
    .await;
    Client::new(SAY).await.reply(&marks(&["1h", "1h", "5m", "5m"])).await;
}

#[tokio::test]
async fn thinking_parameters() {
    let budget = |tokens: u64| hello_with("thinking", json!({"type": "enabled", "budget_tokens": tokens}));
    let mut forced = hello_with("thinking", json!({"type": "adaptive"}));
    forced["tools"] = json!([tool("Bash", json!({"type": "object"}))]);
    forced["tool_choice"] = json!({"type": "any"});
    let mut cool = hello_with("thinking", json!({"type": "adaptive"}));
    cool["temperature"] = json!(0.3);
    refused(&[
        (budget(1023), "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"),
        (budget(1024), "`max_tokens` must be greater than `thinking.budget_tokens`"),
        (hello_with("thinking", json!({"type": "enabled"})), "thinking.enabled.budget_tokens: Field required"),
        (hello_with("thinking", json!({"type": "deep"})), "thinking: Input tag 'deep'"),
        (forced, "Thinking may not be enabled when tool_choice forces tool use."),
        (cool, "`temperature` may only be set to 1 when thinking is enabled"),
    ])
    .await;
}

#[tokio::test]
async fn a_prompt_beyond_the_window_is_too_long_with_real_numbers() {
    let client = Client::with(SAY, Options { window: Some(1000), ..Options::default() }).await;
    let long = messages(&[("user", json!([text("x", 2000)]))]);
    let counted = read(client.post("/v1/messages/count_tokens").body(long.to_string())).await.json();
    let answer = client.send(&long).await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.message(), format!("prompt is too long: {} tokens > 1000 maximum", counted["input_tokens"]));
    let big = Client::new(SAY).await;
    assert_eq!(big.send(&long).await.status, 200);
}

#[tokio::test]
async fn context_management_edits() {
    let client = Client::new(SAY).await;
    let edits = |edits: Value| hello_with("context_management", json!({"edits": edits}));
    let clear_thinking = json!({"type": "clear_thinking_20251015"});
    let clear_tools = json!({"type": "clear_tool_uses_20250919"});
    let cases = [
        (edits(json!([clear_tools, clear_thinking])), "the `clear_thinking_20251015` strategy must be the first"),
        (edits(json!([clear_thinking])), "requires `thinking` to be enabled or adaptive"),
        (edits(json!([clear_tools, clear_tools])), "may be given only once"),
        (edits(json!([{"type": "forget"}])), "context_management.edits.0: Input tag 'forget'"),
        (
            edits(json!([{"type": "clear_tool_uses_20250919", "when": 1}])),
            "clear_tool_uses_20250919.when: Extra inputs",
        ),
        (
            edits(json!([{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 10}}])),
            "trigger.value: Input should be greater than or equal to 50000",
        ),
    ];
    refused_with(&client, CONTEXT_BETA, &cases).await;
}

#[tokio::test]
async fn schemas_of_structured_output() {
    let schema =
        |schema: Value| hello_with("output_config", json!({"format": {"type": "json_schema", "schema": schema}}));
    let object = |properties: Value| json!({"type": "object", "additionalProperties": false, "properties": properties});
    let mut recursive = object(json!({"next": {"$ref": "#/$defs/node"}}));
    recursive["$defs"] = json!({"node": object(json!({"next": {"$ref": "#/$defs/node"}}))});
    refused(&[
        (
            schema(json!({"type": "object"})),
            "For 'object' type, 'additionalProperties' must be explicitly set to false",
        ),
        (schema(object(json!({"a": {"type": "object"}}))), "schema.properties.a: For 'object' type"),
        (schema(object(json!({"a": {"type": "string", "minLength": 1}}))), "property 'minLength' is not supported"),
        (schema(object(json!({"a": {"type": "integer", "minimum": 1}}))), "For 'integer' type, property 'minimum'"),
        (
            schema(object(json!({"a": {"type": "array", "items": {"type": "number", "maximum": 1}}}))),
            "property 'maximum'",
        ),
        (schema(recursive), "Circular reference detected in schema definitions: #/$defs/node"),
        (schema(object(json!({"a": {"$ref": "#/$defs/none"}}))), "cannot be resolved"),
        (schema(json!({"type": "nonsense"})), "output_config.format.schema: JSON schema is invalid"),
        (hello_with("output_config", json!({"format": {"type": "xml"}})), "output_config.format.type: Input should be"),
    ])
    .await;
}

#[tokio::test]
async fn threads_are_refused_so_that_the_history_is_sent() {
    let client = Client::new(SAY).await;
    let answer = client.send(&hello_with("thread", json!({"type": "create"}))).await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.json()["error"]["details"]["error_code"], "thread_unsupported_request");
}
