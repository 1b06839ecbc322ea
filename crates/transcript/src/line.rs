//! One line of a session file, read and written.
//!
//! Reading is lenient: whatever another program wrote loads, as far as it says something the view needs; the rest is
//! [`Body::Other`] and stays in the file, which is never rewritten. Side fields (four fifths of a typical file) are
//! skipped, not parsed. Writing is exact: the shapes are those Claude Code writes, and what it has no shape for stands
//! under one key of our own, `cairn`, or in lines of type `commit` and `meta`.
//!
//! ```
//! use transcript::line::{Body, Line};
//! let line = Line::parse(br#"{"type":"user","uuid":"u1","parentUuid":null,"message":{"role":"user","content":"hi"}}"#).unwrap();
//! assert!(matches!(line.body, Body::User { .. }));
//! ```

mod pi;
mod read;
mod write;

use jiff::Timestamp;
use serde_json::value::RawValue;

use crate::block::Block;
use crate::commit::Commit;
use crate::id::Id;
use crate::injected::{Injected, InjectedPlace, Purpose};
use crate::message::{Prologue, StopReason, Usage};

pub use pi::Translator;

/// What our lines carry in `version`, so that we know a file that we may append to.
pub const VERSION_PREFIX: &str = "cairn-";

/// The model name other programs give to replies they made up themselves (an error shown as a message).
const SYNTHETIC_MODEL: &str = "<synthetic>";

/// A line.
#[derive(Debug, Clone)]
pub struct Line {
    /// Its name. Lines without one (titles, snapshots) get none and take part in nothing.
    pub id: Option<Id>,
    /// The line before it in the conversation.
    pub parent: Option<Id>,
    /// When it was written.
    pub time: Option<Timestamp>,
    /// Whether it belongs to a subagent's conversation.
    pub sidechain: bool,
    /// Who wrote it.
    pub writer: Writer,
    /// What it says.
    pub body: Body,
    /// What stands under our own key, for those who put it there.
    pub extra: Option<Box<RawValue>>,
    /// What a compaction of ours keeps, for other programs. Written, never read: our own extent says it too.
    pub kept: Option<Box<KeptMessages>>,
    /// What a tool gave, as Claude Code shows it. Written, never read: what the model sees is in the message.
    pub result: Option<Box<RawValue>>,
}

/// The messages that stand after a compaction's summary, though they were written before it.
#[derive(Debug, Clone)]
pub struct KeptMessages {
    /// The line of the summary, which follows the boundary.
    pub anchor: Id,
    /// Their lines, in order.
    pub lines: Vec<Id>,
}

/// Who wrote a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// This program, in any version.
    Cairn,
    /// Another one.
    Other,
}

/// What a line says.
#[derive(Debug, Clone)]
pub enum Body {
    /// Said on the user's side: a prompt, tool results.
    User {
        /// The content.
        blocks: Vec<Block>,
        /// Where it came from.
        source: TextSource,
    },
    /// Said by the model; several lines may share one reply's id.
    Assistant {
        /// The provider's id of the reply.
        id: Id,
        /// The model.
        model: String,
        /// The content.
        blocks: Vec<Block>,
        /// What the request cost, where it is known.
        usage: Option<Usage>,
        /// Why the model stopped.
        stop: Option<StopReason>,
    },
    /// Context put beside what the user said: recalled memories, instructions, notices.
    Attachment {
        /// As it was rendered.
        blocks: Vec<Block>,
    },
    /// A decision about the view.
    Commit(Commit),
    /// What stands before the messages, from here on.
    Prologue(Prologue),
    /// Facts for other parts of the program: cursors, titles, where a session came from.
    Meta(Box<RawValue>),
    /// Anything else, carried along in the file.
    Other,
}

/// Where user-side text came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextSource {
    /// The user, or a tool.
    Said,
    /// Put in by a program; not to be taken for the user's words.
    Injected,
    /// The summary that belongs to the compaction before it.
    Summary,
}

/// Why a line could not be read. It is skipped; the file stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum MalformedLine {
    /// Not JSON, or cut off.
    #[error("not a JSON object: {0}")]
    Json(#[from] serde_json::Error),
    /// Bytes that are no text.
    #[error("not UTF-8")]
    Utf8,
}

/// What every line of a session has in common, as we write it.
#[derive(Debug, Clone)]
pub struct Context {
    /// The session.
    pub session: String,
    /// Where the work is done.
    pub cwd: String,
    /// The branch checked out there, if any.
    pub branch: String,
    /// The agent that was sent out, if it is the file of one.
    pub agent: Option<String>,
}

impl From<&Injected> for Body {
    fn from(text: &Injected) -> Self {
        let blocks = vec![text.block()];
        match text.purpose().place() {
            InjectedPlace::Beside => Self::Attachment { blocks },
            InjectedPlace::Alone | InjectedPlace::InResult => Self::User { blocks, source: TextSource::Injected },
        }
    }
}

impl Line {
    /// What the text on it is for, where this program put it in. Lines of before do not say.
    pub fn injected(&self) -> Option<Purpose> {
        #[derive(serde::Deserialize)]
        struct LineExtras {
            injected: Option<Purpose>,
        }
        serde_json::from_str::<LineExtras>(self.extra.as_ref()?.get()).ok()?.injected
    }

    /// What somebody typed on it. Another program does not mark all that it puts in for the model, but frames it by a tag.
    pub fn typed(&self) -> Vec<String> {
        let Body::User { blocks, source: TextSource::Said } = &self.body else { return Vec::new() };
        let is_typed = |text: &String| self.writer == Writer::Cairn || !text.trim_start().starts_with('<');
        blocks.iter().filter_map(Block::as_text).filter(is_typed).collect()
    }

    /// A line of ours.
    pub fn new(id: Id, parent: Option<Id>, time: Timestamp, body: Body) -> Self {
        Self {
            id: Some(id),
            parent,
            time: Some(time),
            sidechain: false,
            writer: Writer::Cairn,
            body,
            extra: None,
            kept: None,
            result: None,
        }
    }

    /// Whether later lines can follow it in the conversation. Commits and meta lines stand beside the chain; the
    /// boundary of a compaction stands in it, as other programs have it.
    pub fn in_chain(&self) -> bool {
        match &self.body {
            Body::User { .. } | Body::Assistant { .. } | Body::Attachment { .. } => true,
            Body::Commit(commit) => matches!(commit.act, crate::commit::Act::Compact { .. }),
            Body::Prologue(_) | Body::Meta(_) | Body::Other => false,
        }
    }
}
