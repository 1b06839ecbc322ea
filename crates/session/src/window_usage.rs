//! The contents of the window, in tokens.

use serde::Serialize;
use transcript::Role;
use transcript::block::Kind;
use transcript::size::Size;
use transcript::view::{Cover, ItemState, View};

/// The contents of the window.
#[derive(Debug, Clone, Serialize)]
pub struct WindowUsage {
    /// All of it, as it is counted.
    pub tokens: u64,
    /// Its parts, by estimate, in the order of the request.
    pub parts: Vec<Share>,
}

/// One kind of what fills it.
#[derive(Debug, Clone, Serialize)]
pub struct Share {
    /// Its name.
    pub name: &'static str,
    /// The number of such parts.
    pub count: usize,
    /// Its tokens.
    pub tokens: u64,
}

impl WindowUsage {
    /// Looks at a view.
    pub fn of(view: &View) -> Self {
        let names = [
            "summary",
            "collapsed",
            "dropped",
            "attachments",
            "what you said",
            "replies",
            "tool calls",
            "results",
            "results in files",
            "results cleared",
            "results the provider dropped",
            "pictures and documents",
        ];
        let mut sums = [(0, Size::default()); 12];
        for entry in view.visible() {
            for (role, block) in entry.shown() {
                let place = match (role, block.kind()) {
                    _ if entry.state() == ItemState::Covered(Cover::Collapse) => 1,
                    _ if entry.state() == ItemState::Covered(Cover::Snip) => 2,
                    _ if matches!(entry.state(), ItemState::Covered(_)) => 0,
                    (_, Kind::Image | Kind::Document) => 11,
                    (_, Kind::ToolUse { .. }) => 6,
                    (_, Kind::ToolResult { .. }) if block.size().media > 0 => 11,
                    (_, Kind::ToolResult { id, .. }) if entry.calls().any(|call| call.id == id && call.dropped) => {
                        sums[10].0 += 1; // it is sent, and counts for nothing
                        continue;
                    }
                    (_, Kind::ToolResult { id, .. }) => {
                        let whole = entry.calls().find(|call| call.id == id).and_then(|call| call.result);
                        match whole {
                            Some(whole) if whole.is_same(block) => 7,
                            _ if block.json().contains("<persisted-output>") => 8,
                            _ if block.json().contains(transcript::commit::CLEARED) => 9,
                            _ => 7,
                        }
                    }
                    (Role::Assistant, _) => 5,
                    (Role::User, _) if entry.state() == ItemState::UserText => 4,
                    (Role::User, _) => 3,
                };
                sums[place].0 += 1;
                sums[place].1 += block.size();
            }
        }
        let tally = view.tally();
        let mut parts = Vec::new();
        if let Some(prologue) = view.prologue() {
            let tools = transcript::Prologue { system: Vec::new(), ..(**prologue).clone() };
            let (all, tools) = (tally.of_prologue(prologue), tally.of_prologue(&tools));
            parts.push(Share { name: "system prompt", count: prologue.system.len(), tokens: all - tools });
            parts.push(Share { name: "tools", count: prologue.tools.len(), tokens: tools });
        }
        let said = names.into_iter().zip(sums).filter(|(_, (count, _))| *count > 0);
        parts.extend(said.map(|(name, (count, size))| Share { name, count, tokens: tally.estimate(size) }));
        Self { tokens: tally.count(), parts }
    }
}
