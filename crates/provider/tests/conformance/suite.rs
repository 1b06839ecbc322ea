//! What every provider must do, whatever its wire looks like.
//!
//! Each behaviour is a function over a [`Dialect`]; [`conformance!`] makes a test of each for one provider.

mod troubles;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use provider::{Error, Event, Model, Patience, Retry, invalid_input};
use serde_json::{Value, json};
use transcript::mark::{BlockPlace, Marks, Ttl};
use transcript::{
    Block, Message, Prologue, Remarks, Reply, Request, Role, StopReason, Thinking, ToolDefinition, Usage,
};

use crate::wire::{self, Answer, PLENTY, Server, Step};
pub(crate) use troubles::*;

/// The key every client is given, and nobody may ever see.
pub(crate) const KEY: &str = "sk-very-secret-0123456789";

/// What sets one provider's wire apart from another's.
pub(crate) trait Dialect {
    /// A client of the server at `url`, with [`KEY`] as its key.
    fn model(&self, url: &str, retry: Retry, patience: Patience) -> Arc<dyn Model>;
    /// A reply as server-sent events, a few characters a delta.
    fn events(&self, reply: &Reply) -> Vec<String>;
    /// The events of a call of the tool `Bash` whose input is this text.
    fn call(&self, input_text: &str) -> Vec<String>;
    /// A reply as one JSON object.
    fn whole(&self, reply: &Reply) -> String;
    /// The body of an error.
    fn refusal(&self, message: &str) -> String;
    /// The message of the error that says a prompt is too long.
    fn too_long(&self, tokens: u64, limit: u64) -> String;
    /// The event that says, in the middle of a stream, that the server is overloaded.
    fn overloaded(&self) -> String;
    /// How the cache breakpoints of a request are told on the wire: the texts of the blocks that bear one.
    fn marked(&self, body: &Value) -> Vec<String>;
    /// The body that answers a count.
    fn count(&self, tokens: u64) -> String;
    /// What a reply costs in these tests, as far as this wire can tell it.
    fn usage(&self) -> Usage {
        Usage {
            input_tokens: 11,
            cache_read_input_tokens: 2200,
            cache_creation_input_tokens: 330,
            output_tokens: 44,
            ..Usage::default()
        }
    }
    /// How much of the prompt is counted when a reply begins.
    fn counted_at_the_start(&self) -> u64 {
        self.usage().context()
    }
}

/// Tests of one provider: what all of them must do, and of what only some can do, what it does and does not, and why
/// not. main.rs holds all providers to the same list.
macro_rules! conformance {
    ($dialect:expr; with $($more:ident),* $(,)? ; without $($absent:ident: $why:literal),* $(,)?) => {
        pub(crate) const ANSWERED_FOR: &[&str] = &[$(stringify!($more),)* $(stringify!($absent),)*];

        suite::tests! { $dialect;
            text_streams,
            parallel_calls_arrive_whole,
            an_input_that_is_no_json_does_not_end_the_session,
            bytes_may_come_one_by_one,
            a_reply_that_is_not_streamed_is_understood,
            a_stream_under_a_wrong_name_is_understood,
            an_overloaded_server_is_asked_again,
            a_server_that_stays_busy_is_given_up,
            a_server_that_says_when_is_obeyed,
            a_wait_that_is_too_long_is_the_users_to_decide,
            a_cut_stream_is_asked_for_again,
            what_was_shown_is_voided_once,
            a_stream_that_is_always_cut_fails,
            only_the_farewell_may_be_missing,
            an_error_in_the_middle_of_a_stream_is_retried,
            errors_in_the_middle_of_streams_are_restarts,
            a_garbled_stream_is_asked_for_again,
            a_garbled_answer_is_asked_for_again_where_another_was_good,
            a_server_that_wants_no_wait_is_not_stormed,
            a_silent_server_fails,
            a_server_that_never_answers_fails,
            dropping_the_stream_ends_the_request,
            nothing_is_sent_before_the_stream_is_polled,
            too_long_a_prompt_is_an_overflow,
            a_wrong_key_is_told_without_showing_it,
            a_wrong_request_is_refused_once,
            nobody_listening_is_unreachable,
            a_server_that_hangs_up_at_once_is_cut,
            garbage_is_malformed,
            a_redirection_is_not_followed,
            an_endless_event_is_refused,
            an_endless_body_is_refused,
            $($more,)*
        }
    };
}
pub(crate) use conformance;

macro_rules! tests {
    ($dialect:expr; $($behaviour:ident),* $(,)?) => {
        $(#[tokio::test]
        async fn $behaviour() {
            tokio::time::timeout(wire::PLENTY, suite::$behaviour(&$dialect)).await.expect("it ends");
        })*
    };
}
pub(crate) use tests;

pub(crate) fn request() -> Request {
    let prologue = Prologue {
        model: "claude-test".into(),
        max_tokens: 2048,
        system: vec![Block::text("be brief"), Block::text("you are on a test bench")],
        static_blocks: 1,
        loaded: Vec::new(),
        own_blocks: 0,
        tools: vec![ToolDefinition {
            name: "Bash".into(),
            description: "Runs a command.".into(),
            input_schema: json!({"type": "object", "properties": {"command": {"type": "string"}}}),
        }],
        thinking: Some(Thinking::Enabled { budget_tokens: 1024 }),
        effort: None,
        betas: vec!["interleaved-thinking-2025-05-14".into(), "other-2026-01-01".into()],
        format: None,
        context_management: None,
        web_search: None,
    };
    let messages = vec![
        Message { role: Role::User, blocks: vec![Block::text("first"), Block::text("second")] },
        Message { role: Role::Assistant, blocks: vec![Block::text("third")] },
        Message { role: Role::User, blocks: vec![Block::text("fourth")] },
    ];
    let marks = Marks {
        system: vec![1],
        messages: vec![BlockPlace { message: 0, block: 1 }, BlockPlace { message: 2, block: 0 }],
        ttl: Ttl::FiveMinutes,
        ..Marks::default()
    };
    Request { prologue: Arc::new(prologue), messages, marks }
}

fn reply(dialect: &impl Dialect, blocks: Vec<Block>, stop: StopReason) -> Reply {
    Reply {
        id: "msg_1".into(),
        model: "claude-test-1".into(),
        blocks,
        stop,
        usage: dialect.usage(),
        remarks: Remarks::default(),
    }
}

fn greeting(dialect: &impl Dialect) -> Reply {
    reply(dialect, vec![Block::text("Grüße, 世界! 👋")], StopReason::EndTurn)
}

fn patience() -> Patience {
    Patience { connect: PLENTY, answer: PLENTY, idle: PLENTY }
}

/// Everything that comes of a request. No event may show the key, and only the last one ends the stream.
async fn run(dialect: &impl Dialect, url: &str) -> Vec<Event> {
    let model = dialect.model(url, Retry::immediate(), patience());
    run_model(&*model).await
}

async fn run_model(model: &dyn Model) -> Vec<Event> {
    let events: Vec<Event> = model.stream(request()).collect().await;
    assert!(!format!("{events:?}").contains(KEY), "an event shows the key");
    let ends = events.iter().filter(|event| matches!(event, Event::Done(_) | Event::Failed(_))).count();
    assert_eq!(ends, 1, "{events:?}");
    events
}

fn done(events: &[Event]) -> &Reply {
    match events.last() {
        Some(Event::Done(reply)) => reply,
        other => panic!("no reply but {other:?}"),
    }
}

fn failed(events: &[Event]) -> &Error {
    match events.last() {
        Some(Event::Failed(error)) => error,
        other => panic!("no failure but {other:?}"),
    }
}

fn retries(events: &[Event]) -> Vec<(u32, Duration)> {
    let retry = |event: &Event| match event {
        Event::Retrying { attempt, after, .. } => Some((*attempt, *after)),
        _ => None,
    };
    events.iter().filter_map(retry).collect()
}

fn restarts(events: &[Event]) -> usize {
    events.iter().filter(|event| **event == Event::Restarted).count()
}

fn text(events: &[Event]) -> String {
    let piece = |event: &Event| match event {
        Event::Text(text) => Some(text.clone()),
        _ => None,
    };
    events.iter().filter_map(piece).collect()
}

fn busy(dialect: &impl Dialect, status: u16, headers: &[(&str, &str)]) -> Answer {
    wire::whole(status, headers, &dialect.refusal("Overloaded"))
}

pub(crate) async fn text_streams(dialect: &impl Dialect) {
    let server = Server::start(vec![wire::stream(&dialect.events(&greeting(dialect)))]).await;
    let events = run(dialect, &server.url).await;
    let counted = dialect.counted_at_the_start();
    assert!(matches!(&events[0], Event::Started { id, usage, .. } if id == "msg_1" && usage.context() == counted));
    assert!(events.iter().filter(|event| matches!(event, Event::Text(_))).count() > 1, "{events:?}");
    assert_eq!(text(&events), "Grüße, 世界! 👋");
    assert_eq!(events[events.len() - 2], Event::Block(greeting(dialect).blocks[0].clone()));
    assert_eq!(done(&events), &greeting(dialect));
}

pub(crate) async fn thinking_keeps_its_signature(dialect: &impl Dialect) {
    let thinking = Block::from_value(json!({
        "type": "thinking", "thinking": "Let me see:\n\t\"quoted\" \\ and <b>", "signature": "EqQBCg+/=="
    }));
    let redacted = Block::from_value(json!({"type": "redacted_thinking", "data": "EmwKAhgB"}));
    let expected = reply(dialect, vec![thinking, redacted, Block::text("so")], StopReason::EndTurn);
    let server = Server::start(vec![wire::stream(&dialect.events(&expected))]).await;
    let events = run(dialect, &server.url).await;
    assert!(events.iter().any(|event| matches!(event, Event::Thinking(_))));
    assert_eq!(text(&events), "so");
    let sent: Vec<&str> = expected.blocks.iter().map(Block::json).collect();
    let back: Vec<&str> = done(&events).blocks.iter().map(Block::json).collect();
    assert_eq!(back, sent);
}

pub(crate) async fn parallel_calls_arrive_whole(dialect: &impl Dialect) {
    let calls = vec![
        Block::text("two things"),
        Block::tool_use("t1", "Bash", &json!({"command": "ls \"a b\"", "timeout": 5})),
        Block::tool_use("t2", "Read", &json!({"path": "/ä", "nested": {"list": [1, 2.5, null]}})),
        Block::tool_use("t3", "Stop", &json!({})),
    ];
    let expected = reply(dialect, calls, StopReason::ToolUse);
    let server = Server::start(vec![wire::stream(&dialect.events(&expected))]).await;
    let events = run(dialect, &server.url).await;
    assert_eq!(done(&events), &expected);
    assert!(
        events.iter().any(|event| matches!(event, Event::ToolInput { id, name, .. } if id == "t2" && name == "Read"))
    );
}

pub(crate) async fn an_input_that_is_no_json_does_not_end_the_session(dialect: &impl Dialect) {
    let server = Server::start(vec![wire::stream(&dialect.call("{\"command\": \"ls"))]).await;
    let events = run(dialect, &server.url).await;
    assert_eq!(invalid_input(&done(&events).blocks[0]).as_deref(), Some("{\"command\": \"ls"));
}

pub(crate) async fn cache_marks_are_on_the_wire(dialect: &impl Dialect) {
    let server = Server::start(vec![wire::stream(&dialect.events(&greeting(dialect)))]).await;
    run(dialect, &server.url).await;
    let body: Value = serde_json::from_str(&server.received()[0].body).unwrap();
    assert_eq!(dialect.marked(&body), ["you are on a test bench", "second", "fourth"]);
}

pub(crate) async fn bytes_may_come_one_by_one(dialect: &impl Dialect) {
    let events = dialect.events(&greeting(dialect)).concat().replace('\n', "\r\n");
    let body = format!("\u{feff}: a comment\r\n\r\nevent: novelty\r\ndata: not json\r\n\r\n{events}");
    let answer = vec![Step::Send(wire::stream_head()), Step::Trickle(body.into_bytes())];
    let server = Server::start(vec![answer]).await;
    assert_eq!(done(&run(dialect, &server.url).await), &greeting(dialect));
}

pub(crate) async fn a_reply_that_is_not_streamed_is_understood(dialect: &impl Dialect) {
    let body = dialect.whole(&greeting(dialect));
    let server = Server::start(vec![wire::whole(200, &[("content-type", "application/json")], &body)]).await;
    let events = run(dialect, &server.url).await;
    assert_eq!(done(&events), &greeting(dialect));
    assert_eq!(text(&events), "Grüße, 世界! 👋");
}

pub(crate) async fn a_stream_under_a_wrong_name_is_understood(dialect: &impl Dialect) {
    let body = dialect.events(&greeting(dialect)).concat();
    let server = Server::start(vec![wire::whole(200, &[("content-type", "text/plain")], &body)]).await;
    assert_eq!(done(&run(dialect, &server.url).await), &greeting(dialect));
}

pub(crate) async fn tokens_are_counted(dialect: &impl Dialect) {
    let good = wire::whole(200, &[("content-type", "application/json")], &dialect.count(1234));
    let server = Server::start(vec![busy(dialect, 529, &[]), good]).await;
    let model = dialect.model(&server.url, Retry::immediate(), patience());
    assert_eq!(model.count_tokens(request()).await, Ok(1234));
    assert_eq!(server.received().len(), 2);
}
