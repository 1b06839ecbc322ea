//! A reply, put together from the events of its stream.
//!
//! A [`Draft`] takes the wire's events one by one and gives back what the caller should see of each. It does no IO.
//! It is lenient where leniency loses nothing: unknown events and deltas are passed over, a missing stop reason is
//! inferred, an input that is no JSON object is kept in the form [`crate::INVALID_INPUT`] documents. It is strict where going
//! on would mean to invent: a delta for a block that was never begun is an error.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use transcript::{Block, Remarks, Reply, StopReason, Usage};

use super::wire::{Delta, Diagnosis, KNOWN, MessageHead, WholeReply, WireEvent};
use crate::event::{Event, input};
use crate::exchange::{self, AnswerFault};

/// A reply in the making.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    head: Option<(String, String)>,
    usage: Usage,
    remarks: Remarks,
    stop: Option<StopReason>,
    slots: BTreeMap<u64, Slot>,
    ended: bool,
}

#[derive(Debug)]
enum Slot {
    Open(OpenBlock),
    Closed(Block),
}

/// A block in the making: how it began, and the pieces that came since.
#[derive(Debug, Default)]
struct OpenBlock {
    start: Map<String, Value>,
    text: String,
    thinking: String,
    signature: String,
    json: String,
}

impl Draft {
    /// Takes an event; gives what the caller should see of it, or what is wrong with it.
    pub(crate) fn take(&mut self, event: WireEvent) -> Result<Option<Event>, String> {
        if self.head.is_none()
            && !matches!(event, WireEvent::MessageStart { .. } | WireEvent::Error(_) | WireEvent::Unknown)
        {
            return Err("the stream does not begin with message_start".into());
        }
        match event {
            WireEvent::MessageStart { message } => self.begin(message).map(Some),
            WireEvent::ContentBlockStart { index, content_block } => self.open(index, content_block),
            WireEvent::ContentBlockDelta { index, delta } => match self.slots.get_mut(&index) {
                Some(Slot::Open(open)) => Ok(open.add(delta)),
                _ => Err(format!("a delta for block {index}, which is not open")),
            },
            WireEvent::ContentBlockStop { index } => self.close(index).map(Some),
            WireEvent::MessageDelta { delta, usage, context_management } => {
                context_management.unwrap_or_default().tell(&mut self.remarks);
                self.stop = delta.stop_reason.or(self.stop.take());
                let usage = usage.unwrap_or_default();
                self.remarks.compaction = usage.of_compaction().or(self.remarks.compaction);
                usage.update(&mut self.usage);
                Ok(None)
            }
            WireEvent::MessageStop => {
                self.ended = true;
                Ok(None)
            }
            WireEvent::Error(_) | WireEvent::Unknown => Ok(None),
        }
    }

    /// Takes a whole reply, with the events a stream of it would have had.
    pub(crate) fn take_whole(&mut self, whole: WholeReply) -> Result<Vec<Event>, String> {
        let mut events = vec![self.begin(whole.head)?];
        for (index, block) in (0..).zip(whole.content) {
            events.extend(self.open(index, block)?);
            events.push(self.close(index)?);
        }
        whole.context_management.unwrap_or_default().tell(&mut self.remarks);
        self.stop = whole.stop_reason;
        self.ended = true;
        Ok(events)
    }

    fn begin(&mut self, head: MessageHead) -> Result<Event, String> {
        if self.head.is_some() {
            return Err("a second message_start".into());
        }
        let usage = head.usage.unwrap_or_default();
        self.remarks.compaction = usage.of_compaction();
        usage.update(&mut self.usage);
        self.remarks.cache_miss = head.diagnostics.and_then(Diagnosis::reason);
        self.head = Some((head.id.clone(), head.model.clone()));
        Ok(Event::Started { id: head.id, model: head.model, usage: self.usage })
    }

    fn open(&mut self, index: u64, start: Map<String, Value>) -> Result<Option<Event>, String> {
        let kind = text_of(&start, "type");
        if kind == "tool_use" && (text_of(&start, "id").is_empty() || text_of(&start, "name").is_empty()) {
            return Err("a tool call without id or name".into());
        }
        // A block may begin with some of its text already.
        let shown = match kind {
            "text" => Some(Event::Text(text_of(&start, "text").to_owned())),
            "thinking" => Some(Event::Thinking(text_of(&start, "thinking").to_owned())),
            _ => None,
        };
        let shown =
            shown.filter(|event| !matches!(event, Event::Text(text) | Event::Thinking(text) if text.is_empty()));
        let open = OpenBlock { start, ..OpenBlock::default() };
        match self.slots.insert(index, Slot::Open(open)) {
            None => Ok(shown),
            Some(_) => Err(format!("block {index} begins twice")),
        }
    }

    fn close(&mut self, index: u64) -> Result<Event, String> {
        let Some(slot) = self.slots.get_mut(&index) else {
            return Err(format!("the end of block {index}, which never began"));
        };
        let Slot::Open(open) = slot else { return Err(format!("block {index} ends twice")) };
        let block = std::mem::take(open).close();
        *slot = Slot::Closed(block.clone());
        Ok(Event::Block(block))
    }
}

impl exchange::ReplyDraft for Draft {
    fn of(_: &[u8]) -> Self {
        Self::default()
    }

    fn read_event(&mut self, name: Option<&str>, data: &str) -> Result<Vec<Event>, AnswerFault> {
        if data == "[DONE]" || name.is_some_and(|name| !KNOWN.contains(&name)) {
            return Ok(Vec::new());
        }
        match serde_json::from_str(data)? {
            WireEvent::Error(complaint) => Err(AnswerFault::Complaint(Box::new(complaint))),
            wire => self.take(wire).map(Vec::from_iter).map_err(AnswerFault::Nonsense),
        }
    }

    fn read_whole(&mut self, body: &[u8]) -> Result<Vec<Event>, AnswerFault> {
        self.take_whole(serde_json::from_slice(body)?).map_err(AnswerFault::Nonsense)
    }

    fn has_ended(&self) -> bool {
        self.ended
    }

    /// The stop came, or everything before it did.
    fn finish(mut self) -> Option<Reply> {
        let (id, model) = self.head.take()?;
        let indices: Vec<u64> = self.slots.keys().copied().collect();
        for index in indices {
            // Some servers end the message without ending its last block.
            if self.ended && matches!(self.slots[&index], Slot::Open(_)) {
                self.close(index).ok()?;
            }
        }
        let closed = |slot| match slot {
            Slot::Closed(block) => Some(block),
            Slot::Open(_) => None,
        };
        let blocks: Vec<Block> = self.slots.into_values().map(closed).collect::<Option<_>>()?;
        let calls = blocks.iter().any(|block| matches!(block.kind(), transcript::block::Kind::ToolUse { .. }));
        let inferred = if calls { StopReason::ToolUse } else { StopReason::EndTurn };
        let stop = self.stop.or(self.ended.then_some(inferred))?;
        Some(Reply { id, model, blocks, stop, usage: self.usage, remarks: self.remarks })
    }
}

impl OpenBlock {
    fn add(&mut self, delta: Delta) -> Option<Event> {
        match delta {
            Delta::Text { text } => {
                self.text.push_str(&text);
                Some(Event::Text(text))
            }
            Delta::Thinking { thinking } => {
                self.thinking.push_str(&thinking);
                Some(Event::Thinking(thinking))
            }
            Delta::Signature { signature } => {
                self.signature.push_str(&signature);
                None
            }
            Delta::Input { partial_json } => {
                self.json.push_str(&partial_json);
                let (id, name) = (text_of(&self.start, "id").to_owned(), text_of(&self.start, "name").to_owned());
                (!partial_json.is_empty()).then_some(Event::ToolInput { id, name, partial_json })
            }
            Delta::Citation { citation } => {
                let citations = self.start.entry("citations").or_insert(Value::Null);
                match citations {
                    Value::Array(citations) => citations.push(citation),
                    other => *other = Value::Array(vec![citation]),
                }
                None
            }
            Delta::Compaction { content } => {
                self.start.insert("content".into(), content.map_or(Value::Null, Value::String));
                None
            }
            Delta::Unknown => None,
        }
    }

    fn close(self) -> Block {
        let mut block = self.start;
        for (key, more) in [("text", self.text), ("thinking", self.thinking), ("signature", self.signature)] {
            if !more.is_empty() {
                let whole = text_of(&block, key).to_owned() + &more;
                block.insert(key.to_owned(), whole.into());
            }
        }
        if text_of(&block, "type") == "tool_use" || !self.json.is_empty() {
            let given = block.get_mut("input").map(Value::take);
            block.insert("input".to_owned(), input(given, &self.json));
        }
        Block::from_value(Value::Object(block))
    }
}

fn text_of<'a>(block: &'a Map<String, Value>, key: &str) -> &'a str {
    block.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
