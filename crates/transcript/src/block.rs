//! A content block: the unit the model reads and the unit the provider caches.
//!
//! A block is kept as the bytes that are sent: compact JSON in a fixed key order, without cache annotations. Next to the
//! bytes stand the few facts the projection needs (which tool call, which result), so that nothing has to be parsed
//! again. Bytes are shared, never copied: a block that appears in a thousand requests is stored once.
//!
//! ```
//! use transcript::block::{Block, Kind};
//! let block = Block::from_value(serde_json::json!({"text": "hi", "type": "text", "cache_control": {"type": "ephemeral"}}));
//! assert_eq!(block.json(), r#"{"type":"text","text":"hi"}"#);
//! assert_eq!(block.kind(), &Kind::Text);
//! ```

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

/// Keys that come first, in this order; the rest follow in the order they arrived.
const KEY_ORDER: [&str; 12] = [
    "type",
    "id",
    "tool_use_id",
    "name",
    "input",
    "text",
    "thinking",
    "signature",
    "data",
    "source",
    "content",
    "is_error",
];

/// Keys that say how to cache a block and are no part of what it says.
const ANNOTATIONS: [&str; 2] = ["cache_control", "cache_reference"];

/// One content block, frozen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    json: Arc<str>,
    kind: Kind,
}

/// What a block is, as far as projection and layers care.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Plain text.
    Text,
    /// Thinking, signed or redacted: goes back unchanged or not at all.
    Thinking,
    /// A call of a tool.
    ToolUse {
        /// The id its result will name.
        id: Arc<str>,
        /// The tool.
        name: Arc<str>,
    },
    /// The result of a call.
    ToolResult {
        /// The call it answers.
        id: Arc<str>,
        /// Whether it reports a failure.
        failed: bool,
    },
    /// A picture.
    Image,
    /// A document, such as a PDF.
    Document,
    /// A kind this version does not know; carried along as it is.
    Other,
}

impl Block {
    /// A text block.
    pub fn text(text: impl AsRef<str>) -> Self {
        Self::from_value(json!({"type": "text", "text": text.as_ref()}))
    }

    /// A call of a tool.
    pub fn tool_use(id: &str, name: &str, input: &Value) -> Self {
        Self::from_value(json!({"type": "tool_use", "id": id, "name": name, "input": input}))
    }

    /// A result made of blocks. `content` may be empty.
    pub fn tool_result(id: &str, content: &[Block], outcome: Outcome) -> Self {
        let content: Vec<Value> = content.iter().map(Block::value).collect();
        let mut block = json!({"type": "tool_result", "tool_use_id": id, "content": content});
        if outcome == Outcome::Failed {
            block["is_error"] = Value::Bool(true);
        }
        Self::from_value(block)
    }

    /// A picture from base64 text.
    pub fn image(media_type: &str, base64: &str) -> Self {
        Self::from_value(
            json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": base64}}),
        )
    }

    /// A document (PDF) from base64 text.
    pub fn document(media_type: &str, base64: &str) -> Self {
        Self::from_value(
            json!({"type": "document", "source": {"type": "base64", "media_type": media_type, "data": base64}}),
        )
    }

    /// Any block the API knows, put into canonical form. Text that is not an object becomes a text block.
    pub fn from_value(value: Value) -> Self {
        let object = match value {
            Value::Object(object) => canonical(object),
            Value::String(text) => return Self::text(text),
            other => return Self::text(other.to_string()),
        };
        let kind = Kind::of(&object);
        Self { json: Value::Object(object).to_string().into(), kind }
    }

    /// The bytes that are sent.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// What it is.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The block as a JSON value, for those who must look inside.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.json).unwrap_or(Value::Null)
    }

    /// The text of a text block.
    pub fn as_text(&self) -> Option<String> {
        match self.kind {
            Kind::Text => self.value()["text"].as_str().map(str::to_owned),
            _ => None,
        }
    }

    /// The input of a tool call.
    pub fn input(&self) -> Option<Value> {
        match self.kind {
            Kind::ToolUse { .. } => Some(self.value()["input"].take()),
            _ => None,
        }
    }

    /// The blocks inside a tool result.
    pub fn result_content(&self) -> Vec<Block> {
        match self.value()["content"].take() {
            Value::Array(parts) => parts.into_iter().map(Block::from_value).collect(),
            _ => Vec::new(),
        }
    }

    /// The text of a tool result, its parts joined by newlines; pictures are left out.
    pub fn result_text(&self) -> String {
        let texts: Vec<String> = self.result_content().iter().filter_map(Block::as_text).collect();
        texts.join("\n")
    }

    /// Whether the API would refuse it: text without a visible character.
    pub fn is_blank(&self) -> bool {
        self.as_text().is_some_and(|text| text.trim().is_empty())
    }
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It did what it was asked.
    Done,
    /// It failed, and its text says how.
    Failed,
}

impl Kind {
    fn of(object: &Map<String, Value>) -> Self {
        let text = |key: &str| -> Arc<str> { object.get(key).and_then(Value::as_str).unwrap_or_default().into() };
        match object.get("type").and_then(Value::as_str) {
            Some("text") => Self::Text,
            Some("thinking" | "redacted_thinking") => Self::Thinking,
            Some("tool_use") => Self::ToolUse { id: text("id"), name: text("name") },
            Some("tool_result") => Self::ToolResult {
                id: text("tool_use_id"),
                failed: object.get("is_error").and_then(Value::as_bool).unwrap_or(false),
            },
            Some("image") => Self::Image,
            Some("document") => Self::Document,
            _ => Self::Other,
        }
    }
}

/// Known keys first and in order, annotations dropped, `content` an array of canonical blocks.
fn canonical(mut object: Map<String, Value>) -> Map<String, Value> {
    for key in ANNOTATIONS {
        object.shift_remove(key);
    }
    let is_result = object.get("type").and_then(Value::as_str) == Some("tool_result");
    let mut ordered = Map::with_capacity(object.len());
    for key in KEY_ORDER {
        if let Some(value) = object.shift_remove(key) {
            let value = if is_result && key == "content" { canonical_content(value) } else { value };
            ordered.insert(key.to_owned(), value);
        }
    }
    ordered.extend(object);
    if is_result {
        ordered.entry("content").or_insert_with(|| Value::Array(Vec::new()));
        if ordered.get("is_error") == Some(&Value::Bool(false)) {
            ordered.shift_remove("is_error");
        }
    }
    ordered
}

/// `content` may be a string, null or an array; here it is always an array.
fn canonical_content(content: Value) -> Value {
    let parts = match content {
        Value::Array(parts) => parts,
        Value::Null => Vec::new(),
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        other => vec![json!({"type": "text", "text": other.to_string()})],
    };
    let parts = parts.into_iter().map(|part| match part {
        Value::Object(object) => Value::Object(canonical(object)),
        Value::String(text) => json!({"type": "text", "text": text}),
        other => json!({"type": "text", "text": other.to_string()}),
    });
    Value::Array(parts.collect())
}

/// The blocks of a message's `content`, which may be a string or an array.
pub fn blocks_of(content: Value) -> Vec<Block> {
    match content {
        Value::Array(parts) => parts.into_iter().map(Block::from_value).collect(),
        Value::String(text) => vec![Block::text(text)],
        Value::Null => Vec::new(),
        other => vec![Block::from_value(other)],
    }
}

impl Serialize for Block {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::value::RawValue::from_string(self.json.to_string())
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Block {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from_value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LOG-5: a block's bytes are compact JSON in a fixed key order, content an array, without cache annotations.
    #[test]
    fn the_same_block_has_the_same_bytes_however_it_was_written() {
        let ours = Block::tool_result("t1", &[Block::text("ok")], Outcome::Done);
        for foreign in [
            r#"{"tool_use_id":"t1","type":"tool_result","content":"ok"}"#,
            r#"{"type":"tool_result","content":[{"text":"ok","type":"text"}],"tool_use_id":"t1","is_error":false}"#,
            r#"{"cache_reference":"t1", "type":"tool_result", "tool_use_id":"t1",
                "content":[{"type":"text","text":"ok","cache_control":{"type":"ephemeral"}}]}"#,
        ] {
            let parsed: Block = serde_json::from_str(foreign).unwrap();
            assert_eq!(parsed.json(), ours.json());
        }
    }

    #[test]
    fn unknown_keys_and_kinds_are_carried_along() {
        let block: Block = serde_json::from_str(r#"{"novel":1,"type":"hologram"}"#).unwrap();
        assert_eq!(block.json(), r#"{"type":"hologram","novel":1}"#);
        assert_eq!(block.kind(), &Kind::Other);
    }

    #[test]
    fn the_order_of_keys_inside_an_input_is_the_models() {
        let block = Block::tool_use("t", "Bash", &json!({"timeout": 1, "command": "ls"}));
        assert!(block.json().contains(r#""input":{"timeout":1,"command":"ls"}"#));
    }
}
