//! The seam: what a layer is, and what it decides by.
//!
//! A layer looks at the view and the situation and decides: nothing, a commit, or a need. A need is something only the
//! engine can do: ask a model, keep or read a file. With the answer the layer decides again, so what it then decides fits
//! the view as it is by then, or is void. Whoever drives a session, live or from a record, walks the list in its order
//! before each request and writes what comes of it; each layer is there to keep the next, dearer one from firing, and one
//! that fails falls through to it. A new layer is a file and a line.

use std::path::PathBuf;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use transcript::Id;
use transcript::commit::Commit;
use transcript::mark::Ttl;
use transcript::view::View;

use crate::cache_economics::Rates;
use crate::layers::Layers;
use crate::spilled::Spilled;
use crate::state::State;

/// One of the layers.
pub trait Layer: Sync {
    /// The word for it, which its commits have too.
    fn name(&self) -> &'static str;

    /// What others have to know of it.
    fn role(&self) -> LayerRole {
        LayerRole::Other
    }

    /// Whether the switches have it on.
    fn is_on(&self, layers: &Layers) -> bool;

    /// What is to be done now.
    fn decide(&self, view: &View, now: &Situation<'_>) -> Decision;

    /// What comes of the answer to its need: a change, or why there is none.
    fn answered(&self, view: &View, now: &Situation<'_>, answer: &NeedAnswer) -> Result<LayerChange, String> {
        let _ = (view, now, answer);
        Err("nothing comes of it".to_owned())
    }
}

/// What a layer does to the view, as far as another layer or the engine acts differently because of it.
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
    /// Nobody has to know.
    Other,
}

/// What a layer decides.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// There is nothing to do.
    Nothing,
    /// This is written.
    Commit(LayerChange),
    /// This is needed first.
    Need(Need),
}

/// A commit, with the line that has to follow it.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerChange {
    /// The commit.
    pub commit: Commit,
    /// What stands for what a compaction covers.
    pub summary: Option<String>,
}

impl LayerChange {
    /// A commit alone.
    pub fn of(commit: Commit) -> Self {
        Self { commit, summary: None }
    }
}

/// What only the engine can do.
#[derive(Debug, Clone, PartialEq)]
pub enum Need {
    /// Texts go into files of their own. [`Answer::Kept`].
    Keep(Vec<Spilled>),
    /// A model writes something, and the request waits for it, or for who is writing it already. [`Answer::Text`].
    Write(WritingTask),
    /// A model writes something in the background, for when it will be needed; nothing waits for it.
    Stage(SummaryAhead),
    /// The session's notes, as they are when nobody is writing them any more. [`Answer::Text`].
    Notes,
    /// These files as they are now, the first so many of them that may be shown. [`Answer::Files`].
    Read {
        /// The files.
        files: Vec<PathBuf>,
        /// How many.
        most: usize,
    },
    /// The notes are brought up to date in the background; nothing waits for it.
    Update(Update),
}

/// What a model has to write.
#[derive(Debug, Clone, PartialEq)]
pub struct WritingTask {
    /// Who asks: the name its costs go under.
    pub kind: &'static str,
    /// What about.
    pub about: WritingSubject,
    /// What it is told.
    pub directive: String,
    /// Where its output is cut off, in tokens.
    pub most_output: u64,
    /// The most time for it.
    pub patience: Duration,
}

/// What is written before it is needed: the summary of a span.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryAhead {
    /// The first line of the span.
    pub first: Id,
    /// The last one.
    pub last: Id,
    /// What a model has to write.
    pub write: WritingTask,
}

/// What a model writes about.
#[derive(Debug, Clone, PartialEq)]
pub enum WritingSubject {
    /// The conversation before an item, which it reads from the cache.
    Conversation {
        /// The item.
        end: usize,
    },
    /// This text alone; a small model will do.
    Alone(String),
}

/// An update of the notes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// The conversation before this item is what it is about.
    pub end: usize,
    /// The last line it covers.
    pub covers: Id,
    /// The conversation's tokens.
    pub tokens: u64,
    /// Whether only a compaction can make room by now.
    pub ready: bool,
}

/// What came of a need.
#[derive(Debug, Clone, PartialEq)]
pub enum NeedAnswer {
    /// What was written.
    Text(String),
    /// Where each text is kept, or why it is not.
    Kept(Vec<Result<String, String>>),
    /// Files that may be shown, as they are now.
    Files(Vec<(PathBuf, String)>),
    /// Nothing, and why.
    Failed(String),
}

/// Why the layers are asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Occasion {
    /// A request is about to be sent.
    Request,
    /// The turn is over.
    End,
    /// The user wants a compaction.
    Asked {
        /// What the user wants of the summary.
        instructions: Option<String>,
        /// What is covered.
        reach: CompactionReach,
    },
    /// The provider compacted by itself.
    Provided {
        /// What it wrote.
        summary: String,
    },
    /// The provider refused a request as too long.
    Refused {
        /// So many tokens were too many.
        over: u64,
    },
}

/// How far a compaction reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompactionReach {
    /// All of it.
    Everything,
    /// From a message on: what precedes it stays, in the cache too.
    From(Id),
    /// What precedes a message.
    UpTo(Id),
}

/// What decisions depend on, besides the view.
#[derive(Clone, Copy)]
pub struct Situation<'a> {
    /// Why the layers are asked.
    pub occasion: &'a Occasion,
    /// Now.
    pub now: Timestamp,
    /// How the layers work.
    pub layers: &'a Layers,
    /// How long the provider keeps what it caches.
    pub ttl: Ttl,
    /// What they remember.
    pub state: &'a State,
    /// Where the notes are.
    pub notes: &'a str,
    /// How many characters a tool may return; none if it bounds itself.
    pub limit: &'a dyn Fn(&str) -> Option<usize>,
    /// Which layers have acted on this occasion already.
    pub done: &'a [LayerRole],
}

impl Situation<'_> {
    /// What tokens cost.
    pub fn rates(&self) -> Rates {
        Rates::of(self.layers.price, self.ttl)
    }

    /// Whether a layer of this kind has acted on this occasion.
    pub fn has_acted(&self, role: LayerRole) -> bool {
        self.done.contains(&role)
    }

    /// How long ago the newest reply came.
    pub fn idle(&self) -> Option<SignedDuration> {
        self.state.replied_at.map(|at| self.now.duration_since(at))
    }

    /// The replies from this item on came after sent bytes were last changed: before each of them the tail of a request
    /// stood, and the provider has what precedes it.
    pub fn cached_from(&self, view: &View) -> usize {
        let changed = self.state.changed_behind.as_ref().and_then(|line| view.item_of(line));
        changed.map_or(0, |item| item + 1)
    }

    /// Whether the provider no longer has what was sent.
    pub fn is_cold(&self) -> bool {
        self.idle().is_some_and(|idle| idle >= self.ttl.duration())
    }
}
