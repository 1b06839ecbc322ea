//! The items of a view, as those look at them who decide what may leave it.

use std::ops::Range;
use std::sync::Arc;

use super::{Content, Item, View};
use crate::block::{Block, Kind};
use crate::id::Id;
use crate::message::Role;
use crate::size::Size;

/// One item of a view: a prompt, or a reply with its results.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    view: &'a View,
    index: usize,
}

/// A call of a reply, with its result.
#[derive(Debug, Clone, Copy)]
pub struct Answered<'a> {
    /// The call's id.
    pub id: &'a Arc<str>,
    /// The tool.
    pub tool: &'a str,
    /// The call.
    pub call: &'a Block,
    /// What the tool returned, if it has.
    pub result: Option<&'a Block>,
    /// What is shown of it.
    pub shown: &'a Block,
}

impl View {
    /// What is visible, in order.
    pub fn visible(&self) -> impl DoubleEndedIterator<Item = Entry<'_>> {
        self.shown.iter().map(|&index| Entry { view: self, index })
    }

    /// Items by position, visible or not; what was taken back by a rewind is left out.
    pub fn entries(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = Entry<'_>> {
        let range = range.start.min(self.items.len())..range.end.min(self.items.len());
        range.map(|index| Entry { view: self, index }).filter(|entry| !entry.is_taken_back())
    }

    /// What the user said, in order: visible, or behind a summary.
    pub fn said(&self) -> impl DoubleEndedIterator<Item = Entry<'_>> {
        self.said.iter().map(|&index| Entry { view: self, index }).filter(|entry| !entry.is_taken_back())
    }

    /// How many items there are, visible or not.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The item a line belongs to.
    pub fn item_of(&self, line: &Id) -> Option<usize> {
        self.item_of_line.get(line).copied()
    }
}

impl<'a> Entry<'a> {
    /// Its position.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The line that began it.
    pub fn line(&self) -> &'a Id {
        &self.item().line
    }

    /// How much it adds to the view.
    pub fn size(&self) -> Size {
        self.item().size
    }

    /// Whether it is a reply of the model.
    pub fn is_reply(&self) -> bool {
        matches!(self.item().content, Content::Reply { .. })
    }

    /// Whether it stands for itself: not behind a cover, and not brought in by a commit.
    pub fn is_original(&self) -> bool {
        self.item().owner.is_none() && !matches!(self.item().content, Content::Prompt { commit: Some(_), .. })
    }

    /// Whether a compaction's summary, or another cover's text, stands here.
    pub fn is_cover(&self) -> bool {
        self.item().owner.is_some_and(|owner| self.view.commits[owner].anchor == Some(self.index))
    }

    /// What was said here, whatever is shown of it.
    pub fn blocks(&self) -> &'a [Block] {
        match &self.item().content {
            Content::Prompt { blocks, .. } | Content::Reply { blocks, .. } => blocks,
        }
    }

    /// What is shown here.
    pub fn shown(self) -> impl Iterator<Item = (Role, &'a Block)> {
        self.view.blocks_of(self.index)
    }

    /// Whether text is shown here, other than tool results.
    pub fn has_text(&self) -> bool {
        self.shown().any(|(_, block)| *block.kind() == Kind::Text)
    }

    /// The calls of a reply.
    pub fn calls(self) -> impl DoubleEndedIterator<Item = Answered<'a>> {
        let (blocks, calls) = match &self.item().content {
            Content::Reply { blocks, calls } => (blocks.as_slice(), calls.as_slice()),
            Content::Prompt { .. } => (&[][..], &[][..]),
        };
        calls.iter().filter_map(move |call| {
            let named = blocks.iter().find_map(|block| match block.kind() {
                Kind::ToolUse { id, name } if *id == call.id => Some((&**name, block)),
                _ => None,
            });
            let (tool, block) = named?;
            Some(Answered { id: &call.id, tool, call: block, result: call.result.as_ref(), shown: &call.shown })
        })
    }

    fn is_taken_back(&self) -> bool {
        self.item().owner.is_some_and(|owner| self.view.commits[owner].text.as_ref().is_some_and(Vec::is_empty))
    }

    fn item(&self) -> &'a Item {
        &self.view.items[self.index]
    }
}
