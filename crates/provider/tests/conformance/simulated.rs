//! The Anthropic client against the simulator, which checks requests and accounts the prompt cache by its own lights.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use provider::anthropic::{Anthropic, Auth, Config};
use provider::{Error, Event, Model, Patience, Retry};
use serde_json::json;
use simulator::{Fault, Options, Overflow, Script, Simulator};
use transcript::block::Kind;
use transcript::mark::{BlockPlace, Marks};
use transcript::{Block, Message, Outcome, Prologue, Reply, Request, Role, StopReason, Thinking, ToolDefinition};

const SCRIPT: &str = r#"
    [[rule]]
    name = "look"
    when = { user = "fix", missing = "2 passed", offered = "Bash" }
    think = "Which tests are there? \"All\" of them."
    say = "I look."
    call = [{ tool = "Bash", input = { command = "cargo test" } }, { tool = "Bash", input = { command = "ls" } }]

    [[rule]]
    name = "done"
    say = "Grüße, alles gut."
"#;

async fn simulator() -> Simulator {
    Simulator::start(Script::parse(SCRIPT).unwrap(), Options::default()).await.unwrap()
}

fn client(simulator: &Simulator, key: &str, idle: Duration) -> Anthropic {
    let patience = Patience { idle, answer: idle, ..Patience::default() };
    let config = Config::new(simulator.url(), Auth::ApiKey(key.into()));
    Anthropic::new(Config { retry: Retry::immediate(), patience, ..config }).unwrap()
}

/// A request whose last block bears a breakpoint, as do the system blocks; long enough to be cached.
fn request(messages: Vec<Message>) -> Request {
    let prologue = Prologue {
        model: "claude-opus-5".into(),
        max_tokens: 4096,
        system: vec![Block::text("Be brief. ".repeat(400))],
        static_blocks: 1,
        own_blocks: 0,
        loaded: Vec::new(),
        tools: vec![ToolDefinition {
            name: "Bash".into(),
            description: "Runs a command.".into(),
            input_schema: json!({"type": "object", "properties": {"command": {"type": "string"}}}),
        }],
        thinking: Some(Thinking::Enabled { budget_tokens: 1024 }),
        effort: None,
        betas: vec!["interleaved-thinking-2025-05-14".into()],
        format: None,
        context_management: None,
        web_search: None,
    };
    let last = messages.len() - 1;
    let place = BlockPlace { message: last, block: messages[last].blocks.len() - 1 };
    let marks = Marks { system: vec![0], messages: vec![place], ..Marks::default() };
    Request { prologue: Arc::new(prologue), messages, marks }
}

fn ask() -> Vec<Message> {
    vec![Message { role: Role::User, blocks: vec![Block::text(format!("fix it: {}", "details ".repeat(800)))] }]
}

/// The conversation, continued by a reply and results of its calls.
fn answered(mut messages: Vec<Message>, reply: &Reply) -> Vec<Message> {
    let result = |block: &Block| match block.kind() {
        Kind::ToolUse { id, .. } => Some(Block::tool_result(id, &[Block::text("2 passed")], Outcome::Done)),
        _ => None,
    };
    let results = reply.blocks.iter().filter_map(result).collect();
    messages.push(Message { role: Role::Assistant, blocks: reply.blocks.clone() });
    messages.push(Message { role: Role::User, blocks: results });
    messages
}

async fn run(model: &dyn Model, request: Request) -> Vec<Event> {
    tokio::time::timeout(crate::wire::PLENTY, model.stream(request).collect()).await.expect("it ends")
}

async fn reply(model: &dyn Model, request: Request) -> Reply {
    match run(model, request).await.pop() {
        Some(Event::Done(reply)) => reply,
        other => panic!("{other:?}"),
    }
}

async fn failure(model: &dyn Model) -> Error {
    match run(model, request(ask())).await.pop() {
        Some(Event::Failed(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// The signatures are checked by the simulator; its cache tells whether the second request began with the first's bytes.
#[tokio::test]
async fn a_turn_with_thinking_and_calls_goes_back_unchanged_and_is_read_from_the_cache() {
    let simulator = simulator().await;
    let model = client(&simulator, "key", crate::wire::PLENTY);
    let first = reply(&model, request(ask())).await;
    assert_eq!(first.stop, StopReason::ToolUse);
    let kinds: Vec<bool> = first.blocks.iter().map(|block| matches!(block.kind(), Kind::ToolUse { .. })).collect();
    assert_eq!(kinds, [false, false, true, true]);
    assert_eq!(first.blocks[0].kind(), &Kind::Thinking);

    let second = reply(&model, request(answered(ask(), &first))).await;
    assert_eq!(second.blocks.last().and_then(Block::as_text).as_deref(), Some("Grüße, alles gut."));
    assert!(first.usage.cache_creation_input_tokens > 1000, "{:?}", first.usage);
    assert_eq!(second.usage.cache_read_input_tokens, first.usage.cache_creation_input_tokens);
    assert_eq!(simulator.report().requests[1].broke, None);
}

#[tokio::test]
async fn the_count_is_what_is_billed() {
    let simulator = simulator().await;
    let model = client(&simulator, "key", crate::wire::PLENTY);
    let counted = model.count_tokens(request(ask())).await.unwrap();
    assert_eq!(counted, reply(&model, request(ask())).await.usage.context());
}

/// Wherever the stream is cut, the second try has the same reply, and its prompt comes from the cache.
#[tokio::test]
async fn a_reply_survives_a_cut_after_any_event() {
    let whole = reply(&client(&simulator().await, "key", crate::wire::PLENTY), request(ask())).await;
    for events in 0.. {
        let simulator = simulator().await;
        simulator.push_fault(Fault { cut_after: Some(events), ..Fault::default() }).unwrap();
        let model = client(&simulator, "key", crate::wire::PLENTY);
        let mut seen = run(&model, request(ask())).await;
        let Some(Event::Done(reply)) = seen.pop() else { panic!("cut after {events}: {seen:?}") };
        let texts = |reply: &Reply| reply.blocks.iter().filter_map(Block::as_text).collect::<Vec<_>>();
        assert_eq!((texts(&reply), &reply.stop), (texts(&whole), &whole.stop), "cut after {events}");
        let requests = simulator.report().requests.len();
        if requests == 1 {
            assert!(events > 10, "complete without a second request after {events} events");
            return;
        }
        assert_eq!(requests, 2, "cut after {events}");
        let cached = reply.usage.cache_read_input_tokens;
        assert!(
            events == 0 || cached == whole.usage.cache_creation_input_tokens,
            "cut after {events}: {cached} cached"
        );
    }
}

#[tokio::test]
async fn refusals_mean_what_the_api_means() {
    let simulator = simulator().await;
    let model = client(&simulator, "key", crate::wire::PLENTY);
    let overflow = Overflow { tokens: Some(214_000), maximum: Some(200_000) };
    simulator.push_fault(Fault { overflow: Some(overflow), ..Fault::default() }).unwrap();
    let error = failure(&model).await;
    assert!(matches!(error, Error::Overflow { tokens: Some(214_000), limit: Some(200_000), .. }), "{error}");
    for (status, is_right) in [
        (402, (|error| matches!(error, Error::Billing { .. })) as fn(&Error) -> bool),
        (403, |error| matches!(error, Error::Auth { status: 403, .. })),
        (404, |error| matches!(error, Error::Refused { status: 404, .. })),
        (413, |error| matches!(error, Error::Overflow { .. })),
    ] {
        simulator.push_fault(Fault::status(status)).unwrap();
        let error = failure(&model).await;
        assert!(is_right(&error), "{status}: {error:?}");
    }
    let error = failure(&client(&simulator, "invalid", crate::wire::PLENTY)).await;
    assert!(matches!(error, Error::Auth { status: 401, .. }), "{error}");
}

#[tokio::test]
async fn a_bad_minute_is_waited_out() {
    let simulator = simulator().await;
    let faults = [
        Fault { retry_after: Some(0), ..Fault::status(429) },
        Fault::status(529),
        Fault::status(500),
        Fault { cut_after: Some(4), ..Fault::status(529) },
        Fault { slow_ms_per_event: 1, ..Fault::default() },
    ];
    for fault in faults {
        simulator.push_fault(fault).unwrap();
    }
    let events = run(&client(&simulator, "key", crate::wire::PLENTY), request(ask())).await;
    assert!(matches!(events.last(), Some(Event::Done(_))), "{events:?}");
    let why = |event: &Event| match event {
        Event::Retrying { why: Error::Busy { status, .. }, .. } => Some(*status),
        _ => None,
    };
    assert_eq!(events.iter().filter_map(why).collect::<Vec<_>>(), [429, 529, 500, 529]);
    assert_eq!(events.iter().filter(|event| **event == Event::Restarted).count(), 1);
}

#[tokio::test]
async fn a_stalled_server_is_given_up() {
    let simulator = simulator().await;
    simulator.push_fault(Fault { stall: true, cut_after: Some(3), times: Some(4), ..Fault::default() }).unwrap();
    let error = failure(&client(&simulator, "key", Duration::from_millis(100))).await;
    assert!(matches!(error, Error::Idle { .. }), "{error}");
}
