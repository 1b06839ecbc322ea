//! Context management and cache edits: which edits there are, in which order, and what they may name.

use std::collections::HashSet;

use serde_json::Value;

use super::{CheckedBody, invalid, no_other_fields, required_text};
use crate::cached_prompt::items;

/// The least trigger of a server-side compaction.
const LEAST_COMPACTION: u64 = 50_000;

const CLEAR_TOOL_USES: &str = "clear_tool_uses_20250919";
const CLEAR_THINKING: &str = "clear_thinking_20251015";
const COMPACT: &str = "compact_20260112";

/// `context_management.edits`.
pub(super) fn context_management(body: &Value) -> CheckedBody {
    let management = &body["context_management"];
    no_other_fields("context_management", management, &["edits"])?;
    let mut seen = HashSet::new();
    for (index, edit) in items(&management["edits"]).enumerate() {
        let path = format!("context_management.edits.{index}");
        let kind = required_text(&path, edit, "type")?;
        let fields: &[&str] = match kind {
            CLEAR_TOOL_USES => &["type", "trigger", "keep", "clear_at_least", "exclude_tools", "clear_tool_inputs"],
            CLEAR_THINKING => &["type", "keep"],
            COMPACT => &["type", "trigger", "pause_after_compaction", "instructions"],
            other => {
                let problem = format!(
                    "Input tag '{other}' found using 'type' does not match any of the expected tags: \
                     '{CLEAR_THINKING}', '{CLEAR_TOOL_USES}', '{COMPACT}'"
                );
                return Err(invalid(&path, problem));
            }
        };
        no_other_fields(&format!("{path}.{kind}"), edit, fields)?;
        if kind == CLEAR_THINKING && index > 0 {
            let problem = format!("the `{CLEAR_THINKING}` strategy must be the first in the list of edits");
            return Err(invalid("context_management.edits", problem));
        }
        refuse_if!(!seen.insert(kind), "context_management.edits", format!("strategy `{kind}` may be given only once"));
        if kind == CLEAR_THINKING && !matches!(body["thinking"]["type"].as_str(), Some("enabled" | "adaptive")) {
            let problem = format!("`{CLEAR_THINKING}` strategy requires `thinking` to be enabled or adaptive");
            return Err(invalid(&path, problem));
        }
        if kind == COMPACT && edit["trigger"]["value"].as_u64().is_some_and(|value| value < LEAST_COMPACTION) {
            let problem = format!("Input should be greater than or equal to {LEAST_COMPACTION}");
            return Err(invalid(&format!("{path}.{kind}.trigger.value"), problem));
        }
    }
    Ok(())
}

/// `cache_edits` blocks: each deletes a result that stands before it and that carries its reference.
pub(super) fn cache_edits(body: &Value) -> CheckedBody {
    let mut results = HashSet::new();
    let mut deleted = HashSet::new();
    for (index, message) in items(&body["messages"]).enumerate() {
        for (inner, block) in items(&message["content"]).enumerate() {
            let path = format!("messages.{index}.content.{inner}");
            if let Some(reference) = block["cache_reference"].as_str() {
                if block["tool_use_id"] != reference {
                    return Err(invalid(&format!("{path}.cache_reference"), "must be the block's `tool_use_id`"));
                }
                results.insert(reference);
            }
            if block["type"] != "cache_edits" {
                continue;
            }
            for (number, edit) in items(&block["edits"]).enumerate() {
                let path = format!("{path}.edits.{number}");
                no_other_fields(&path, edit, &["type", "cache_reference"])?;
                refuse_if!(edit["type"] != "delete", &format!("{path}.type"), "Input should be 'delete'");
                let reference = required_text(&path, edit, "cache_reference")?;
                if !results.contains(reference) {
                    let problem = format!("no `tool_result` with cache_reference {reference} stands before this block");
                    return Err(invalid(&path, problem));
                }
                refuse_if!(!deleted.insert(reference), &path, format!("cache_reference {reference} is deleted twice"));
            }
        }
    }
    references_are_cached(body)
}

/// Only what is within the cached prefix can be referred to.
fn references_are_cached(body: &Value) -> CheckedBody {
    let blocks: Vec<(String, &Value)> = items(&body["messages"])
        .enumerate()
        .flat_map(|(index, message)| {
            items(&message["content"])
                .enumerate()
                .map(move |(inner, block)| (format!("messages.{index}.content.{inner}"), block))
        })
        .collect();
    if body["cache_control"].is_object() {
        return Ok(());
    }
    let last = blocks.iter().rposition(|(_, block)| block["cache_control"].is_object());
    let late = blocks
        .iter()
        .enumerate()
        .find(|(index, (_, block))| !block["cache_reference"].is_null() && last.is_none_or(|last| *index > last));
    match late {
        Some((_, (path, _))) => {
            Err(invalid(&format!("{path}.cache_reference"), "must not come after the last `cache_control` block"))
        }
        None => Ok(()),
    }
}
