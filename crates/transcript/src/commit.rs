//! Commits: decisions about what the model sees, written into the log beside what was said.
//!
//! There are only three things a commit can do to the view, whatever layer made it:
//!
//! - **rewrite** the content of tool results (spill, clear), named by the calls they answer;
//! - **cover** a span of items with something shorter in the place of the first (snip, collapse, strip, compact), or with nothing
//!   (rewind);
//! - **add** blocks at its own place (restore).
//!
//! Two more change no block: **cache-edit** asks the provider to drop results from its cache, **undo** voids another
//! commit. No commit deletes anything, so each can be voided and the view is again what it was.

use serde::{Deserialize, Serialize};

use crate::block::Block;
use crate::id::Id;

/// What a cleared tool result says.
pub const CLEARED: &str = "[Old tool result content cleared]";

/// A decision, with what it is worth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Commit {
    /// What it does.
    #[serde(flatten)]
    pub act: Act,
    /// Why, and at what price.
    #[serde(flatten)]
    pub reason: Reason,
}

impl Commit {
    /// Whether another line may be the newest of the conversation because of it.
    pub fn moves_tip(&self) -> bool {
        matches!(self.act, Act::Rewind { .. } | Act::Undo { .. })
    }
}

/// Why a commit was made. The figures are those of the moment it was made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Reason {
    /// Tokens it took out of the view, by estimate, before its own text is added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freed: Option<u64>,
    /// The first line whose sent bytes it changes; none when it touches nothing that was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes_from: Option<Id>,
    /// In a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What a commit does to the view.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Act {
    /// Results went to disk; previews stand in their place.
    Spill {
        /// Which, and what stands there now.
        replacements: Vec<Replacement>,
    },
    /// Results are old and were cleared.
    Clear {
        /// The calls they answer, the oldest first.
        results: Vec<CallName>,
        /// What set it off.
        #[serde(default)]
        trigger: Trigger,
        /// What was written down of them before: it stands where the newest of them stood.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
    },
    /// The provider drops results from its cache; the view keeps them.
    CacheEdit {
        /// Their tool-use ids.
        results: Vec<String>,
        /// The line whose message carries the edit, ever after.
        anchor: Id,
    },
    /// Messages were dropped; a marker stands in their place.
    Snip {
        /// The lines dropped.
        uuids: Vec<Id>,
        /// The text that stands there.
        marker: String,
    },
    /// A span was summarised; the summary stands in its place.
    Collapse {
        /// The first line covered.
        first: Id,
        /// The last line covered.
        last: Id,
        /// The text that stands there.
        summary: String,
    },
    /// A picture or document of a message is left out; its text, and what it was, stand there.
    Strip {
        /// The message.
        line: Id,
        /// The text that stands there.
        text: String,
    },
    /// The conversation went back to before a line: it and all that followed is out of the view, without a trace there.
    Rewind {
        /// The first line that is taken back.
        first: Id,
        /// The last one.
        last: Id,
    },
    /// What came before was summarised. Its text is the summary line that follows; until that is there, it is void.
    Compact {
        /// What it covers.
        extent: Extent,
        /// What set it off.
        trigger: Trigger,
        /// Tokens before it.
        #[serde(default)]
        pre_tokens: u64,
    },
    /// Context was brought back after a compaction.
    Restore {
        /// As it was rendered.
        blocks: Vec<Block>,
    },
    /// The provider itself left something out of what the model saw; recorded, changes nothing here.
    ServerEdit {
        /// Results it cleared.
        #[serde(default)]
        cleared_results: u64,
    },
    /// Another commit counts no more. Undoing an undo is a redo.
    Undo {
        /// The commit that is voided.
        commit: Id,
    },
}

impl Act {
    /// Whether it changes bytes that may have been sent. Results are spilled before they are, and what is restored is added.
    pub fn changes_sent(&self) -> bool {
        !matches!(self, Self::Spill { .. } | Self::Restore { .. })
    }

    /// The word for it: the layer's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Spill { .. } => "spill",
            Self::Clear { .. } => "clear",
            Self::CacheEdit { .. } => "cache-edit",
            Self::Snip { .. } => "snip",
            Self::Collapse { .. } => "collapse",
            Self::Strip { .. } => "strip",
            Self::Rewind { .. } => "rewind",
            Self::Compact { .. } => "compact",
            Self::Restore { .. } => "restore",
            Self::ServerEdit { .. } => "server-edit",
            Self::Undo { .. } => "undo",
        }
    }
}

/// A call, by name. Some servers give the same id to one call after another, so the reply it stands in is part of the
/// name. Other programs leave that out: then it is whatever calls had the id when the commit was made.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CallName {
    /// The provider's id.
    pub id: String,
    /// The line that began the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Id>,
}

impl<T: Into<String>> From<T> for CallName {
    fn from(id: T) -> Self {
        Self { id: id.into(), reply: None }
    }
}

/// A spilled result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Replacement {
    /// The call it answers.
    pub call: CallName,
    /// The preview.
    pub replacement: String,
}

/// What a compaction covers, in the order of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Extent {
    /// From one line to another, both included.
    Span {
        /// The first.
        first: Id,
        /// The last.
        last: Id,
    },
    /// Everything before a line that is kept.
    Before(Id),
    /// Everything so far.
    Everything,
}

/// What set a commit off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trigger {
    /// A layer.
    #[default]
    Auto,
    /// The user.
    Manual,
}
