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

/// Text that replaces a cleared tool result.
pub const CLEARED: &str = "[Old tool result content cleared]";

/// A decision about the view, with its reason and figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Commit {
    /// Effect on the view.
    #[serde(flatten)]
    pub act: Act,
    /// The reason, with its figures.
    #[serde(flatten)]
    pub reason: Reason,
}

impl Commit {
    /// True if it can change which line is the newest of the conversation.
    pub fn moves_tip(&self) -> bool {
        matches!(self.act, Act::Rewind { .. } | Act::Undo { .. })
    }
}

/// Reason for a commit. The figures are those of the moment it was made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Reason {
    /// Estimated tokens it took out of the view, before its own text is added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freed: Option<u64>,
    /// The first line whose sent bytes it changes; none if it changes nothing that was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes_from: Option<Id>,
    /// The reason in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Effect of a commit on the view.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Act {
    /// Results were written to disk; previews replace them.
    Spill {
        /// The spilled results and their previews.
        replacements: Vec<Replacement>,
    },
    /// Old results were cleared.
    Clear {
        /// The calls they answer, oldest first.
        results: Vec<CallName>,
        /// Its trigger.
        #[serde(default)]
        trigger: Trigger,
        /// Text written about them before they were cleared; it is shown in place of the newest of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
    },
    /// The provider drops results from its cache; the view keeps them.
    CacheEdit {
        /// Their tool-use ids.
        results: Vec<String>,
        /// The line whose message carries the edit from then on.
        anchor: Id,
    },
    /// Messages were dropped; a marker replaces them.
    Snip {
        /// The lines dropped.
        uuids: Vec<Id>,
        /// Text of the marker.
        marker: String,
    },
    /// A span was summarised; the summary replaces it.
    Collapse {
        /// The first line covered.
        first: Id,
        /// The last line covered.
        last: Id,
        /// Text of the summary.
        summary: String,
    },
    /// A picture or document of a message is left out; the message's text and a description replace it.
    Strip {
        /// The message.
        line: Id,
        /// The replacement text.
        text: String,
    },
    /// The conversation went back to before a line: that line and everything after it leave the view without a trace.
    Rewind {
        /// The first line taken back.
        first: Id,
        /// The last one.
        last: Id,
    },
    /// Everything before was summarised. The text is in the summary line that follows; without that line the commit is
    /// void.
    Compact {
        /// Lines it covers.
        extent: Extent,
        /// Its trigger.
        trigger: Trigger,
        /// Tokens before the compaction.
        #[serde(default)]
        pre_tokens: u64,
    },
    /// Context was restored after a compaction.
    Restore {
        /// The restored blocks, as rendered.
        blocks: Vec<Block>,
    },
    /// The provider itself left something out of the request; recorded only, no effect on the view.
    ServerEdit {
        /// Number of results it cleared.
        #[serde(default)]
        cleared_results: u64,
    },
    /// Voids another commit. Undoing an undo is a redo.
    Undo {
        /// The commit it voids.
        commit: Id,
    },
}

impl Act {
    /// True if it changes bytes that may have been sent. Results are spilled before they are sent, and restored blocks
    /// are new.
    pub fn changes_sent(&self) -> bool {
        !matches!(self, Self::Spill { .. } | Self::Restore { .. })
    }

    /// Its name, which is the layer's.
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

/// Name of a call. Some servers reuse an id from call to call, so the reply is part of the name. Other programs leave
/// the reply out: then it means every call that had the id when the commit was made.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CallName {
    /// The provider's id.
    pub id: String,
    /// The first line of the reply.
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

/// Lines that a compaction covers, in the order of the log.
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

/// Trigger of a commit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trigger {
    /// A layer.
    #[default]
    Auto,
    /// The user.
    Manual,
}
