//! What the layers are told, and what they have to remember between two requests.
//!
//! All of it can be read off the log again: [`State::of`] does so when a session is resumed.

use std::sync::Arc;

use context::breaks::Detector;
use context::micro::{KEPT_WHEN_IDLE, Situation, When};
use context::notes::Progress;
use context::restore;
use context::worth::{Pace, Rates};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tools::{Limit, Tool};
use transcript::commit::{Act, Commit};
use transcript::line::{Body, Line, Source};
use transcript::mark::Ttl;
use transcript::price::Price;
use transcript::window::{AutoCompact, Window, WindowHints};
use transcript::{Id, Log, Usage};

/// Notes may have this share of what a session costs.
pub const NOTES_SHARE: f64 = 0.1;
/// So many compactions in a row may fail before none is tried any more.
pub const MOST_FAILURES: u32 = 3;
/// So many may be tried in a turn.
pub const MOST_ATTEMPTS: u32 = 3;

/// How many characters a tool may return when it does not say.
const USUAL_LIMIT: usize = 100_000;

/// How the layers work. [`Layers::default`] has all of them on.
#[derive(Debug, Clone)]
pub struct Layers {
    /// The model's window.
    pub window: Window,
    /// What the model costs.
    pub price: Option<Price>,
    /// Whether oversized results go to disk.
    pub spill: bool,
    /// Whether old results are cleared to make room.
    pub clear: bool,
    /// Whether old results are cleared when a session wakes up after an hour.
    pub clear_when_idle: bool,
    /// How many results then stay.
    pub kept_when_idle: usize,
    /// Whether compaction happens by itself.
    pub auto_compact: AutoCompact,
    /// When: at the threshold, or as soon as it is cheaper.
    pub when: When,
    /// Whether notes are kept.
    pub notes: bool,
    /// Whether notes take the place of a summary.
    pub notes_compact: bool,
    /// The share of the session's cost that notes may have; none is no limit.
    pub notes_share: Option<f64>,
    /// In place of our own notes file.
    pub notes_template: Option<String>,
    /// In place of our own words to who writes the notes.
    pub notes_prompt: Option<String>,
    /// Whether a request that the provider finds too long is made shorter and sent again.
    pub reactive: bool,
    /// How many files come back after a compaction.
    pub restored_files: usize,
    /// Whether the provider is asked to leave out old results by itself, where it can.
    pub api_edits: bool,
    /// Whether the provider is asked why its cache did not hold, where it says so.
    pub cache_diagnosis: bool,
}

impl Default for Layers {
    fn default() -> Self {
        Self {
            window: Window::of(&WindowHints { max_output: crate::agent::MAX_OUTPUT_TOKENS, ..WindowHints::default() }),
            price: None,
            spill: true,
            clear: true,
            clear_when_idle: true,
            kept_when_idle: KEPT_WHEN_IDLE,
            auto_compact: AutoCompact::On,
            when: When::Window,
            notes: true,
            notes_compact: true,
            notes_share: Some(NOTES_SHARE),
            notes_template: None,
            notes_prompt: None,
            reactive: true,
            restored_files: restore::FILES,
            api_edits: false,
            cache_diagnosis: false,
        }
    }
}

impl Layers {
    /// What the clearing of old results depends on, so long after the newest reply.
    pub(crate) fn situation<'a>(&self, idle: Option<SignedDuration>, pace: &'a Pace, ttl: Ttl) -> Situation<'a> {
        Situation {
            idle: idle.filter(|_| self.clear_when_idle),
            window: self.window,
            auto: self.auto_compact,
            when: self.when,
            pace,
            rates: rates(self, ttl),
            kept_when_idle: self.kept_when_idle,
            may_pay: self.clear,
        }
    }

    /// All of them off: what is said is sent.
    pub fn none(window: Window) -> Self {
        Self {
            window,
            spill: false,
            clear: false,
            clear_when_idle: false,
            auto_compact: AutoCompact::Off,
            notes: false,
            notes_compact: false,
            reactive: false,
            ..Self::default()
        }
    }
}

/// A line of ours about the layers, in the log.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Fact {
    /// A fork ran; its requests are not in the log.
    Side {
        /// Which kind.
        agent: String,
        /// The model.
        model: String,
        /// What it used.
        usage: Usage,
    },
    /// Notes were brought up to date.
    Notes {
        /// The last line they cover now; none if nothing was written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        covers: Option<Id>,
        /// The conversation's tokens then.
        tokens: u64,
    },
    /// A compaction was tried and failed.
    CompactionFailed {
        /// Why.
        why: String,
    },
    /// The user was told that no compaction will be tried any more.
    CompactionStopped,
    /// The cache did not hold.
    CacheBreak {
        /// What should have been read.
        expected: u64,
        /// What was read.
        read: u64,
        /// Why.
        cause: String,
        /// Whether it was meant.
        declared: bool,
        /// The commit it belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<Id>,
    },
    /// Notes took the place of a summary.
    NotesUsed {
        /// What a summary would have cost, in tokens of input that is not cached.
        saved: u64,
    },
}

impl Fact {
    /// The fact in a line, if it is one.
    pub fn of(line: &Line) -> Option<Self> {
        match &line.body {
            Body::Meta(meta) => serde_json::from_str(meta.get()).ok(),
            _ => None,
        }
    }
}

/// What the layers remember.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    /// When the newest reply came.
    pub(crate) replied_at: Option<Timestamp>,
    pub(crate) pace: Pace,
    pub(crate) detector: Detector,
    /// Lines of the log that the detector knows of.
    pub(crate) accounted: usize,
    pub(crate) progress: Progress,
    /// The last line that notes cover.
    pub(crate) covered: Option<Id>,
    /// What the session has cost, notes have cost, and notes have saved, in tokens of input that is not cached.
    pub(crate) spent: f64,
    pub(crate) notes_spent: f64,
    pub(crate) notes_saved: f64,
    /// Compactions in a row that failed.
    pub(crate) failures: u32,
    /// Compactions tried in this turn.
    pub(crate) attempts: u32,
    /// Whether the user was told that there will be no more.
    pub(crate) told: bool,
    /// Whether a request of this turn was made shorter because the provider refused it.
    pub(crate) reacted: bool,
}

impl State {
    /// Reads it off a log.
    pub(crate) fn of(log: &Log, rates: Rates) -> Self {
        let mut state = Self { accounted: log.lines().len(), ..Self::default() };
        let mut last: Option<&Id> = None;
        for line in log.lines().iter().filter(|line| !line.sidechain) {
            match &line.body {
                Body::User { blocks, source: Source::Said } if !blocks.iter().any(is_result) => state.turn(),
                Body::Assistant { id, usage, blocks, .. } => {
                    let is_first = last.replace(id) != Some(id);
                    let calls = blocks.iter().filter(|block| is_call(block)).count();
                    state.replied(line.time, is_first, calls, cost(usage.as_ref(), rates));
                }
                Body::Commit(Commit { act: Act::Compact { .. }, .. }) => state.compacted(0),
                Body::Meta(_) => Fact::of(line).iter().for_each(|fact| state.learn(fact, rates)),
                _ => {}
            }
        }
        if state.progress.tokens.is_some_and(|tokens| tokens == 0) {
            state.progress.tokens = Some(log.view().tally().count());
        }
        state
    }

    /// The user spoke.
    pub(crate) fn turn(&mut self) {
        self.pace.turn();
        (self.attempts, self.reacted) = (0, false);
    }

    /// A reply came, or a further line of it.
    pub(crate) fn replied(&mut self, at: Option<Timestamp>, is_first: bool, calls: usize, cost: f64) {
        self.replied_at = at.or(self.replied_at);
        self.progress.calls += calls as u32;
        self.progress.calling = calls > 0;
        if is_first {
            self.pace.round();
            self.spent += cost;
        }
    }

    /// A compaction was made; the conversation has so many tokens now.
    pub(crate) fn compacted(&mut self, tokens: u64) {
        self.failures = 0;
        self.attempts += 1;
        if self.progress.tokens.is_some() {
            self.progress.tokens = Some(tokens);
        }
        self.progress.ready = false;
    }

    /// Takes in what a line says.
    pub(crate) fn learn(&mut self, fact: &Fact, rates: Rates) {
        match fact {
            Fact::Side { agent, usage, .. } => {
                let cost = cost(Some(usage), rates);
                self.spent += cost;
                if agent == "notes" {
                    self.notes_spent += cost;
                }
            }
            Fact::Notes { covers, tokens } => {
                self.covered = covers.clone().or(self.covered.take());
                self.progress.tokens = Some(*tokens);
                self.progress.calls = 0;
            }
            Fact::CompactionFailed { .. } => {
                self.failures += 1;
                self.attempts += 1;
            }
            Fact::CompactionStopped => self.told = true,
            Fact::NotesUsed { saved } => self.notes_saved += *saved as f64,
            Fact::CacheBreak { .. } => {}
        }
    }
}

/// What a request cost, in tokens of input that is not cached.
pub(crate) fn cost(usage: Option<&Usage>, rates: Rates) -> f64 {
    let Some(usage) = usage else { return 0.0 };
    usage.input_tokens as f64
        + usage.cache_creation_input_tokens as f64 * rates.write
        + usage.cache_read_input_tokens as f64 * rates.read
        + usage.output_tokens as f64 * rates.output
}

/// How many characters a tool may return; none if it bounds itself. A tool nobody knows has the usual limit.
pub(crate) fn limit(tools: &[Arc<dyn Tool>], name: &str) -> Option<usize> {
    match tools.iter().find(|known| known.name() == name).map(|known| known.limit()) {
        Some(Limit::Unlimited) => None,
        Some(Limit::Characters(characters)) => Some(characters),
        None => Some(USUAL_LIMIT),
    }
}

/// The rates of a model at a time to live.
pub(crate) fn rates(layers: &Layers, ttl: Ttl) -> Rates {
    Rates::of(layers.price, ttl)
}

fn is_result(block: &transcript::Block) -> bool {
    matches!(block.kind(), transcript::block::Kind::ToolResult { .. })
}

fn is_call(block: &transcript::Block) -> bool {
    matches!(block.kind(), transcript::block::Kind::ToolUse { .. })
}
