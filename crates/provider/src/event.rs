//! Events of a reply as it comes in, and the small machine that turns an async function into a stream.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use transcript::block::Kind;
use transcript::{Block, Reply, Usage};

use crate::error::Error;

/// The key under which a tool call's input is kept when the model wrote something that is not a JSON object.
///
/// The API demands an object when the call is sent back, and the session must go on: such a call arrives as
/// `{"_invalid_json": "<what the model wrote>"}`. Whoever runs tools asks [`invalid_input`] first and answers with an
/// error that shows the model its own text.
pub const INVALID_INPUT: &str = "_invalid_json";

/// Limit on the nesting of a tool's input. The log's parser stops at 128 levels, and a log line adds some of its own.
const INPUT_DEPTH: usize = 100;

/// The model's text for a tool call's input, if it was not a JSON object (or was nested too deeply to keep).
pub fn invalid_input(block: &Block) -> Option<String> {
    if !matches!(block.kind(), Kind::ToolUse { .. }) || !block.json().contains(INVALID_INPUT) {
        return None;
    }
    let input = block.input()?;
    let input = input.as_object().filter(|input| input.len() == 1)?;
    input.get(INVALID_INPUT)?.as_str().map(str::to_owned)
}

/// A tool's input: what was streamed, or else what the call began with, or else nothing.
pub(crate) fn input(given: Option<Value>, json: &str) -> Value {
    let parsed = if json.trim().is_empty() {
        Ok(given.filter(|given| !given.is_null()).unwrap_or_else(|| Value::Object(Map::new())))
    } else {
        serde_json::from_str(json)
    };
    match parsed {
        Ok(input) if input.is_object() && !is_deeper(&input, INPUT_DEPTH) => input,
        Ok(input) if json.trim().is_empty() => json!({ INVALID_INPUT: input.to_string() }),
        _ => json!({ INVALID_INPUT: json }),
    }
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Object(object) => levels == 0 || object.values().any(|value| is_deeper(value, levels - 1)),
        Value::Array(array) => levels == 0 || array.iter().any(|value| is_deeper(value, levels - 1)),
        _ => false,
    }
}

/// Something that happened on the way to a reply.
///
/// Between `Started` and the end come deltas for display and whole blocks for keeping. `Restarted` voids all of them.
/// The last event of a stream is `Done` or `Failed`, and there is exactly one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The model has begun to answer; where the server counts beforehand, the usage tells what was read from the cache.
    Started {
        /// The provider's id of the message.
        id: String,
        /// The model that answers.
        model: String,
        /// Usage so far.
        usage: Usage,
    },
    /// More text, for display.
    Text(String),
    /// More thinking, for display.
    Thinking(String),
    /// More of a tool call's input, for display.
    ToolInput {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// The next piece of JSON text.
        partial_json: String,
    },
    /// A block is complete.
    Block(Block),
    /// An attempt failed and another follows after a wait.
    Retrying {
        /// Number of failed attempts so far.
        attempt: u32,
        /// The wait.
        after: Duration,
        /// The error of the last one.
        why: Error,
    },
    /// The reply broke off: everything since `Started` is void, and the request is sent again.
    Restarted,
    /// The reply is complete.
    Done(Reply),
    /// There is no reply; what was shown of one is void.
    Failed(Error),
}

/// Sink for the events of an attempt.
pub(crate) struct Emit {
    sender: Option<mpsc::Sender<Event>>,
    shown: AtomicBool,
}

impl Emit {
    /// A sink that drops all events.
    pub(crate) fn silent() -> Self {
        Self { sender: None, shown: AtomicBool::new(false) }
    }

    /// Hands over an event and waits until the caller has room for it.
    pub(crate) async fn send(&self, event: Event) {
        match event {
            Event::Retrying { .. } => {}
            Event::Restarted => self.shown.store(false, Ordering::Relaxed),
            _ => self.shown.store(true, Ordering::Relaxed),
        }
        if let Some(sender) = &self.sender {
            // A closed channel means the stream was dropped, and this future with it.
            let _ = sender.send(event).await;
        }
    }

    /// True if the caller has seen a part of the current reply.
    pub(crate) fn has_shown(&self) -> bool {
        self.shown.load(Ordering::Relaxed)
    }
}

/// Runs `work` inside a stream of the events it emits: it advances only while the stream is polled and ends with it.
pub(crate) fn generate<Work>(work: impl FnOnce(Emit) -> Work) -> BoxStream<'static, Event>
where
    Work: Future<Output = ()> + Send + 'static,
{
    let (sender, mut receiver) = mpsc::channel(1);
    let emit = Emit { sender: Some(sender), shown: AtomicBool::new(false) };
    let mut work = Some(Box::pin(work(emit)));
    Box::pin(stream::poll_fn(move |context| {
        if let Some(running) = &mut work
            && running.as_mut().poll(context).is_ready()
        {
            work = None;
        }
        receiver.poll_recv(context)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt;

    #[tokio::test]
    async fn a_generated_stream_yields_in_order_and_ends() {
        let events = generate(async |emit: Emit| {
            for piece in ["a", "b", "c"] {
                emit.send(Event::Text(piece.into())).await;
            }
        });
        let texts: Vec<Event> = events.collect().await;
        assert_eq!(texts, ["a", "b", "c"].map(|piece| Event::Text(piece.into())));
    }

    #[test]
    fn only_the_documented_form_counts_as_invalid_input() {
        let call = |input| Block::tool_use("t", "Bash", &input);
        assert_eq!(invalid_input(&call(json!({"_invalid_json": "{oops"}))), Some("{oops".into()));
        assert_eq!(invalid_input(&call(json!({"command": "grep _invalid_json"}))), None);
        assert_eq!(invalid_input(&call(json!({"_invalid_json": "x", "more": 1}))), None);
        assert_eq!(invalid_input(&Block::text("_invalid_json")), None);
    }
}
