//! Figures of a session: what it used, what the cache did for it, what it cost.

mod teammates;

use serde::Serialize;
use transcript::block::Kind;
use transcript::commit::Act;
use transcript::line::{Body, Line};
use transcript::price::{Price, Prices};
use transcript::{Id, Log, Usage};

use crate::savings;
use context::Fact;

pub use teammates::{SessionUse, Teammate, cost_with, teammates};

/// The figures.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// Lines in the file.
    pub lines: usize,
    /// Replies of the model.
    pub replies: usize,
    /// Calls of tools.
    pub tool_calls: usize,
    /// Decisions about context.
    pub commits: usize,
    /// The newest reply's model.
    pub model: String,
    /// The count as it stands.
    pub context_tokens: u64,
    /// Input that was not cached.
    pub uncached_tokens: u64,
    /// Input written to the cache.
    pub cache_write_tokens: u64,
    /// Input read from it.
    pub cache_read_tokens: u64,
    /// Output.
    pub output_tokens: u64,
    /// Part of all input that was read from the cache.
    pub hit_ratio: f64,
    /// Cache writes divided by the largest context; 1 when everything was written once.
    pub rewrite_factor: f64,
    /// The same for each window that was filled, the worst of them: a window ends where a layer changes what was sent.
    pub rewrite_factor_per_window: f64,
    /// In dollars, forks included; none when a model has no known price.
    pub cost_usd: Option<f64>,
    /// Saving by the cache, in dollars; negative if more was written than read.
    pub cache_saved_usd: f64,
    /// Requests outside the conversation: for notes, summaries and learning, by agents and hooks.
    pub beside: Vec<SideWorkUse>,
    /// Usage of each teammate, if it was looked for. It is not in the sums above: its session has it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub teammates: Vec<Teammate>,
    /// Cache breaks.
    pub breaks: Vec<RecordedBreak>,
}

/// Usage of one kind of background work.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SideWorkUse {
    /// The kind: a layer, `extract`, `hook`, the type of an agent.
    pub who: String,
    /// The number of requests.
    pub times: usize,
    /// Its cost, in dollars.
    pub cost_usd: f64,
}

/// A cache break.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedBreak {
    /// Tokens that should have been read from the cache.
    pub expected_tokens: u64,
    /// Tokens that were read.
    pub read_tokens: u64,
    /// The layer or event it belongs to.
    pub cause: String,
    /// True if it was intended.
    pub declared: bool,
    /// The commit it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<Id>,
    /// The origin of a request outside the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

impl RecordedBreak {
    fn of(fact: Fact) -> Option<Self> {
        match fact {
            Fact::CacheBreak { expected, read, cause, declared, commit, agent } => {
                Some(Self { expected_tokens: expected, read_tokens: read, cause, declared, commit, agent })
            }
            _ => None,
        }
    }
}

/// Breaks that have the same cause.
#[derive(Debug, Clone)]
pub struct Cause {
    /// The layer or event, and whether it was meant.
    pub text: String,
    /// The number of times.
    pub times: usize,
    /// Tokens that were not read from the cache because of it.
    pub lost_tokens: u64,
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, {}×, {} tokens not read from the cache", self.text, self.times, self.lost_tokens)
    }
}

/// Breaks by their cause, in the order they were first seen.
pub fn causes<'a>(breaks: impl IntoIterator<Item = &'a RecordedBreak>) -> Vec<Cause> {
    let mut all: Vec<Cause> = Vec::new();
    for one in breaks {
        let text = if one.declared { one.cause.clone() } else { format!("unexplained: {}", one.cause) };
        let lost = one.expected_tokens.saturating_sub(one.read_tokens);
        match all.iter_mut().find(|known| known.text == text) {
            Some(known) => (known.times, known.lost_tokens) = (known.times + 1, known.lost_tokens + lost),
            None => all.push(Cause { text, times: 1, lost_tokens: lost }),
        }
    }
    all
}

impl Stats {
    /// Counts a session.
    pub fn of(log: &Log, prices: &Prices) -> Self {
        let mut stats =
            Self { lines: log.lines().len(), context_tokens: log.view().tally().count(), ..Self::default() };
        let (replies, mut seen) = (replies(log.lines()), None);
        let mut replied = 0;
        // The number of replies before each change of what was sent.
        let mut windows = vec![0];
        for line in log.lines() {
            match &line.body {
                Body::Assistant { id, blocks, .. } => {
                    stats.tool_calls +=
                        blocks.iter().filter(|block| matches!(block.kind(), Kind::ToolUse { .. })).count();
                    replied += usize::from(seen.replace(id) != Some(id));
                }
                Body::Commit(commit) => {
                    stats.commits += 1;
                    if commit.act.changes_sent() && !matches!(commit.act, Act::ServerEdit { .. }) {
                        windows.push(replied);
                    }
                }
                _ => {}
            }
        }
        stats.replies = replies.len();
        stats.model = replies.last().map(|(_, model, _)| (*model).to_owned()).unwrap_or_default();
        for (_, _, usage) in &replies {
            stats.uncached_tokens += usage.input_tokens;
            stats.cache_write_tokens += usage.cache_creation_input_tokens;
            stats.cache_read_tokens += usage.cache_read_input_tokens;
            stats.output_tokens += usage.output_tokens;
        }
        let all_usage = replies.iter().map(|(_, model, usage)| (*model, *usage));
        stats.cache_saved_usd = all_usage.filter_map(|(model, usage)| Some(saved(&prices.of(model)?, &usage))).sum();
        stats.beside = side_work(log.lines(), prices);
        stats.breaks = log.lines().iter().filter_map(Fact::of).filter_map(RecordedBreak::of).collect();
        let largest = replies.iter().map(|(_, _, usage)| usage.context()).max().unwrap_or_default();
        windows.push(replies.len());
        for ends in windows.windows(2) {
            let filled = &replies[ends[0].min(ends[1])..ends[1]];
            let written = filled.iter().map(|(_, _, usage)| usage.cache_creation_input_tokens).sum();
            let largest = filled.iter().map(|(_, _, usage)| usage.context()).max().unwrap_or_default();
            stats.rewrite_factor_per_window = stats.rewrite_factor_per_window.max(share(written, largest));
        }
        let input = stats.uncached_tokens + stats.cache_write_tokens + stats.cache_read_tokens;
        stats.hit_ratio = share(stats.cache_read_tokens, input);
        stats.rewrite_factor = share(stats.cache_write_tokens, largest);
        stats.cost_usd = cost(&replies, &stats.beside, prices);
        stats
    }
}

/// The replies in lines: each one's id, model and usage. Several lines can be of one.
fn replies(lines: &[Line]) -> Vec<(&Id, &str, Usage)> {
    let mut replies: Vec<(&Id, &str, Usage)> = Vec::new();
    for line in lines {
        let Body::Assistant { id, model, usage, .. } = &line.body else { continue };
        let usage = usage.unwrap_or_default();
        match replies.last_mut() {
            Some(last) if last.0 == id => last.2 = usage,
            _ => replies.push((id, model, usage)),
        }
    }
    replies
}

/// Requests outside the conversation.
fn side_work(lines: &[Line], prices: &Prices) -> Vec<SideWorkUse> {
    together(savings::of_forks(lines).into_iter().map(|(who, model, usage)| {
        let cost_usd = prices.of(&model).map_or(0.0, |price| price.cost(&usage));
        SideWorkUse { who, times: 1, cost_usd }
    }))
}

/// The total cost; none if a model has no known price.
fn cost(replies: &[(&Id, &str, Usage)], beside: &[SideWorkUse], prices: &Prices) -> Option<f64> {
    let cost: Option<f64> = replies.iter().map(|(_, model, usage)| Some(prices.of(model)?.cost(usage))).sum();
    // The sum of nothing is a negative zero.
    cost.map(|cost| cost + 0.0 + beside.iter().map(|one| one.cost_usd).sum::<f64>())
}

/// The same work's figures in one, in the order they were first seen.
pub fn together(all: impl IntoIterator<Item = SideWorkUse>) -> Vec<SideWorkUse> {
    let mut sums: Vec<SideWorkUse> = Vec::new();
    for one in all {
        match sums.iter_mut().find(|known| known.who == one.who) {
            Some(known) => (known.times, known.cost_usd) = (known.times + one.times, known.cost_usd + one.cost_usd),
            None => sums.push(one),
        }
    }
    sums
}

/// The amount by which a request was cheaper than without a cache.
fn saved(price: &Price, usage: &Usage) -> f64 {
    let uncached = Usage { input_tokens: usage.context(), output_tokens: usage.output_tokens, ..Usage::default() };
    price.cost(&uncached) - price.cost(usage)
}

/// That amount in words.
pub fn saved_text(usd: f64) -> String {
    let than = if usd < 0.0 { "more" } else { "less" };
    format!("${:.4} {than} than without it", usd.abs())
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
