//! Interface of the layers: what a layer is, and what its decisions are based on.
//!
//! A layer looks at the view and the situation and decides: nothing, a commit, or a need. A need is something only the
//! engine can do: ask a model, keep or read a file. With the answer the layer decides again, so that its decision fits
//! the view as it is by then, or is void. Whoever drives a session, live or recorded, walks the list in its order
//! before each request and writes the commits; each layer is there to keep the next, more expensive one from acting,
//! and one that fails falls through to it. A new layer is a file and a line.

use std::path::PathBuf;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use transcript::Id;
use transcript::commit::Commit;
use transcript::mark::Ttl;
use transcript::view::View;

use crate::cache_economics::Rates;
use crate::layer_settings::Layers;
use crate::spilled::SpillResult;
use crate::state::State;

/// One of the layers.
pub trait Layer: Sync {
    /// Its name, which its commits have too.
    fn name(&self) -> &'static str;

    /// Its role for other layers.
    fn role(&self) -> LayerRole {
        LayerRole::Other
    }

    /// True if the switches have it on.
    fn is_on(&self, layers: &Layers) -> bool;

    /// Its decision now.
    fn decide(&self, view: &View, now: &Situation<'_>) -> Decision;

    /// Its change after the answer to its need, or the reason there is none.
    fn answered(&self, view: &View, now: &Situation<'_>, answer: &NeedAnswer) -> Result<LayerChange, String> {
        let _ = (view, now, answer);
        Err("nothing comes of it".to_owned())
    }
}

/// Effect of a layer on the view, as far as another layer or the engine depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerRole {
    /// Something shorter takes the place of all that was said.
    Compaction,
    /// A summary takes the place of a span.
    Collapse,
    /// The oldest messages are dropped.
    Snip,
    /// Old results are cleared.
    Clear,
    /// No other layer depends on it.
    Other,
}

/// Decision of a layer.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// There is nothing to do.
    Nothing,
    /// A change to write.
    Commit(LayerChange),
    /// Something is needed first.
    Need(Need),
}

/// A commit, with the summary that has to follow it.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerChange {
    /// The commit.
    pub commit: Commit,
    /// Text that stands for what a compaction covers.
    pub summary: Option<String>,
}

impl LayerChange {
    /// A commit alone.
    pub fn of(commit: Commit) -> Self {
        Self { commit, summary: None }
    }
}

/// Something that only the engine can do.
#[derive(Debug, Clone, PartialEq)]
pub enum Need {
    /// Write texts to files of their own. [`NeedAnswer::Kept`].
    Keep(Vec<SpillResult>),
    /// Let a model write something, or wait for the one that is writing it; the request waits. [`NeedAnswer::Text`].
    Write(WritingTask),
    /// Let a model write something in the background, for later; nothing waits for it.
    Stage(SummaryAhead),
    /// The session's notes, once nobody is writing them any more. [`NeedAnswer::Text`].
    Notes,
    /// The current text of the first of these files that may be shown. [`NeedAnswer::Files`].
    Read {
        /// The files.
        files: Vec<PathBuf>,
        /// Limit on the number of files.
        most: usize,
    },
    /// Update the notes in the background; nothing waits for it.
    Update(Update),
}

/// A writing task for a model.
#[derive(Debug, Clone, PartialEq)]
pub struct WritingTask {
    /// Name under which its costs are recorded.
    pub kind: &'static str,
    /// Its subject.
    pub about: WritingSubject,
    /// Instructions for the model.
    pub directive: String,
    /// Limit on its output, in tokens.
    pub most_output: u64,
    /// Time limit.
    pub patience: Duration,
}

/// A summary of a span, written before it is needed.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryAhead {
    /// The first line of the span.
    pub first: Id,
    /// The last one.
    pub last: Id,
    /// The writing task.
    pub write: WritingTask,
}

/// Subject of a writing task.
#[derive(Debug, Clone, PartialEq)]
pub enum WritingSubject {
    /// The conversation before an item, which it reads from the cache.
    Conversation {
        /// The item.
        end: usize,
    },
    /// Only this text; a small model will do.
    Alone(String),
}

/// An update of the notes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// The item before which the conversation ends that it is about.
    pub end: usize,
    /// The last line it covers.
    pub covers: Id,
    /// The conversation's tokens.
    pub tokens: u64,
    /// True if only a compaction can make room by now.
    pub ready: bool,
}

/// Answer to a need.
#[derive(Debug, Clone, PartialEq)]
pub enum NeedAnswer {
    /// The written text.
    Text(String),
    /// Path of each file, or the reason it was not written.
    Kept(Vec<Result<String, String>>),
    /// The current text of files that may be shown.
    Files(Vec<(PathBuf, String)>),
    /// Failure, with the reason.
    Failed(String),
}

/// Occasion on which the layers are asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Occasion {
    /// A request is about to be sent.
    Request,
    /// The turn is over.
    End,
    /// The user wants a compaction.
    UserRequest {
        /// The user's wishes for the summary.
        instructions: Option<String>,
        /// Its reach.
        reach: CompactionReach,
    },
    /// The provider compacted by itself.
    Provided {
        /// The provider's summary.
        summary: String,
    },
    /// The provider refused a request as too long.
    Refused {
        /// Number of tokens too many.
        over: u64,
    },
}

/// Reach of a compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompactionReach {
    /// All of it.
    Everything,
    /// From a message on: what precedes it stays, in the cache too.
    From(Id),
    /// Up to a message, which stays.
    UpTo(Id),
}

/// Input of decisions, besides the view.
#[derive(Clone, Copy)]
pub struct Situation<'a> {
    /// The occasion.
    pub occasion: &'a Occasion,
    /// The time.
    pub now: Timestamp,
    /// Settings of the layers.
    pub layers: &'a Layers,
    /// Lifetime of the provider's cache.
    pub ttl: Ttl,
    /// Memory of the layers.
    pub state: &'a State,
    /// Path of the notes.
    pub notes: &'a str,
    /// Limit on the characters of a tool's result; none if the tool limits itself.
    pub limit: &'a dyn Fn(&str) -> Option<usize>,
    /// Roles of the layers that have already acted on this occasion.
    pub done: &'a [LayerRole],
}

impl Situation<'_> {
    /// Prices of tokens.
    pub fn rates(&self) -> Rates {
        Rates::of(self.layers.price, self.ttl)
    }

    /// True if a layer of this role has acted on this occasion.
    pub fn has_acted(&self, role: LayerRole) -> bool {
        self.done.contains(&role)
    }

    /// Time since the newest reply.
    pub fn idle(&self) -> Option<SignedDuration> {
        self.state.replied_at.map(|at| self.now.duration_since(at))
    }

    /// The item from which on replies came after sent bytes were last changed: before each of them the tail of a
    /// request stood, and the provider has what precedes it.
    pub fn cached_from(&self, view: &View) -> usize {
        let changed = self.state.changed_behind.as_ref().and_then(|line| view.item_of(line));
        changed.map_or(0, |item| item + 1)
    }

    /// True if the provider no longer has what was sent.
    pub fn is_cold(&self) -> bool {
        self.idle().is_some_and(|idle| idle >= self.ttl.duration())
    }
}
