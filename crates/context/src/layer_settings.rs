//! Settings of the layers: the window they keep a session in, and their switches.

use std::collections::BTreeMap;

use serde::Deserialize;
use transcript::price::Price;
use transcript::tokens::Estimator;
use transcript::window::{AutoCompact, Window, WindowHints};

use crate::clear_numbers::ClearNumbers;

/// Limit on all results of one message together, in characters.
pub(crate) const MESSAGE_CHARACTERS: usize = 200_000;
/// Minutes without a reply after which the provider's cache is gone, whatever lifetime was asked for.
const IDLE_MINUTES: u64 = 60;
/// Default number of results that stay when a session wakes up; one always does.
pub(crate) const KEPT_WHEN_IDLE: usize = 5;
/// Default number of clearable results beyond which the oldest are dropped.
const CACHE_EDITS_AFTER: usize = 20;
/// Size of the smallest conversation that the provider compacts.
const PROVIDER_LEAST_TOKENS: u64 = 50_000;
/// Tokens of a conversation at which notes begin.
const NOTES_FIRST_TOKENS: u64 = 10_000;
/// Tokens after which notes are updated.
const NOTES_MORE_TOKENS: u64 = 5_000;
/// Calls after which notes are updated.
const NOTES_MORE_CALLS: u64 = 3;
/// Default number of restored files.
pub(crate) const RESTORED_FILES: usize = 5;
/// Share of a session's cost that notes may have.
const NOTES_SHARE: f64 = 0.1;
/// Default limit on a reply, for an unknown window.
const USUAL_OUTPUT: u64 = 32_000;

/// Timing of the layers that make room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LayerTiming {
    /// When the window requires it.
    #[default]
    Window,
    /// As soon as it is cheaper than carrying on.
    Economy,
}

/// Timing of clearing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClearWhen {
    /// At any fill of the window, as soon as it pays.
    #[default]
    Pays,
    /// When the window fills up, if it pays.
    Window,
    /// Only when a session wakes up.
    Never,
}

/// Criterion for the results to clear.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClearRule {
    /// The likelihood of being read again.
    #[default]
    Use,
    /// Only their age; for comparison.
    Age,
}

/// Amount of the newest messages that stays beside notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    /// Least tokens.
    pub tokens: u64,
    /// Least messages with text.
    pub texts: usize,
    /// Tokens at which going back for them stops.
    pub most: u64,
}

impl Default for Tail {
    fn default() -> Self {
        Self { tokens: 10_000, texts: 5, most: 40_000 }
    }
}

/// Settings of the layers. By default ([`Layers::default`]) all are on except those that write nothing down.
#[derive(Debug, Clone, PartialEq)]
pub struct Layers {
    /// The model's window.
    pub window: Window,
    /// Price of the model.
    pub price: Option<Price>,
    /// Switch of the spill layer.
    pub spill: bool,
    /// Characters of a tool's result that stay in view, by the tool's name, if not the usual number.
    pub spill_limits: BTreeMap<String, usize>,
    /// Limit on the characters of all results of one message.
    pub message_limit: usize,
    /// Drop the oldest messages when compaction would be due. No summary is written.
    pub snip: bool,
    /// Clear old results to make room.
    pub clear: bool,
    /// Timing of clearing.
    pub clear_when: ClearWhen,
    /// Criterion for the results to clear.
    pub clear_rule: ClearRule,
    /// Caution of clearing about results that may be needed again: 1 is usual, more clears less.
    pub caution: f64,
    /// Fitted constants of clearing.
    pub clear_numbers: ClearNumbers,
    /// Clear old results when a session wakes up after an hour.
    pub clear_when_idle: bool,
    /// Minutes without a reply until then.
    pub idle_minutes: u64,
    /// Number of results that then stay.
    pub kept_when_idle: usize,
    /// Write a digest before results are cleared.
    pub digest: bool,
    /// Replace spans of old messages with summaries, instead of compaction.
    pub collapse: bool,
    /// Let the provider drop old results from its cache, if it can. No digest is written.
    pub cache_edits: bool,
    /// Number of such results beyond which it does.
    pub cache_edits_after: usize,
    /// Automatic compaction.
    pub auto_compact: AutoCompact,
    /// Its timing: at the threshold, or as soon as it is cheaper.
    pub when: LayerTiming,
    /// Keep notes.
    pub notes: bool,
    /// Use notes instead of a summary.
    pub notes_compact: bool,
    /// Tokens of a conversation at which notes begin.
    pub notes_first: u64,
    /// Tokens after which they are updated.
    pub notes_more: u64,
    /// Calls after which they are updated, unless a reply makes none.
    pub notes_calls: u64,
    /// The share of the session's cost that notes may have; none is no limit.
    pub notes_share: Option<f64>,
    /// Template that replaces our own notes file.
    pub notes_template: Option<String>,
    /// Prompt that replaces our own for the writer of notes.
    pub notes_prompt: Option<String>,
    /// Amount of the newest messages that stays beside notes.
    pub tail: Tail,
    /// Shorten a request that the provider finds too long, and send it again.
    pub reactive: bool,
    /// Compact nothing before the provider refuses a request.
    pub reactive_only: bool,
    /// Number of files restored after a compaction.
    pub restored_files: usize,
    /// Keep standing instructions in view.
    pub keep: bool,
    /// Ask the provider to clear old results by itself, if it can.
    pub api_edits: bool,
    /// Ask the provider to compact by itself, if it can.
    pub api_compact: bool,
    /// Number of turns whose thinking the provider then keeps; none is all of them.
    pub api_thinking: Option<u64>,
    /// Ask the provider for the cause of cache misses, if it reports it.
    pub cache_diagnosis: bool,
    /// Estimator of tokens.
    pub estimator: Estimator,
}

impl Default for Layers {
    fn default() -> Self {
        Self {
            window: Window::of(&WindowHints { max_output: USUAL_OUTPUT, ..WindowHints::default() }),
            price: None,
            spill: true,
            spill_limits: BTreeMap::new(),
            message_limit: MESSAGE_CHARACTERS,
            snip: false,
            clear: true,
            clear_when: ClearWhen::Pays,
            clear_rule: ClearRule::Use,
            caution: 1.0,
            clear_numbers: ClearNumbers::default(),
            clear_when_idle: true,
            idle_minutes: IDLE_MINUTES,
            kept_when_idle: KEPT_WHEN_IDLE,
            digest: true,
            collapse: false,
            cache_edits: false,
            cache_edits_after: CACHE_EDITS_AFTER,
            auto_compact: AutoCompact::On,
            when: LayerTiming::Window,
            notes: true,
            notes_compact: true,
            notes_first: NOTES_FIRST_TOKENS,
            notes_more: NOTES_MORE_TOKENS,
            notes_calls: NOTES_MORE_CALLS,
            notes_share: Some(NOTES_SHARE),
            notes_template: None,
            notes_prompt: None,
            tail: Tail::default(),
            reactive: true,
            reactive_only: false,
            restored_files: RESTORED_FILES,
            keep: true,
            api_edits: false,
            api_compact: false,
            api_thinking: None,
            cache_diagnosis: false,
            estimator: Estimator::Fitted,
        }
    }
}

impl Layers {
    /// All of them off: everything is sent as it was said.
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
            keep: false,
            ..Self::default()
        }
    }

    /// Tokens at which compaction is due.
    pub fn threshold(&self) -> u64 {
        self.window.threshold(self.auto_compact)
    }

    /// True if the provider compacts first.
    pub(crate) fn provider_compacts(&self) -> bool {
        self.api_compact && self.threshold() >= PROVIDER_LEAST_TOKENS
    }

    /// Tokens at which our own compaction is due: if the provider compacts first, only when that did not help.
    pub fn due(&self) -> u64 {
        if self.provider_compacts() { self.window.blocking() } else { self.threshold() }
    }

    /// Tokens at which the window becomes tight.
    pub fn warning(&self) -> u64 {
        self.window.warning(self.auto_compact)
    }

    /// Limit on a part of a compaction: `most`, and in a small window no more than a share of the threshold.
    pub(crate) fn part(&self, most: u64, share: u64) -> u64 {
        most.min(self.window.threshold(AutoCompact::On) / share)
    }
}
