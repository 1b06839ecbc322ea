//! What of a session nothing was learnt from yet: from the log alone.
//!
//! The log says how far learning came (the cursor), when the user wanted to be private, and what the main agent saved
//! itself. What came from another file is text, and nothing is learnt from it.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use transcript::block::Kind;
use transcript::line::{Body, Line, Source};
use transcript::view::Stands;
use transcript::{Block, Id, Log};

/// A line of ours about learning, beside what is said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub(crate) enum Note {
    /// Learning came so far.
    Extracted {
        /// The newest message it covers.
        covers: Id,
        /// The memories it saved.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        saved: Vec<String>,
        /// Under which run its changes are kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<String>,
        /// Why nothing was asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        skipped: Option<String>,
    },
    /// From here on nothing is learnt, or again.
    Private {
        /// Whether the session is private.
        on: bool,
    },
    /// The session goes on here; what precedes this line was said elsewhere.
    Continued,
    /// This session is one that is learnt from: what it leaves, a later one may take up.
    Learns,
}

impl Note {
    fn of(line: &Line) -> Option<Self> {
        match &line.body {
            Body::Meta(meta) => serde_json::from_str(meta.get()).ok(),
            _ => None,
        }
    }
}

/// What nothing was learnt from yet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Span {
    /// The visible messages of the user and the model that are new, in order.
    pub(crate) messages: Vec<Id>,
    /// Whether all that is visible counts, since the cursor is behind a summary.
    pub(crate) all: bool,
    /// How many turns they are that were answered.
    pub(crate) turns: u32,
    /// The calls in them: the tool, and its input.
    pub(crate) calls: Vec<(String, Value)>,
    /// What the user said in them.
    pub(crate) said: Vec<Block>,
}

impl Span {
    /// The newest message.
    pub(crate) fn covers(&self) -> Option<&Id> {
        self.messages.last()
    }
}

/// Whether the session is one that is learnt from.
pub(crate) fn learns(log: &Log) -> bool {
    log.lines().iter().any(|line| Note::of(line) == Some(Note::Learns))
}

/// Whether the session is private now.
pub(crate) fn is_private(log: &Log) -> bool {
    let notes = log.lines().iter().rev().filter_map(Note::of);
    notes.into_iter().find_map(|note| if let Note::Private { on } = note { Some(on) } else { None }) == Some(true)
}

/// Memories that were saved in the session itself: the run their changes are kept under and their paths, the oldest first.
/// With `Since::Said`, only those that the model was not told of, since the user has said nothing after them.
pub fn learnt(log: &Log, since: Since) -> Vec<(String, Vec<String>)> {
    let is_said = |line: &Line| matches!(line.body, Body::User { source: Source::Said, .. });
    let from = log.lines().iter().rposition(|line| match since {
        Since::Said => is_said(line) || Note::of(line) == Some(Note::Continued),
        Since::Beginning => Note::of(line) == Some(Note::Continued),
    });
    let notes = log.lines().iter().skip(from.map_or(0, |at| at + 1)).filter_map(Note::of);
    let saved = notes.filter_map(|note| match note {
        Note::Extracted { saved, run: Some(run), .. } if !saved.is_empty() => Some((run, saved)),
        _ => None,
    });
    saved.collect()
}

/// From where on memories are looked for that were saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// From the beginning.
    Beginning,
    /// From what the user said last.
    Said,
}

/// Where learning begins: behind the cursor, behind what was said elsewhere, behind what was private. `after` is a cursor
/// that is not in the log yet.
fn begins(lines: &[Line], after: Option<&Id>) -> usize {
    let at = |id: &Id| lines.iter().rposition(|line| line.id.as_ref() == Some(id)).map_or(0, |at| at + 1);
    let notes = lines.iter().enumerate().rev().filter_map(|(index, line)| Some((index, Note::of(line)?)));
    let (mut behind, mut cursor) = (0, None);
    for (index, note) in notes {
        match note {
            Note::Extracted { covers, .. } if cursor.is_none() => cursor = Some(covers),
            Note::Private { on: false } | Note::Continued if behind == 0 => behind = index + 1,
            _ => {}
        }
    }
    behind.max(cursor.as_ref().map_or(0, at)).max(after.map_or(0, at))
}

/// What nothing was learnt from yet; none if there is nothing.
pub(crate) fn span(log: &Log, after: Option<&Id>) -> Option<Span> {
    if is_private(log) {
        return None;
    }
    let (lines, view) = (log.lines(), log.view());
    let from = begins(lines, after);
    let fresh: HashSet<&Id> = lines.get(from..)?.iter().filter_map(|line| line.id.as_ref()).collect();
    let is_message = |stands: Stands| matches!(stands, Stands::Said | Stands::Reply);
    let new: Vec<_> =
        view.visible().filter(|entry| is_message(entry.stands()) && fresh.contains(entry.line())).collect();
    let said: Vec<_> = new.iter().filter(|entry| entry.stands() == Stands::Said).collect();
    // A cursor behind a summary: what followed it may be there too.
    let before = lines[..from].iter().rev().filter_map(|line| line.id.as_ref()).find(|id| view.item_of(id).is_some());
    let gone = before.is_some_and(|id| !view.shows(id)) && view.visible().any(|entry| is_summary(entry.stands()));
    let calls = new.iter().flat_map(|entry| entry.calls());
    let called = calls.map(|call| (call.tool.to_owned(), call.call.input().unwrap_or_default()));
    Some(Span {
        messages: new.iter().map(|entry| entry.line().clone()).collect(),
        all: gone,
        turns: new.iter().filter(|entry| entry.is_reply() && entry.calls().next().is_none()).count() as u32,
        calls: called.collect(),
        said: said.iter().flat_map(|entry| entry.blocks().to_vec()).collect(),
    })
}

fn is_summary(stands: Stands) -> bool {
    matches!(stands, Stands::Covered(_))
}

/// Text that no memory may be made from, and what the user said.
#[derive(Debug, Clone, Default)]
pub(crate) struct Texts {
    /// What was put before the model.
    pub(crate) injected: Vec<Block>,
    /// What the user said.
    pub(crate) said: Vec<Block>,
}

/// What was put before the model in a session, and what the user said. What was said in private, or elsewhere, counts as
/// put before it.
pub(crate) fn texts(log: &Log) -> Texts {
    let (mut texts, mut private) = (Texts::default(), false);
    let elsewhere = log.lines().iter().rposition(|line| Note::of(line) == Some(Note::Continued)).unwrap_or(0);
    for (index, line) in log.lines().iter().enumerate() {
        if let Some(Note::Private { on }) = Note::of(line) {
            private = on;
        }
        match &line.body {
            Body::Attachment { blocks } | Body::User { blocks, source: Source::Injected | Source::Summary } => {
                texts.injected.extend(blocks.iter().cloned());
            }
            Body::User { blocks, source: Source::Said } => {
                for block in blocks {
                    let own = *block.kind() == Kind::Text && !private && index >= elsewhere;
                    if own { &mut texts.said } else { &mut texts.injected }.push(block.clone());
                }
            }
            _ => {}
        }
    }
    texts
}

impl Texts {
    /// By their sequences of words.
    pub(crate) fn injected(&self) -> memory::echo::Injected {
        let mut injected = memory::echo::Injected::default();
        self.injected.iter().for_each(|block| injected.add(&text(block)));
        self.said.iter().for_each(|block| injected.said(&text(block)));
        injected
    }
}

/// The text of a block, also of a tool's result.
fn text(block: &Block) -> String {
    match block.kind() {
        Kind::ToolResult { .. } => block.result_text(),
        _ => block.as_text().unwrap_or_default(),
    }
}
