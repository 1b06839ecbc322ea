//! Chat completions' dialect, and what only it does.

use std::sync::Arc;

use futures_util::StreamExt;
use provider::openai::{Config, DiscoveredServer, Kind, OpenAi, QUICK, discover};
use provider::{Error, Event, Model, Patience, Retry};
use serde_json::{Value, json};
use transcript::{Block, Reply, StopReason, Usage};

use crate::suite::{self, Dialect, KEY, conformance};
use crate::wire::{self, Server, pieces};

struct Chat;

conformance! { Chat;
    with;
    without
    thinking_keeps_its_signature: "thinking has no signature here and is not kept",
    cache_marks_are_on_the_wire: "these servers cache by themselves",
    tokens_are_counted: "there is no endpoint for it",
    a_wrong_key_is_told_when_counting_too: "there is no endpoint for it",
}

impl Dialect for Chat {
    fn model(&self, url: &str, retry: Retry, patience: Patience) -> Arc<dyn Model> {
        let config = Config { retry, patience, ..Config::new(url, Some(KEY.into())) };
        Arc::new(OpenAi::new(config).unwrap())
    }

    fn events(&self, reply: &Reply) -> Vec<String> {
        let mut events = vec![chunk(reply, &json!({"role": "assistant", "content": null}), None)];
        let mut calls = 0;
        for block in &reply.blocks {
            if let Some(text) = block.as_text() {
                events.extend(pieces(&text).iter().map(|piece| chunk(reply, &json!({ "content": piece }), None)));
            } else {
                events.extend(call_events(reply, calls, &block.value(), &block.input().unwrap().to_string()));
                calls += 1;
            }
        }
        events.push(chunk(reply, &json!({}), Some(reason(&reply.stop))));
        events
            .push(event(&json!({"id": reply.id, "model": reply.model, "choices": [], "usage": counts(&reply.usage)})));
        events.push("data: [DONE]\n\n".to_owned());
        events
    }

    fn call(&self, input_text: &str) -> Vec<String> {
        let reply = Reply {
            id: "chatcmpl-x".into(),
            model: "m".into(),
            blocks: vec![],
            stop: StopReason::ToolUse,
            usage: self.usage(),
            remarks: transcript::Remarks::default(),
        };
        let mut events = call_events(&reply, 0, &json!({"id": "t1", "name": "Bash"}), input_text);
        events.push(chunk(&reply, &json!({}), Some("tool_calls")));
        events
    }

    fn whole(&self, reply: &Reply) -> String {
        let text: String = reply.blocks.iter().filter_map(Block::as_text).collect();
        let message = json!({"role": "assistant", "content": text, "refusal": null});
        let choice = json!({"index": 0, "message": message, "finish_reason": reason(&reply.stop), "logprobs": null});
        json!({"id": reply.id, "object": "chat.completion", "model": reply.model, "choices": [choice],
            "usage": counts(&reply.usage)})
        .to_string()
    }

    fn refusal(&self, message: &str) -> String {
        json!({"error": {"message": message, "type": "some_error", "param": null, "code": null}}).to_string()
    }

    fn too_long(&self, tokens: u64, limit: u64) -> String {
        format!(
            "This model's maximum context length is {limit} tokens. However, your messages resulted in {tokens} tokens."
        )
    }

    fn overloaded(&self) -> String {
        event(&json!({"error": {"message": "Overloaded", "type": "server_error", "code": 503}}))
    }

    fn marked(&self, _: &Value) -> Vec<String> {
        Vec::new()
    }

    fn count(&self, _: u64) -> String {
        String::new()
    }

    /// Nothing is told of writes to the cache.
    fn usage(&self) -> Usage {
        Usage { input_tokens: 11, cache_read_input_tokens: 2200, output_tokens: 44, ..Usage::default() }
    }

    /// Counts come last.
    fn counted_at_the_start(&self) -> u64 {
        0
    }
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

fn chunk(reply: &Reply, delta: &Value, finish_reason: Option<&str>) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish_reason});
    event(
        &json!({"id": reply.id, "object": "chat.completion.chunk", "model": reply.model, "choices": [choice], "usage": null}),
    )
}

fn call_events(reply: &Reply, index: usize, call: &Value, input: &str) -> Vec<String> {
    let calls = |call: &Value| chunk(reply, &json!({ "tool_calls": [call] }), None);
    let function = json!({"name": call["name"], "arguments": ""});
    let mut events = vec![calls(&json!({"index": index, "id": call["id"], "type": "function", "function": function}))];
    events.extend(pieces(input).iter().map(|piece| calls(&json!({"index": index, "function": {"arguments": piece}}))));
    events
}

fn counts(usage: &Usage) -> Value {
    let details = json!({"cached_tokens": usage.cache_read_input_tokens});
    json!({"prompt_tokens": usage.context(), "completion_tokens": usage.output_tokens, "total_tokens": usage.total(),
        "prompt_tokens_details": details})
}

fn reason(stop: &StopReason) -> &'static str {
    match stop {
        StopReason::ToolUse => "tool_calls",
        StopReason::MaxTokens => "length",
        _ => "stop",
    }
}

async fn last(model: &dyn Model) -> Option<Event> {
    model.stream(suite::request()).collect::<Vec<Event>>().await.pop()
}

#[tokio::test]
async fn a_request_says_who_asks_and_for_what() {
    for (key, sent) in [(Some(KEY), Some(format!("Bearer {KEY}"))), (None, None), (Some(""), None)] {
        let server = Server::start(vec![wire::whole(400, &[], "")]).await;
        let config = Config::new(format!("{}/gateway/", server.url), key.map(Into::into));
        let model = OpenAi::new(Config { app: "bench/1.2".into(), retry: Retry::never(), ..config }).unwrap();
        assert!(matches!(last(&model).await, Some(Event::Failed(Error::Refused { status: 400, .. }))));
        let request = server.received().remove(0);
        assert_eq!(request.path(), "/gateway/v1/chat/completions");
        assert_eq!(request.header("authorization"), sent.as_deref());
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.header("user-agent"), Some("bench/1.2"));
        let body: Value = serde_json::from_str(&request.body).unwrap();
        assert_eq!((&body["stream"], &body["max_tokens"]), (&json!(true), &json!(2048)));
        assert!(!request.body.contains("cache_control"));
    }
}

#[tokio::test]
async fn neither_a_config_nor_a_client_shows_the_key() {
    let config = Config::new("http://localhost:1", Some(KEY.into()));
    let shown = format!("{config:?} {:?}", OpenAi::new(config.clone()).unwrap());
    assert!(!shown.contains(KEY), "{shown}");
    let error = OpenAi::new(Config { key: Some(format!("{KEY}\n").into()), ..config }).unwrap_err();
    assert!(!format!("{error} {error:?}").contains(KEY));
}

/// Nothing is sent, and the caller is told why.
#[tokio::test]
async fn tokens_cannot_be_counted_and_nobody_is_asked() {
    let server = Server::start(vec![wire::whole(200, &[], "{}")]).await;
    let error = Chat.model(&server.url, Retry::never(), QUICK).count_tokens(suite::request()).await.unwrap_err();
    assert!(matches!(&error, Error::Unsupported { .. }) && error.to_string().contains("count"), "{error}");
    assert!(server.received().is_empty());
}

/// As llama.cpp answers when it was started without templates: with a status that is otherwise worth a retry.
#[tokio::test]
async fn a_model_without_tools_is_told_once() {
    let body = json!({"error": {"code": 500, "message": "tools param requires --jinja flag", "type": "server_error"}});
    let server = Server::start(vec![wire::whole(500, &[], &body.to_string())]).await;
    let failed = last(&*Chat.model(&server.url, Retry::immediate(), Patience::default())).await;
    assert!(matches!(failed, Some(Event::Failed(Error::NoTools { .. }))), "{failed:?}");
    assert_eq!(server.received().len(), 1);
}

async fn serving(answers: &[Value]) -> Server {
    let json = [("content-type", "application/json")];
    Server::start(answers.iter().map(|answer| wire::whole(200, &json, &answer.to_string())).collect()).await
}

fn models(id: &str, owner: &str, more: &Value) -> Value {
    let mut model = json!({"id": id, "object": "model", "owned_by": owner});
    model.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"object": "list", "data": [model]})
}

/// The answers are those of the servers themselves, shortened.
#[tokio::test]
async fn servers_on_this_machine_are_found_with_their_models_and_windows() {
    let props = json!({"default_generation_settings": {"n_ctx": 2048}});
    let loaded = json!({"models": [{"name": "q", "context_length": 4096}, {"name": "r", "context_length": 8192}]});
    let studio = json!({"data": [{"id": "q", "loaded_context_length": 6000}, {"id": "other"}]});
    let llama = |meta| models("smollm2", "llamacpp", &json!({ "meta": meta }));
    for (answers, kind, window) in [
        (vec![llama(json!({"n_ctx": 4096, "n_ctx_train": 8192}))], Kind::LlamaCpp, Some(4096)),
        (vec![llama(json!({"n_ctx_train": 8192})), props], Kind::LlamaCpp, Some(2048)),
        (vec![models("q:latest", "library", &json!({})), loaded], Kind::Ollama, Some(4096)),
        (vec![models("q:latest", "library", &json!({})), json!({"models": []})], Kind::Ollama, None),
        (vec![models("q", "organization_owner", &json!({})), studio], Kind::LmStudio, Some(6000)),
        (vec![models("q", "vllm", &json!({"max_model_len": 32768}))], Kind::Vllm, Some(32768)),
        (vec![models("q", "me", &json!({}))], Kind::Other, None),
        (vec![json!({"object": "list", "data": []})], Kind::Other, None),
    ] {
        let ids = answers[0]["data"].as_array().unwrap().iter();
        let models = ids.map(|model| model["id"].as_str().unwrap().to_owned()).collect();
        let server = serving(&answers).await;
        let found = discover(&[&server.url], wire_patience()).await;
        assert_eq!(found, [DiscoveredServer { base_url: server.url.clone(), kind, models, window }]);
        assert_eq!(server.received()[0].path(), "/v1/models");
    }
}

fn wire_patience() -> Patience {
    Patience { connect: wire::PLENTY, answer: wire::PLENTY, idle: wire::PLENTY }
}

#[tokio::test]
async fn what_is_no_server_or_not_on_this_machine_is_not_found() {
    let page = Server::start(vec![wire::whole(200, &[("content-type", "text/html")], "<h1>hello</h1>")]).await;
    let other = serving(&[json!({"data": [{"name": "no id"}]})]).await;
    let refusing = Server::start(vec![wire::whole(401, &[], "{\"data\":[]}")]).await;
    let silent = Server::start(vec![vec![wire::Step::Stall]]).await;
    let nobody = wire::nobody().await;
    let patience = Patience { answer: std::time::Duration::from_millis(100), ..QUICK };
    let urls = [&page.url, &other.url, &refusing.url, &silent.url, &nobody].map(String::as_str);
    assert_eq!(discover(&urls, patience).await, []);

    // A name that leads here by way of a resolver does not count: it could lead anywhere.
    let here = serving(&[json!({"object": "list", "data": []})]).await;
    let port = here.url.rsplit(':').next().unwrap();
    let elsewhere =
        [format!("http://localhost.example.com:{port}/v1"), format!("http://0.0.0.0:{port}/v1"), "no url".into()];
    assert_eq!(discover(&elsewhere.each_ref().map(String::as_str), QUICK).await, []);
    assert!(here.received().is_empty());
    let localhost = format!("http://localhost:{port}");
    assert_eq!(discover(&[&localhost], wire_patience()).await.len(), 1);
}
