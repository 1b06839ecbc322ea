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

use std::borrow::Cow;
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::text::{Text, elements, end_of_string, members};

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
    size: Size,
    sendable: bool,
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
        let literal = literal(text.as_ref());
        Self {
            json: [r#"{"type":"text","text":"#, &literal, "}"].concat().into(),
            kind: Kind::Text,
            size: Size::text(decoded_len(&literal)),
            sendable: !text.as_ref().trim().is_empty(),
        }
    }

    /// A call of a tool.
    pub fn tool_use(id: &str, name: &str, input: &Value) -> Self {
        Self::from_value(json!({"type": "tool_use", "id": id, "name": name, "input": input}))
    }

    /// A result made of blocks. `content` may be empty.
    pub fn tool_result(id: &str, content: &[Block], outcome: Outcome) -> Self {
        let mut json = [r#"{"type":"tool_result","tool_use_id":"#, &literal(id), r#","content":["#].concat();
        for (index, part) in content.iter().enumerate() {
            json.push_str(if index > 0 { "," } else { "" });
            json.push_str(&part.json);
        }
        let failed = outcome == Outcome::Failed;
        json.push_str(if failed { r#"],"is_error":true}"# } else { "]}" });
        Self {
            json: json.into(),
            kind: Kind::ToolResult { id: id.into(), failed },
            size: content.iter().map(|part| part.size.in_result()).sum(),
            sendable: true,
        }
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

    /// Any block the API knows, put into canonical form. What is not an object becomes a text block.
    pub fn from_value(value: Value) -> Self {
        match value {
            Value::Object(_) => Self::canonical(&value.to_string()),
            Value::String(text) => Self::text(text),
            other => Self::text(other.to_string()),
        }
    }

    /// Puts a block's JSON text into canonical form. What is not a JSON object becomes a text block.
    pub fn parse(json: &str) -> Self {
        match serde_json::from_str::<IgnoredAny>(json) {
            Ok(_) => Self::canonical(json),
            Err(_) => Self::text(json),
        }
    }

    /// As [`Block::parse`], of what is known to be valid JSON and without building a tree: known keys first and in
    /// order, values as they were written, annotations dropped.
    fn canonical(json: &str) -> Self {
        let Some(members) = members(json) else { return Self::text(json) };
        let mut entries: Vec<(Cow<'_, str>, &str)> = Vec::with_capacity(members.len());
        for (key, value) in members {
            match entries.iter_mut().find(|(name, _)| *name == key) {
                Some(entry) => entry.1 = value, // as every JSON reader: the last one counts
                None => entries.push((key, value)),
            }
        }
        let raw = |key: &str| entries.iter().find(|(name, _)| name == key).map(|(_, value)| *value);
        let text = |key: &str| -> Arc<str> { raw(key).map(decode).unwrap_or_default().into() };
        let kind = match raw("type").map(decode).as_deref() {
            Some("text") => Kind::Text,
            Some("thinking" | "redacted_thinking") => Kind::Thinking,
            Some("tool_use") => Kind::ToolUse { id: text("id"), name: text("name") },
            Some("tool_result") => {
                Kind::ToolResult { id: text("tool_use_id"), failed: raw("is_error") == Some("true") }
            }
            Some("image") => Kind::Image,
            Some("document") => Kind::Document,
            _ => Kind::Other,
        };
        let mut out = String::with_capacity(json.len() + 32);
        let mut size = Size::default();
        let is_result = matches!(kind, Kind::ToolResult { .. });
        for key in KEY_ORDER {
            match raw(key) {
                Some("false") if is_result && key == "is_error" => {}
                Some(value) if is_result && key == "content" => push_content(&mut out, value, &mut size),
                None if is_result && key == "content" => push_content(&mut out, "null", &mut size),
                Some(value) => push_entry(&mut out, key, value),
                None => {}
            }
        }
        for (key, value) in &entries {
            if !KEY_ORDER.contains(&key.as_ref()) && !ANNOTATIONS.contains(&key.as_ref()) {
                push_entry(&mut out, key, value);
            }
        }
        out.push_str(if out.is_empty() { "{}" } else { "}" });
        size += match &kind {
            Kind::Text => Size::text(raw("text").map_or(0, decoded_len)),
            Kind::Thinking => Size::text(raw("thinking").or(raw("data")).map_or(0, decoded_len)),
            Kind::ToolUse { .. } => Size::call(raw("input").map_or(0, str::len)),
            Kind::ToolResult { .. } => Size::default(),
            Kind::Image | Kind::Document => Size::media(),
            Kind::Other => Size::text(json.len()),
        };
        let sendable = match &kind {
            Kind::Text => raw("text").is_some_and(|text| !is_blank(text)),
            Kind::Thinking => ["signature", "data"].into_iter().filter_map(raw).any(|proof| decoded_len(proof) > 0),
            _ => true,
        };
        Self { json: out.into(), kind, size, sendable }
    }

    /// The bytes that are sent.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// What it is.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// How much there is of it, for estimates.
    pub fn size(&self) -> Size {
        self.size
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

    /// Whether the API takes it back: not text without a visible character, nor thinking without its signature.
    pub fn is_sendable(&self) -> bool {
        self.sendable
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

fn push_entry(out: &mut String, key: &str, value: &str) {
    push_key(out, key);
    push_compact(out, value);
}

fn push_key(out: &mut String, key: &str) {
    out.push(if out.is_empty() { '{' } else { ',' });
    if KEY_ORDER.contains(&key) {
        out.push('"');
        out.push_str(key);
        out.push('"');
    } else {
        out.push_str(&literal(key));
    }
    out.push(':');
}

/// A result's `content` may be a string, null or an array; here it is always an array of canonical blocks.
fn push_content(out: &mut String, content: &str, size: &mut Size) {
    push_key(out, "content");
    out.push('[');
    if let Some(parts) = elements(content) {
        for (index, part) in parts.into_iter().enumerate() {
            let part = if part.starts_with('"') { Block::text(decode(part)) } else { Block::canonical(part) };
            if index > 0 {
                out.push(',');
            }
            out.push_str(&part.json);
            *size += part.size.in_result();
        }
    } else if content.starts_with('"') {
        if content.len() > 2 {
            *size += Size { result_bytes: decoded_len(content), ..Size::default() };
            out.push_str(r#"{"type":"text","text":"#);
            out.push_str(content);
            out.push('}');
        }
    } else if content != "null" {
        *size += Size { result_bytes: content.len(), ..Size::default() };
        out.push_str(Block::text(content).json());
    }
    out.push(']');
}

/// Copies a JSON value without the white space between its tokens.
fn push_compact(out: &mut String, value: &str) {
    let bytes = value.as_bytes();
    if bytes.first() == Some(&b'"') {
        return out.push_str(value);
    }
    let (mut start, mut at) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_string(bytes, at).unwrap_or(bytes.len()),
            b' ' | b'\n' | b'\t' | b'\r' => {
                out.push_str(&value[start..at]);
                at += 1;
                start = at;
            }
            _ => at += 1,
        }
    }
    out.push_str(&value[start..]);
}

/// Whether a JSON string literal holds nothing but white space.
fn is_blank(literal: &str) -> bool {
    let inside = literal.trim_start_matches('"').trim_start_matches([' ', '\\', 'n', 't', 'r']);
    // Almost always the first character tells; only what begins like white space is decoded.
    (inside.is_empty() || inside.len() < literal.len() - 1) && decode(literal).trim().is_empty()
}

/// A text as a JSON string literal.
fn literal(text: &str) -> String {
    Value::from(text).to_string()
}

/// The text of a JSON string literal.
fn decode(literal: &str) -> Cow<'_, str> {
    Text::read(literal).unwrap_or_default().0
}

/// How many bytes the text of a JSON string literal has, without decoding it.
fn decoded_len(literal: &str) -> usize {
    let bytes = literal.as_bytes();
    let mut len = literal.len().saturating_sub(2);
    let mut at = 0;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        // `\n` is one byte; `\uXXXX` stands for two or three, a surrogate half for two.
        let (written, meant) = if bytes.get(at + found + 1) == Some(&b'u') { (6, 2) } else { (2, 1) };
        len = len.saturating_sub(written - meant);
        at += found + written;
    }
    len
}

/// How much a block holds, by what estimates tell apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Size {
    /// Bytes of text and thinking.
    pub text_bytes: usize,
    /// Bytes of text in tool results.
    pub result_bytes: usize,
    /// Bytes of tool input, as JSON.
    pub call_bytes: usize,
    /// Number of tool calls.
    pub calls: usize,
    /// Number of pictures and documents.
    pub media: usize,
}

impl Size {
    fn text(bytes: usize) -> Self {
        Self { text_bytes: bytes, ..Self::default() }
    }

    fn call(bytes: usize) -> Self {
        Self { call_bytes: bytes, calls: 1, ..Self::default() }
    }

    fn media() -> Self {
        Self { media: 1, ..Self::default() }
    }

    /// What a part of a tool result adds to it.
    fn in_result(self) -> Self {
        Self { result_bytes: self.text_bytes, media: self.media, ..Self::default() }
    }
}

impl std::ops::AddAssign for Size {
    fn add_assign(&mut self, other: Self) {
        self.text_bytes += other.text_bytes;
        self.result_bytes += other.result_bytes;
        self.call_bytes += other.call_bytes;
        self.calls += other.calls;
        self.media += other.media;
    }
}

impl std::ops::SubAssign for Size {
    fn sub_assign(&mut self, other: Self) {
        self.text_bytes -= other.text_bytes;
        self.result_bytes -= other.result_bytes;
        self.call_bytes -= other.call_bytes;
        self.calls -= other.calls;
        self.media -= other.media;
    }
}

impl std::iter::Sum for Size {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::default(), |mut total, size| {
            total += size;
            total
        })
    }
}

/// The blocks of a message's `content`, which may be a string or an array.
pub fn blocks_of(content: &RawValue) -> Vec<Block> {
    blocks_in(content.get())
}

/// The blocks of a message's `content`, which is known to be valid JSON.
pub(crate) fn blocks_in(content: &str) -> Vec<Block> {
    match elements(content) {
        Some(parts) => parts.into_iter().map(Block::canonical).collect(),
        None if content == "null" => Vec::new(),
        None if content.starts_with('"') => vec![Block::text(decode(content))],
        None => vec![Block::canonical(content)],
    }
}

impl Serialize for Block {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.json.to_string()).map_err(serde::ser::Error::custom)?.serialize(serializer)
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
