//! Sample requests for the tests of the envelopes.

use proptest::prelude::*;
use serde_json::json;
use transcript::{Block, Message, Prologue, Role, Thinking, ToolDefinition};

/// A prologue with something of everything.
pub(crate) fn prologue() -> Prologue {
    Prologue {
        model: "m\"1".into(),
        max_tokens: 64,
        system: vec![Block::text("one"), Block::text("two")],
        static_blocks: 1,
        own_blocks: 0,
        loaded: Vec::new(),
        tools: vec![ToolDefinition {
            name: "Bash".into(),
            description: "runs".into(),
            input_schema: json!({"type": "object"}),
        }],
        thinking: Some(Thinking::Enabled { budget_tokens: 32 }),
        effort: None,
        betas: vec!["b".into()],
        format: None,
        context_management: None,
        web_search: None,
    }
}

/// A tool that was loaded later.
pub(crate) fn loaded() -> ToolDefinition {
    let input_schema = json!({"type": "object"});
    ToolDefinition { name: "mcp__db__query".into(), description: "asks".into(), input_schema }
}

/// Texts, some of them hard to quote.
pub(crate) fn words() -> impl Strategy<Value = String> + Clone {
    "\\PC{0,40}|[\"\\\\{}\\[\\],:\u{0}-\u{20}]{0,20}"
}

/// A message of some blocks.
pub(crate) fn message(block: impl Strategy<Value = Block>) -> impl Strategy<Value = Message> {
    let role = prop_oneof![Just(Role::User), Just(Role::Assistant)];
    (role, prop::collection::vec(block, 0..4)).prop_map(|(role, blocks)| Message { role, blocks })
}
