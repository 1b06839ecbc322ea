//! Layer 1: oversized tool results go to disk, a preview stays.
//!
//! Decided once, for results the model has not seen yet, and frozen: a result that was sent whole stays whole, one that
//! was spilled keeps its preview. The log keeps what the tool returned either way.

use transcript::Block;
use transcript::commit::{Act, Commit, Reason, Replacement};
use transcript::view::View;

use crate::layer::{Decision, Layer, LayerChange, Need, NeedAnswer, Occasion, Situation};
use crate::layer_settings::Layers;
pub use crate::spilled::{SpillFile, SpillResult, UnseenResult, choose, long_prompt, place_in};

/// Upper limit on a tool's own limit, in characters; a setting may exceed it.
const MOST_CHARACTERS: usize = 50_000;

/// Oversized results go to disk.
#[derive(Debug)]
pub struct Spill;

impl Layer for Spill {
    fn name(&self) -> &'static str {
        "spill"
    }

    fn is_on(&self, layers: &Layers) -> bool {
        layers.spill
    }

    fn decide(&self, view: &View, now: &Situation<'_>) -> Decision {
        let spilled = spilled(view, now);
        if spilled.is_empty() { Decision::Nothing } else { Decision::Need(Need::Keep(spilled)) }
    }

    fn answered(&self, view: &View, now: &Situation<'_>, answer: &NeedAnswer) -> Result<LayerChange, String> {
        let NeedAnswer::Kept(places) = answer else { return Err("nothing could be kept".to_owned()) };
        let spilled = spilled(view, now);
        let replacement = |(spilled, place): (&SpillResult, &Result<String, String>)| Replacement {
            call: spilled.id.as_str().into(),
            replacement: match place {
                Ok(path) => spilled.replacement(path),
                Err(why) => spilled.truncated(why),
            },
        };
        let replacements: Vec<Replacement> = spilled.iter().zip(places).map(replacement).collect();
        let is_spilled = |id: &str| replacements.iter().any(|one| one.call.id == id);
        let fresh = view.fresh_results();
        let whole = fresh.iter().filter(|(id, _, _)| is_spilled(id)).map(|(_, _, result)| result.size()).sum();
        let stays = replacements.iter().map(|one| Block::text(&one.replacement).size()).sum();
        let freed = view.tally().estimate(whole).saturating_sub(view.tally().estimate(stays));
        let reason = Reason { freed: Some(freed), changes_from: None, why: Some("over the limit of a result".into()) };
        Ok(LayerChange::of(Commit { act: Act::Spill { replacements }, reason }))
    }
}

fn spilled(view: &View, now: &Situation<'_>) -> Vec<SpillResult> {
    if !now.layers.spill || *now.occasion != Occasion::Request {
        return Vec::new();
    }
    let fresh = view.fresh_results();
    // What bounds itself has no limit that a setting could move.
    let limit = |tool: &str| {
        let own = (now.limit)(tool)?.min(MOST_CHARACTERS);
        Some(now.layers.spill_limits.get(tool).copied().unwrap_or(own))
    };
    let fresh: Vec<UnseenResult<'_>> =
        fresh.iter().map(|(id, tool, result)| UnseenResult { id, tool, result, limit: limit(tool) }).collect();
    choose(&fresh, now.layers.message_limit)
}
