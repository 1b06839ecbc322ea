//! Sessions for tests.

use jiff::Timestamp;
use transcript::commit::{Act, Commit, Reason};
use transcript::line::{Body, Line, TextSource};
use transcript::mark::Ttl;
use transcript::window::{Window, WindowHints};
use transcript::{Block, Id, Log, Outcome, Usage};

use crate::layer::{LayerRole, Occasion, Situation};
use crate::layer_settings::Layers;
use crate::state::State;

/// Approximate tokens of a text.
pub(crate) fn tokens(text: &str) -> u64 {
    text.len() as u64 / 4
}

/// The usual layers in a window.
pub(crate) fn layers(size: u64) -> Layers {
    let window = Window::of(&WindowHints { configured: Some(size), max_output: 32_000, ..WindowHints::default() });
    Layers { window, ..Layers::default() }
}

/// Parts of a situation.
#[derive(Clone)]
pub(crate) struct SampleParts {
    pub(crate) layers: Layers,
    pub(crate) state: State,
    pub(crate) occasion: Occasion,
    pub(crate) now: Timestamp,
    pub(crate) ttl: Ttl,
    pub(crate) done: Vec<LayerRole>,
}

impl SampleParts {
    pub(crate) fn new(window: u64) -> Self {
        let mut state = State::default();
        state.replied_at = Some(Timestamp::UNIX_EPOCH);
        Self {
            layers: layers(window),
            state,
            occasion: Occasion::Request,
            now: Timestamp::UNIX_EPOCH,
            ttl: Ttl::FiveMinutes,
            done: Vec::new(),
        }
    }

    pub(crate) fn with<T>(&self, look: impl FnOnce(&Situation<'_>) -> T) -> T {
        look(&Situation {
            occasion: &self.occasion,
            now: self.now,
            layers: &self.layers,
            ttl: self.ttl,
            state: &self.state,
            notes: "/notes.md",
            limit: &|_| Some(100_000),
            done: &self.done,
        })
    }
}

/// A log under construction.
#[derive(Default)]
pub(crate) struct Session {
    pub(crate) log: Log,
    lines: usize,
}

impl Session {
    pub(crate) fn append(&mut self, body: Body) -> Id {
        self.lines += 1;
        let id = Id::from(format!("line-{}", self.lines));
        self.log.append(Line::new(id.clone(), self.log.tip().cloned(), Timestamp::UNIX_EPOCH, body));
        id
    }

    pub(crate) fn say(&mut self, text: &str) -> Id {
        self.append(Body::User { blocks: vec![Block::text(text)], source: TextSource::Direct })
    }

    pub(crate) fn reply(&mut self, text: &str) -> Id {
        self.assistant(vec![Block::text(text)], None)
    }

    fn assistant(&mut self, blocks: Vec<Block>, usage: Option<Usage>) -> Id {
        let id = Id::from(format!("msg-{}", self.lines));
        self.append(Body::Assistant { id, model: "m".into(), blocks, usage, stop: None })
    }

    /// Adds a call and its result of so many bytes; returns the call's id.
    pub(crate) fn call(&mut self, tool: &str, bytes: usize) -> String {
        self.result(tool, &"x".repeat(bytes))
    }

    /// Adds a call and its result; returns the call's id.
    pub(crate) fn result(&mut self, tool: &str, text: &str) -> String {
        self.called(tool, &serde_json::json!({"command": "x"}), text)
    }

    /// The same, with this input.
    pub(crate) fn called(&mut self, tool: &str, input: &serde_json::Value, text: &str) -> String {
        let id = format!("toolu_{}", self.lines);
        self.assistant(vec![Block::tool_use(&id, tool, input)], None);
        let result = Block::tool_result(&id, &[Block::text(text)], Outcome::Done);
        self.append(Body::User { blocks: vec![result], source: TextSource::Direct });
        id
    }

    /// Adds several calls in one reply, with their results.
    pub(crate) fn calls(&mut self, tool: &str, count: usize, bytes: usize) {
        let ids: Vec<String> = (0..count).map(|n| format!("toolu_{}_{n}", self.lines)).collect();
        let calls = ids.iter().map(|id| Block::tool_use(id, tool, &serde_json::json!({"command": "x"})));
        self.assistant(calls.collect(), None);
        for id in ids {
            let result = Block::tool_result(&id, &[Block::text("x".repeat(bytes))], Outcome::Done);
            self.append(Body::User { blocks: vec![result], source: TextSource::Direct });
        }
    }

    pub(crate) fn commit(&mut self, act: Act) -> Id {
        self.append(Body::Commit(Commit { act, reason: Reason::default() }))
    }
}
