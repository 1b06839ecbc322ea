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

mod canonical;

use std::sync::Arc;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::size::Size;
use crate::text::{Cursor, TextFault, decoded_len};
use canonical::{decode, is_compaction, literal};

/// One content block, frozen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    json: Arc<str>,
    kind: Kind,
    size: Size,
    sendable: bool,
}

/// Kind of a block, as far as projection and layers care.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Plain text.
    Text,
    /// Thinking, signed or redacted: sent back unchanged or not at all.
    Thinking,
    /// A tool call.
    ToolUse {
        /// Id that its result refers to.
        id: Arc<str>,
        /// Name of the tool.
        name: Arc<str>,
    },
    /// The result of a tool call.
    ToolResult {
        /// Id of the call it answers.
        id: Arc<str>,
        /// True if it reports a failure.
        failed: bool,
    },
    /// A picture.
    Image,
    /// A document, such as a PDF.
    Document,
    /// A kind this version does not know; passed through as it is.
    Other,
}

impl Block {
    /// A text block.
    pub fn text(text: impl AsRef<str>) -> Self {
        let literal = literal(text.as_ref());
        Self {
            json: [r#"{"type":"text","text":"#, &literal, "}"].concat().into(),
            kind: Kind::Text,
            size: Size::text(decoded_len(&literal).unwrap_or_default()),
            sendable: !text.as_ref().trim().is_empty(),
        }
    }

    /// A tool call.
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

    /// Any block the API knows, in canonical form. Anything but an object becomes a text block.
    pub fn from_value(value: Value) -> Self {
        match value {
            Value::Object(_) => Self::canonical(&value.to_string()),
            Value::String(text) => Self::text(text),
            other => Self::text(other.to_string()),
        }
    }

    /// Puts a block's JSON text into canonical form. Anything but a JSON object becomes a text block.
    pub fn parse(json: &str) -> Self {
        match serde_json::from_str::<IgnoredAny>(json) {
            Ok(_) => Self::canonical(json),
            Err(_) => Self::text(json),
        }
    }

    /// The bytes that are sent.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// True if both are sent as the same bytes; fast when they share them.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.json, &other.json) || self.json == other.json
    }

    /// Kind of the block.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Size of its content, for estimates.
    pub fn size(&self) -> Size {
        self.size
    }

    /// The block as a JSON value, for callers that need to look inside.
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

    /// The provider's own summary of a conversation.
    pub fn compaction(&self) -> Option<String> {
        let is_one = self.kind == Kind::Other && is_compaction(&self.json);
        is_one.then(|| self.value()["content"].as_str().map(str::to_owned)).flatten()
    }

    /// The input of a tool call.
    pub fn input(&self) -> Option<Value> {
        match self.kind {
            Kind::ToolUse { .. } => Some(self.value()["input"].take()),
            _ => None,
        }
    }

    /// The input of a tool call as it stands in the block.
    pub fn raw_input(&self) -> Option<&str> {
        #[derive(Deserialize)]
        struct Call<'a> {
            #[serde(borrow)]
            input: &'a RawValue,
        }
        match self.kind {
            Kind::ToolUse { .. } => serde_json::from_str::<Call<'_>>(self.json()).ok().map(|call| call.input.get()),
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

    /// True if the API accepts it back: false for text without a visible character and for thinking without a
    /// signature.
    pub fn is_sendable(&self) -> bool {
        self.sendable
    }
}

/// Outcome of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It succeeded.
    Done,
    /// It failed, and its text says why.
    Failed,
}

/// The blocks of a message's `content`, which may be a string or an array.
pub fn blocks_of(content: &RawValue) -> Vec<Block> {
    read_blocks(&mut Cursor::new(content.get())).unwrap_or_default()
}

/// Reads the blocks of a message's `content` at the cursor.
pub(crate) fn read_blocks(cursor: &mut Cursor<'_>) -> Result<Vec<Block>, TextFault> {
    let mut blocks = Vec::new();
    match cursor.peek() {
        Some(b'[') => cursor.elements(|cursor| Block::read(cursor).map(|block| blocks.push(block)))?,
        Some(b'"') => {
            let text = cursor.value()?;
            decoded_len(text).ok_or(TextFault::Shape)?;
            blocks.push(Block::text(decode(text)));
        }
        Some(b'n') if cursor.value()? == "null" => {}
        Some(b'n') => return Err(TextFault::Shape),
        _ => blocks.push(Block::read(cursor)?),
    }
    Ok(blocks)
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
