//! Invariants of every replayed request: calls are answered, roles alternate, and nothing that was sent changes without
//! a commit that says so.

use transcript::block::Kind;
use transcript::view::{View, ViewChange};
use transcript::window::AutoCompact;
use transcript::{Block, Message, Role};

use super::replay_observer::{ReplayObserver, RequestAnswer, SentRequest};

/// The requests sent so far, and what was wrong with them.
#[derive(Default)]
pub(super) struct CheckedReplay {
    pub(super) broken: Vec<String>,
    /// The previous request, and the first item from which on it may differ by now.
    sent: Vec<Block>,
    changed: Option<usize>,
}

impl ReplayObserver for CheckedReplay {
    /// The view changed from an item on, and said so.
    fn changed(&mut self, _: &View, change: ViewChange) {
        let item = match change {
            ViewChange::Grew => return,
            ViewChange::Prologue => 0,
            ViewChange::From(item) => item,
        };
        self.changed = Some(self.changed.map_or(item, |changed| changed.min(item)));
    }

    fn request(&mut self, sent: &SentRequest<'_>) -> RequestAnswer {
        let SentRequest { round, view, tokens, layers, .. } = *sent;
        let limit = layers.window.effective;
        if tokens > limit && layers.auto_compact == AutoCompact::On && !layers.reactive_only {
            self.broken.push(format!("round {round}: {tokens} tokens are more than the window's {limit}"));
        }
        if let Some(wrong) = unpaired(&view.messages()) {
            self.broken.push(format!("round {round}: {wrong}"));
        }
        let stable = self.changed.take().map_or(self.sent.len(), |item| blocks_before(view, item));
        let blocks: Vec<Block> = view.blocks().map(|(_, _, block)| block.clone()).collect();
        let same = self.sent.iter().zip(&blocks).take(stable).all(|(was, is)| was.is_same(is));
        if !same || blocks.len() < stable.min(self.sent.len()) {
            self.broken.push(format!("round {round}: what was sent changed, and no commit says so"));
        }
        self.sent = blocks;
        RequestAnswer::AsRecorded
    }
}

fn blocks_before(view: &View, item: usize) -> usize {
    view.blocks().take_while(|(at, _, _)| *at < item).count()
}

/// The reason why the API would refuse these messages, if there is one.
fn unpaired(messages: &[Message]) -> Option<String> {
    if messages.first().is_some_and(|first| first.role != Role::User) {
        return Some("the first message is not the user's".to_owned());
    }
    for (at, message) in messages.iter().enumerate() {
        if messages.get(at + 1).is_some_and(|next| next.role == message.role) {
            return Some(format!("messages {at} and {} are of one role", at + 1));
        }
        let next = messages.get(at + 1).map(|next| next.blocks.as_slice()).unwrap_or_default();
        for block in &message.blocks {
            if let Kind::ToolUse { id, .. } = block.kind()
                && !next.iter().any(|one| matches!(one.kind(), Kind::ToolResult { id: of, .. } if of == id))
            {
                return Some(format!("call {id} has no result"));
            }
            if let Kind::ToolResult { id, .. } = block.kind() {
                let before = at.checked_sub(1).map(|at| messages[at].blocks.as_slice()).unwrap_or_default();
                if !before.iter().any(|one| matches!(one.kind(), Kind::ToolUse { id: of, .. } if of == id)) {
                    return Some(format!("result {id} has no call"));
                }
            }
        }
    }
    None
}
