//! Shortens a request for a summariser whose provider finds it too long. The shorter request reads no cache.

use transcript::block::Kind;
use transcript::mark::Marks;
use transcript::tokens::Tally;
use transcript::{Block, Message, Outcome, Request, Role};

/// If the provider does not say by how much a request is too long, one in this many rounds is dropped.
const DROPPED_PART: usize = 5;
/// First message once the beginning had to be dropped.
const NO_START: &str = "[The beginning of this conversation was too long to be shown here.]";

/// A request without its oldest rounds, with placeholders for images and documents. It reads no cache.
pub(super) fn shortened(request: &Request, gap: Option<u64>, tally: &Tally) -> Request {
    let rounds = request.messages.iter().filter(|message| message.role == Role::Assistant).count();
    let mut dropped = 0;
    let mut messages: Vec<Message> = request.messages.iter().map(without_media).collect();
    let enough = |dropped: u64, gone: usize| match gap {
        Some(gap) => dropped > gap,
        None => gone > rounds / DROPPED_PART,
    };
    let mut gone = 0;
    while messages.len() > 1 && !enough(dropped, gone) {
        let first = messages.remove(0);
        gone += usize::from(first.role == Role::Assistant);
        dropped += tally.estimate(first.blocks.iter().map(Block::size).sum());
    }
    if messages.first().is_some_and(|first| first.role == Role::Assistant) {
        messages.insert(0, Message { role: Role::User, blocks: vec![Block::text(NO_START)] });
    } else if let Some(first) = messages.first_mut() {
        first.blocks.retain(|block| !matches!(block.kind(), Kind::ToolResult { .. }));
        if first.blocks.is_empty() {
            first.blocks.push(Block::text(NO_START));
        }
    }
    let marks = Marks { messages: Vec::new(), edits: Vec::new(), ..request.marks.clone() };
    Request { prologue: request.prologue.clone(), messages, marks }
}

fn without_media(message: &Message) -> Message {
    let plain = |block: &Block| match block.kind() {
        Kind::Image => Block::text("[image]"),
        Kind::Document => Block::text("[document]"),
        Kind::ToolResult { id, failed } if block.size().media > 0 => {
            let outcome = if *failed { Outcome::Failed } else { Outcome::Done };
            let content: Vec<Block> = block
                .result_content()
                .iter()
                .map(|part| match part.kind() {
                    Kind::Image => Block::text("[image]"),
                    Kind::Document => Block::text("[document]"),
                    _ => part.clone(),
                })
                .collect();
            Block::tool_result(id, &content, outcome)
        }
        _ => block.clone(),
    };
    Message { role: message.role, blocks: message.blocks.iter().map(plain).collect() }
}
