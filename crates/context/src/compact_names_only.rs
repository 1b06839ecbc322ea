//! Layer 4, last: if there is no summary and the window is full, only the ids of what is covered remain.
//!
//! The newest summary stays, the words of the user stay, the newest rounds stay if they fit, and History shows the
//! rest.

use transcript::view::View;
use transcript::window::AutoCompact;

use crate::compact::CompactionPlan;
use crate::extent::{CoveredItems, tokens_from, unanswered_from, young_from};
use crate::layer::{Decision, Layer, LayerChange, LayerRole, Occasion, Situation};
use crate::layer_settings::Layers;
use crate::summary_text::{HistorySource, newest_summary};

/// Text in place of a summary.
const NO_SUMMARY: &str =
    "[There is no summary of what followed. Below is what the user said, and what was done; History shows the rest.]";

/// Compaction to bare ids.
#[derive(Debug)]
pub struct NamesOnly;

impl Layer for NamesOnly {
    fn name(&self) -> &'static str {
        "compact"
    }

    fn role(&self) -> LayerRole {
        LayerRole::Compaction
    }

    fn is_on(&self, layers: &Layers) -> bool {
        layers.auto_compact == AutoCompact::On || layers.reactive
    }

    fn decide(&self, view: &View, now: &Situation<'_>) -> Decision {
        let layers = now.layers;
        let full = layers.window.fill(view.tally().count(), layers.auto_compact).at_blocking_limit;
        let why = match now.occasion {
            _ if now.has_acted(LayerRole::Collapse) => return Decision::Nothing,
            Occasion::Request if full && layers.auto_compact == AutoCompact::On && !layers.reactive_only => {
                "the window is full, and no summary could be made"
            }
            Occasion::Refused { .. } if !now.has_acted(LayerRole::Compaction) => {
                "the provider refused the request as too long, and no summary could be made"
            }
            _ => return Decision::Nothing,
        };
        change(view, now, why).map_or(Decision::Nothing, Decision::Commit)
    }
}

fn change(view: &View, now: &Situation<'_>, why: &str) -> Option<LayerChange> {
    let fits = |kept: &usize| tokens_from(view, *kept) < now.layers.threshold() / 2;
    let kept = young_from(view).filter(fits).or_else(|| unanswered_from(view, now.layers)).unwrap_or(view.len());
    let covered = CoveredItems::before(view, kept)?;
    let text = match newest_summary(view) {
        Some(summary) if !summary.ends_with(NO_SUMMARY) => format!("{summary}\n\n{NO_SUMMARY}"),
        Some(summary) => summary,
        None => NO_SUMMARY.to_owned(),
    };
    Some(CompactionPlan::because(covered, why).change(HistorySource::Summary, &text, view, now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::Decision;
    use crate::sample::{SampleParts, Session};
    use transcript::Block;
    use transcript::commit::{Act, Extent, Trigger};
    use transcript::line::{Body, TextSource};

    /// COMPACT-12: where nothing else helps, the newest summary and what the user said stay, and the rest is named.
    #[test]
    fn the_newest_summary_stays() {
        let stage = SampleParts::new(64_000);
        let mut session = Session::default();
        session.say("Keep the ledger balanced.");
        session.reply("yes");
        session.commit(Act::Compact { extent: Extent::Everything, trigger: Trigger::Auto, pre_tokens: 0 });
        session
            .append(Body::User { blocks: vec![Block::text("The vault is at 17 Elm.")], source: TextSource::Summary });
        assert_eq!(stage.with(|now| NamesOnly.decide(session.log.view(), now)), Decision::Nothing, "there is room");
        let call = session.call("Bash", 40_000);
        (0..10).for_each(|_| drop(session.call("Bash", 12_000)));
        let Decision::Commit(change) = stage.with(|now| NamesOnly.decide(session.log.view(), now)) else {
            panic!("the window is full");
        };
        let text = change.summary.unwrap();
        for part in ["The vault is at 17 Elm.", "There is no summary", "Keep the ledger balanced.", call.as_str()] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }
}
