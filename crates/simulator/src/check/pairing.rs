//! Every tool call has its result at the start of the next turn, and every result its call.
//!
//! Consecutive messages of one role are one turn here, as the provider merges them; the messages that are named in a
//! refusal are those of the request as it was sent.

use std::collections::HashSet;

use serde_json::Value;

use super::{CheckedBody, invalid};
use crate::cached_prompt::items;

/// Consecutive messages of one role.
pub(super) struct RoleMessages<'a> {
    pub(super) is_assistant: bool,
    /// Message, block, and the block itself.
    pub(super) blocks: Vec<(usize, usize, &'a Value)>,
}

pub(super) fn turns(body: &Value) -> Vec<RoleMessages<'_>> {
    let mut turns: Vec<RoleMessages<'_>> = Vec::new();
    for (message, value) in items(&body["messages"]).enumerate() {
        let is_assistant = value["role"] == "assistant";
        if turns.last().is_none_or(|turn| turn.is_assistant != is_assistant) {
            turns.push(RoleMessages { is_assistant, blocks: Vec::new() });
        }
        if let Some(turn) = turns.last_mut() {
            turn.blocks.extend(items(&value["content"]).enumerate().map(|(block, value)| (message, block, value)));
        }
    }
    turns
}

/// The ids of a turn's calls, with the message each is in.
fn calls<'a>(turn: &RoleMessages<'a>) -> Vec<(usize, &'a str)> {
    turn.blocks
        .iter()
        .filter(|(_, _, block)| block["type"] == "tool_use")
        .filter_map(|(message, _, block)| Some((*message, block["id"].as_str()?)))
        .collect()
}

pub(super) fn calls_and_results(body: &Value) -> CheckedBody {
    let turns = turns(body);
    let mut seen = HashSet::new();
    for (index, turn) in turns.iter().enumerate() {
        if turn.is_assistant {
            let calls = calls(turn);
            refuse_if!(calls.iter().any(|(_, id)| !seen.insert(*id)), "messages", "`tool_use` ids must be unique");
            answered(&calls, turns.get(index + 1))?;
        } else {
            let before = index.checked_sub(1).map(|before| calls(&turns[before])).unwrap_or_default();
            called(turn, &before)?;
        }
    }
    Ok(())
}

/// Each call has a result among those that open the next turn.
fn answered(calls: &[(usize, &str)], next: Option<&RoleMessages<'_>>) -> CheckedBody {
    let results: HashSet<&str> = next
        .into_iter()
        .flat_map(|turn| turn.blocks.iter().take_while(|(_, _, block)| opens_turn(block)))
        .filter_map(|(_, _, block)| block["tool_use_id"].as_str())
        .collect();
    let open: Vec<&(usize, &str)> = calls.iter().filter(|(_, id)| !results.contains(id)).collect();
    let Some((message, _)) = open.first() else {
        return Ok(());
    };
    let ids = open.iter().map(|(_, id)| *id).collect::<Vec<_>>().join(", ");
    let problem = format!(
        "`tool_use` ids were found without `tool_result` blocks immediately after: {ids}. Each `tool_use` block must have \
         a corresponding `tool_result` block in the next message."
    );
    Err(invalid(&format!("messages.{message}"), problem))
}

/// Results, and the cache edits that may stand between them.
fn opens_turn(block: &Value) -> bool {
    block["type"] == "tool_result" || block["type"] == "cache_edits"
}

/// Each result has a call in the turn before, and is the only one.
fn called(turn: &RoleMessages<'_>, before: &[(usize, &str)]) -> CheckedBody {
    let mut seen = HashSet::new();
    for (message, index, block) in &turn.blocks {
        if block["type"] != "tool_result" {
            continue;
        }
        let path = format!("messages.{message}.content.{index}");
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        if !before.iter().any(|(_, call)| *call == id) {
            let problem = format!(
                "unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a \
                 corresponding `tool_use` block in the previous message."
            );
            return Err(invalid(&path, problem));
        }
        if !seen.insert(id) {
            let problem =
                format!("each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}");
            return Err(invalid(&path, problem));
        }
    }
    Ok(())
}
