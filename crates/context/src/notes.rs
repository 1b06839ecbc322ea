//! Layer 3: notes are kept while the work goes on, so that compaction finds a summary ready.
//!
//! A fork of the conversation updates them from time to time. This module decides when that is due and worth its price:
//! within a share of the session's cost, and paid for by what notes save: the summaries that were not needed, and the
//! next one, the more the nearer it is.

use transcript::tool_names;
use transcript::view::View;
use transcript::window::AutoCompact;

use crate::clear;
use crate::due::may;
use crate::extent::tokens_from;
use crate::layer::{Decision, Layer, LayerRole, Need, Occasion, Situation, Update};
use crate::layer_settings::Layers;
use crate::state::NotesProgress;

/// Expected output of an update, in tokens.
const USUAL_OUTPUT: f64 = 700.0;
/// Least output of a summary, in tokens.
const SUMMARY_OUTPUT: f64 = 1_000.0;
/// Least distance to a due compaction, in tokens, at which notes are updated for it.
const LEAD_LEAST: u64 = 4_000;

/// Notes are kept while the work goes on.
#[derive(Debug)]
pub struct Notes;

impl Layer for Notes {
    fn name(&self) -> &'static str {
        "notes"
    }

    fn is_on(&self, layers: &Layers) -> bool {
        layers.notes && layers.auto_compact == AutoCompact::On
    }

    fn decide(&self, view: &View, now: &Situation<'_>) -> Decision {
        let asked = matches!(now.occasion, Occasion::Request | Occasion::End);
        let can_edit =
            view.prologue().is_some_and(|known| known.tools.iter().any(|tool| tool.name == tool_names::EDIT));
        let on = asked && now.layers.notes && now.layers.auto_compact == AutoCompact::On && can_edit;
        if !on || now.has_acted(LayerRole::Compaction) || !view.open_calls().is_empty() || !may(now) {
            return Decision::Nothing;
        }
        let full = Fullness::of(view, now);
        if !has_enough(full.count, &now.state.progress, now.layers)
            || !is_worth_it(&full, &now.state.progress, || NotesBudget::of(view, now))
            || is_summary_cheaper(view, now)
        {
            return Decision::Nothing;
        }
        // What the model has not answered yet is not in the cache: it is left for the next time.
        let newest = view.visible().rev().find(|entry| entry.is_reply());
        let end = newest.filter(|entry| entry.calls().next().is_some()).map_or(view.len(), |entry| entry.index());
        let covered = view.visible().rev().find(|entry| entry.is_original() && entry.index() < end);
        let Some(covers) = covered.map(|entry| entry.line().clone()) else { return Decision::Nothing };
        Decision::Need(Need::Update(Update { end, covers, tokens: full.count, ready: full.needs_compaction() }))
    }
}

/// True if a summary at the next compaction is cheaper than notes until then: nothing is cleared, so the whole context
/// is read for every update, and the model writes no text, so that all of it has to be written down.
fn is_summary_cheaper(view: &View, now: &Situation<'_>) -> bool {
    let says_something = || view.visible().rev().any(|entry| entry.is_reply() && entry.has_text());
    now.layers.notes_share.is_some() && !now.layers.clear && !says_something()
}

/// Cost of a summary that notes replace, in tokens of uncached input.
pub fn saved_by_notes(tokens: u64, now: &Situation<'_>) -> f64 {
    tokens as f64 * now.rates().read + SUMMARY_OUTPUT * now.rates().output
}

/// Budget of the notes, in tokens of uncached input.
#[derive(Debug, Clone, Copy, PartialEq)]
struct NotesBudget {
    /// Cost of the session so far.
    session: f64,
    /// Cost of the notes so far.
    spent: f64,
    /// Savings by notes: summaries that were not needed so far, and the one of the next compaction.
    saved: f64,
    /// Cost of the next update.
    next: f64,
    /// The share of the session's cost that notes may have; none is no limit.
    share: Option<f64>,
}

impl NotesBudget {
    fn of(view: &View, now: &Situation<'_>) -> Self {
        let rates = now.rates();
        // What may never be needed is not paid for: the nearer a compaction is, the likelier they will be, and what can
        // still be cleared brings none nearer.
        let clearable = if now.layers.clear { clear::clearable(view) } else { 0 };
        let near = view.tally().count().saturating_sub(clearable) as f64 / now.layers.threshold().max(1) as f64;
        let to_come = saved_by_notes(now.layers.threshold(), now) * near.min(1.0);
        Self {
            session: rates.cost(&now.state.used),
            spent: rates.cost(&now.state.used_by_notes),
            saved: now.state.saved_by_notes as f64 + to_come,
            next: view.tally().count() as f64 * rates.read + USUAL_OUTPUT * rates.output,
            share: now.layers.notes_share,
        }
    }

    /// True if an update is affordable: within the share, and paid for by what notes save.
    fn allows(&self) -> bool {
        match self.share {
            None => true,
            Some(share) => self.spent + self.next <= (self.session * share).min(self.saved),
        }
    }
}

/// Fill of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fullness {
    /// The conversation's tokens.
    count: u64,
    /// Tokens that a cheaper layer could still free.
    clearable: u64,
    /// Tokens at which it becomes tight.
    tight: u64,
}

impl Fullness {
    /// The fill now. Notes are updated for a compaction two rounds before it. What comes after them stays in view
    /// next to them, and every token of it is written again and carried on.
    fn of(view: &View, now: &Situation<'_>) -> Self {
        let layers = now.layers;
        let newest = view.visible().rev().find(|entry| entry.is_reply()).map_or(0, |entry| entry.index());
        let lead = LEAD_LEAST.max(2 * tokens_from(view, newest));
        let tight = layers.threshold().saturating_sub(lead).max(layers.warning());
        let count = view.tally().count();
        let clearable = if layers.clear && count >= tight { clear::clearable(view) } else { 0 };
        Self { count, clearable, tight }
    }

    /// True if only a compaction can make room.
    fn needs_compaction(&self) -> bool {
        self.count.saturating_sub(self.clearable) >= self.tight
    }
}

/// True if enough has happened since the last update.
fn has_enough(count: u64, progress: &NotesProgress, layers: &Layers) -> bool {
    match progress.tokens {
        None => count >= layers.notes_first,
        Some(then) => {
            let calls = u64::from(progress.calls) >= layers.notes_calls || !progress.calling;
            count >= then.saturating_add(layers.notes_more) && calls
        }
    }
}

/// True if an update is worth its price. Once only a compaction can make room it always is, since that will need the
/// notes.
fn is_worth_it(now: &Fullness, progress: &NotesProgress, purse: impl FnOnce() -> NotesBudget) -> bool {
    (now.needs_compaction() && !progress.ready) || purse().allows()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NOTES-2: first at 10,000 tokens; then 5,000 more and three calls, or a reply without one; the tokens always.
    #[test]
    fn notes_are_due_when_enough_has_happened() {
        let due = |count, tokens, calls, calling| {
            has_enough(count, &NotesProgress { tokens, calls, calling, ready: false }, &Layers::default())
        };
        assert!(!due(9_999, None, 9, false) && due(10_000, None, 0, true));
        assert!(!due(14_999, Some(10_000), 9, false), "the tokens are always required");
        assert!(!due(15_000, Some(10_000), 2, true), "too few calls, and more to come");
        assert!(due(15_000, Some(10_000), 3, true) && due(15_000, Some(10_000), 0, false));
    }

    /// NOTES-8: an update has to be within its share and paid out of what notes save, with the compaction to come; once it
    /// is tight it runs once, whatever it costs.
    #[test]
    fn notes_wait_until_they_can_be_paid() {
        let purse = NotesBudget { session: 100_000.0, spent: 3_000.0, saved: 9_000.0, next: 4_000.0, share: Some(0.1) };
        let due = |count, ready, purse: &NotesBudget| {
            let now = Fullness { count, clearable: 0, tight: 47_000 };
            is_worth_it(&now, &NotesProgress { tokens: Some(20_000), calls: 5, calling: true, ready }, || *purse)
        };
        assert!(due(30_000, false, &purse), "7,000 of 9,000 and of 10,000");
        assert!(
            !due(30_000, false, &NotesBudget { saved: 6_000.0, ..purse }),
            "nothing was saved that could pay for it"
        );
        assert!(!due(30_000, false, &NotesBudget { session: 60_000.0, ..purse }), "more than a tenth");
        let poor = NotesBudget { saved: 0.0, ..purse };
        assert!(due(47_000, false, &poor) && !due(47_000, true, &poor), "once");
        assert!(due(30_000, false, &NotesBudget { share: None, ..poor }), "no limit was asked for");
        assert!(!Fullness { count: 60_000, clearable: 20_000, tight: 47_000 }.needs_compaction(), "clearing will do");
    }
}
