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

/// Prefix of `version` in our own lines, by which a file that we may append to is recognised.
pub const VERSION_PREFIX: &str = "cairn-";

/// Model name that other programs give to replies they made up themselves (an error shown as a message).
const SYNTHETIC_MODEL: &str = "<synthetic>";

/// A line.
#[derive(Debug, Clone)]
pub struct Line {
    /// Its id. Lines without one (titles, snapshots) take part in nothing.
    pub id: Option<Id>,
    /// The line before it in the conversation.
    pub parent: Option<Id>,
    /// When it was written.
    pub time: Option<Timestamp>,
    /// True if it belongs to a subagent's conversation.
    pub sidechain: bool,
    /// The program that wrote it.
    pub writer: Writer,
    /// Content of the line.
    pub body: Body,
    /// The value under our own key, for the code that put it there.
    pub extra: Option<Box<RawValue>>,
    /// The messages a compaction of ours keeps, for other programs. Written, never read: our own extent says the same.
    pub kept: Option<Box<KeptMessages>>,
    /// A tool's result as Claude Code shows it. Written, never read: the message has what the model sees.
    pub result: Option<Box<RawValue>>,
}

/// The messages that stay after a compaction's summary although they were written before it.
#[derive(Debug, Clone)]
pub struct KeptMessages {
    /// The line of the summary, which follows the boundary.
    pub anchor: Id,
    /// Their lines, in order.
    pub lines: Vec<Id>,
}

/// Program that wrote a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// Cairn, in any version.
    Cairn,
    /// Another program.
    Other,
}

/// Content of a line.
#[derive(Debug, Clone)]
pub enum Body {
    /// A message on the user's side: a prompt, or tool results.
    User {
        /// The content.
        blocks: Vec<Block>,
        /// Source of the text.
        source: TextSource,
    },
    /// A message of the model; several lines may share one reply's id.
    Assistant {
        /// The provider's id of the reply.
        id: Id,
        /// The model.
        model: String,
        /// The content.
        blocks: Vec<Block>,
        /// Usage of the request, if known.
        usage: Option<Usage>,
        /// Reason the model stopped.
        stop: Option<StopReason>,
    },
    /// Text added beside the user's message: recalled memories, instructions, notices.
    Attachment {
        /// The blocks, as rendered.
        blocks: Vec<Block>,
    },
    /// A decision about the view.
    Commit(Commit),
    /// Everything before the messages, from this line on.
    Prologue(Prologue),
    /// Facts for other parts of the program: cursors, titles, the origin of a session.
    Meta(Box<RawValue>),
    /// Anything else, kept in the file.
    Other,
}

/// Source of text on the user's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextSource {
    /// The user, or a tool.
    Direct,
    /// Added by a program; not the user's words.
    Injected,
    /// The summary of the compaction before it.
    Summary,
}

/// Reason a line could not be read. It is skipped; the file stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum MalformedLine {
    /// Not JSON, or cut off.
    #[error("not a JSON object: {0}")]
    Json(#[from] serde_json::Error),
    /// The bytes are not UTF-8.
    #[error("not UTF-8")]
    Utf8,
}

/// Fields that all our lines of a session have in common.
#[derive(Debug, Clone)]
pub struct Context {
    /// The session.
    pub session: String,
    /// Working directory.
    pub cwd: String,
    /// The branch checked out there, if any.
    pub branch: String,
    /// The subagent whose transcript this is, if it is one's.
    pub agent: Option<String>,
}

impl From<&Injected> for Body {
    fn from(text: &Injected) -> Self {
        let blocks = vec![text.block()];
        match text.purpose().place() {
            InjectedPlace::WithMessage => Self::Attachment { blocks },
            InjectedPlace::Alone | InjectedPlace::InResult => Self::User { blocks, source: TextSource::Injected },
        }
    }
}

impl Line {
    /// Purpose of the text, if Cairn added it. Older lines do not have one.
    pub fn injected(&self) -> Option<Purpose> {
        #[derive(serde::Deserialize)]
        struct LineExtras {
            injected: Option<Purpose>,
        }
        serde_json::from_str::<LineExtras>(self.extra.as_ref()?.get()).ok()?.injected
    }

    /// Texts that a person typed. Another program does not mark everything it adds for the model, but puts it in a tag.
    pub fn typed(&self) -> Vec<String> {
        let Body::User { blocks, source: TextSource::Direct } = &self.body else { return Vec::new() };
        let is_typed = |text: &String| self.writer == Writer::Cairn || !text.trim_start().starts_with('<');
        blocks.iter().filter_map(Block::as_text).filter(is_typed).collect()
    }

    /// A new line of ours.
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

    /// True if later lines can follow it in the conversation. Commits and meta lines are not part of the chain; the
    /// boundary of a compaction is, as in other programs.
    pub fn in_chain(&self) -> bool {
        match &self.body {
            Body::User { .. } | Body::Assistant { .. } | Body::Attachment { .. } => true,
            Body::Commit(commit) => matches!(commit.act, crate::commit::Act::Compact { .. }),
            Body::Prologue(_) | Body::Meta(_) | Body::Other => false,
        }
    }
}
