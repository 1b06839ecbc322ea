//! Layer 4, first: the session's notes take the place of what was said. No model is asked.
//!
//! What came after the notes stays in view next to them, and before that enough to go on with. If notes will not do
//! (there are none, they say nothing, or too much would stay), a summary is next.

use transcript::Block;
use transcript::view::View;

use crate::compact::CompactionPlan;
use crate::due::{is_due, pays};
use crate::extent::{CoveredItems, kept_with_notes, tokens_from};
use crate::layer::{CompactionReach, Decision, Layer, LayerChange, LayerRole, Need, NeedAnswer, Occasion, Situation};
use crate::layer_settings::Layers;
use crate::notes_format;
use crate::summary_text::HistorySource;

/// In a small window notes have no more than this share of the threshold.
const NOTES_SHARE: u64 = 4;
/// Part of the conversation, one in this many, that notes must at least free when the user asks for a compaction;
/// otherwise a summary is written.
const FREED_PART: u64 = 8;

/// Notes take the place of what was said.
#[derive(Debug)]
pub struct NotesSummary;

impl Layer for NotesSummary {
    fn name(&self) -> &'static str {
        "compact"
    }

    fn role(&self) -> LayerRole {
        LayerRole::Compaction
    }

    fn is_on(&self, layers: &Layers) -> bool {
        layers.notes && layers.notes_compact
    }

    fn decide(&self, view: &View, now: &Situation<'_>) -> Decision {
        let wished = match now.occasion {
            Occasion::Request => is_due(view, now) || pays(view, now).is_some(),
            Occasion::UserRequest { instructions, reach } => {
                instructions.is_none() && *reach == CompactionReach::Everything
            }
            Occasion::Refused { .. } | Occasion::Provided { .. } | Occasion::End => false,
        };
        let on = now.layers.notes && now.layers.notes_compact;
        if wished && on { Decision::Need(Need::Notes) } else { Decision::Nothing }
    }

    fn answered(&self, view: &View, now: &Situation<'_>, answer: &NeedAnswer) -> Result<LayerChange, String> {
        let notes = match answer {
            NeedAnswer::Text(notes) => notes,
            NeedAnswer::Failed(why) => return Err(why.clone()),
            _ => return Err("there are no notes".to_owned()),
        };
        if now.state.outdated {
            return Err("the notes tell of what was taken back".to_owned());
        }
        if notes_format::says_nothing(notes) {
            return Err("the notes say nothing yet".to_owned());
        }
        let covered = now.state.covered.as_ref().and_then(|line| view.item_of(line));
        let covered = covered.ok_or("the notes do not say how far they reach")?;
        let kept = kept_with_notes(view, covered, now.layers);
        let covered = CoveredItems::before(view, kept).ok_or("the notes would cover nothing")?;
        let tokens = |text: &str| view.tally().estimate(Block::text(text).size());
        let summary = notes_format::for_summary(notes, now.notes, now.layers.threshold() / NOTES_SHARE, tokens);
        let end = covered.items.end;
        let change = CompactionPlan::new(covered, view, now).change(HistorySource::Notes, &summary, view, now);
        let prologue = view.prologue().map_or(0, |prologue| view.tally().of_prologue(prologue));
        let left = prologue + change.summary.as_deref().map_or(0, tokens) + tokens_from(view, end);
        let most = match now.occasion {
            Occasion::UserRequest { .. } => view.tally().count() - view.tally().count() / FREED_PART,
            _ => now.layers.threshold() - 1,
        };
        if left > most {
            return Err(format!("{left} tokens would stay beside the notes"));
        }
        Ok(change)
    }
}
