//! Layer 4, by the provider: it summarised the conversation by itself, and its summary takes the place of what was
//! said.
//!
//! Off by default. The provider pauses after its summary, so the model goes on from what the log says: the summary in
//! our layout, with the user's own words and the ids of the rest. We write nothing down before it summarises. If it
//! does not, because it cannot or the window is too small for it, our own compaction follows a little later.

use serde_json::{Value, json};
use transcript::Block;
use transcript::view::View;

use crate::compact::{self, CompactionPlan};
use crate::extent::{CoveredItems, unanswered_from};
use crate::layer::{Decision, Layer, LayerChange, LayerRole, Occasion, Situation};
use crate::layer_settings::Layers;
use crate::summary_text::HistorySource;

/// The provider's own summary takes the place of what was said.
#[derive(Debug)]
pub struct ProviderSummary;

impl Layer for ProviderSummary {
    fn name(&self) -> &'static str {
        "compact"
    }

    fn role(&self) -> LayerRole {
        LayerRole::Compaction
    }

    fn is_on(&self, layers: &Layers) -> bool {
        layers.api_compact
    }

    fn decide(&self, view: &View, now: &Situation<'_>) -> Decision {
        let Occasion::Provided { summary } = now.occasion else { return Decision::Nothing };
        change(view, now, summary).map_or(Decision::Nothing, Decision::Commit)
    }
}

fn change(view: &View, now: &Situation<'_>, text: &str) -> Option<LayerChange> {
    let covered = CoveredItems::before(view, unanswered_from(view, now.layers).unwrap_or(view.len()))?;
    let tokens = |text: &str| view.tally().estimate(Block::text(text).size());
    let summary = compact::summary_in(text, compact::summary_most(now.layers), tokens)?;
    Some(CompactionPlan::because(covered, "the provider compacted by itself").change(
        HistorySource::Summary,
        &summary,
        view,
        now,
    ))
}

/// The request to the provider; none if it would be too late for this window.
pub(crate) fn edit(layers: &Layers) -> Option<Value> {
    layers.provider_compacts().then(|| {
        json!({
            "type": "compact_20260112",
            "trigger": {"type": "input_tokens", "value": layers.threshold()},
            "pause_after_compaction": true,
            "instructions": compact::prompt(None, compact::summary_most(layers)),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{SampleParts, Session};

    /// COMPACT-1: the provider is asked where its least window allows, and ours waits for it, up to the blocking limit; what
    /// it wrote is framed as any summary is, and what the model has not answered stays.
    #[test]
    fn what_the_provider_summarised_takes_its_place() {
        let (mut session, mut stage) = (Session::default(), SampleParts::new(100_000));
        assert!(edit(&stage.layers).is_none(), "it is off unless asked for");
        stage.layers.api_compact = true;
        let asked = edit(&stage.layers).unwrap();
        assert_eq!((&asked["trigger"]["value"], &asked["pause_after_compaction"]), (&json!(67_000), &json!(true)));
        assert_eq!(stage.layers.due(), stage.layers.window.blocking());
        let mut small = SampleParts::new(64_000);
        small.layers.api_compact = true;
        assert!(edit(&small.layers).is_none() && small.layers.due() == small.layers.threshold());
        session.say("Never push to main.");
        let call = session.call("Bash", 3_000);
        session.say("and now");
        stage.occasion = Occasion::Provided { summary: "<summary>Stones were counted.</summary>".into() };
        let Decision::Commit(change) = stage.with(|now| ProviderSummary.decide(session.log.view(), now)) else {
            panic!("the provider wrote a summary");
        };
        let text = change.summary.unwrap();
        for part in ["Stones were counted.", "Never push to main.", call.as_str()] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(!text.contains("and now"), "what is not answered stays as it is");
        stage.occasion = Occasion::Provided { summary: " ".into() };
        assert_eq!(stage.with(|now| ProviderSummary.decide(session.log.view(), now)), Decision::Nothing);
    }
}
