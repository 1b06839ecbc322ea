//! A block's canonical form: known keys first and in order, values as they were written, annotations dropped.

use std::borrow::Cow;
use std::sync::Arc;

use serde::de::IgnoredAny;

use super::{Block, Kind};
use crate::size::Size;
use crate::text::{Cursor, Text, TextFault, decoded_len, end_of_string};

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

/// Keys that control caching and are no part of the content.
const ANNOTATIONS: [&str; 2] = ["cache_control", "cache_reference"];

impl Block {
    /// Like [`Block::parse`], for text known to be valid JSON.
    pub(super) fn canonical(json: &str) -> Self {
        Self::read(&mut Cursor::new(json)).unwrap_or_else(|_| Self::text(json))
    }

    /// Reads a block at the cursor without building a tree: known keys first and in order, values as they were written,
    /// annotations dropped. Everything kept is validated.
    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Self, TextFault> {
        if cursor.peek() != Some(b'{') {
            let other = cursor.value()?;
            check(other)?;
            return Ok(Self::text(other));
        }
        let start = cursor.at();
        let mut entries: Vec<(Cow<'_, str>, &str)> = Vec::with_capacity(4);
        cursor.members(|key, cursor| {
            let value = cursor.value()?;
            match entries.iter_mut().find(|(name, _)| *name == key) {
                Some(entry) => entry.1 = value, // as every JSON reader: the last one counts
                None => entries.push((key, value)),
            }
            Ok(())
        })?;
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
        let written = cursor.at() - start;
        let mut out = String::with_capacity(written + 32);
        let mut size = Size::default();
        let mut lengths = [0; KEY_ORDER.len()];
        let is_result = matches!(kind, Kind::ToolResult { .. });
        for (key, length) in KEY_ORDER.into_iter().zip(&mut lengths) {
            match raw(key) {
                Some("false") if is_result && key == "is_error" => {}
                Some(value) if is_result && key == "content" => push_content(&mut out, value, &mut size)?,
                None if is_result && key == "content" => push_content(&mut out, "null", &mut size)?,
                Some(value) => *length = push_entry(&mut out, key, value)?,
                None => {}
            }
        }
        for (key, value) in &entries {
            if !KEY_ORDER.contains(&key.as_ref()) && !ANNOTATIONS.contains(&key.as_ref()) {
                push_entry(&mut out, key, value)?;
            }
        }
        out.push_str(if out.is_empty() { "{}" } else { "}" });
        let length = |key: &str| KEY_ORDER.iter().position(|name| *name == key).map_or(0, |at| lengths[at]);
        size += match &kind {
            Kind::Text => Size::text(length("text")),
            Kind::Thinking => Size::text(length(if raw("thinking").is_some() { "thinking" } else { "data" })),
            Kind::ToolUse { .. } => Size::call(length("input")),
            Kind::ToolResult { .. } => Size::default(),
            Kind::Image | Kind::Document => Size::media(),
            Kind::Other => Size::text(written),
        };
        let sendable = match &kind {
            Kind::Text => raw("text").is_some_and(|text| !is_blank(text)),
            Kind::Thinking => length("signature") + length("data") > 0,
            // The log has what came of it; sent back, the provider would drop all that stands before it.
            Kind::Other => !is_compaction(&out),
            _ => true,
        };
        Ok(Self { json: out.into(), kind, size, sendable })
    }
}

/// True if a block is the provider's own summary of a conversation.
pub(super) fn is_compaction(json: &str) -> bool {
    json.starts_with(r#"{"type":"compaction""#)
}

/// Validates a value that is kept and returns its length: decoded for a string, as written for anything else.
fn check(value: &str) -> Result<usize, TextFault> {
    if value.starts_with('"') {
        return decoded_len(value).ok_or(TextFault::Shape);
    }
    serde_json::from_str::<IgnoredAny>(value)?;
    Ok(value.len())
}

fn push_entry(out: &mut String, key: &str, value: &str) -> Result<usize, TextFault> {
    push_key(out, key);
    let length = check(value)?;
    push_compact(out, value);
    Ok(length)
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
fn push_content(out: &mut String, content: &str, size: &mut Size) -> Result<(), TextFault> {
    push_key(out, "content");
    out.push('[');
    match content.as_bytes().first() {
        Some(b'[') => {
            let mut is_first = true;
            Cursor::new(content).elements(|cursor| {
                let part = if cursor.peek() == Some(b'"') {
                    let text = cursor.value()?;
                    check(text)?;
                    Block::text(decode(text))
                } else {
                    Block::read(cursor)?
                };
                out.push_str(if std::mem::take(&mut is_first) { "" } else { "," });
                out.push_str(&part.json);
                *size += part.size.in_result();
                Ok(())
            })?;
        }
        Some(b'"') => {
            let length = check(content)?;
            if length > 0 {
                *size += Size { result_bytes: length, ..Size::default() };
                out.push_str(r#"{"type":"text","text":"#);
                out.push_str(content);
                out.push('}');
            }
        }
        _ if content == "null" => {}
        _ => {
            *size += Size { result_bytes: check(content)?, ..Size::default() };
            out.push_str(Block::text(content).json());
        }
    }
    out.push(']');
    Ok(())
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

/// True if a JSON string literal is empty or only white space.
fn is_blank(literal: &str) -> bool {
    let inside = literal.trim_start_matches('"').trim_start_matches([' ', '\\', 'n', 't', 'r']);
    // Almost always the first character tells; only what begins like white space is decoded.
    (inside.is_empty() || inside.len() < literal.len() - 1) && decode(literal).trim().is_empty()
}

/// A text as a JSON string literal.
pub(super) fn literal(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

/// The text of a JSON string literal.
pub(super) fn decode(literal: &str) -> Cow<'_, str> {
    Text::read(literal).unwrap_or_default().0
}
