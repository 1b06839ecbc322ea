//! Signed thinking comes back with the calls that it led to.
//!
//! While a tool loop is open, that is until the user types something, the provider wants the thinking that came before
//! each call. The ids of calls tell whether there was any (see [`Ids::was_thought_about`](crate::ids::Ids)).

use serde_json::Value;

use super::pairing::turns;
use super::{CheckedBody, Context, invalid};

pub(super) fn before_calls(body: &Value, context: &Context<'_>) -> CheckedBody {
    if !matches!(body["thinking"]["type"].as_str(), Some("enabled" | "adaptive" | "between_tools")) {
        return Ok(());
    }
    let turns = turns(body);
    let in_loop = turns
        .iter()
        .rev()
        .take_while(|turn| turn.is_assistant || turn.blocks.iter().any(|(_, _, block)| block["type"] == "tool_result"));
    for turn in in_loop.filter(|turn| turn.is_assistant) {
        let is_thinking = |block: &Value| matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"));
        let first = turn.blocks.iter().find(|(_, _, block)| is_thinking(block) || block["type"] == "tool_use");
        let Some((message, index, call)) = first.filter(|(_, _, block)| block["type"] == "tool_use") else {
            continue;
        };
        if call["id"].as_str().is_some_and(|id| context.ids.was_thought_about(id)) {
            let problem = "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a \
                           final `assistant` message must start with a thinking block (preceeding the lastmost set of \
                           `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous \
                           turns. To avoid this requirement, disable `thinking`.";
            return Err(invalid(&format!("messages.{message}.content.{index}.type"), problem));
        }
    }
    Ok(())
}
