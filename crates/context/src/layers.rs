//! How the layers work: the window they keep a session in, and their switches.

use std::collections::BTreeMap;

use serde::Deserialize;
use transcript::price::Price;
use transcript::tokens::Estimator;
use transcript::window::{AutoCompact, Window, WindowHints};

use crate::clear_numbers::ClearNumbers;

/// All results of one message together, in characters.
pub(crate) const MESSAGE_CHARACTERS: usize = 200_000;
/// After so many minutes without a reply the provider's cache is gone, whatever was asked for.
const IDLE_MINUTES: u64 = 60;
/// So many results stay when a session wakes up, unless the settings say otherwise; one always does.
pub(crate) const KEPT_WHEN_IDLE: usize = 5;
/// More clearable results than this, unless the settings say otherwise, and the oldest are dropped.
const CACHE_EDITS_AFTER: usize = 20;
/// The provider compacts no smaller conversation.
const PROVIDER_LEAST_TOKENS: u64 = 50_000;
/// Notes begin when the conversation has so many tokens.
const NOTES_FIRST_TOKENS: u64 = 10_000;
/// They are brought up to date when so many tokens have come.
const NOTES_MORE_TOKENS: u64 = 5_000;
/// And so many calls were made.
const NOTES_MORE_CALLS: u64 = 3;
/// So many files come back, unless the settings say otherwise.
pub(crate) const RESTORED_FILES: usize = 5;
/// Notes may have this share of what a session costs.
const NOTES_SHARE: f64 = 0.1;
/// The most a reply may be when nobody says; for a window nobody names.
const USUAL_OUTPUT: u64 = 32_000;

/// When layers make room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LayerTiming {
    /// When the window asks for it.
    #[default]
    Window,
    /// As soon as it is cheaper than carrying on.
    Economy,
}

/// When old results are cleared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClearWhen {
    /// At any fill of the window, as soon as it pays.
    #[default]
    Pays,
    /// When the window fills up, if it pays.
    Window,
    /// Never, but for a session that wakes up.
    Never,
}

/// What decides which results go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClearRule {
    /// What will be missed.
    #[default]
    Use,
    /// How old they are, and nothing else; to compare with.
    Age,
}

/// How much of the newest messages stays beside notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    /// So many tokens, at least.
    pub tokens: u64,
    /// And so many messages with text.
    pub texts: usize,
    /// Going back for them stops at so many tokens.
    pub most: u64,
}

impl Default for Tail {
    fn default() -> Self {
        Self { tokens: 10_000, texts: 5, most: 40_000 }
    }
}

/// How the layers work. [`Layers::default`] has all of them on but those that forget.
#[derive(Debug, Clone, PartialEq)]
pub struct Layers {
    /// The model's window.
    pub window: Window,
    /// What the model costs.
    pub price: Option<Price>,
    /// Whether oversized results go to disk.
    pub spill: bool,
    /// How many characters of a tool's result stay in view, by the tool's name, where that is not the usual number.
    pub spill_limits: BTreeMap<String, usize>,
    /// How many characters the results of one message may have together.
    pub message_limit: usize,
    /// Whether the oldest messages are dropped where compaction would be due. Nothing is written down of them.
    pub snip: bool,
    /// Whether old results are cleared to make room.
    pub clear: bool,
    /// When.
    pub clear_when: ClearWhen,
    /// What decides which of them.
    pub clear_rule: ClearRule,
    /// How careful clearing is with what may be missed: the usual is 1, more clears less.
    pub caution: f64,
    /// Numbers that clearing is fitted by.
    pub clear_numbers: ClearNumbers,
    /// Whether old results are cleared when a session wakes up after an hour.
    pub clear_when_idle: bool,
    /// After how many minutes without a reply.
    pub idle_minutes: u64,
    /// How many results then stay.
    pub kept_when_idle: usize,
    /// Whether what is about to be cleared is written down first.
    pub digest: bool,
    /// Whether spans of old messages give way to summaries of them, in the place of compaction.
    pub collapse: bool,
    /// Whether the provider drops old results from its cache, where it can. Nothing is written down of them.
    pub cache_edits: bool,
    /// When there are more of them than this.
    pub cache_edits_after: usize,
    /// Whether compaction happens by itself.
    pub auto_compact: AutoCompact,
    /// When: at the threshold, or as soon as it is cheaper.
    pub when: LayerTiming,
    /// Whether notes are kept.
    pub notes: bool,
    /// Whether notes take the place of a summary.
    pub notes_compact: bool,
    /// How many tokens a conversation has when notes begin.
    pub notes_first: u64,
    /// After how many more tokens they are brought up to date.
    pub notes_more: u64,
    /// And after how many calls, unless a reply makes none.
    pub notes_calls: u64,
    /// The share of the session's cost that notes may have; none is no limit.
    pub notes_share: Option<f64>,
    /// In place of our own notes file.
    pub notes_template: Option<String>,
    /// In place of our own words to who writes the notes.
    pub notes_prompt: Option<String>,
    /// How much of the newest messages stays beside notes.
    pub tail: Tail,
    /// Whether a request that the provider finds too long is made shorter and sent again.
    pub reactive: bool,
    /// Whether nothing is compacted before the provider itself says no.
    pub reactive_only: bool,
    /// How many files come back after a compaction.
    pub restored_files: usize,
    /// Whether what the user forbade or required stays in view.
    pub keep: bool,
    /// Whether the provider is asked to leave out old results by itself, where it can.
    pub api_edits: bool,
    /// Whether the provider is asked to compact by itself, where it can.
    pub api_compact: bool,
    /// Of how many turns the provider then keeps the thinking; none is all of them.
    pub api_thinking: Option<u64>,
    /// Whether the provider is asked why its cache did not hold, where it says so.
    pub cache_diagnosis: bool,
    /// How tokens are estimated.
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
            keep: false,
            ..Self::default()
        }
    }

    /// Where compaction is due.
    pub fn threshold(&self) -> u64 {
        self.window.threshold(self.auto_compact)
    }

    /// Whether the provider compacts first.
    pub(crate) fn provider_compacts(&self) -> bool {
        self.api_compact && self.threshold() >= PROVIDER_LEAST_TOKENS
    }

    /// Where our own compaction is due: where the provider compacts first, only when that did not help.
    pub fn due(&self) -> u64 {
        if self.provider_compacts() { self.window.blocking() } else { self.threshold() }
    }

    /// Where it becomes tight.
    pub fn warning(&self) -> u64 {
        self.window.warning(self.auto_compact)
    }

    /// What a part of a compaction may have: so much, and in a small window no more than a share of it.
    pub(crate) fn part(&self, most: u64, share: u64) -> u64 {
        most.min(self.window.threshold(AutoCompact::On) / share)
    }
}
