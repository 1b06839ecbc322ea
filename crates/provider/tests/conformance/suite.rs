//! What every provider must do, whatever its wire looks like.
//!
//! Each behaviour is a function over a [`Dialect`]; [`conformance!`] makes a test of each for one provider.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use provider::{Error, Event, Model, Patience, Retry, invalid_input};
use serde_json::{Value, json};
use transcript::mark::{Marks, Place, Ttl};
use transcript::{
    Block, Message, Prologue, Remarks, Reply, Request, Role, StopReason, Thinking, ToolDefinition, Usage,
};

use crate::wire::{self, Answer, PLENTY, Server, Step};

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
        tools: vec![ToolDefinition {
            name: "Bash".into(),
            description: "Runs a command.".into(),
            input_schema: json!({"type": "object", "properties": {"command": {"type": "string"}}}),
        }],
        thinking: Some(Thinking::Enabled { budget_tokens: 1024 }),
        betas: vec!["interleaved-thinking-2025-05-14".into(), "other-2026-01-01".into()],
        format: None,
        context_management: None,
    };
    let messages = vec![
        Message { role: Role::User, blocks: vec![Block::text("first"), Block::text("second")] },
        Message { role: Role::Assistant, blocks: vec![Block::text("third")] },
        Message { role: Role::User, blocks: vec![Block::text("fourth")] },
    ];
    let marks = Marks {
        system: vec![1],
        messages: vec![Place { message: 0, block: 1 }, Place { message: 2, block: 0 }],
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

pub(crate) async fn an_overloaded_server_is_asked_again(dialect: &impl Dialect) {
    let good = wire::stream(&dialect.events(&greeting(dialect)));
    let server = Server::start(vec![busy(dialect, 529, &[]), busy(dialect, 500, &[]), good]).await;
    let events = run(dialect, &server.url).await;
    assert_eq!(done(&events), &greeting(dialect));
    assert_eq!(retries(&events).iter().map(|retry| retry.0).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(restarts(&events), 0, "nothing had been shown");
    let bodies: Vec<String> = server.received().into_iter().map(|request| request.body).collect();
    assert!(bodies.len() == 3 && bodies.iter().all(|body| *body == bodies[0]));
}

pub(crate) async fn a_server_that_stays_busy_is_given_up(dialect: &impl Dialect) {
    let server = Server::start(vec![busy(dialect, 529, &[])]).await;
    let events = run(dialect, &server.url).await;
    assert!(matches!(failed(&events), Error::Busy { status: 529, .. }));
    assert_eq!((server.received().len(), retries(&events).len()), (10, 9));
}

pub(crate) async fn a_server_that_says_when_is_obeyed(dialect: &impl Dialect) {
    let good = wire::stream(&dialect.events(&greeting(dialect)));
    let limited = busy(dialect, 429, &[("retry-after-ms", "7"), ("retry-after", "99")]);
    let server = Server::start(vec![limited, good]).await;
    let events = run(dialect, &server.url).await;
    assert_eq!(retries(&events), [(1, Duration::from_millis(7))]);
    done(&events);
}

pub(crate) async fn a_wait_that_is_too_long_is_the_users_to_decide(dialect: &impl Dialect) {
    let server = Server::start(vec![busy(dialect, 429, &[("retry-after", "3600")])]).await;
    let events = run(dialect, &server.url).await;
    let hour = Some(Duration::from_secs(3600));
    assert!(matches!(failed(&events), Error::Busy { status: 429, after, .. } if *after == hour));
    assert_eq!(server.received().len(), 1);
}

pub(crate) async fn a_cut_stream_is_asked_for_again(dialect: &impl Dialect) {
    let whole = dialect.events(&greeting(dialect));
    let part = &whole[..whole.len() / 2];
    let mut reset = wire::stream(part);
    reset.push(Step::Reset);
    let server = Server::start(vec![wire::stream(part), wire::cut_chunk(part), reset, wire::stream(&whole)]).await;
    let events = run(dialect, &server.url).await;
    assert_eq!(done(&events), &greeting(dialect));
    assert_eq!(retries(&events).len(), 3);
    assert!(restarts(&events) >= 2, "a reset may swallow what was sent before it: {events:?}");
    let last = events.iter().rposition(|event| *event == Event::Restarted).unwrap();
    assert_eq!(text(&events[last..]), "Grüße, 世界! 👋", "what was shown before the restart is void");
    let bodies: Vec<String> = server.received().into_iter().map(|request| request.body).collect();
    assert!(bodies.iter().all(|body| *body == bodies[0]), "the same bytes, or the cache is lost");
}

pub(crate) async fn what_was_shown_is_voided_once(dialect: &impl Dialect) {
    let whole = dialect.events(&greeting(dialect));
    let server = Server::start(vec![wire::stream(&whole[..3]), busy(dialect, 529, &[]), wire::stream(&whole)]).await;
    let events = run(dialect, &server.url).await;
    assert_eq!(done(&events), &greeting(dialect));
    assert_eq!((restarts(&events), retries(&events).len()), (1, 2), "the refusal showed nothing");
}

pub(crate) async fn a_stream_that_is_always_cut_fails(dialect: &impl Dialect) {
    let whole = dialect.events(&greeting(dialect));
    let server = Server::start(vec![wire::stream(&whole[..3])]).await;
    let events = run(dialect, &server.url).await;
    assert!(matches!(failed(&events), Error::Cut { .. }));
    assert_eq!((server.received().len(), restarts(&events)), (4, 3));
}

pub(crate) async fn only_the_farewell_may_be_missing(dialect: &impl Dialect) {
    let whole = dialect.events(&greeting(dialect));
    let server = Server::start(vec![wire::stream(&whole[..whole.len() - 1])]).await;
    let events = run(dialect, &server.url).await;
    assert_eq!(done(&events), &greeting(dialect));
    assert_eq!(server.received().len(), 1);
}

pub(crate) async fn an_error_in_the_middle_of_a_stream_is_retried(dialect: &impl Dialect) {
    let whole = dialect.events(&greeting(dialect));
    let mut part = whole[..whole.len() / 2].to_vec();
    part.push(dialect.overloaded());
    let server = Server::start(vec![wire::stream(&part), wire::stream(&whole)]).await;
    let events = run(dialect, &server.url).await;
    assert_eq!(done(&events), &greeting(dialect));
    assert_eq!((restarts(&events), retries(&events).len()), (1, 1));
}

/// LOOP-2: what broke off costs output, so it is asked for fewer times than what never began.
pub(crate) async fn errors_in_the_middle_of_streams_are_restarts(dialect: &impl Dialect) {
    let whole = dialect.events(&greeting(dialect));
    let mut part = whole[..whole.len() / 2].to_vec();
    part.push(dialect.overloaded());
    let server = Server::start(vec![wire::stream(&part)]).await;
    let events = run(dialect, &server.url).await;
    assert!(matches!(failed(&events), Error::Busy { .. }), "{events:?}");
    assert_eq!((restarts(&events), server.received().len()), (3, 4));
}

/// Events that are no JSON, no text, or make no sense where they stand.
pub(crate) async fn a_garbled_stream_is_asked_for_again(dialect: &impl Dialect) {
    let whole = dialect.events(&greeting(dialect));
    let garbled = |bytes: &[u8]| {
        let part = whole[..whole.len() / 2].concat().into_bytes();
        vec![Step::Send([wire::stream_head(), part, bytes.to_vec()].concat())]
    };
    let answers = vec![garbled(b"data: {oops\n\n"), garbled(b"data: \xff\xfe{}\n\n"), wire::stream(&whole)];
    let server = Server::start(answers).await;
    let events = run(dialect, &server.url).await;
    assert_eq!(done(&events), &greeting(dialect));
    assert_eq!((restarts(&events), retries(&events).len()), (2, 2));

    let server = Server::start(vec![garbled(b"data: {oops\n\n")]).await;
    let events = run(dialect, &server.url).await;
    assert!(matches!(failed(&events), Error::Cut { cause, .. } if cause.contains("{oops")), "{events:?}");
    assert_eq!(server.received().len(), 4);
}

/// A server that has answered before speaks the protocol: what is no answer now was damaged on the way.
pub(crate) async fn a_garbled_answer_is_asked_for_again_where_another_was_good(dialect: &impl Dialect) {
    let good = wire::stream(&dialect.events(&greeting(dialect)));
    let no_json = wire::stream(&["data: {oops\n\n".to_owned()]);
    let page = wire::whole(200, &[("content-type", "text/html")], "<h1>Bad gateway</h1>");
    let server = Server::start(vec![good.clone(), no_json, page, good]).await;
    let model = dialect.model(&server.url, Retry::immediate(), patience());
    done(&run_model(&*model).await);
    assert_eq!(retries(&run_model(&*model).await).len(), 2);
}

/// However often it says that there is no need to wait.
pub(crate) async fn a_server_that_wants_no_wait_is_not_stormed(dialect: &impl Dialect) {
    let good = wire::stream(&dialect.events(&greeting(dialect)));
    let limited = busy(dialect, 429, &[("retry-after", "0")]);
    let server = Server::start(vec![limited, good]).await;
    let first = Duration::from_millis(20);
    let model = dialect.model(&server.url, Retry { first, ..Retry::default() }, patience());
    let events = run_model(&*model).await;
    assert!(retries(&events)[0].1 >= first / 2, "{events:?}");
}

pub(crate) async fn a_silent_server_fails(dialect: &impl Dialect) {
    let mut answer = wire::stream(&dialect.events(&greeting(dialect))[..3]);
    answer.push(Step::Stall);
    let server = Server::start(vec![answer]).await;
    let silence = Duration::from_millis(40);
    let model = dialect.model(&server.url, Retry::immediate(), Patience { idle: silence, ..patience() });
    let events = run_model(&*model).await;
    assert!(matches!(failed(&events), Error::Idle { silence: after, .. } if *after == silence));
    assert_eq!(restarts(&events), 3);
}

pub(crate) async fn a_server_that_never_answers_fails(dialect: &impl Dialect) {
    let server = Server::start(vec![vec![Step::Stall]]).await;
    let silence = Duration::from_millis(40);
    let model = dialect.model(&server.url, Retry::immediate(), Patience { answer: silence, ..patience() });
    let events = run_model(&*model).await;
    assert!(matches!(failed(&events), Error::Idle { .. }), "{events:?}");
    assert_eq!(retries(&events).len(), 3);
}

pub(crate) async fn dropping_the_stream_ends_the_request(dialect: &impl Dialect) {
    let mut answer = wire::stream(&dialect.events(&greeting(dialect))[..3]);
    answer.push(Step::Stall);
    let mut server = Server::start(vec![answer]).await;
    let model = dialect.model(&server.url, Retry::immediate(), patience());
    let mut events = model.stream(request());
    assert!(matches!(events.next().await, Some(Event::Started { .. })));
    drop(events);
    server.is_hung_up_on().await;
}

pub(crate) async fn nothing_is_sent_before_the_stream_is_polled(dialect: &impl Dialect) {
    let server = Server::start(vec![wire::stream(&dialect.events(&greeting(dialect)))]).await;
    let model = dialect.model(&server.url, Retry::immediate(), patience());
    drop(model.stream(request()));
    assert_eq!(run_model(&*model).await.len(), run_model(&*model).await.len());
    assert_eq!(server.received().len(), 2);
}

pub(crate) async fn too_long_a_prompt_is_an_overflow(dialect: &impl Dialect) {
    let body = dialect.refusal(&dialect.too_long(208_310, 200_000));
    let server = Server::start(vec![wire::whole(400, &[], &body)]).await;
    let events = run(dialect, &server.url).await;
    assert!(matches!(failed(&events), Error::Overflow { tokens: Some(208_310), limit: Some(200_000), .. }));
    assert_eq!(server.received().len(), 1);

    let server = Server::start(vec![wire::whole(413, &[("content-type", "text/html")], "<h1>Too large</h1>")]).await;
    assert!(matches!(failed(&run(dialect, &server.url).await), Error::Overflow { tokens: None, .. }));
}

pub(crate) async fn a_wrong_key_is_told_without_showing_it(dialect: &impl Dialect) {
    let server = Server::start(vec![wire::whole(401, &[], &dialect.refusal(&format!("invalid key {KEY}")))]).await;
    let events = run(dialect, &server.url).await;
    let error = failed(&events);
    assert!(matches!(error, Error::Auth { status: 401, message, .. } if message == "invalid key ***"), "{error}");
    assert!(error.hint().is_some());
}

pub(crate) async fn a_wrong_key_is_told_when_counting_too(dialect: &impl Dialect) {
    let server = Server::start(vec![wire::whole(401, &[], &dialect.refusal(&format!("invalid key {KEY}")))]).await;
    let model = dialect.model(&server.url, Retry::immediate(), patience());
    let error = model.count_tokens(request()).await.unwrap_err();
    assert!(matches!(error, Error::Auth { .. }) && !format!("{error} {error:?}").contains(KEY));
}

pub(crate) async fn a_wrong_request_is_refused_once(dialect: &impl Dialect) {
    let server = Server::start(vec![wire::whole(400, &[], &dialect.refusal("messages.0: nonsense"))]).await;
    let events = run(dialect, &server.url).await;
    assert!(
        matches!(failed(&events), Error::Refused { status: 400, message, .. } if message == "messages.0: nonsense")
    );
    assert_eq!(server.received().len(), 1);
}

pub(crate) async fn nobody_listening_is_unreachable(dialect: &impl Dialect) {
    let url = wire::nobody().await;
    let events = run(dialect, &url).await;
    let error = failed(&events);
    assert!(matches!(error, Error::Unreachable { host, .. } if url.ends_with(host.as_str())), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
    assert_eq!(retries(&events).len(), 9);
}

pub(crate) async fn a_server_that_hangs_up_at_once_is_cut(dialect: &impl Dialect) {
    let server = Server::start(vec![vec![]]).await;
    let events = run(dialect, &server.url).await;
    assert!(matches!(failed(&events), Error::Cut { .. }), "{events:?}");
    assert_eq!((retries(&events).len(), restarts(&events)), (3, 0));
}

pub(crate) async fn garbage_is_malformed(dialect: &impl Dialect) {
    let page = format!("<!doctype html><title>Log in</title>{}", "x".repeat(5000));
    let html = wire::whole(200, &[("content-type", "text/html")], &page);
    let ssh = vec![Step::Send(b"SSH-2.0-OpenSSH_9.9\r\n\x00\x01\x02\xff".to_vec())];
    let json = wire::whole(200, &[("content-type", "application/json")], r#"{"status":"ok"}"#);
    let empty = wire::whole(200, &[("content-type", "text/html")], "");
    let no_json = wire::stream(&["data: {oops\n\n".to_owned()]);
    let no_text = vec![Step::Send([wire::stream_head(), b"data: \xff\xfe{}\n\n".to_vec()].concat())];
    for (what, answer) in
        [("html", html), ("ssh", ssh), ("json", json), ("empty", empty), ("no json", no_json), ("no text", no_text)]
    {
        let server = Server::start(vec![answer]).await;
        let events = run(dialect, &server.url).await;
        let error = failed(&events);
        assert!(matches!(error, Error::Malformed { .. }), "{what}: {error:?}");
        assert!(error.to_string().len() < 500, "{what}: {error}");
        assert_eq!(events.len(), 1, "{what} is not retried");
    }
}

pub(crate) async fn a_redirection_is_not_followed(dialect: &impl Dialect) {
    let elsewhere = Server::start(vec![wire::stream(&dialect.events(&greeting(dialect)))]).await;
    let there = format!("{}/v1/messages", elsewhere.url);
    let server = Server::start(vec![wire::whole(307, &[("location", &there)], "")]).await;
    let events = run(dialect, &server.url).await;
    assert!(matches!(failed(&events), Error::Malformed { message, .. } if message.contains(&there)));
    assert!(elsewhere.received().is_empty());
}

pub(crate) async fn an_endless_event_is_refused(dialect: &impl Dialect) {
    let start = [wire::stream_head(), b"data: ".to_vec()].concat();
    let server = Server::start(vec![vec![Step::Send(start), Step::Pour(vec![b'x'; 1 << 16])]]).await;
    let events = run(dialect, &server.url).await;
    assert!(matches!(failed(&events), Error::Malformed { message, .. } if message.contains("8 MB")), "{events:?}");
}

pub(crate) async fn an_endless_body_is_refused(dialect: &impl Dialect) {
    let endless = |status| vec![Step::Send(wire::head(status, &[])), Step::Pour(vec![b'x'; 1 << 18])];
    let server = Server::start(vec![endless(200)]).await;
    let events = run(dialect, &server.url).await;
    assert!(matches!(failed(&events), Error::Malformed { message, .. } if message.contains("64 MB")), "{events:?}");
    let server = Server::start(vec![endless(400)]).await;
    assert!(matches!(failed(&run(dialect, &server.url).await), Error::Refused { .. }));
}

pub(crate) async fn tokens_are_counted(dialect: &impl Dialect) {
    let good = wire::whole(200, &[("content-type", "application/json")], &dialect.count(1234));
    let server = Server::start(vec![busy(dialect, 529, &[]), good]).await;
    let model = dialect.model(&server.url, Retry::immediate(), patience());
    assert_eq!(model.count_tokens(request()).await, Ok(1234));
    assert_eq!(server.received().len(), 2);
}
