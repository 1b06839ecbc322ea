//! Context management: what the provider takes out of a prompt before the model sees it.
//!
//! What stands before a summary of its own is dropped; a new one is asked for where the prompt passes its trigger.
//! Clearing happens on each request anew, from the history as it was sent; nothing is remembered. It changes the prompt
//! at the first block cleared, and the cache accounting shows that.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::cached_prompt::{Prompt, items};
use crate::count::Counter;

/// Input tokens that trigger the clearing of tool uses, unless given.
const TRIGGER_TOKENS: u64 = 100_000;
/// Tool uses that are kept, unless given.
const KEPT_TOOL_USES: u64 = 3;
/// Turns whose thinking is kept, unless given.
const KEPT_THINKING_TURNS: u64 = 1;
/// Text in place of a cleared result.
const CLEARED: &str = "[cleared to save context]";

/// Input tokens that trigger a compaction, unless given.
const COMPACTION_TOKENS: u64 = 150_000;
/// Default prompt for the provider's summary.
const COMPACTION_PROMPT: &str = "Summarise the conversation so far, so that it can go on from the summary alone. Write it in \
                                 <summary> tags.";

/// A compaction that a request asks for.
#[derive(Debug)]
pub(crate) struct Compaction {
    /// The request that makes the summary.
    pub(crate) body: Value,
    /// True if the reply ends with it.
    pub(crate) pauses: bool,
}

impl Compaction {
    /// The compaction of a request whose prompt is longer than its trigger.
    pub(crate) fn of(body: &Value, tokens: u64) -> Option<Self> {
        let edit = items(&body["context_management"]["edits"]).find(|edit| edit["type"] == "compact_20260112")?;
        if tokens <= edit["trigger"]["value"].as_u64().unwrap_or(COMPACTION_TOKENS) {
            return None;
        }
        let prompt = edit["instructions"].as_str().unwrap_or(COMPACTION_PROMPT);
        let mut asking = body.clone();
        asking["messages"].as_array_mut()?.push(json!({"role": "user", "content": [{"type": "text", "text": prompt}]}));
        Some(Self { body: asking, pauses: edit["pause_after_compaction"] == true })
    }
}

/// Applies the edits of a checked body to it; gives the reply's `context_management` when there were any.
pub(crate) fn apply(body: &mut Value, counter: Counter) -> Option<Value> {
    drop_before_compaction(body);
    let edits = body["context_management"]["edits"].as_array()?.clone();
    let applied: Vec<Value> = edits
        .iter()
        .filter_map(|edit| match edit["type"].as_str()? {
            "clear_thinking_20251015" => clear_thinking(body, edit, counter),
            "clear_tool_uses_20250919" => clear_tool_uses(body, edit, counter),
            _ => None,
        })
        .collect();
    Some(json!({"applied_edits": applied}))
}

fn messages(body: &mut Value) -> &mut [Value] {
    body["messages"].as_array_mut().map_or(&mut [], Vec::as_mut_slice)
}

/// Drops everything before the newest summary of the provider's own.
fn drop_before_compaction(body: &mut Value) {
    let has = |message: &Value| items(&message["content"]).any(|block| block["type"] == "compaction");
    let Some(newest) = items(&body["messages"]).collect::<Vec<_>>().iter().rposition(|message| has(message)) else {
        return;
    };
    if let Some(messages) = body["messages"].as_array_mut() {
        messages.drain(..newest);
    }
}

fn clear_thinking(body: &mut Value, edit: &Value, counter: Counter) -> Option<Value> {
    let keep = &edit["keep"];
    if keep == "all" || keep["type"] == "all" {
        return None;
    }
    let keep = usize::try_from(keep["value"].as_u64().unwrap_or(KEPT_THINKING_TURNS)).unwrap_or(usize::MAX);
    let thinks = |block: &Value| matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"));
    let (mut turns, mut tokens) = (0, 0);
    let thinking = messages(body).iter_mut().rev().filter(|message| items(&message["content"]).any(thinks));
    for message in thinking.skip(keep) {
        turns += 1;
        if let Some(content) = message["content"].as_array_mut() {
            tokens +=
                content.iter().filter(|block| thinks(block)).map(|block| counter.block(block, false)).sum::<u64>();
            content.retain(|block| !thinks(block));
        }
    }
    (turns > 0).then(|| json!({"type": edit["type"], "cleared_thinking_turns": turns, "cleared_input_tokens": tokens}))
}

fn clear_tool_uses(body: &mut Value, edit: &Value, counter: Counter) -> Option<Value> {
    let excluded: HashSet<&str> = items(&edit["exclude_tools"]).filter_map(Value::as_str).collect();
    let calls: Vec<(String, bool)> = items(&body["messages"])
        .flat_map(|message| items(&message["content"]))
        .filter(|block| block["type"] == "tool_use")
        .filter_map(|block| {
            let name = block["name"].as_str()?;
            Some((block["id"].as_str()?.to_owned(), excluded.contains(name)))
        })
        .collect();
    let size = match edit["trigger"]["type"].as_str() {
        Some("tool_uses") => calls.len() as u64,
        _ => Prompt::new(body, counter).tokens(),
    };
    if size <= edit["trigger"]["value"].as_u64().unwrap_or(TRIGGER_TOKENS) {
        return None;
    }
    let keep = usize::try_from(edit["keep"]["value"].as_u64().unwrap_or(KEPT_TOOL_USES)).unwrap_or(usize::MAX);
    let cleared: HashSet<&str> = calls[..calls.len().saturating_sub(keep)]
        .iter()
        .filter(|(_, excluded)| !excluded)
        .map(|(id, _)| id.as_str())
        .collect();

    let mut edited = body.clone();
    let mut tokens = 0;
    for block in messages(&mut edited).iter_mut().flat_map(|message| message["content"].as_array_mut()).flatten() {
        let before = counter.block(block, false);
        if block["type"] == "tool_result" && is_in(&cleared, &block["tool_use_id"]) {
            block["content"] = json!(CLEARED);
        } else if block["type"] == "tool_use" && is_in(&cleared, &block["id"]) && clears_input(edit, &block["name"]) {
            block["input"] = json!({});
        }
        tokens += before.saturating_sub(counter.block(block, false));
    }
    if tokens == 0 || tokens < edit["clear_at_least"]["value"].as_u64().unwrap_or(0) {
        return None;
    }
    *body = edited;
    Some(json!({"type": edit["type"], "cleared_tool_uses": cleared.len(), "cleared_input_tokens": tokens}))
}

fn is_in(ids: &HashSet<&str>, id: &Value) -> bool {
    id.as_str().is_some_and(|id| ids.contains(id))
}

/// `clear_tool_inputs` is a truth value, or a list of tools.
fn clears_input(edit: &Value, name: &Value) -> bool {
    edit["clear_tool_inputs"] == true || items(&edit["clear_tool_inputs"]).any(|tool| tool == name)
}
