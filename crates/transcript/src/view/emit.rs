//! Messages from items, and the seams for the cache breakpoints.

use super::{Item, ItemContent, View, ViewCall};
use crate::block::{Block, Kind};
use crate::mark::Seams;
use crate::message::{Message, Role};
use crate::size::Size;

/// The first message if the log begins in the middle.
const NO_START: &str = "[The beginning of this conversation is not available.]";

impl View {
    /// Recomputes what an item shows.
    pub(super) fn refresh(&mut self, index: usize) {
        self.visits += 1;
        let mut size: Size = self.blocks_of(index).map(|(_, block)| block.size()).sum();
        if let ItemContent::Reply { calls, .. } = &self.items[index].content
            && self.items[index].owner.is_none()
        {
            calls.iter().filter(|call| call.dropped).for_each(|call| size -= call.shown.size());
        }
        let shows = self.blocks_of(index).next().is_some();
        let was = std::mem::replace(&mut self.items[index].size, size);
        self.tally.shows(was, size);
        if shows {
            self.shown.insert(index);
        } else {
            self.shown.remove(&index);
        }
    }

    /// The blocks of the view in order, each with the item it belongs to.
    pub fn blocks(&self) -> impl Iterator<Item = (usize, Role, &Block)> {
        self.shown.iter().flat_map(|&item| self.blocks_of(item).map(move |(role, block)| (item, role, block)))
    }

    /// The view as messages: consecutive blocks of one role form one message, and the first is the user's.
    pub fn messages(&self) -> Vec<Message> {
        self.messages_before(self.items.len())
    }

    /// The messages of the items before `end`.
    pub fn messages_before(&self, end: usize) -> Vec<Message> {
        let mut messages: Vec<Message> = Vec::new();
        for (_, role, block) in self.blocks().take_while(|(item, _, _)| *item < end) {
            if messages.is_empty() && role == Role::Assistant {
                messages.push(Message { role: Role::User, blocks: vec![Block::text(NO_START)] });
            }
            match messages.last_mut() {
                Some(last) if last.role == role => last.blocks.push(block.clone()),
                _ => messages.push(Message { role, blocks: vec![block.clone()] }),
            }
        }
        messages
    }

    /// Points from which the provider's cache can be read, and at which it is worth writing.
    pub fn seams(&self) -> Seams {
        let before = |end: usize| self.blocks().take_while(|(item, _, _)| *item < end).count();
        Seams {
            answered: self.last_reply.map_or(0, before),
            rewritten: self.rewritten.map(|(first, last)| before(first)..before(last + 1)),
            edits: self.edits_by_block(),
        }
    }

    /// Cache edits, each with the number of blocks before it.
    fn edits_by_block(&self) -> Vec<(usize, Vec<String>)> {
        let before = |end: usize| self.blocks().take_while(|(item, _, _)| *item < end).count();
        let owned = |ids: Vec<&str>| ids.into_iter().map(str::to_owned).collect();
        self.cache_edits().map(|(item, ids)| (before(item + 1), owned(ids))).collect()
    }

    /// The results of the newest reply's calls that no commit has decided about, as the tools returned them: call id,
    /// tool, result.
    pub fn fresh_results(&self) -> Vec<(&str, &str, &Block)> {
        let Some(Item { content: ItemContent::Reply { blocks, calls }, .. }) =
            self.last_reply.map(|item| &self.items[item])
        else {
            return Vec::new();
        };
        let name = |wanted: &str| {
            blocks.iter().find_map(|block| match block.kind() {
                Kind::ToolUse { id, name } if &**id == wanted => Some(&**name),
                _ => None,
            })
        };
        let undecided = calls.iter().filter(|call| call.rewrites.is_empty());
        let answered = undecided.filter_map(|call| Some((&*call.id, name(&call.id)?, call.result.as_ref()?)));
        answered.collect()
    }

    /// Calls of the newest reply that have no result yet, in order.
    pub fn open_calls(&self) -> Vec<Block> {
        let Some(Item { content: ItemContent::Reply { blocks, calls }, .. }) =
            self.last_reply.map(|item| &self.items[item])
        else {
            return Vec::new();
        };
        let open = |id: &str| calls.iter().any(|call| &*call.id == id && call.result.is_none());
        blocks.iter().filter(|block| matches!(block.kind(), Kind::ToolUse { id, .. } if open(id))).cloned().collect()
    }

    pub(super) fn blocks_of(&self, index: usize) -> impl Iterator<Item = (Role, &Block)> {
        let item = &self.items[index];
        let cover = item.owner.map(|owner| &self.commits[owner]).filter(|cover| cover.anchor == Some(index));
        let cover = cover.and_then(|cover| cover.text.as_deref()).unwrap_or_default();
        let (said, replied, results): (&[Block], &[Block], &[ViewCall]) = match &item.content {
            _ if item.owner.is_some() || !self.exists(index) => (&[], &[], &[]),
            ItemContent::Prompt { blocks, .. } => (blocks, &[], &[]),
            ItemContent::Reply { blocks, calls } => (&[], without_trailing_thinking(blocks), calls),
        };
        let user = cover.iter().chain(said).map(|block| (Role::User, block));
        let assistant = replied.iter().map(|block| (Role::Assistant, block));
        user.chain(assistant).chain(results.iter().map(|call| (Role::User, &call.shown)))
    }
}

/// The API refuses a reply that ends in thinking, which is what an interrupted one does.
fn without_trailing_thinking(blocks: &[Block]) -> &[Block] {
    let end = blocks.iter().rposition(|block| *block.kind() != Kind::Thinking).map_or(0, |last| last + 1);
    &blocks[..end]
}
