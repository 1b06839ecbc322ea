//! Layer 2: old tool results are cleared.
//!
//! What a tool said many rounds ago is seldom needed, and can be had again: by its call, by `History`, by running the
//! tool once more. So it is the first to go. Three occasions, and nothing else:
//!
//! - **idle**: nobody spoke for an hour, the provider's cache is gone, and whatever is sent has to be written anyway;
//! - **tight**: the window fills up, or saving is asked for, and the sum of [`worth`](crate::worth) says that it pays;
//! - **due**: compaction is due, and clearing alone makes room enough.
//!
//! Only results of tools that look or write (below) are cleared; never thinking, text, what the user said, or what other
//! servers' tools returned.

use jiff::SignedDuration;
use serde::Deserialize;
use transcript::Id;
use transcript::commit::CLEARED;
use transcript::size::Size;
use transcript::view::{Answered, View};
use transcript::window::{AutoCompact, Window};

use crate::worth::{Pace, Rates, Sum};

/// Tools whose results are cleared.
pub const CLEARABLE: [&str; 9] =
    ["Read", "Bash", "PowerShell", "Grep", "Glob", "WebSearch", "WebFetch", "Edit", "Write"];
/// After so long without a reply the provider's cache is gone, whatever was asked for.
const IDLE: SignedDuration = SignedDuration::from_mins(60);
/// So many results stay when a session wakes up, unless the settings say otherwise; one always does.
pub const KEPT_WHEN_IDLE: usize = 5;
/// Results of so many replies stay when room is made: the model is working with them.
pub const YOUNG_ROUNDS: usize = 3;

/// When layers make room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// When the window asks for it.
    #[default]
    Window,
    /// As soon as it is cheaper than carrying on.
    Economy,
}

/// What the decision depends on, besides the view.
#[derive(Debug, Clone)]
pub struct Situation<'a> {
    /// How long ago the newest reply came.
    pub idle: Option<SignedDuration>,
    /// The model's window.
    pub window: Window,
    /// Whether compaction happens by itself.
    pub auto: AutoCompact,
    /// When to make room.
    pub when: When,
    /// How long turns are.
    pub pace: &'a Pace,
    /// What tokens cost.
    pub rates: Rates,
    /// How many results stay when a session wakes up.
    pub kept_when_idle: usize,
    /// Whether results are cleared to make room.
    pub may_pay: bool,
}

/// Results to clear.
#[derive(Debug, Clone, PartialEq)]
pub struct Clear {
    /// Their calls.
    pub results: Vec<String>,
    /// Tokens that leave the view.
    pub freed: u64,
    /// The first line whose sent bytes change.
    pub changes_from: Id,
    /// Why it is worth it.
    pub why: String,
}

/// A result that may go.
struct Old {
    id: String,
    line: Id,
    item: usize,
    size: Size,
    /// How many rounds ago it stopped being young.
    age: usize,
}

/// Decides what is cleared.
pub fn decide(view: &View, now: &Situation<'_>) -> Option<Clear> {
    if now.idle.is_some_and(|idle| idle >= IDLE) {
        return idle(view, now);
    }
    let count = view.tally().count();
    let tight = count >= now.window.warning(now.auto);
    if !now.may_pay || (!tight && now.when == When::Window) {
        return None;
    }
    let old = old(view, YOUNG_ROUNDS);
    let first = old.last()?;
    let (size, mut suffix) = (old.iter().map(|one| one.size).sum(), Size::default());
    let behind = view.visible().rev().take_while(|entry| entry.index() >= first.item);
    behind.for_each(|entry| suffix += entry.size());
    suffix -= size;
    let tally = view.tally();
    let marks = tally.estimate(transcript::Block::text(CLEARED).size()) * old.len() as u64;
    let cleared = tally.estimate(size).saturating_sub(marks);
    let sum = Sum { cleared, suffix: tally.estimate(suffix) + marks, rounds: now.pace.expected(), rates: now.rates };
    let threshold = now.window.threshold(now.auto);
    let due = count > threshold && count.saturating_sub(cleared) < now.window.warning(now.auto);
    let worth = sum.pays() && (tight || paid_for(view, &old, now) >= sum.costs());
    if cleared == 0 || !(due || worth) {
        return None;
    }
    let why = if due { format!("compaction is due; {sum}") } else { sum.to_string() };
    Some(clear(old, cleared, why))
}

/// What was paid so far for carrying old results. To wait until that is as much as the price of clearing them is never
/// more than twice as dear as to know the future.
fn paid_for(view: &View, old: &[Old], now: &Situation<'_>) -> f64 {
    let carried = |one: &Old| view.tally().estimate(one.size) as f64 * one.age as f64;
    old.iter().map(carried).sum::<f64>() * now.rates.read
}

fn idle(view: &View, now: &Situation<'_>) -> Option<Clear> {
    let mut old = old(view, 0);
    let kept = now.kept_when_idle.max(1).min(old.len());
    old.drain(..kept);
    let freed = view.tally().estimate(old.iter().map(|one| one.size).sum());
    let minutes = now.idle.map_or(0, |idle| idle.as_mins());
    (freed > 0).then(|| clear(old, freed, format!("nobody spoke for {minutes} minutes: the cache is cold")))
}

fn clear(old: Vec<Old>, freed: u64, why: String) -> Clear {
    let changes_from = old.last().map(|one| one.line.clone()).unwrap_or_else(|| Id::from(""));
    let results = old.into_iter().rev().map(|one| one.id).collect();
    Clear { results, freed, changes_from, why }
}

/// Results that may go, the newest first; those of the newest `young` replies stay.
fn old(view: &View, young: usize) -> Vec<Old> {
    let mut old = Vec::new();
    let replies = view.visible().rev().filter(|entry| entry.is_reply() && entry.is_original());
    for (round, entry) in replies.enumerate().skip(young) {
        let clearable = entry.calls().rev().filter(is_clearable);
        old.extend(clearable.map(|call| Old {
            id: call.id.to_string(),
            line: entry.line().clone(),
            item: entry.index(),
            size: call.shown.size(),
            age: round - young,
        }));
    }
    old
}

/// Smaller results than this are left: what stands in their place is hardly shorter.
const LEAST_BYTES: usize = 200;

/// Whether a result may be cleared, and there is something to gain.
pub(crate) fn is_clearable(call: &Answered<'_>) -> bool {
    let size = call.shown.size();
    let is_worth_it = size.result_bytes > LEAST_BYTES || size.media > 0;
    call.result.is_some() && CLEARABLE.contains(&call.tool) && is_worth_it
}
