use std::collections::HashSet;

use proptest::prelude::*;
use transcript::block::Kind;
use transcript::{Message, Role};

use crate::session::{Session, ops};

/// What the API would refuse, as far as the shape of messages goes.
pub fn fault(messages: &[Message]) -> Option<String> {
    let mut seen = HashSet::new();
    let mut open: Vec<String> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let expected = if index % 2 == 0 { Role::User } else { Role::Assistant };
        if message.role != expected {
            return Some(format!("messages.{index}: {:?} out of turn", message.role));
        }
        if message.blocks.is_empty() {
            return Some(format!("messages.{index}: empty"));
        }
        let results: Vec<String> = message
            .blocks
            .iter()
            .map_while(|block| match block.kind() {
                Kind::ToolResult { id, .. } => Some(id.to_string()),
                _ => None,
            })
            .collect();
        let all = message.blocks.iter().filter(|block| matches!(block.kind(), Kind::ToolResult { .. })).count();
        if all != results.len() || results != open {
            return Some(format!("messages.{index}: calls {open:?} are answered by {results:?} of {all}"));
        }
        open.clear();
        for block in &message.blocks {
            if !block.is_sendable() {
                return Some(format!("messages.{index}: {} is refused", block.json()));
            }
            if let Kind::ToolUse { id, .. } = block.kind() {
                if !seen.insert(id.to_string()) {
                    return Some(format!("messages.{index}: {id} twice"));
                }
                open.push(id.to_string());
            }
        }
        if message.role == Role::Assistant && message.blocks.last().is_some_and(|block| *block.kind() == Kind::Thinking)
        {
            return Some(format!("messages.{index}: ends in thinking"));
        }
    }
    (!open.is_empty()).then(|| format!("calls {open:?} are not answered"))
}

proptest! {
    /// LOG-9, LOG-13: whatever happened, every call is answered in the next message, results first and in the order of
    /// their calls, orphans are gone, and roles alternate from the user's.
    #[test]
    fn every_view_is_a_history_the_api_accepts(ops in ops()) {
        let session = Session::of(&ops);
        prop_assert_eq!(fault(&session.log.view().messages()), None);
    }
}
