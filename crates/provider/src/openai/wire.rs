//! The servers' side of the vocabulary: chunks, deltas and counts as they come over the wire.
//!
//! Servers agree on the outline and differ in the rest: any field may be missing or null, content may be a string or a
//! list of parts, a call's arguments may be text or an object. All of it is read; what has no use here is passed over.

use serde::Deserialize;
use serde_json::Value;
use transcript::Usage;

/// One chunk of a stream, or a whole reply: the two differ only in whether a choice holds a `delta` or a `message`.
#[derive(Debug, Deserialize)]
pub(crate) struct Chunk {
    pub(crate) id: Option<String>,
    pub(crate) model: Option<String>,
    /// Absent from a chunk that only counts.
    pub(crate) choices: Option<Vec<WireChoice>>,
    pub(crate) usage: Option<Counts>,
}

/// One of the answers; we ask for one.
#[derive(Debug, Deserialize)]
pub(crate) struct WireChoice {
    #[serde(default)]
    pub(crate) index: u64,
    #[serde(alias = "message")]
    pub(crate) delta: Option<Delta>,
    pub(crate) finish_reason: Option<String>,
}

/// A piece of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Delta {
    pub(crate) content: Option<TextContent>,
    /// Thinking, as llama.cpp, vLLM, DeepSeek and others name it.
    reasoning_content: Option<String>,
    /// Thinking, as Ollama, OpenRouter and newer vLLM name it.
    reasoning: Option<String>,
    /// The model's text in place of an answer it declines to give.
    pub(crate) refusal: Option<String>,
    pub(crate) tool_calls: Option<Vec<CallPiece>>,
}

impl Delta {
    /// Thinking. A server that uses both names says the same twice.
    pub(crate) fn thinking(&mut self) -> Option<String> {
        let pieces = [self.reasoning_content.take(), self.reasoning.take()];
        pieces.into_iter().flatten().find(|piece| !piece.is_empty())
    }
}

/// Text, whole or in parts.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum TextContent {
    Text(String),
    Parts(Vec<ContentPart>),
}

/// A part of a content; only text is of use.
#[derive(Debug, Deserialize)]
pub(crate) struct ContentPart {
    #[serde(default)]
    text: String,
}

impl TextContent {
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Parts(parts) => parts.into_iter().map(|part| part.text).collect(),
        }
    }
}

/// A piece of a tool call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CallPiece {
    pub(crate) index: Option<u64>,
    pub(crate) id: Option<String>,
    pub(crate) function: Option<Function>,
}

/// The function and its arguments.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Function {
    pub(crate) name: Option<String>,
    arguments: Option<Value>,
}

impl Function {
    /// The next piece of the arguments as text. Some servers send them as the object they stand for.
    pub(crate) fn into_arguments(self) -> String {
        match self.arguments {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text,
            Some(whole) => whole.to_string(),
        }
    }
}

/// Usage as a server reports it: any of it may be missing.
#[derive(Debug, Deserialize)]
pub(crate) struct Counts {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
}

#[derive(Debug, Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
}

impl Counts {
    /// In our terms: input from a cache is counted apart from the rest, and writing to it is free.
    pub(crate) fn usage(&self) -> Usage {
        let prompt = self.prompt_tokens.unwrap_or(0);
        let cached = self.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens).unwrap_or(0);
        let cached = cached.min(prompt);
        Usage {
            input_tokens: prompt - cached,
            cache_read_input_tokens: cached,
            output_tokens: self.completion_tokens.unwrap_or(0),
            ..Usage::default()
        }
        .bounded()
    }
}
