//! Layer 2: old tool results are cleared.
//!
//! A tool result from many rounds ago is seldom needed, and can be obtained again: by its call, by `History`, by
//! running the tool once more. So it is the first to go. Four occasions, and nothing else:
//!
//! - **idle**: there was no reply for an hour, the provider's cache is gone, and whatever is sent has to be written
//!   anyway;
//! - **early**: at any fill of the window, at the start of a user's turn or with a cold cache, and in the middle of a
//!   turn once much is carried and no work was just committed, if the session can afford to end soon after it;
//! - **tight**: the window fills up;
//! - **due**: compaction is due, and clearing alone makes enough room.
//!
//! Early and tight it has to pay over the expected rounds ([`cache_economics`](crate::cache_economics)), and carrying the
//! results must have cost about as much already.
//!
//! Results that are least likely to be read again go first ([`reread_cost`](crate::reread_cost)). What the model has
//! not put in its own words by then is written down before ([`digest`]).
//!
//! Only results of tools that read or write (below) are cleared; never thinking, text, the user's words, or results of
//! other servers' tools.

use serde_json::Value;
use transcript::commit::{Act, CLEARED, Commit, Reason, Trigger};
use transcript::size::Size;
use transcript::view::{AnsweredCall, ItemState, View};
use transcript::{Block, tool_names};

use crate::cache_economics::{Cache, PricedChange};
use crate::digest::{self, Digest};
use crate::extent::YOUNG_ROUNDS;
use crate::layer::{Decision, Layer, LayerChange, LayerRole, Need, NeedAnswer, Occasion, Situation};
use crate::layer_settings::{ClearRule, ClearWhen, LayerTiming, Layers};
use crate::reread_cost::RereadCosts;

/// Tools whose results are cleared.
pub const CLEARABLE: [&str; 9] = [
    tool_names::READ,
    tool_names::BASH,
    "PowerShell",
    tool_names::GREP,
    tool_names::GLOB,
    "WebSearch",
    "WebFetch",
    tool_names::EDIT,
    tool_names::WRITE,
];

/// Factor by which less is held back if it leaves too little room, again and again.
const LESS: f64 = 0.85;
/// Caution below which nothing is held back.
const LEAST_CAUTION: f64 = 0.03;

/// Old results are cleared.
#[derive(Debug)]
pub struct Clear;

impl Layer for Clear {
    fn name(&self) -> &'static str {
        "clear"
    }

    fn role(&self) -> LayerRole {
        LayerRole::Clear
    }

    fn is_on(&self, layers: &Layers) -> bool {
        layers.clear || layers.clear_when_idle
    }

    fn decide(&self, view: &View, now: &Situation<'_>) -> Decision {
        match plan(view, now) {
            None => Decision::Nothing,
            Some(ClearPlan { digest: Some(digest), .. }) => Decision::Need(Need::Write(digest.write())),
            Some(plan) => Decision::Commit(plan.change(view, None)),
        }
    }

    fn answered(&self, view: &View, now: &Situation<'_>, answer: &NeedAnswer) -> Result<LayerChange, String> {
        let plan = plan(view, now).ok_or("there is nothing to clear any more")?;
        let written = match answer {
            NeedAnswer::Text(text) => digest::shown(text, view, now.layers),
            _ => None, // it goes all the same; its id stays
        };
        Ok(plan.change(view, written))
    }
}

/// Results to clear.
struct ClearPlan<'v> {
    old: Vec<OldResult<'v>>,
    freed: u64,
    why: String,
    /// The digest to write first, if one is needed.
    digest: Option<Digest>,
}

impl ClearPlan<'_> {
    fn change(mut self, view: &View, digest: Option<String>) -> LayerChange {
        self.old.sort_by_key(|one| one.item);
        let changes_from = self.old.first().map(|one| one.call.reply.clone());
        let text = digest.as_ref().map_or(0, |text| view.tally().estimate(Block::text(text).size()));
        let results = self.old.iter().map(|one| one.call.name()).collect();
        let reason = Reason { freed: Some(self.freed.saturating_sub(text)), changes_from, why: Some(self.why) };
        LayerChange::of(Commit { act: Act::Clear { results, trigger: Trigger::Auto, digest }, reason })
    }
}

/// A result that may go.
struct OldResult<'v> {
    call: AnsweredCall<'v>,
    item: usize,
    /// Its age in rounds.
    round: usize,
}

impl OldResult<'_> {
    fn size(&self) -> Size {
        self.call.shown.size()
    }
}

fn plan<'v>(view: &'v View, now: &Situation<'_>) -> Option<ClearPlan<'v>> {
    if *now.occasion != Occasion::Request {
        return None;
    }
    if now.layers.clear_when_idle
        && now.idle().is_some_and(|idle| idle.as_mins() >= now.layers.idle_minutes.max(1) as i64)
    {
        return idle(view, now);
    }
    let (count, layers) = (view.tally().count(), now.layers);
    // A provider that can drop results from its cache does so for nothing.
    if layers.cache_edits && !now.is_cold() && count <= layers.threshold() {
        return None;
    }
    let moment = Moment::of(view, now)?;
    let weighing = Weighing { view, now, moment };
    let by_age = old(view, YOUNG_ROUNDS);
    // What does not pay even if all that is old goes need not be looked at any closer.
    weighing.best(&by_age)?;
    if layers.clear_rule == ClearRule::Age {
        return weighing.plan(by_age);
    }
    let missed = RereadCosts::of(view, &now.rates(), &layers.clear_numbers);
    let choose = |caution| weighing.plan(weighing.chosen(&missed, caution));
    // Where compaction is due, what would be missed goes rather than everything.
    let is_due = count > layers.threshold();
    let less = |caution: &f64| (is_due && *caution > LEAST_CAUTION).then_some(caution * LESS);
    let mut cautions = std::iter::successors(Some(layers.caution), less).chain(is_due.then_some(0.0));
    cautions.find_map(choose)
}

/// Occasion of a clearing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// The window fills up.
    Tight,
    /// There is room, but a turn begins or the cache is cold.
    Natural,
    /// There is room, but so much is carried that it is expensive.
    Midturn,
    /// There is room, and the user wants it as soon as it pays.
    Economy,
}

impl Moment {
    fn of(view: &View, now: &Situation<'_>) -> Option<Self> {
        let (layers, numbers) = (now.layers, &now.layers.clear_numbers);
        if !layers.clear || layers.clear_when == ClearWhen::Never {
            return None;
        }
        let count = view.tally().count();
        let is_natural = now.is_cold() || now.state.pace.is_start_of_turn();
        let pays = layers.clear_when == ClearWhen::Pays;
        if count >= layers.warning() {
            Some(Self::Tight)
        } else if pays && is_natural {
            Some(Self::Natural)
        } else if layers.when == LayerTiming::Economy {
            Some(Self::Economy)
        } else {
            let from = numbers.midturn_tokens.min((layers.warning() as f64 * numbers.midturn_share) as u64);
            (pays && count >= from && !has_committed(view)).then_some(Self::Midturn)
        }
    }

    /// True if the window has room.
    fn is_early(self) -> bool {
        matches!(self, Self::Natural | Self::Midturn)
    }
}

/// Rounds after which a commit is forgotten.
const COMMITTED_ROUNDS: usize = 3;
/// Tools that run commands.
const SHELLS: [&str; 2] = [tool_names::BASH, "PowerShell"];
/// Commands with which work is handed over.
const COMMITS: [&str; 3] = ["git commit", "git push", "gh pr create"];

/// True if work was just committed: one session in seven ends within two requests of that.
fn has_committed(view: &View) -> bool {
    let replies = view.visible().rev().filter(|entry| entry.state() == ItemState::Reply);
    replies.take(COMMITTED_ROUNDS).any(|entry| {
        entry.calls().filter(|call| SHELLS.contains(&call.tool)).any(|call| {
            let input = call.call.input().unwrap_or_default();
            let command = input.get("command").and_then(Value::as_str).unwrap_or_default();
            COMMITS.iter().any(|commit| command.contains(commit))
        })
    })
}

/// A clearing of the newest so many of the results that may go.
struct Candidate {
    results: usize,
    sum: PricedChange,
    /// Its savings without its costs.
    net: f64,
    /// Cost so far of carrying these results.
    carried: f64,
}

/// The sums of a moment.
struct Weighing<'v, 'n> {
    view: &'v View,
    now: &'n Situation<'n>,
    moment: Moment,
}

impl<'v> Weighing<'v, '_> {
    /// The clearing of some results, if it pays.
    fn plan(&self, mut old: Vec<OldResult<'v>>) -> Option<ClearPlan<'v>> {
        let Candidate { results, sum, carried, .. } = self.best(&old)?;
        old.truncate(results);
        let digest = digest::needed(self.view, &old.iter().map(|one| one.call.name()).collect(), self.now);
        let digest_cost = digest.as_ref().map_or(0.0, |digest| digest.costs(self.view, self.now));
        let sum = PricedChange { digest_cost, ..sum };
        if !self.is_worth_it(&sum, carried) {
            return None;
        }
        let why = if self.is_enough(&sum) { format!("compaction is due; {sum}") } else { sum.to_string() };
        Some(ClearPlan { old, freed: sum.cleared, why, digest })
    }

    /// The clearing that pays, without what is written down before. With room in the window it covers all results from
    /// one on, the one with which it pays most among those that the session can afford: older ones stay, since too much
    /// would have to be written again for them.
    fn best(&self, old: &[OldResult<'v>]) -> Option<Candidate> {
        let Self { view, now, moment } = *self;
        let (tally, pace, rates) = (view.tally(), &now.state.pace, now.rates());
        let nothing = PricedChange {
            cleared: 0,
            suffix: 0,
            digest_cost: 0.0,
            rounds: if moment.is_early() { pace.to_come() } else { pace.expected() },
            rates,
            cache: if now.is_cold() { Cache::Cold } else { Cache::Warm },
        };
        let mark = marks(view, 1);
        let mut best: Option<Candidate> = None;
        let (mut cleared, mut suffix, mut results, mut carried) = (Size::default(), Size::default(), 0, 0.0);
        let oldest = old.last()?.item;
        let unsent = unsent(view);
        for entry in view.visible().rev().take_while(|entry| entry.index() >= oldest) {
            // What was not sent yet is written in any case.
            suffix += if entry.index() >= unsent { Size::default() } else { entry.size() };
            let before = results;
            while let Some(one) = old.get(results).filter(|one| one.item == entry.index()) {
                cleared += one.size();
                suffix -= one.size();
                carried +=
                    tally.estimate(one.size()) as f64 * one.round.saturating_sub(YOUNG_ROUNDS) as f64 * rates.read;
                results += 1;
            }
            if results > before {
                let marks = mark * results as u64;
                let cleared = tally.estimate(cleared).saturating_sub(marks);
                let sum = PricedChange { cleared, suffix: tally.estimate(suffix) + marks, ..nothing };
                let net = sum.saves() - sum.costs() * self.caution();
                let is_better = best.as_ref().is_none_or(|best| net > best.net);
                if !moment.is_early() || (is_better && self.is_worth_it(&sum, carried)) {
                    best = Some(Candidate { net, results, sum, carried });
                }
            }
        }
        best.filter(|best| best.sum.cleared > 0 && self.is_worth_it(&best.sum, best.carried))
    }

    fn caution(&self) -> f64 {
        if self.moment.is_early() { self.now.layers.caution } else { 1.0 }
    }

    /// True if compaction is due, and this makes enough room instead.
    fn is_enough(&self, sum: &PricedChange) -> bool {
        let (count, layers) = (self.view.tally().count(), self.now.layers);
        count > layers.threshold() && count.saturating_sub(sum.cleared) < layers.warning()
    }

    /// Waiting until carrying the results has cost as much as clearing them costs at most twice the optimum.
    fn is_worth_it(&self, sum: &PricedChange, carried: f64) -> bool {
        let patience = self.now.layers.clear_numbers.patience * self.caution();
        let pays = || sum.saves() > sum.costs() * self.caution() && carried >= sum.outlay() * patience;
        self.is_enough(sum) || (pays() && (!self.moment.is_early() || self.is_affordable(sum)))
    }

    /// True if the session can afford it: should it end soon, clearing has cost at most a small part of the whole. Earlier
    /// losses by clearing, with those by regrets, are subtracted; savings are added. If the provider reports no usage,
    /// nothing is known.
    fn is_affordable(&self, sum: &PricedChange) -> bool {
        let (rates, numbers, state) = (self.now.rates(), &self.now.layers.clear_numbers, self.now.state);
        let spent = rates.cost(&state.used);
        if spent == 0.0 {
            return true;
        }
        let rounds = if state.pace.is_start_of_turn() { numbers.rounds_at_start } else { numbers.rounds_midturn };
        let soon = f64::from(rounds) / rates.write;
        let read_until_then = |tokens: u64| tokens as f64 * rates.read * soon;
        let lost = state.clearing.lost(&rates) + sum.outlay() - read_until_then(sum.cleared);
        lost <= (spent + read_until_then(sum.suffix)) * numbers.budget / self.now.layers.caution
    }

    /// Results to clear: the old ones, without those that are likely to be needed. Where the window is tight, so are young
    /// ones that a newer one supersedes.
    fn chosen(&self, missed: &RereadCosts<'_>, caution: f64) -> Vec<OldResult<'v>> {
        let Self { view, now, moment } = *self;
        let numbers = &now.layers.clear_numbers;
        // In a small window results go so early that what was read is often still worked with.
        let all_read_stays = moment == Moment::Midturn && view.tally().count() < numbers.midturn_tokens;
        let stays = |one: &OldResult<'_>| {
            let is_named = missed.is_named(one.item, one.call.id);
            let rounds = if is_named { numbers.named_rounds } else { numbers.read_rounds } as f64;
            let is_young = all_read_stays || (one.round as f64) < rounds * caution.min(1.0);
            (one.call.tool == tool_names::READ && is_young) || missed.is_held(one.item, one.call.id, caution)
        };
        let goes = |one: &OldResult<'_>| {
            let is_superseded = !moment.is_early() && missed.is_superseded(one.item, one.call.id);
            is_superseded || (one.round >= YOUNG_ROUNDS && !stays(one))
        };
        old(view, 1).into_iter().filter(goes).collect()
    }
}

/// Tokens of the markers that replace so many results.
fn marks(view: &View, results: usize) -> u64 {
    view.tally().estimate(Block::text(CLEARED).size()) * results as u64
}

/// Tokens that could be cleared, if it paid.
pub fn clearable(view: &View) -> u64 {
    view.tally().estimate(old(view, YOUNG_ROUNDS).iter().map(OldResult::size).sum())
}

fn idle<'v>(view: &'v View, now: &Situation<'_>) -> Option<ClearPlan<'v>> {
    let mut old = old(view, 0);
    let kept = now.layers.kept_when_idle.max(1).min(old.len());
    old.drain(..kept);
    let freed = view.tally().estimate(old.iter().map(OldResult::size).sum());
    let freed = freed.saturating_sub(marks(view, old.len()));
    if freed == 0 {
        return None;
    }
    let minutes = now.idle().map_or(0, |idle| idle.as_mins());
    let digest = digest::needed(view, &old.iter().map(|one| one.call.name()).collect(), now);
    Some(ClearPlan { old, freed, why: format!("nobody spoke for {minutes} minutes: the cache is cold"), digest })
}

/// Results that may go, the newest first; those of the newest `young` replies stay, and those the model has not been sent.
fn old(view: &View, young: usize) -> Vec<OldResult<'_>> {
    let mut old = Vec::new();
    let replies = view.visible().rev().filter(|entry| entry.state() == ItemState::Reply);
    let unsent = unsent(view);
    for (round, entry) in replies.enumerate().skip(young).filter(|(_, entry)| entry.index() != unsent) {
        let clearable = entry.calls().rev().filter(is_clearable);
        old.extend(clearable.map(|call| OldResult { call, item: entry.index(), round }));
    }
    old
}

/// The newest reply: it was never sent, nor was what follows it.
fn unsent(view: &View) -> usize {
    view.visible().rev().find(|entry| entry.is_reply()).map_or(0, |entry| entry.index())
}

/// Size up to which results are left: the marker in their place is hardly shorter.
const LEAST_BYTES: usize = 200;

/// True if a result may be cleared, and there is something to gain. Digests stay.
pub fn is_clearable(call: &AnsweredCall<'_>) -> bool {
    let size = call.shown.size();
    let is_worth_it = size.result_bytes > LEAST_BYTES || size.media > 0;
    call.result.is_some() && !call.dropped && CLEARABLE.contains(&call.tool) && is_worth_it && !digest::stands_in(call)
}

#[cfg(test)]
mod tests;
