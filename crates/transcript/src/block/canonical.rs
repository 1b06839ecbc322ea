//! A block's canonical form: known keys first and in order, values as they were written, annotations dropped.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::{Block, Kind};
use crate::size::Size;
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

impl Block {
    /// As [`Block::parse`], of what is known to be valid JSON and without building a tree: known keys first and in
    /// order, values as they were written, annotations dropped.
    pub(super) fn canonical(json: &str) -> Self {
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
pub(super) fn literal(text: &str) -> String {
    Value::from(text).to_string()
}

/// The text of a JSON string literal.
pub(super) fn decode(literal: &str) -> Cow<'_, str> {
    Text::read(literal).unwrap_or_default().0
}

/// How many bytes the text of a JSON string literal has, without decoding it.
pub(super) fn decoded_len(literal: &str) -> usize {
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
