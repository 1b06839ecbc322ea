//! Sessions of the agent `pi`, translated line by line.
//!
//! Its lines have no ids and no parents: order is the conversation, and a compaction counts entries. So this reader
//! keeps a count, names each line by it, and hands out lines as if we had written them.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Body, Line, MalformedLine, TextSource, Writer};
use crate::block::Block;
use crate::commit::{Act, Commit, Extent, Reason, Trigger};
use crate::id::Id;
use crate::message::{StopReason, Usage};

/// Reads the lines of one file: ours and Claude Code's as they are, pi's translated once its header has been seen.
#[derive(Debug, Default)]
pub struct Translator {
    pi: Option<Pi>,
}

#[derive(Debug, Default)]
struct Pi {
    entries: usize,
    last: Option<Id>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PiEntry<'a> {
    #[serde(rename = "type")]
    kind: String,
    timestamp: Option<String>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    summary: Option<String>,
    first_kept_entry_index: Option<usize>,
    #[serde(default)]
    tokens_before: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PiMessage {
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    model: String,
    usage: Option<PiUsage>,
    stop_reason: Option<String>,
    #[serde(default)]
    tool_call_id: String,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    command: String,
    #[serde(default)]
    output: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PiUsage {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

impl Translator {
    /// True if the lines are pi's, so that each depends on those before it.
    pub fn is_translating(&self) -> bool {
        self.pi.is_some()
    }

    /// Reads the next line; one line of pi's can be two of ours (a compaction and its summary).
    pub fn parse(&mut self, bytes: &[u8]) -> Result<Vec<Line>, MalformedLine> {
        if self.pi.is_none() && is_pi_header(bytes) {
            self.pi = Some(Pi::default());
        }
        match &mut self.pi {
            Some(pi) => pi.parse(bytes),
            None => Line::parse(bytes).map(|line| vec![line]),
        }
    }
}

/// Files of pi begin with a line of type `session` that names the model's provider; no other program's do.
fn is_pi_header(bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Header {
        r#type: String,
        #[serde(rename = "id")]
        _id: String,
        #[serde(rename = "cwd")]
        _cwd: String,
    }
    // Every line of a file is asked, so the answer has to be cheap: almost none has the word in it.
    bytes.len() < 16_384
        && memchr::memmem::find(bytes, b"\"session\"").is_some()
        && serde_json::from_slice::<Header>(bytes).is_ok_and(|header| header.r#type == "session")
}

impl Pi {
    fn parse(&mut self, bytes: &[u8]) -> Result<Vec<Line>, MalformedLine> {
        let entry: PiEntry<'_> = serde_json::from_slice(bytes)?;
        let index = self.entries;
        self.entries += 1;
        let id = Id::from(name(index));
        let line = |id: &Id, parent: Option<Id>, body: Body| Line {
            id: Some(id.clone()),
            parent,
            time: entry.timestamp.as_deref().and_then(|time| time.parse().ok()),
            sidechain: false,
            writer: Writer::Other,
            body,
            extra: None,
            kept: None,
            result: None,
        };
        let body = match (entry.kind.as_str(), entry.message) {
            ("message", Some(raw)) => serde_json::from_str::<PiMessage>(raw.get())?.body(&id),
            ("compaction", _) => {
                let kept = entry.first_kept_entry_index.map(|index| Id::from(name(index)));
                let extent = kept.map_or(Extent::Everything, Extent::Before);
                let act = Act::Compact { extent, trigger: Trigger::Auto, pre_tokens: entry.tokens_before };
                let boundary = Body::Commit(Commit { act, reason: Reason::default() });
                let summary = Body::User {
                    blocks: vec![Block::text(entry.summary.unwrap_or_default())],
                    source: TextSource::Summary,
                };
                let summary_id = Id::from(format!("{id}-summary"));
                let parent = self.last.replace(summary_id.clone());
                return Ok(vec![line(&id, parent, boundary), line(&summary_id, Some(id.clone()), summary)]);
            }
            _ => Body::Other,
        };
        let line = line(&id, self.last.clone(), body);
        if line.in_chain() {
            self.last = Some(id);
        }
        Ok(vec![line])
    }
}

fn name(index: usize) -> String {
    format!("entry-{index}")
}

impl PiMessage {
    fn body(self, id: &Id) -> Body {
        let blocks = blocks_from_pi(self.content);
        match self.role.as_str() {
            "user" => Body::User { blocks, source: TextSource::Direct },
            "toolResult" => {
                let outcome = if self.is_error { crate::Outcome::Failed } else { crate::Outcome::Done };
                let result = Block::tool_result(&self.tool_call_id, &blocks, outcome);
                Body::User { blocks: vec![result], source: TextSource::Direct }
            }
            "bashExecution" => {
                let text = format!("Ran `{}`\n{}", self.command, self.output);
                Body::User { blocks: vec![Block::text(text)], source: TextSource::Injected }
            }
            "assistant" if !blocks.is_empty() => Body::Assistant {
                id: id.clone(),
                model: self.model,
                blocks,
                usage: self
                    .usage
                    .filter(|usage| usage.input.max(usage.cache_read).max(usage.cache_write) > 0)
                    .map(Usage::from),
                stop: self.stop_reason.map(|reason| match reason.as_str() {
                    "toolUse" => StopReason::ToolUse,
                    "stop" => StopReason::EndTurn,
                    "length" => StopReason::MaxTokens,
                    _ => StopReason::Other(reason),
                }),
            },
            _ => Body::Other,
        }
    }
}

impl From<PiUsage> for Usage {
    fn from(usage: PiUsage) -> Self {
        Self {
            input_tokens: usage.input,
            cache_read_input_tokens: usage.cache_read,
            cache_creation_input_tokens: usage.cache_write,
            output_tokens: usage.output,
            ..Self::default()
        }
        .bounded()
    }
}

fn blocks_from_pi(content: Value) -> Vec<Block> {
    let parts = match content {
        Value::Array(parts) => parts,
        Value::String(text) => return vec![Block::text(text)],
        _ => return Vec::new(),
    };
    let parts = parts.into_iter().map(|mut part| match part["type"].as_str() {
        Some("toolCall") => {
            let input = part["arguments"].take();
            Block::tool_use(part["id"].as_str().unwrap_or_default(), part["name"].as_str().unwrap_or_default(), &input)
        }
        Some("thinking") => Block::from_value(json!({
            "type": "thinking", "thinking": part["thinking"], "signature": part["thinkingSignature"],
        })),
        Some("image") => {
            Block::image(part["mimeType"].as_str().unwrap_or("image/png"), part["data"].as_str().unwrap_or_default())
        }
        _ => Block::from_value(part),
    });
    parts.collect()
}
