//! The items of a view, for the code that decides what may leave it.

use std::ops::Range;
use std::sync::Arc;

use super::{Cover, Item, ItemContent, TextOrigin, View};
use crate::block::{Block, Kind};
use crate::commit::CallName;
use crate::id::Id;
use crate::message::Role;
use crate::size::Size;

/// One item of a view: a prompt, or a reply with its results.
#[derive(Debug, Clone, Copy)]
pub struct ViewEntry<'a> {
    view: &'a View,
    index: usize,
}

/// Current state of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemState {
    /// Words of the user.
    UserText,
    /// Text that a program added: attachments, reminders.
    AddedText,
    /// A reply, with the results of its calls.
    Reply,
    /// Blocks that a commit restored.
    Restored,
    /// Blocks that a voided commit would have restored.
    Void,
    /// A cover's text, in its place.
    Covered(Cover),
    /// Nothing: it is behind a cover whose text stands elsewhere, or which has none.
    Behind(Cover),
}

/// A call of a reply, with its result.
#[derive(Debug, Clone, Copy)]
pub struct AnsweredCall<'a> {
    /// The line that began the reply.
    pub reply: &'a Id,
    /// The call's id.
    pub id: &'a Arc<str>,
    /// The tool.
    pub tool: &'a str,
    /// The call.
    pub call: &'a Block,
    /// The tool's result, if there is one.
    pub result: Option<&'a Block>,
    /// The result as shown.
    pub shown: &'a Block,
    /// True if the provider drops it from its cache: the model does not see it.
    pub dropped: bool,
}

impl View {
    /// The visible items, in order.
    pub fn visible(&self) -> impl DoubleEndedIterator<Item = ViewEntry<'_>> {
        self.shown.iter().map(|&index| ViewEntry { view: self, index })
    }

    /// Items by position, visible or not, without those that a rewind took back.
    pub fn entries(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = ViewEntry<'_>> {
        let range = range.start.min(self.items.len())..range.end.min(self.items.len());
        range.map(|index| ViewEntry { view: self, index }).filter(|entry| !entry.is_taken_back())
    }

    /// The user's messages, in order: visible, or behind a summary.
    pub fn user_messages(&self) -> impl DoubleEndedIterator<Item = ViewEntry<'_>> {
        self.user_items.iter().map(|&index| ViewEntry { view: self, index }).filter(|entry| !entry.is_taken_back())
    }

    /// Number of items, visible or not.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// True if there are no items.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The item a line belongs to; none if it was taken back.
    pub fn item_of(&self, line: &Id) -> Option<usize> {
        self.item_of_line.get(line).copied().filter(|&item| !self.is_item_behind(item, &[Cover::Rewind]))
    }

    /// True if a line's content is in view, as it was said or as a commit rewrote it.
    pub fn shows(&self, line: &Id) -> bool {
        self.item_of_line.get(line).is_some_and(|&item| self.items[item].owner.is_none())
    }
}

impl AnsweredCall<'_> {
    /// Its name in commits.
    pub fn name(&self) -> CallName {
        CallName { id: self.id.to_string(), reply: Some(self.reply.clone()) }
    }
}

impl<'a> ViewEntry<'a> {
    /// Its position.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The line that began it.
    pub fn line(&self) -> &'a Id {
        &self.item().line
    }

    /// Its share of the view's size.
    pub fn size(&self) -> Size {
        self.item().size
    }

    /// True for a reply of the model, whatever is shown of it.
    pub fn is_reply(&self) -> bool {
        matches!(self.item().content, ItemContent::Reply { .. })
    }

    /// Its current state.
    pub fn state(&self) -> ItemState {
        let owner = self.item().owner.map(|owner| &self.view.commits[owner]);
        match (owner.and_then(|owner| Some((owner.kind?, owner.anchor))), &self.item().content) {
            (Some((cover, anchor)), _) if anchor == Some(self.index) && cover != Cover::Rewind => {
                ItemState::Covered(cover)
            }
            (Some(_), _) if self.is_taken_back() => ItemState::Behind(Cover::Rewind),
            (Some((cover, _)), _) => ItemState::Behind(cover),
            (None, ItemContent::Reply { .. }) => ItemState::Reply,
            (None, ItemContent::Prompt { origin, .. }) => match origin {
                TextOrigin::User => ItemState::UserText,
                TextOrigin::Program => ItemState::AddedText,
                TextOrigin::Commit(_) if self.view.exists(self.index) => ItemState::Restored,
                TextOrigin::Commit(_) => ItemState::Void,
            },
        }
    }

    /// True if it shows its own content: not behind a cover, and not restored by a commit.
    pub fn is_original(&self) -> bool {
        matches!(self.state(), ItemState::UserText | ItemState::AddedText | ItemState::Reply)
    }

    /// The original blocks, whatever is shown of them.
    pub fn blocks(&self) -> &'a [Block] {
        match &self.item().content {
            ItemContent::Prompt { blocks, .. } | ItemContent::Reply { blocks, .. } => blocks,
        }
    }

    /// The blocks as shown.
    pub fn shown(self) -> impl Iterator<Item = (Role, &'a Block)> {
        self.view.blocks_of(self.index)
    }

    /// True if text is shown here, other than tool results.
    pub fn has_text(&self) -> bool {
        self.shown().any(|(_, block)| *block.kind() == Kind::Text)
    }

    /// The calls of a reply.
    pub fn calls(self) -> impl DoubleEndedIterator<Item = AnsweredCall<'a>> {
        let (blocks, calls) = match &self.item().content {
            ItemContent::Reply { blocks, calls } => (blocks.as_slice(), calls.as_slice()),
            ItemContent::Prompt { .. } => (&[][..], &[][..]),
        };
        calls.iter().filter_map(move |call| {
            let named = blocks.iter().find_map(|block| match block.kind() {
                Kind::ToolUse { id, name } if *id == call.id => Some((&**name, block)),
                _ => None,
            });
            let (tool, block) = named?;
            let (reply, result) = (&self.item().line, call.result.as_ref());
            Some(AnsweredCall {
                reply,
                id: &call.id,
                tool,
                call: block,
                result,
                shown: &call.shown,
                dropped: call.dropped,
            })
        })
    }

    fn is_taken_back(&self) -> bool {
        self.view.is_item_behind(self.index, &[Cover::Rewind])
    }

    fn item(&self) -> &'a Item {
        &self.view.items[self.index]
    }
}
