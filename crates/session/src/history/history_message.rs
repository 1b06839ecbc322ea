//! A message of a session file, as it was: whatever became of it in view.

use std::collections::HashSet;
use std::path::Path;

use jiff::Timestamp;
use tools::TypedTool;
use transcript::block::Kind;
use transcript::commit::Act;
use transcript::line::{Body, Line, TextSource};
use transcript::{Block, Id};

use super::History;
use crate::record;

/// A message as it was.
pub(super) struct HistoryMessage {
    pub(super) id: Id,
    /// Ids of its calls, or of the calls it answers.
    pub(super) calls: Vec<String>,
    pub(super) time: Option<Timestamp>,
    pub(super) who: &'static str,
    pub(super) text: String,
}

pub(super) fn heading(message: &HistoryMessage, session: Option<&str>) -> String {
    let time = message.time.map(|time| format!(", {time:.0}")).unwrap_or_default();
    let calls = if message.calls.is_empty() { String::new() } else { format!(", calls {}", message.calls.join(" ")) };
    let session = session.map(|session| format!(", session {session}")).unwrap_or_default();
    format!("{} ({}{time}{calls}{session})", message.id, message.who)
}

/// The messages of a session file, in order.
pub(super) fn read(path: &Path) -> Result<Vec<HistoryMessage>, String> {
    let (lines, _) = record::lines(path).map_err(|error| error.to_string())?;
    let mut messages: Vec<HistoryMessage> = lines.iter().filter_map(message).collect();
    // What was looked up here before is only said once.
    let called = |line: &Line| match &line.body {
        Body::Assistant { blocks, .. } => blocks.iter().filter_map(own_call).collect(),
        _ => Vec::new(),
    };
    let own: HashSet<String> = lines.iter().flat_map(called).collect();
    let is_own =
        |message: &&mut HistoryMessage| message.who == "result" && message.calls.iter().all(|id| own.contains(id));
    messages.iter_mut().filter(is_own).for_each(|message| message.who = "beside");
    Ok(messages)
}

/// The id of a call of this tool.
fn own_call(block: &Block) -> Option<String> {
    match block.kind() {
        Kind::ToolUse { id, name } if **name == *History::NAME => Some(id.to_string()),
        _ => None,
    }
}

pub(super) fn message(line: &Line) -> Option<HistoryMessage> {
    let (who, blocks) = match &line.body {
        Body::User { blocks, source: TextSource::Direct } => ("user", blocks),
        Body::User { blocks, source: TextSource::Summary } => ("summary", blocks),
        Body::User { blocks, source: TextSource::Injected } | Body::Attachment { blocks } => ("beside", blocks),
        Body::Assistant { blocks, .. } => ("assistant", blocks),
        Body::Commit(commit) => return written_down(line, &commit.act),
        _ => return None,
    };
    let mut calls = Vec::new();
    let mut texts = Vec::new();
    let mut who = who;
    for block in blocks {
        match block.kind() {
            Kind::Text => texts.extend(block.as_text()),
            Kind::ToolUse { .. } if own_call(block).is_some() => {}
            Kind::ToolUse { id, name } => {
                calls.push(id.to_string());
                texts.push(format!("{name} {}", block.input().unwrap_or_default()));
            }
            Kind::ToolResult { id, .. } => {
                who = "result";
                calls.push(id.to_string());
                texts.push(block.result_text());
            }
            Kind::Image => texts.push("[image]".to_owned()),
            Kind::Document => texts.push("[document]".to_owned()),
            Kind::Thinking | Kind::Other => {}
        }
    }
    let text = texts.join("\n");
    let id = line.id.clone()?;
    (!text.is_empty()).then_some(HistoryMessage { id, calls, time: line.time, who, text })
}

/// The text that a commit puts in the place of what it took out of view.
fn written_down(line: &Line, act: &Act) -> Option<HistoryMessage> {
    let text = match act {
        Act::Clear { digest: Some(text), .. } | Act::Collapse { summary: text, .. } => text.clone(),
        _ => return None,
    };
    Some(HistoryMessage { id: line.id.clone()?, calls: Vec::new(), time: line.time, who: "summary", text })
}
