//! Lines of ours about the layers, beside what is said: what forks cost, how far notes are, what failed.

use serde::{Deserialize, Serialize};
use transcript::line::{Body, Line};
use transcript::{Id, Usage};

/// A fact about the layers, in the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Fact {
    /// A fork ran; its requests are not in the log.
    Side {
        /// Which kind.
        agent: String,
        /// The model.
        model: String,
        /// What it used.
        usage: Usage,
    },
    /// A teammate was started: what it uses stands in a session of its own.
    Teammate {
        /// Its name.
        name: String,
        /// Its session, which lies beside this one.
        session: String,
    },
    /// Notes were brought up to date, or should have been.
    Notes {
        /// The last line they cover now; none if nothing came of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        covers: Option<Id>,
        /// The conversation's tokens then.
        tokens: u64,
        /// Whether only a compaction could make room by then.
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
        /// Why.
        why: String,
    },
    /// The user was told that no compaction will be tried any more.
    CompactionStopped,
    /// The cache did not hold.
    CacheBreak {
        /// What should have been read.
        expected: u64,
        /// What was read.
        read: u64,
        /// Why.
        cause: String,
        /// Whether it was meant.
        declared: bool,
        /// The commit it belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<Id>,
        /// Whose request it was, where it was no request of the conversation itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    /// The window that is worked in, from here on.
    Window {
        /// Its size, and without the room for a reply.
        window: (u64, u64),
    },
    /// The provider refused a request as too long.
    Refused {
        /// So many tokens were too many.
        over: u64,
        /// The window as it is known since: its size, and without the room for a reply.
        window: (u64, u64),
    },
    /// A span is being summarised, to be collapsed when room is needed.
    Staged {
        /// Its first line.
        first: Id,
        /// Its last one.
        last: Id,
    },
    /// What came of that.
    Summarised {
        /// The span's first line.
        first: Id,
        /// Its last one.
        last: Id,
        /// The summary; none if nothing came of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
    },
    /// The user lifted a standing instruction by command.
    Lifted {
        /// As it was said.
        text: String,
    },
    /// Notes took the place of a summary.
    NotesUsed {
        /// What a summary would have cost, in tokens of input that is not cached.
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
