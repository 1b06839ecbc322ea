//! Figures of a session: what it used, what the cache did for it, what it cost.

use serde::Serialize;
use transcript::block::Kind;
use transcript::line::Body;
use transcript::price::Prices;
use transcript::{Id, Log, Usage};

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
    /// In dollars; none when a model has no known price.
    pub cost_usd: Option<f64>,
}

impl Stats {
    /// Counts a session.
    pub fn of(log: &Log, prices: &Prices) -> Self {
        let mut stats =
            Self { lines: log.lines().len(), context_tokens: log.view().tally().count(), ..Self::default() };
        let mut replies: Vec<(&Id, &str, Usage)> = Vec::new();
        for line in log.lines() {
            match &line.body {
                Body::Assistant { id, model, usage, blocks, .. } => {
                    stats.tool_calls +=
                        blocks.iter().filter(|block| matches!(block.kind(), Kind::ToolUse { .. })).count();
                    let usage = usage.unwrap_or_default();
                    match replies.last_mut() {
                        Some(last) if last.0 == id => last.2 = usage,
                        _ => replies.push((id, model, usage)),
                    }
                }
                Body::Commit(_) => stats.commits += 1,
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
        let largest = replies.iter().map(|(_, _, usage)| usage.context()).max().unwrap_or_default();
        let input = stats.uncached_tokens + stats.cache_write_tokens + stats.cache_read_tokens;
        stats.hit_ratio = share(stats.cache_read_tokens, input);
        stats.rewrite_factor = share(stats.cache_write_tokens, largest);
        // The sum of nothing is a negative zero.
        let cost: Option<f64> = replies.iter().map(|(_, model, usage)| Some(prices.of(model)?.cost(usage))).sum();
        stats.cost_usd = cost.map(|cost| cost + 0.0);
        stats
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
