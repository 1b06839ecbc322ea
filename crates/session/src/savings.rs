//! The savings of each layer, compared with the same session without it.
//!
//! What a layer takes out of the view is not read again in the following rounds, up to the next compaction, which would
//! have taken it out anyway; what it keeps out before it is sent is not even written. On the other side are its costs:
//! forks, and what had to be written again because sent bytes changed. Tokens are those of the log's commits; prices
//! are those of the model that answered.

use serde::Serialize;
use transcript::commit::{Act, Commit};
use transcript::line::{Body, Line};
use transcript::message::MOST_TOKENS;
use transcript::price::{Price, Prices};
use transcript::{Id, Log, Usage};

use context::{Fact, State, list};

/// The savings of a layer in one session, or in many.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Saving {
    /// The layer.
    pub layer: &'static str,
    /// The number of its actions.
    pub times: usize,
    /// Tokens it took or kept out of the view.
    pub freed_tokens: u64,
    /// Tokens that were not sent because of it, over all rounds.
    pub unsent_tokens: u64,
    /// The price of these tokens, in dollars.
    pub saved_usd: f64,
    /// Its own cost: forks, and bytes that had to be written again.
    pub cost_usd: f64,
    /// Results that were needed after it had cleared them.
    #[serde(skip_serializing_if = "is_none")]
    pub regrets: usize,
    /// The cost of the regrets.
    #[serde(skip_serializing_if = "is_nothing")]
    pub regrets_usd: f64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_none(count: &usize) -> bool {
    *count == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_nothing(usd: &f64) -> bool {
    *usd == 0.0
}

/// The row for what the user does by hand.
const BY_HAND: &str = "snip";

/// Nothing yet, in the layers' order.
fn none() -> Vec<Saving> {
    let mut names = list::names();
    if !names.contains(&BY_HAND) {
        names.push(BY_HAND);
    }
    names.into_iter().map(|layer| Saving { layer, ..Saving::default() }).collect()
}

/// A layer's part, or that of what is done by hand.
fn of_layer<'a>(savings: &'a mut [Saving], layer: &str) -> &'a mut Saving {
    let place = |name: &str| savings.iter().position(|known| known.layer == name);
    let at = place(layer).or_else(|| place(BY_HAND)).unwrap_or_default();
    &mut savings[at]
}

/// Tokens that were taken out of the view, and when.
struct RemovedTokens {
    layer: &'static str,
    freed: u64,
    /// The round before which it happened.
    round: usize,
    was_sent: bool,
}

/// The savings of each layer in a session.
pub fn of(log: &Log, prices: &Prices) -> Vec<Saving> {
    let mut savings = none();
    let price = log.lines().iter().rev().find_map(|line| match &line.body {
        Body::Assistant { model, .. } => prices.of(model),
        _ => None,
    });
    let (mut taken, mut ends): (Vec<RemovedTokens>, Vec<usize>) = (Vec::new(), Vec::new());
    // The newest compaction, until the first request after it shows what it left.
    let mut compacted = None;
    let (mut round, mut last) = (0, None);
    let (mut changed, mut written): (Option<&str>, u64) = (None, 0);
    for line in log.lines().iter().filter(|line| !line.sidechain) {
        match &line.body {
            Body::Assistant { id, usage, .. } if last != Some(id) => {
                (round, last) = (round + 1, Some(id));
                let usage = usage.unwrap_or_default();
                if let (Some(at), true) = (compacted.take(), usage.context() > 0) {
                    leave(&mut taken, at, usage.context());
                }
                let now = usage.cache_creation_input_tokens;
                if let (Some(layer), Some(price)) = (changed.take(), price) {
                    // More was written than in the round before: what had been sent already.
                    let again = now.saturating_sub(written) as f64;
                    of_layer(&mut savings, layer).cost_usd +=
                        again * (price.cache_write_5m - price.cache_read) / 1_000_000.0;
                } else {
                    written = now;
                }
            }
            Body::Commit(commit) if counts(log, line) => {
                if let Some((layer, freed, was_sent)) = taken_by(commit) {
                    taken.push(RemovedTokens { layer, freed, round, was_sent });
                    changed = was_sent.then_some(layer).or(changed);
                }
                if matches!(commit.act, Act::Compact { .. }) {
                    compacted = commit.reason.freed.is_none().then(|| taken.len() - 1);
                    ends.push(round);
                }
            }
            Body::Meta(_) => cost(line, prices, price, &mut savings),
            _ => {}
        }
    }
    if let Some(at) = compacted {
        leave(&mut taken, at, log.view().tally().count());
    }
    for one in taken {
        let end = ends.iter().copied().find(|end| *end > one.round).unwrap_or(round);
        let rounds = end.saturating_sub(one.round) as u64;
        let saving = of_layer(&mut savings, one.layer);
        saving.times += 1;
        let freed = one.freed.min(MOST_TOKENS);
        saving.freed_tokens += freed;
        saving.unsent_tokens += freed * rounds;
        if let Some(price) = price {
            let written = if one.was_sent || rounds == 0 { 0.0 } else { price.cache_write_5m - price.cache_read };
            let read = rounds as f64 * price.cache_read;
            saving.saved_usd += one.freed as f64 * (read + written) / 1_000_000.0;
        }
    }
    let clearing = State::of(log.lines()).clearing;
    let clear = of_layer(&mut savings, "clear");
    clear.regrets = clearing.regrets as usize;
    clear.regrets_usd = price.map_or(0.0, |price| clearing.figures(price).regrets_usd);
    savings.retain(|saving| saving.times > 0 || saving.cost_usd > 0.0);
    savings
}

/// Adds up what layers saved in several sessions.
pub fn sum(sessions: impl IntoIterator<Item = Vec<Saving>>) -> Vec<Saving> {
    let mut all = none();
    for saving in sessions.into_iter().flatten() {
        let sum = of_layer(&mut all, saving.layer);
        sum.times += saving.times;
        sum.freed_tokens += saving.freed_tokens;
        sum.unsent_tokens += saving.unsent_tokens;
        sum.saved_usd += saving.saved_usd;
        sum.cost_usd += saving.cost_usd;
        sum.regrets += saving.regrets;
        sum.regrets_usd += saving.regrets_usd;
    }
    all.retain(|saving| saving.times > 0 || saving.cost_usd > 0.0);
    all
}

/// Subtracts the tokens that were left after a compaction: it did not take them out.
fn leave(taken: &mut [RemovedTokens], at: usize, tokens: u64) {
    if let Some(one) = taken.get_mut(at) {
        one.freed = one.freed.saturating_sub(tokens);
    }
}

fn counts(log: &Log, line: &Line) -> bool {
    line.id.as_ref().is_none_or(|id: &Id| log.view().counts(id))
}

/// The layer of a commit, the tokens it freed, and whether they had been sent.
fn taken_by(commit: &Commit) -> Option<(&'static str, u64, bool)> {
    let freed = match &commit.act {
        Act::Compact { pre_tokens, .. } => commit.reason.freed.unwrap_or(*pre_tokens),
        Act::Restore { .. } | Act::Undo { .. } | Act::Rewind { .. } | Act::ServerEdit { .. } => return None,
        _ => commit.reason.freed?,
    };
    Some((commit.act.name(), freed, commit.act.changes_sent()))
}

/// Adds the cost of a layer that a line records.
fn cost(line: &Line, prices: &Prices, price: Option<Price>, savings: &mut [Saving]) {
    match Fact::of(line) {
        Some(Fact::Side { agent, model, usage }) => {
            // What agents, hooks and dreams used saves nothing: it is no layer's.
            let Some(saving) = savings.iter_mut().find(|known| known.layer == agent) else { return };
            saving.cost_usd += prices.of(&model).map_or(0.0, |price: Price| price.cost(&usage));
            saving.times += usize::from(agent == "notes");
        }
        Some(Fact::NotesUsed { saved }) => {
            if let Some(price) = price {
                of_layer(savings, "notes").saved_usd += saved as f64 * price.input / 1_000_000.0;
            }
        }
        _ => {}
    }
}

/// Usage of all requests of a session that are not in its log.
pub fn of_forks(lines: &[Line]) -> Vec<(String, String, Usage)> {
    let facts = lines.iter().filter_map(Fact::of);
    let forks = facts.filter_map(|fact| match fact {
        Fact::Side { agent, model, usage } => Some((agent, model, usage)),
        _ => None,
    });
    forks.collect()
}
