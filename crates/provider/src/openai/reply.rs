//! A reply, put together from the chunks of its stream.
//!
//! Chat completions never say that a part of a message has ended, only that the message has: so the blocks are complete,
//! and handed over, all at once, text first and calls after it. Thinking is shown and not kept: there is no signature to
//! send back, and the servers' templates leave it out of past turns anyway.
//!
//! A reply is complete when its finish reason has come, whether or not `[DONE]` does. The counts come after it, in a
//! chunk of their own; a server that hangs up before is forgiven, and the reply counts as having cost nothing.

use transcript::{Block, Remarks, Reply, StopReason, Usage};

use super::calls::Calls;
use super::wire::{Chunk, WireChoice};
use crate::event::Event;
use crate::exchange::{self, AnswerFault};
use crate::refusal::Complaint;
use crate::retry::seed;

/// Regular end of a stream.
const DONE: &str = "[DONE]";

/// Ollama numbers its replies at random below 1,000. An id with no more digits than this is no id.
const RANDOM_DIGITS: usize = 6;

/// A reply in the making.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    seed: u64,
    head: Option<(String, String)>,
    text: String,
    calls: Calls,
    /// Set once the message has ended.
    blocks: Option<Vec<Block>>,
    finish_reason: Option<String>,
    usage: Usage,
    ended: bool,
}

impl Draft {
    fn take(&mut self, chunk: Chunk) -> Result<Vec<Event>, String> {
        let mut shown = Vec::new();
        let choices = chunk.choices.unwrap_or_default();
        // Some servers send a chunk or two about other things first, without an id.
        if self.head.is_none() && !choices.is_empty() {
            let (id, model) = (self.unique(chunk.id.unwrap_or_default()), chunk.model.unwrap_or_default());
            self.head = Some((id.clone(), model.clone()));
            shown.push(Event::Started { id, model, usage: Usage::default() });
        }
        for choice in choices.into_iter().filter(|choice| choice.index == 0) {
            self.add(choice, &mut shown)?;
        }
        self.usage = chunk.usage.map_or(self.usage, |counts| counts.usage());
        Ok(shown)
    }

    fn add(&mut self, choice: WireChoice, shown: &mut Vec<Event>) -> Result<(), String> {
        let mut delta = choice.delta.unwrap_or_default();
        shown.extend(delta.thinking().map(Event::Thinking));
        let said = delta.content.map(super::wire::TextContent::into_text);
        for text in [said, delta.refusal].into_iter().flatten().filter(|text| !text.is_empty()) {
            self.text.push_str(&text);
            shown.push(Event::Text(text));
        }
        for piece in delta.tool_calls.unwrap_or_default() {
            shown.extend(self.calls.take(piece, self.seed));
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            self.finish_reason = Some(reason);
            self.close(shown)?;
        }
        Ok(())
    }

    /// Ends the message, if it has not ended yet.
    fn close(&mut self, shown: &mut Vec<Event>) -> Result<(), String> {
        if self.blocks.is_some() {
            return Ok(());
        }
        let text = (!self.text.is_empty()).then(|| Block::text(&self.text));
        let blocks: Vec<Block> = text.into_iter().chain(self.calls.blocks()?).collect();
        shown.extend(blocks.iter().cloned().map(Event::Block));
        self.blocks = Some(blocks);
        Ok(())
    }

    /// The id, made unique: it names a line of the log, so no two replies may share one.
    fn unique(&self, id: String) -> String {
        let number = id.strip_prefix("chatcmpl-").unwrap_or(&id);
        match number.len() <= RANDOM_DIGITS && number.bytes().all(|byte| byte.is_ascii_digit()) {
            true => format!("chatcmpl-{number}{}{:016x}", if number.is_empty() { "" } else { "-" }, self.seed),
            false => id,
        }
    }
}

impl exchange::ReplyDraft for Draft {
    fn of(request: &[u8]) -> Self {
        Self { seed: seed(request), ..Self::default() }
    }

    fn read_event(&mut self, name: Option<&str>, data: &str) -> Result<Vec<Event>, AnswerFault> {
        let mut shown = Vec::new();
        if data.trim() == DONE {
            self.ended = true;
            if self.head.is_some() {
                self.close(&mut shown).map_err(AnswerFault::Nonsense)?;
            }
            return Ok(shown);
        }
        if data.contains("\"error\"")
            && let Ok(complaint) = serde_json::from_str::<Complaint>(data)
        {
            return Err(AnswerFault::Complaint(Box::new(complaint)));
        }
        match serde_json::from_str(data) {
            Ok(chunk) => self.take(chunk).map_err(AnswerFault::Nonsense),
            // By the book events have no names, so one that has may be anything.
            Err(_) if name.is_some() => Ok(shown),
            Err(error) => Err(error.into()),
        }
    }

    fn read_whole(&mut self, body: &[u8]) -> Result<Vec<Event>, AnswerFault> {
        let chunk: Chunk = serde_json::from_slice(body)?;
        if chunk.choices.as_ref().is_none_or(Vec::is_empty) {
            return Err(AnswerFault::Unreadable(serde::de::Error::missing_field("choices")));
        }
        let mut shown = self.take(chunk).map_err(AnswerFault::Nonsense)?;
        self.close(&mut shown).map_err(AnswerFault::Nonsense)?;
        self.ended = true;
        Ok(shown)
    }

    fn has_ended(&self) -> bool {
        self.ended
    }

    fn finish(self) -> Option<Reply> {
        let (id, model) = self.head?;
        let blocks = self.blocks?;
        let calls = blocks.iter().any(|block| matches!(block.kind(), transcript::block::Kind::ToolUse { .. }));
        let stop = match self.finish_reason.as_deref() {
            Some("length") => StopReason::MaxTokens,
            Some("content_filter") => StopReason::Refusal,
            // Servers say `stop` after calls, and `tool_calls` without any.
            None | Some("stop" | "tool_calls" | "function_call") if calls => StopReason::ToolUse,
            None | Some("stop" | "tool_calls" | "function_call") => StopReason::EndTurn,
            Some(other) => StopReason::Other(other.to_owned()),
        };
        Some(Reply { id, model, blocks, stop, usage: self.usage, remarks: Remarks::default() })
    }
}

#[cfg(test)]
mod tests;
