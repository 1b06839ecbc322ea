//! The request body: a conversation of blocks, told as a conversation of chat messages.
//!
//! Both have the same turns and differ in what a turn may hold. The rules, in order:
//!
//! - The system blocks become one system message, and text blocks of one turn one text, a blank line between them.
//! - A turn's tool results become `tool` messages of their own, in order, before anything else the turn says: they must
//!   follow the calls they answer.
//! - A `tool` message holds only text. Pictures in a result move to the user message behind the results, under a line
//!   that says where they come from.
//! - Pictures go as `image_url`, most often a data URI. Documents cannot be sent: plain text is put in as text, anything
//!   else leaves a note in its place, so that the model knows and can say so.
//! - Thinking is left out, and so are cache breakpoints: these servers cache prefixes by themselves.
//!
//! A message's bytes depend on its turn alone, so a conversation that goes on keeps the bytes it began with.

use std::fmt::Write as _;

use bytes::Bytes;
use serde_json::{Value, json};
use transcript::block::Kind;
use transcript::{Block, Message, Prologue, Request, Role};

use super::OutputLimit;

/// Stands between the text blocks of one turn.
const BETWEEN: &str = "\n\n";
/// Text of an empty result: some templates cannot handle an empty one.
const NO_OUTPUT: &str = "(no output)";

/// The body that asks for a streamed reply.
pub fn completions(request: &Request, limit: OutputLimit) -> Bytes {
    let Prologue { model, max_tokens, system, tools, loaded, .. } = &*request.prologue;
    let mut messages: Vec<Value> = Vec::new();
    let system: Vec<String> = system.iter().filter_map(Block::as_text).collect();
    if !system.is_empty() {
        messages.push(json!({"role": "system", "content": system.join(BETWEEN)}));
    }
    for Message { role, blocks } in &request.messages {
        match role {
            Role::User => user(blocks, &mut messages),
            Role::Assistant => messages.push(assistant(blocks)),
        }
    }
    // What may differ between two requests of a conversation stands behind the messages.
    let mut body = json!({ "model": model });
    if !tools.is_empty() || !loaded.is_empty() {
        let tool = |tool: &transcript::ToolDefinition| {
            let function = json!({"name": tool.name, "description": tool.description, "parameters": tool.input_schema});
            json!({"type": "function", "function": function})
        };
        body["tools"] = tools.iter().chain(loaded).map(tool).collect();
    }
    body["messages"] = Value::Array(messages);
    body[limit.name()] = json!(max_tokens);
    body["stream"] = json!(true);
    body["stream_options"] = json!({"include_usage": true});
    if let Some(schema) = &request.prologue.format {
        let schema = json!({"name": "reply", "strict": true, "schema": schema});
        body["response_format"] = json!({"type": "json_schema", "json_schema": schema});
    }
    body.to_string().into()
}

fn assistant(blocks: &[Block]) -> Value {
    let texts: Vec<String> = blocks.iter().filter_map(text).collect();
    let call = |block: &Block| match block.kind() {
        Kind::ToolUse { id, name } => {
            let arguments = block.input().unwrap_or_else(|| json!({})).to_string();
            Some(json!({"id": **id, "type": "function", "function": {"name": **name, "arguments": arguments}}))
        }
        _ => None,
    };
    let calls: Vec<Value> = blocks.iter().filter_map(call).collect();
    if calls.is_empty() {
        return json!({"role": "assistant", "content": texts.join(BETWEEN)});
    }
    // By the book, and as the servers themselves say it.
    let content = if texts.is_empty() { Value::Null } else { texts.join(BETWEEN).into() };
    json!({"role": "assistant", "content": content, "tool_calls": calls})
}

/// A user's turn: its results as messages of their own, then the rest as one.
fn user(blocks: &[Block], messages: &mut Vec<Value>) {
    let mut moved = Vec::new();
    let mut said = Vec::new();
    for block in blocks {
        match block.kind() {
            Kind::ToolResult { id, failed } => messages.push(result(block, id, *failed, &mut moved)),
            _ => said.extend(part(block)),
        }
    }
    moved.extend(said);
    if !moved.is_empty() {
        messages.push(json!({"role": "user", "content": content(moved)}));
    }
}

/// A result as a `tool` message; its pictures move to where they can be seen.
fn result(block: &Block, id: &str, failed: bool, moved: &mut Vec<MessagePart>) -> Value {
    let mut text = if failed { "Error: ".to_owned() } else { String::new() };
    let mut pictures = 0;
    let parts = block.result_content();
    for (index, part) in parts.iter().filter_map(part).enumerate() {
        text.push_str(if index == 0 { "" } else { "\n" });
        match part {
            MessagePart::Text(words) => text.push_str(&words),
            MessagePart::Picture(url) => {
                pictures += 1;
                // Writing to a string cannot fail.
                let _ = write!(text, "[picture {pictures}, shown in the next user message]");
                moved.push(MessagePart::Text(format!("Picture {pictures} from the result of tool call {id}:")));
                moved.push(MessagePart::Picture(url));
            }
        }
    }
    if text.is_empty() {
        text.push_str(NO_OUTPUT);
    }
    json!({"role": "tool", "tool_call_id": id, "content": text})
}

/// A part of a message.
enum MessagePart {
    Text(String),
    Picture(String),
}

/// Translation of a block in a user's turn.
fn part(block: &Block) -> Option<MessagePart> {
    match block.kind() {
        Kind::Text => text(block).map(MessagePart::Text),
        Kind::Image => Some(picture(&block.value()["source"])),
        Kind::Document => Some(MessagePart::Text(document(&block.value()))),
        Kind::Other => {
            let kind = block.value()["type"].as_str().unwrap_or("unknown").to_owned();
            Some(MessagePart::Text(format!("[a block of the kind {kind}, which cannot be sent to this model]")))
        }
        Kind::Thinking | Kind::ToolUse { .. } | Kind::ToolResult { .. } => None,
    }
}

fn text(block: &Block) -> Option<String> {
    block.as_text().filter(|_| block.is_sendable())
}

fn picture(source: &Value) -> MessagePart {
    let field = |key: &str| source[key].as_str().unwrap_or_default();
    match field("type") {
        "base64" => MessagePart::Picture(format!("data:{};base64,{}", field("media_type"), field("data"))),
        "url" => MessagePart::Picture(field("url").to_owned()),
        _ => MessagePart::Text(
            "[a picture that is stored with another provider and cannot be sent to this model]".into(),
        ),
    }
}

fn document(block: &Value) -> String {
    let source = &block["source"];
    let title = block["title"].as_str().map(|title| format!(" \"{title}\"")).unwrap_or_default();
    match (source["type"].as_str(), source["data"].as_str()) {
        (Some("text"), Some(text)) => format!("[document{title}]\n{text}"),
        _ => {
            let kind = source["media_type"].as_str().unwrap_or("unknown kind");
            format!("[document{title} ({kind}): documents cannot be sent to this model]")
        }
    }
}

/// Text alone is a string, which every server's template understands; with pictures it is a list.
fn content(parts: Vec<MessagePart>) -> Value {
    if parts.iter().any(|part| matches!(part, MessagePart::Picture(_))) {
        let list = parts.into_iter().map(|part| match part {
            MessagePart::Text(text) => json!({"type": "text", "text": text}),
            MessagePart::Picture(url) => json!({"type": "image_url", "image_url": {"url": url}}),
        });
        return list.collect();
    }
    let texts: Vec<String> = parts.into_iter().filter_map(MessagePart::into_text).collect();
    texts.join(BETWEEN).into()
}

impl MessagePart {
    fn into_text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            Self::Picture(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
