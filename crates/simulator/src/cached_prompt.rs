//! A request as the prompt cache sees it: one line of positions, tools first, then system, then messages.
//!
//! Every tool definition, system block and content block is one [`Position`]. Each has a `chain`, the hash of
//! everything up to and including it, so that two requests share a prefix exactly as far as their chains agree. What
//! is mixed into the chain, and where, is what the provider documents as invalidating the cache:
//!
//! - the model, the speed and the structured-output format, at the very start: they invalidate everything;
//! - `tool_choice`, thinking parameters and the presence of images, where the messages start: they leave tools and
//!   system alone;
//! - `cache_control` and `cache_reference` never: annotations are no part of a block's identity. Neither are fields
//!   that are null, nor the order of a block's own fields; the order of keys inside a tool's input does count.
//!
//! A tool with `defer_loading` is no position until a result refers to it; from there on its definition belongs to that
//! result, so that a tool found in the middle of the conversation leaves the prefix as it is.
//!
//! Consecutive messages of the same role are one turn, as the provider merges them: the chain knows roles, not message
//! boundaries. A `cache_edits` block is a position without tokens, and the tool results it deletes keep their place in
//! the chain but weigh nothing.

use std::collections::HashSet;
use std::fmt;

use blake3::{Hash, Hasher};
use serde_json::Value;

use crate::count::Counter;

/// Characters of a block's text that are kept to show where two prompts differ.
const KEPT_CHARS: usize = 2_000;

/// Lifetime of a cache entry after its last use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ttl {
    FiveMinutes,
    OneHour,
}

impl Ttl {
    pub(crate) fn of(cache_control: &Value) -> Self {
        if cache_control["ttl"] == "1h" { Self::OneHour } else { Self::FiveMinutes }
    }

    pub(crate) fn millis(self) -> u64 {
        match self {
            Self::FiveMinutes => 5 * 60 * 1_000,
            Self::OneHour => 60 * 60 * 1_000,
        }
    }
}

/// Place of a position in the request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PromptPlace {
    Tool(usize),
    System(usize),
    Message { message: usize, block: usize },
}

impl fmt::Display for PromptPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(index) => write!(f, "tools[{index}]"),
            Self::System(index) => write!(f, "system[{index}]"),
            Self::Message { message, block } => write!(f, "messages[{message}].content[{block}]"),
        }
    }
}

/// One block of the prompt.
#[derive(Debug, Clone)]
pub(crate) struct Position {
    pub(crate) place: PromptPlace,
    /// Spoken by the model.
    pub(crate) assistant: bool,
    /// Hash of everything up to and including this block.
    pub(crate) chain: Hash,
    /// Hash of this block alone.
    pub(crate) block: Hash,
    pub(crate) tokens: u64,
    pub(crate) breakpoint: Option<Ttl>,
    /// The beginning of the block, readable.
    pub(crate) text: String,
}

/// A request as a line of positions.
#[derive(Debug, Clone)]
pub(crate) struct Prompt {
    pub(crate) model: String,
    pub(crate) positions: Vec<Position>,
    /// Parameters mixed in besides blocks, readable, for reports.
    pub(crate) parameters: String,
}

impl Prompt {
    /// Lays out a checked, normalised body.
    pub(crate) fn new(body: &Value, counter: Counter) -> Self {
        let model = body["model"].as_str().unwrap_or_default().to_owned();
        let whole = [&body["model"], &body["speed"], &body["output_config"]["format"], &body["output_format"]];
        let tail = message_parameters(body);
        let deleted = deleted_references(body);

        let mut line = GrowingLine { chain: start(&whole), positions: Vec::new() };
        let mut is_first = true;
        for (index, tool) in items(&body["tools"]).enumerate().filter(|(_, tool)| !is_deferred(tool)) {
            line.push(PromptPlace::Tool(index), "tool", tool, counter.tool(tool, is_first));
            is_first = false;
        }
        let mut waiting: Vec<&Value> = items(&body["tools"]).filter(|tool| is_deferred(tool)).collect();
        for (index, block) in items(&body["system"]).enumerate() {
            line.push(PromptPlace::System(index), "system", block, counter.block(block, index == 0));
        }
        line.chain = extend(line.chain, "messages", tail.as_bytes());
        let mut speaker = "";
        for (message, turn) in items(&body["messages"]).enumerate() {
            let role = turn["role"].as_str().unwrap_or_default();
            for (index, block) in items(&turn["content"]).enumerate() {
                let is_deleted = block["tool_use_id"].as_str().is_some_and(|id| deleted.contains(id));
                let tokens = if is_deleted { 0 } else { counter.block(block, speaker != role) };
                line.push(PromptPlace::Message { message, block: index }, role, block, tokens);
                let found: Vec<&str> = references(block).collect();
                for at in (0..waiting.len()).rev().filter(|_| !is_deleted) {
                    if waiting[at]["name"].as_str().is_some_and(|name| found.contains(&name)) {
                        line.load(waiting.remove(at), counter);
                    }
                }
                speaker = role;
            }
        }
        let mut positions = line.positions;
        if body["cache_control"].is_object() {
            mark_last(&mut positions, body);
        }
        Self { model, positions, parameters: tail }
    }

    /// The tokens of the whole prompt.
    pub(crate) fn tokens(&self) -> u64 {
        self.positions.iter().map(|position| position.tokens).sum()
    }
}

/// The line while it grows.
struct GrowingLine {
    chain: Hash,
    positions: Vec<Position>,
}

impl GrowingLine {
    /// Adds a block of a section: tools, the system prompt, or what a role says.
    fn push(&mut self, place: PromptPlace, section: &str, block: &Value, tokens: u64) {
        let identity = identity(block);
        self.chain = extend(self.chain, section, identity.as_bytes());
        self.positions.push(Position {
            place,
            assistant: section == "assistant",
            chain: self.chain,
            block: blake3::hash(identity.as_bytes()),
            tokens,
            breakpoint: breakpoint(block),
            text: readable(block),
        });
    }

    /// Puts the definition of a tool that was found beside the block that refers to it.
    fn load(&mut self, tool: &Value, counter: Counter) {
        self.chain = extend(self.chain, "tool", identity(tool).as_bytes());
        if let Some(last) = self.positions.last_mut() {
            last.chain = self.chain;
            last.tokens += counter.tool(tool, false);
        }
    }
}

/// True if a tool is kept from the model until a result refers to it.
fn is_deferred(tool: &Value) -> bool {
    tool["defer_loading"] == true
}

/// The tools that a block refers to.
fn references(block: &Value) -> impl Iterator<Item = &str> {
    items(&block["content"])
        .filter(|inner| inner["type"] == "tool_reference")
        .filter_map(|inner| inner["tool_name"].as_str())
}

/// The tools that the model knows of: those that are not deferred, and those that a result referred to.
pub(crate) fn offered(body: &Value) -> impl Iterator<Item = &str> {
    let found: HashSet<&str> =
        items(&body["messages"]).flat_map(|turn| items(&turn["content"])).flat_map(references).collect();
    let is_offered =
        move |tool: &&Value| !is_deferred(tool) || tool["name"].as_str().is_some_and(|name| found.contains(name));
    items(&body["tools"]).filter(is_offered).filter_map(|tool| tool["name"].as_str())
}

/// Tool results that some `cache_edits` block of the request deletes.
pub(crate) fn deleted_references(body: &Value) -> HashSet<&str> {
    items(&body["messages"])
        .flat_map(|turn| items(&turn["content"]))
        .filter(|block| block["type"] == "cache_edits")
        .flat_map(|block| items(&block["edits"]))
        .filter_map(|edit| edit["cache_reference"].as_str())
        .collect()
}

/// The elements of an array, or nothing.
pub(crate) fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn start(parts: &[&Value]) -> Hash {
    let mut hasher = Hasher::new();
    for part in parts {
        hasher.update(part.to_string().as_bytes());
        hasher.update(&[0]);
    }
    hasher.finalize()
}

fn extend(chain: Hash, section: &str, bytes: &[u8]) -> Hash {
    let mut hasher = Hasher::new();
    hasher.update(chain.as_bytes());
    hasher.update(section.as_bytes());
    hasher.update(&[0]);
    hasher.update(bytes);
    hasher.finalize()
}

/// Parameters outside the messages that invalidate their cache.
fn message_parameters(body: &Value) -> String {
    let thinking = &body["thinking"];
    let thinking = match thinking["type"].as_str() {
        None | Some("disabled") => "off".to_owned(),
        Some(kind) => format!("{kind} {}", thinking["budget_tokens"]),
    };
    let choice = match &body["tool_choice"] {
        Value::Null => r#"{"type":"auto"}"#.to_owned(),
        choice => choice.to_string(),
    };
    let images = items(&body["messages"])
        .flat_map(|turn| items(&turn["content"]))
        .any(|block| block["type"] == "image" || items(&block["content"]).any(|inner| inner["type"] == "image"));
    format!("tool_choice {choice}, thinking {thinking}, images {images}")
}

/// The bytes that make a block this block: own fields sorted, annotations, nulls and defaults left out.
fn identity(block: &Value) -> String {
    let Some(fields) = block.as_object() else {
        return block.to_string();
    };
    let mut kept: Vec<(&String, String)> = fields
        .iter()
        .filter(|(key, value)| !is_annotation(key) && !is_default(key, value))
        .map(|(key, value)| match (key.as_str(), value) {
            ("content", Value::Array(inner)) => (key, inner.iter().map(identity).collect()),
            // A string is shorthand for one text block, in results as in messages.
            ("content", Value::String(text)) => (key, identity(&serde_json::json!({"type": "text", "text": text}))),
            _ => (key, value.to_string()),
        })
        .collect();
    kept.sort();
    kept.into_iter().map(|(key, value)| format!("{key}:{value}\n")).collect()
}

/// A field that says no more than its absence.
fn is_default(key: &str, value: &Value) -> bool {
    value.is_null() || (key == "is_error" && *value == false)
}

fn is_annotation(key: &str) -> bool {
    key == "cache_control" || key == "cache_reference"
}

/// The breakpoint a block carries, on itself or on a block inside it.
fn breakpoint(block: &Value) -> Option<Ttl> {
    let own = block["cache_control"].is_object().then(|| Ttl::of(&block["cache_control"]));
    let inner = items(&block["content"])
        .filter(|inner| inner["cache_control"].is_object())
        .map(|inner| Ttl::of(&inner["cache_control"]));
    own.into_iter().chain(inner).max()
}

/// Automatic placement: one breakpoint at the last block that may carry one.
fn mark_last(positions: &mut [Position], body: &Value) {
    let may_carry = |place: PromptPlace| match place {
        PromptPlace::Message { message, block } => is_cacheable(&body["messages"][message]["content"][block]),
        PromptPlace::System(index) => is_cacheable(&body["system"][index]),
        PromptPlace::Tool(_) => true,
    };
    if let Some(last) = positions.iter_mut().rev().find(|position| may_carry(position.place)) {
        last.breakpoint.get_or_insert(Ttl::of(&body["cache_control"]));
    }
}

/// Thinking, empty text and cache edits cannot carry a breakpoint.
pub(crate) fn is_cacheable(block: &Value) -> bool {
    match block["type"].as_str() {
        Some("thinking" | "redacted_thinking" | "cache_edits") => false,
        Some("text") => block["text"].as_str().is_some_and(|text| !text.is_empty()),
        _ => true,
    }
}

/// A block as text, for reports.
fn readable(block: &Value) -> String {
    let mut text = match (&block["text"], &block["content"], &block["name"]) {
        (Value::String(text), _, _) => text.clone(),
        (_, Value::String(text), _) => text.clone(),
        (_, Value::Array(inner), _) => {
            inner.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        (_, _, Value::String(name)) if block["input"].is_object() => format!("{name} {}", block["input"]),
        (_, _, Value::String(name)) => {
            format!("{name}: {} {}", block["description"].as_str().unwrap_or_default(), block["input_schema"])
        }
        _ => block["thinking"].as_str().map_or_else(|| block["type"].to_string(), str::to_owned),
    };
    if let Some((end, _)) = text.char_indices().nth(KEPT_CHARS) {
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn chain(body: &Value) -> Vec<Hash> {
        Prompt::new(body, Counter::new(1.0)).positions.iter().map(|position| position.chain).collect()
    }

    fn body() -> Value {
        json!({
            "model": "claude-opus-5",
            "tools": [{"name": "Bash", "input_schema": {"type": "object"}}],
            "system": [{"type": "text", "text": "Be brief."}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "hello"}]},
                {"role": "assistant", "content": [{"type": "text", "text": "hi"}]},
            ],
        })
    }

    #[test]
    fn annotations_nulls_and_field_order_are_no_part_of_a_block() {
        let mut other = body();
        other["messages"][0]["content"][0] =
            json!({"text": "hello", "citations": null, "cache_control": {"type": "ephemeral"}, "type": "text"});
        assert_eq!(chain(&body()), chain(&other));
    }

    #[test]
    fn merged_messages_have_the_chain_of_one() {
        let mut one = body();
        one["messages"][0]["content"] = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
        let mut two = body();
        two["messages"] = json!([
            {"role": "user", "content": [{"type": "text", "text": "a"}]},
            {"role": "user", "content": [{"type": "text", "text": "b"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "hi"}]},
        ]);
        assert_eq!(chain(&one), chain(&two));
    }

    #[test]
    fn a_parameter_of_the_messages_leaves_tools_and_system_alone() {
        for (key, value) in
            [("tool_choice", json!({"type": "any"})), ("thinking", json!({"type": "enabled", "budget_tokens": 1024}))]
        {
            let mut other = body();
            other[key] = value;
            let (before, after) = (chain(&body()), chain(&other));
            assert_eq!(before[..2], after[..2], "{key}");
            assert_ne!(before[2], after[2], "{key}");
        }
    }

    #[test]
    fn the_output_format_invalidates_everything() {
        let mut other = body();
        other["output_config"] = json!({"format": {"type": "json_schema", "schema": {}}});
        assert_ne!(chain(&body())[0], chain(&other)[0]);
    }

    /// A tool found in the middle of the conversation: what came before it is read from the cache all the same.
    #[test]
    fn a_deferred_tool_is_loaded_where_it_is_referred_to() {
        let deferred = json!({"name": "Fetch", "input_schema": {"type": "object"}, "defer_loading": true});
        let mut later = body();
        later["tools"] = json!([deferred, body()["tools"][0]]);
        assert_eq!(chain(&body()), chain(&later));
        assert_eq!(offered(&later).collect::<Vec<_>>(), ["Bash"]);
        let found = json!([
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "Bash", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [
                {"type": "tool_reference", "tool_name": "Fetch"}]}]},
        ]);
        later["messages"].as_array_mut().unwrap().extend(found.as_array().unwrap().clone());
        let mut changed = later.clone();
        changed["tools"][0]["description"] = json!("Fetches a page.");
        assert_eq!(chain(&later)[..4], chain(&body()));
        assert_eq!(chain(&later)[..5], chain(&changed)[..5]);
        assert_ne!(chain(&later)[5], chain(&changed)[5]);
        assert_eq!(offered(&later).collect::<Vec<_>>(), ["Fetch", "Bash"]);
    }

    #[test]
    fn the_order_of_keys_in_a_tool_input_counts() {
        let with = |input: Value| {
            let mut body = body();
            body["messages"][1]["content"][0] = json!({"type": "tool_use", "id": "a", "name": "Bash", "input": input});
            chain(&body)
        };
        assert_ne!(with(json!({"a": 1, "b": 2})), with(json!({"b": 2, "a": 1})));
    }

    #[test]
    fn automatic_placement_skips_thinking() {
        let mut body = body();
        body["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"});
        body["messages"][1]["content"] =
            json!([{"type": "text", "text": "x"}, {"type": "thinking", "thinking": "hm", "signature": "s"}]);
        let prompt = Prompt::new(&body, Counter::new(1.0));
        let marked: Vec<_> = prompt.positions.iter().map(|position| position.breakpoint).collect();
        assert_eq!(marked, [None, None, None, Some(Ttl::OneHour), None]);
    }
}
