//! Context management by the provider: what it is asked to clear by itself. It writes no digest, and asks nobody.

use serde_json::{Value, json};

use crate::clear::CLEARABLE;
use crate::compact_by_provider;
use crate::layer_settings::{KEPT_WHEN_IDLE, Layers};

/// Tokens at which the provider clears, at the latest.
const SERVER_TRIGGER: u64 = 180_000;
/// Least tokens that it clears, unless less leaves [`SERVER_LEFT`].
const SERVER_LEAST: u64 = 140_000;
const SERVER_LEFT: u64 = 40_000;

/// Request to clear results: of the same tools, when the window is as full as it would be for us, and so much at a time
/// that writing the rest again is worth it.
fn clear_results(layers: &Layers, tools: impl Iterator<Item = String>) -> Value {
    let trigger = layers.warning().min(SERVER_TRIGGER);
    let least = SERVER_LEAST.min(trigger.saturating_sub(SERVER_LEFT.min(trigger / 2)));
    let excluded: Vec<String> = tools.filter(|tool| !CLEARABLE.contains(&tool.as_str())).collect();
    json!({
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": trigger},
        "keep": {"type": "tool_uses", "value": KEPT_WHEN_IDLE},
        "clear_at_least": {"type": "input_tokens", "value": least},
        "exclude_tools": excluded,
    })
}

/// All requests to the provider: keep all old thinking or that of so many turns, clear old results of clearable tools,
/// and compact, if that is on.
pub fn edits(layers: &Layers, thinks: bool, tools: impl Iterator<Item = String>) -> Value {
    let keep =
        layers.api_thinking.map_or(json!("all"), |turns| json!({"type": "thinking_turns", "value": turns.max(1)}));
    let thinking = (thinks && layers.api_edits).then(|| json!({"type": "clear_thinking_20251015", "keep": keep}));
    let results = layers.api_edits.then(|| clear_results(layers, tools));
    json!({"edits": thinking.into_iter().chain(results).chain(compact_by_provider::edit(layers)).collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::layers;

    /// MICRO-4: the provider clears at min(180,000, threshold − 20,000), at least 140,000 or what leaves 40,000, and only
    /// what we would; thinking first, all of it or that of one turn.
    #[test]
    fn the_provider_is_asked_for_what_we_would_do() {
        let tools = || ["Read", "Bash", "History"].map(str::to_owned).into_iter();
        let on = |size: u64| Layers { api_edits: true, ..layers(size) };
        let clear = |size: u64| edits(&on(size), false, tools())["edits"][0].clone();
        let large = clear(1_000_000);
        assert_eq!((&large["trigger"]["value"], &large["clear_at_least"]["value"]), (&180_000.into(), &140_000.into()));
        assert_eq!(large["exclude_tools"], json!(["History"]));
        let usual = clear(200_000);
        assert_eq!((&usual["trigger"]["value"], &usual["clear_at_least"]["value"]), (&147_000.into(), &107_000.into()));
        let thinking = |turns| {
            let layers = Layers { api_thinking: turns, ..on(200_000) };
            edits(&layers, true, tools())["edits"][0].clone()
        };
        assert_eq!(thinking(None), json!({"type": "clear_thinking_20251015", "keep": "all"}));
        assert_eq!(thinking(Some(1))["keep"], json!({"type": "thinking_turns", "value": 1}));
    }
}
