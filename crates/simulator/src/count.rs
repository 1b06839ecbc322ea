//! Token counting: deterministic, plausible, and not anyone's tokeniser.
//!
//! Each character weighs a fixed part of a token by its class, so that English prose comes to about 3.5 bytes a
//! token, JSON and digits are denser, and one CJK character is about one token. A client's own estimate must
//! survive a provider that counts otherwise, so a `factor` scales every count: `1.15` is a provider that counts
//! 15 % more than this one.
//!
//! Tokens belong to positions of the prompt (see [`cached_prompt`](crate::cached_prompt)); the count of a request is the sum over
//! them, which is why the cache split of a request always adds up to its `count_tokens`.

use serde_json::Value;

/// A tool definition costs this much beyond its text.
const PER_TOOL: u64 = 12;
/// The instructions on tool use that the provider adds once when there is any tool.
const TOOL_PREAMBLE: u64 = 290;
/// The markers around one turn.
const PER_TURN: u64 = 4;
/// An image, whatever its size: about what 1,200 by 1,000 pixels cost.
const PER_IMAGE: u64 = 1_600;
/// A page of a document is about 3 KB of base64 and some 2,000 tokens; this keeps the proportion.
const DOCUMENT_BYTES_PER_TOKEN: u64 = 6;

/// Counts tokens, scaled by a factor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counter {
    factor: f64,
}

impl Counter {
    pub(crate) fn new(factor: f64) -> Self {
        Self { factor: if factor.is_finite() && factor > 0.0 { factor } else { 1.0 } }
    }

    /// The tokens of a text.
    pub(crate) fn text(self, text: &str) -> u64 {
        self.scale(text_tokens(text))
    }

    /// The tokens of a tool definition; `first` carries the preamble.
    pub(crate) fn tool(self, tool: &Value, first: bool) -> u64 {
        self.scale(PER_TOOL + json_tokens(tool) + if first { TOOL_PREAMBLE } else { 0 })
    }

    /// The tokens of a content block; the first of a turn carries the turn's markers.
    pub(crate) fn block(self, block: &Value, opens_turn: bool) -> u64 {
        self.scale(block_tokens(block) + if opens_turn { PER_TURN } else { 0 })
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts are small and not negative"
    )]
    fn scale(self, tokens: u64) -> u64 {
        (tokens as f64 * self.factor).round() as u64
    }
}

/// Hundredths of a token, by class of character.
fn weight(c: char) -> u64 {
    match c {
        'a'..='z' | 'A'..='Z' => 28,
        ' ' | '\n' | '\t' | '\r' => 24,
        '0'..='9' => 45,
        c if c.is_ascii() => 52,
        '\u{80}'..='\u{2fff}' => 60,
        '\u{3000}'..='\u{ffff}' => 100,
        _ => 200,
    }
}

fn text_tokens(text: &str) -> u64 {
    text.chars().map(weight).sum::<u64>().div_ceil(100)
}

fn block_tokens(block: &Value) -> u64 {
    let text = |key: &str| block[key].as_str().map_or(0, text_tokens);
    match block["type"].as_str().unwrap_or_default() {
        "text" => text("text"),
        "thinking" => text("thinking") + 8,
        "redacted_thinking" => text("data") / 2,
        "image" => PER_IMAGE,
        "document" => match block["source"]["data"].as_str() {
            Some(data) if block["source"]["type"] == "base64" => data.len() as u64 / DOCUMENT_BYTES_PER_TOKEN,
            _ => json_tokens(block),
        },
        "tool_use" | "server_tool_use" => text("name") + json_tokens(&block["input"]) + 16,
        "tool_result" => 16 + content_tokens(&block["content"]),
        // An instruction to the cache, which the model never sees.
        "cache_edits" => 0,
        _ => json_tokens(block),
    }
}

fn content_tokens(content: &Value) -> u64 {
    match content {
        Value::String(text) => text_tokens(text),
        Value::Array(blocks) => blocks.iter().map(block_tokens).sum(),
        _ => 0,
    }
}

/// Like counting the serialised value, without building it.
fn json_tokens(value: &Value) -> u64 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(number) => text_tokens(&number.to_string()),
        Value::String(text) => 1 + text_tokens(text),
        Value::Array(items) => 1 + items.iter().map(json_tokens).sum::<u64>(),
        Value::Object(fields) => {
            1 + fields
                .iter()
                .filter(|(key, _)| *key != "cache_control")
                .map(|(key, value)| 1 + text_tokens(key) + json_tokens(value))
                .sum::<u64>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn bytes_per_token(text: &str) -> f64 {
        text.len() as f64 / text_tokens(text) as f64
    }

    #[test]
    fn prose_is_about_three_and_a_half_bytes_a_token() {
        let prose = "The quick brown fox jumps over the lazy dog, and then it sleeps in the warm grass until noon.";
        let ratio = bytes_per_token(prose);
        assert!((3.2..3.9).contains(&ratio), "{ratio}");
    }

    #[test]
    fn digits_and_json_are_denser_than_prose_and_cjk_is_one_a_character() {
        assert!(bytes_per_token("1234567890123456789012345678901234567890") < 2.5);
        assert!(bytes_per_token(r#"{"a":[1,2,{"b":"c"}],"d":null,"e":[[],{}]}"#) < 2.6);
        assert_eq!(text_tokens("山石路碑"), 4);
    }

    #[test]
    fn the_factor_scales_and_nonsense_factors_are_ignored() {
        let text = "word ".repeat(1_000);
        let plain = Counter::new(1.0).text(&text);
        let more = Counter::new(1.15).text(&text);
        assert_eq!(more, (plain as f64 * 1.15).round() as u64);
        assert_eq!(Counter::new(f64::NAN).text(&text), plain);
        assert_eq!(Counter::new(-1.0).text(&text), plain);
    }

    #[test]
    fn an_image_is_flat_and_an_annotation_is_free() {
        let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}});
        assert_eq!(Counter::new(1.0).block(&image, false), PER_IMAGE);
        let tool = json!({"name": "Bash", "description": "runs", "input_schema": {"type": "object"}});
        let mut marked = tool.clone();
        marked["cache_control"] = json!({"type": "ephemeral"});
        let counter = Counter::new(1.0);
        assert_eq!(counter.tool(&tool, true), counter.tool(&marked, true));
    }
}
