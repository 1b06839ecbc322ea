//! Facts about the layers in the log, outside the conversation: costs of forks, progress of notes, failures.

use serde::{Deserialize, Serialize};
use transcript::line::{Body, Line};
use transcript::{Id, Usage};

/// A fact about the layers, in the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Fact {
    /// A fork ran; its requests are not in the log.
    Side {
        /// Its kind.
        agent: String,
        /// The model.
        model: String,
        /// Its usage.
        usage: Usage,
    },
    /// A teammate was started; its usage is in a session of its own.
    Teammate {
        /// Its name.
        name: String,
        /// Its session, whose file is next to this one.
        session: String,
    },
    /// Notes were updated, or should have been.
    Notes {
        /// The last line they cover now; none if the update failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        covers: Option<Id>,
        /// The conversation's tokens at that time.
        tokens: u64,
        /// True if only a compaction could make room by then.
        #[serde(default)]
        ready: bool,
    },
    /// A compaction brought the conversation under its threshold.
    CompactionMade {
        /// The tokens it left.
        tokens: u64,
    },
    /// A compaction was tried and failed, or did not do enough.
    CompactionFailed {
        /// The reason.
        why: String,
    },
    /// The user was told that there will be no more automatic compactions.
    CompactionStopped,
    /// A cache break.
    CacheBreak {
        /// Tokens that should have been read.
        expected: u64,
        /// Tokens that were read.
        read: u64,
        /// The cause.
        cause: String,
        /// True if it was intended.
        declared: bool,
        /// The commit it belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<Id>,
        /// The fork whose request it was; none for the conversation's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    /// The window in use from here on.
    Window {
        /// Its size, and the same without room for a reply.
        window: (u64, u64),
    },
    /// The provider refused a request as too long.
    Refused {
        /// Number of tokens too many.
        over: u64,
        /// The window as known since: its size, and the same without room for a reply.
        window: (u64, u64),
    },
    /// A span is being summarised, to be collapsed when room is needed.
    Staged {
        /// Its first line.
        first: Id,
        /// Its last one.
        last: Id,
    },
    /// Result of that.
    Summarised {
        /// The span's first line.
        first: Id,
        /// Its last one.
        last: Id,
        /// The summary; none if it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
    },
    /// The user lifted a standing instruction by command.
    Lifted {
        /// The instruction, word for word.
        text: String,
    },
    /// Notes took the place of a summary.
    NotesUsed {
        /// Cost of a summary that was not needed, in tokens of uncached input.
        saved: u64,
    },
}

impl Fact {
    /// The fact in a line, if it is one.
    pub fn of(line: &Line) -> Option<Self> {
        match &line.body {
            Body::Meta(meta) => serde_json::from_str(meta.get()).ok(),
            _ => None,
        }
    }
}
