//! The request body: the blocks' own bytes, laid end to end.
//!
//! The provider caches a prefix of what it reads, so the same blocks must be the same bytes in every request. A block is
//! therefore copied as [`Block::json`] has it and never serialised again. The body follows the order in which the
//! provider caches, tools, system, messages; everything that follows the messages may differ without harm. A cache
//! breakpoint is written into the closing brace of the block it stands on.
//!
//! Two requests of which one continues the other, breakpoints aside, are thus the same bytes up to the end of the last
//! block they share. What it refuses to do: check or place breakpoints; those are given.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use transcript::block::Kind;
use transcript::mark::{BlockPlace, Marks, ProviderCacheEdit, Ttl};
use transcript::{Block, Message, Prologue, Request, Role};

/// The beta under which the provider says why its cache did not hold.
pub const DIAGNOSIS: &str = "cache-diagnosis-2026-04-07";

/// The provider's search in the version that every model takes. The one from 2026 runs code besides, and newer models alone
/// take it.
const WEB_SEARCH: &str = "web_search_20250305";

/// The body that asks for a streamed reply.
pub fn messages(request: &Request) -> Bytes {
    let max_tokens = format!(",\"max_tokens\":{}", request.prologue.max_tokens);
    write(request, &max_tokens, &request.marks, ",\"stream\":true}").into()
}

/// The body that asks how many tokens the request is.
pub fn count(request: &Request) -> Bytes {
    write(request, "", &Marks::default(), "}").into()
}

fn write(request: &Request, after_model: &str, marks: &Marks, end: &str) -> String {
    let model = serialise(&request.prologue.model);
    let tools = tools(&request.prologue);
    let mut body = Body(String::with_capacity(room(request, model.len() + tools.len())));
    body.raw("{\"model\":");
    body.raw(&model);
    body.raw(after_model);
    if !tools.is_empty() {
        body.raw(",\"tools\":");
        body.raw(&tools);
    }
    body.prompt(&request.prologue, &request.messages, marks);
    body.raw(end);
    body.0
}

/// All tools as a list; nothing if there are none. Those that were loaded later come last, and leave the prefix as it is.
fn tools(prologue: &Prologue) -> String {
    let deferred = prologue.loaded.iter().filter_map(|tool| {
        let mut tool = serde_json::to_value(tool).ok()?;
        tool["defer_loading"] = true.into();
        Some(tool.to_string())
    });
    let search = prologue.web_search.as_ref().map(|offer| {
        let mut tool = serde_json::to_value(offer).unwrap_or_default();
        (tool["type"], tool["name"]) = (WEB_SEARCH.into(), "web_search".into());
        tool.to_string()
    });
    let all: Vec<String> = prologue.tools.iter().map(serialise).chain(search).chain(deferred).collect();
    if all.is_empty() { String::new() } else { format!("[{}]", all.join(",")) }
}

/// Small things that are no blocks. Strings, numbers and schemas always serialise.
fn serialise(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

/// Room for all of it, so that it is written in one pass: what is known, and a little for the frame around it.
fn room(request: &Request, known: usize) -> usize {
    const FRAME: usize = 256;
    const PER_MESSAGE: usize = 40;
    let blocks = |blocks: &[Block]| blocks.iter().map(|block| block.json().len() + 1).sum::<usize>();
    let messages = request.messages.iter().map(|message| PER_MESSAGE + blocks(&message.blocks));
    let marks = (request.marks.system.len() + request.marks.messages.len()) * LONGEST_MARK;
    FRAME + known + blocks(&request.prologue.system) + messages.sum::<usize>() + marks
}

/// Additions to a block.
#[derive(Default)]
struct BlockExtras<'a> {
    /// True if a cache breakpoint stands on it.
    marked: bool,
    /// The name under which it can be dropped from the cache.
    reference: Option<Arc<str>>,
    /// Edits of the cache that follow it.
    edits: Vec<&'a ProviderCacheEdit>,
}

impl BlockExtras<'_> {
    fn marked(marked: bool) -> Self {
        Self { marked, ..Self::default() }
    }
}

/// Additions to the blocks of the messages. If the cache is edited, each result before the last breakpoint has a name
/// there; without a breakpoint there is no cache to edit.
struct Annotations<'a> {
    marks: &'a Marks,
    last: Option<BlockPlace>,
}

impl<'a> Annotations<'a> {
    fn new(marks: &'a Marks) -> Self {
        let last = marks.messages.iter().max().copied().filter(|_| !marks.edits.is_empty());
        Self { marks, last }
    }

    fn extras(&self, place: BlockPlace, block: &Block) -> BlockExtras<'a> {
        let reference = match block.kind() {
            Kind::ToolResult { id, .. } if self.last.is_some_and(|last| place <= last) => Some(id.clone()),
            _ => None,
        };
        let edits = self.marks.edits.iter().filter(|edit| self.last.is_some() && edit.behind == place);
        BlockExtras { marked: self.marks.messages.contains(&place), reference, edits: edits.collect() }
    }
}

/// A body being written.
struct Body(String);

impl Body {
    fn prompt(&mut self, prologue: &Prologue, messages: &[Message], marks: &Marks) {
        if !prologue.system.is_empty() {
            self.raw(",\"system\":");
            self.blocks(&prologue.system, marks.ttl, |block| BlockExtras::marked(marks.system.contains(&block)));
        }
        let annotations = Annotations::new(marks);
        self.raw(",\"messages\":[");
        for (message, Message { role, blocks }) in messages.iter().enumerate() {
            self.raw(if message == 0 { "" } else { "," });
            self.raw(match role {
                Role::User => "{\"role\":\"user\",\"content\":",
                Role::Assistant => "{\"role\":\"assistant\",\"content\":",
            });
            self.blocks(blocks, marks.ttl, |block| annotations.extras(BlockPlace { message, block }, &blocks[block]));
            self.raw("}");
        }
        self.raw("]");
        if let Some(thinking) = &prologue.thinking {
            self.raw(",\"thinking\":");
            self.raw(&serialise(thinking));
        }
        self.output(prologue);
        if let Some(management) = &prologue.context_management {
            self.raw(",\"context_management\":");
            self.raw(&serialise(management));
        }
        if let Some(previous) = marks.after.as_ref().filter(|_| prologue.betas.iter().any(|beta| beta == DIAGNOSIS)) {
            self.raw(",\"diagnostics\":{\"previous_message_id\":");
            self.raw(&serialise(previous));
            self.raw("}");
        }
    }

    /// Writes `output_config`: format and effort of the reply.
    fn output(&mut self, prologue: &Prologue) {
        let format = prologue.format.as_ref().map(|schema| json!({"type": "json_schema", "schema": schema}));
        let effort = prologue.effort.map(|effort| json!(effort));
        let parts = [("format", format), ("effort", effort)].into_iter();
        let parts: Map<String, Value> = parts.filter_map(|(name, part)| Some((name.to_owned(), part?))).collect();
        if !parts.is_empty() {
            self.raw(",\"output_config\":");
            self.raw(&serialise(&parts));
        }
    }

    fn blocks<'m>(&mut self, blocks: &[Block], ttl: Ttl, beside: impl Fn(usize) -> BlockExtras<'m>) {
        self.raw("[");
        for (index, block) in blocks.iter().enumerate() {
            self.raw(if index == 0 { "" } else { "," });
            let BlockExtras { marked, reference, edits } = beside(index);
            match block.json().strip_suffix('}') {
                Some(open) if marked || reference.is_some() => {
                    self.raw(open);
                    self.raw(if open == "{" { "" } else { "," });
                    if let Some(id) = &reference {
                        self.raw("\"cache_reference\":");
                        self.raw(&serialise(&&**id));
                        self.raw(if marked { "," } else { "" });
                    }
                    self.raw(if marked { mark(ttl) } else { "" });
                    self.raw("}");
                }
                _ => self.raw(block.json()),
            }
            for edit in edits {
                let delete = |id: &String| json!({"type": "delete", "cache_reference": id});
                let deletes: Vec<Value> = edit.results.iter().map(delete).collect();
                self.raw(",");
                self.raw(&serialise(&json!({"type": "cache_edits", "edits": deletes})));
            }
        }
        self.raw("]");
    }

    fn raw(&mut self, text: &str) {
        self.0.push_str(text);
    }
}

const LONGEST_MARK: usize = mark(Ttl::OneHour).len() + 1;

const fn mark(ttl: Ttl) -> &'static str {
    match ttl {
        Ttl::FiveMinutes => r#""cache_control":{"type":"ephemeral"}"#,
        Ttl::OneHour => r#""cache_control":{"type":"ephemeral","ttl":"1h"}"#,
    }
}

#[cfg(test)]
mod tests;
