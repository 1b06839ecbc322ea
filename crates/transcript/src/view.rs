//! The projection: from the lines of a log to what the model sees.
//!
//! The view is a sequence of **items** in the order of the log. There are two kinds: a *prompt* (one line said on the
//! user's side) and a *reply* (all lines that share one API message id, together with the results of its tool calls).
//! That a reply and its results are one item is what keeps the protocol's promise: no cover can split a call from its
//! result, or two halves of one reply. A call that has no result gets one that says so; a result whose call is not
//! there belongs to no item and is not shown.
//!
//! Commits act on items. Of the covers that name an item the newest one that is not void owns it, and the first item a
//! cover owns shows the cover's text in its place. Items behind a cover are still represented by it, so a later, wider
//! cover may take them over. Going back to a place behind a cover lifts it: what it tells of had not happened there.
//! Since nothing is ever removed, a commit can be voided at any time, and the view is what it would be had the commit
//! never been written.
//!
//! Every change goes through `View::refresh`, one item at a time; its count ([`View::visits`]) is the cost of a
//! change. Appending visits one item, however long the session.
//!
//! A commit that rewrites results means the calls that stood there when it was made: a server may use an id again, and
//! the new call has nothing to do with the old one.

mod cover;
mod emit;
mod entry;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock};

use crate::block::{Block, Kind};
use crate::commit::{Act, CallName, Commit};
use crate::id::Id;
use crate::line::{Body, Line, TextSource};
use crate::message::{Prologue, Usage};
use crate::size::Size;
use crate::tokens::{Estimator, Tally};

use cover::CommitState;
pub use cover::Cover;
pub use entry::{AnsweredCall, ItemState, ViewEntry};

/// The view: what the model sees, updated line by line.
#[derive(Debug, Clone, Default)]
pub struct View {
    items: Vec<Item>,
    shown: BTreeSet<usize>,
    commits: Vec<CommitState>,
    prologue: Option<Arc<Prologue>>,
    tally: Tally,
    visits: u64,

    item_of_line: HashMap<Id, usize>,
    item_of_reply: HashMap<Id, usize>,
    /// Items by call id; several if a server reused the id.
    items_of_call: HashMap<Arc<str>, Vec<usize>>,
    commit_of_line: HashMap<Id, usize>,
    last_reply: Option<usize>,
    /// Prompts that are the user's own words.
    user_items: Vec<usize>,
    /// The first and the last reply whose results were rewritten since the newest reply.
    rewritten: Option<(usize, usize)>,
}

#[derive(Debug, Clone)]
struct Item {
    /// The line that began it.
    line: Id,
    content: ItemContent,
    /// The newest effective commit that covers it.
    owner: Option<usize>,
    /// Its current share of the view's size.
    size: Size,
}

#[derive(Debug, Clone)]
enum ItemContent {
    Prompt { blocks: Vec<Block>, origin: TextOrigin },
    Reply { blocks: Vec<Block>, calls: Vec<ViewCall> },
}

/// Origin of a text on the user's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextOrigin {
    /// The user.
    User,
    /// A program.
    Program,
    /// A commit, by its index; shown only while the commit is effective.
    Commit(usize),
}

#[derive(Debug, Clone)]
struct ViewCall {
    id: Arc<str>,
    /// The tool's result.
    result: Option<Block>,
    /// The result as shown.
    shown: Block,
    /// Rewrites by commits, newest last.
    rewrites: Vec<Rewrite>,
    /// True if the provider drops it from its cache: it is sent unchanged and counts as nothing.
    dropped: bool,
}

/// Position of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CallPlace {
    item: usize,
    call: usize,
}

/// A commit's new content for one tool result.
#[derive(Debug, Clone)]
struct Rewrite {
    commit: usize,
    /// None if the provider drops it from its cache.
    text: Option<Arc<str>>,
}

/// Extent of a change to the view, for a caller that remembers it from before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ViewChange {
    /// The prologue, and so everything.
    Prologue,
    /// From this item on.
    From(usize),
    /// Only the end grew.
    Grew,
}

/// Answer to a call that has no result.
static INTERRUPTED: LazyLock<Block> =
    LazyLock::new(|| Block::text("[No result: the call was interrupted before it finished.]"));

impl View {
    /// Applies the next live line and returns where the view changed.
    pub(crate) fn push(&mut self, line: &Line) -> ViewChange {
        let Some(id) = &line.id else {
            // A line without a name can still rewrite results, which have names of their own.
            return match &line.body {
                Body::Commit(commit) if !matches!(commit.act, Act::Restore { .. }) => self.push_commit(None, commit),
                _ => ViewChange::Grew,
            };
        };
        self.tally.written_by(line.writer);
        match &line.body {
            Body::User { blocks, source: TextSource::Summary } => self.push_summary(id, line.parent.as_ref(), blocks),
            Body::User { blocks, source } => self.push_user(id, blocks, *source),
            Body::Attachment { blocks } => self.push_prompt(id, blocks.clone(), TextOrigin::Program),
            Body::Assistant { id: reply, blocks, usage, .. } => self.push_assistant(id, reply, blocks, *usage),
            Body::Commit(commit) => self.push_commit(Some(id), commit),
            Body::Prologue(prologue) => self.push_prologue(prologue),
            Body::Meta(_) | Body::Other => ViewChange::Grew,
        }
    }

    /// Does what a commit would do. A compaction that has no summary yet gets a placeholder.
    pub(crate) fn try_commit(&mut self, act: &Act) {
        let commit = Commit { act: act.clone(), reason: Default::default() };
        self.push_commit(Some(&Id::from("")), &commit);
        let newest = self.commits.len() - 1;
        if self.commits[newest].awaits_text() {
            self.complete(newest, vec![Block::text("[summary]")]);
        }
    }

    /// Number of items that all pushes so far have looked at.
    pub fn visits(&self) -> u64 {
        self.visits
    }

    /// The token count of the conversation as it stands.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    pub(crate) fn use_estimator(&mut self, estimator: Estimator) {
        self.tally.use_estimator(estimator);
    }

    /// The prologue, if the log has one.
    pub fn prologue(&self) -> Option<&Arc<Prologue>> {
        self.prologue.as_ref()
    }

    /// The line that began an item.
    pub fn line_of(&self, item: usize) -> Option<&Id> {
        self.items.get(item).map(|item| &item.line)
    }

    /// True if a commit is effective: known, complete and not undone.
    pub fn counts(&self, commit: &Id) -> bool {
        self.commit_of_line.get(commit).is_some_and(|&commit| self.commits[commit].counts())
    }

    /// True if a line is part of an item, shown or not.
    pub(crate) fn has(&self, line: &Id) -> bool {
        self.item_of_line.contains_key(line)
    }

    /// True if a line is out of the view because the user went back to before it.
    pub fn is_taken_back(&self, line: &Id) -> bool {
        self.is_behind(line, &[Cover::Rewind])
    }

    /// True if a line is out of the view for other programs as well: taken back, or behind a summary.
    pub(crate) fn is_hidden(&self, line: &Id) -> bool {
        self.is_behind(line, &[Cover::Rewind, Cover::Compact])
    }

    fn is_behind(&self, line: &Id, kinds: &[Cover]) -> bool {
        self.item_of_line.get(line).is_some_and(|&item| self.is_item_behind(item, kinds))
    }

    fn is_item_behind(&self, item: usize, kinds: &[Cover]) -> bool {
        let mut covers = self.commits.iter().filter(|cover| cover.kind.is_some_and(|kind| kinds.contains(&kind)));
        self.items[item].owner.is_some() && covers.any(|cover| cover.counts() && cover.covers(item))
    }

    fn push_prologue(&mut self, prologue: &Prologue) -> ViewChange {
        let changed = self.prologue.as_deref().is_some_and(|old| !old.is_same_prefix(prologue));
        if self.prologue.as_deref().is_some_and(|old| old.model != prologue.model) {
            self.tally.forget(); // another model counts otherwise
        }
        self.tally.prologue(prologue);
        self.prologue = Some(Arc::new(prologue.clone()));
        if changed { ViewChange::Prologue } else { ViewChange::Grew }
    }

    /// Adds results to the reply that holds their calls; the rest becomes a prompt of its own.
    fn push_user(&mut self, line: &Id, blocks: &[Block], source: TextSource) -> ViewChange {
        let mut rest = Vec::new();
        let mut change = ViewChange::Grew;
        for block in blocks {
            match block.kind() {
                Kind::ToolResult { id, .. } => change = change.min(self.push_result(line, id, block)),
                _ => rest.push(block.clone()),
            }
        }
        if rest.is_empty() {
            return change;
        }
        let origin = if source == TextSource::Direct { TextOrigin::User } else { TextOrigin::Program };
        change.min(self.push_prompt(line, rest, origin))
    }

    /// Adds a result to the newest call with its id. One that comes after the next reply began changes what was sent.
    fn push_result(&mut self, line: &Id, call: &Arc<str>, block: &Block) -> ViewChange {
        let Some(place) = self.items_of_call.get(call).and_then(|items| self.place_in(*items.last()?, call)) else {
            return ViewChange::Grew;
        };
        let Some(open) = self.call_mut(place).filter(|open| open.result.is_none()) else { return ViewChange::Grew };
        open.result = Some(block.clone());
        self.item_of_line.entry(line.clone()).or_insert(place.item);
        self.show_result(place);
        if self.last_reply == Some(place.item) {
            return ViewChange::Grew;
        }
        self.tally.disturb();
        ViewChange::From(place.item)
    }

    fn push_prompt(&mut self, line: &Id, blocks: Vec<Block>, origin: TextOrigin) -> ViewChange {
        let blocks: Vec<Block> = blocks.into_iter().filter(Block::is_sendable).collect();
        if origin == TextOrigin::User {
            self.user_items.push(self.items.len());
        }
        let item = self.push_item(line, ItemContent::Prompt { blocks, origin });
        self.item_of_line.insert(line.clone(), item);
        ViewChange::Grew
    }

    fn push_assistant(&mut self, line: &Id, reply: &Id, blocks: &[Block], usage: Option<Usage>) -> ViewChange {
        let (item, change) = match self.item_of_reply.get(reply) {
            Some(&item) if self.last_reply == Some(item) => (item, ViewChange::Grew),
            Some(&item) => (item, ViewChange::From(item)),
            None => {
                let item = self.push_item(line, ItemContent::Reply { blocks: Vec::new(), calls: Vec::new() });
                self.item_of_reply.insert(reply.clone(), item);
                self.last_reply = Some(item);
                self.rewritten = None;
                self.tally.replied();
                (item, ViewChange::Grew)
            }
        };
        self.item_of_line.insert(line.clone(), item);
        let mut added = Size::default();
        let mut opened = Vec::new();
        if let ItemContent::Reply { blocks: all, calls } = &mut self.items[item].content {
            for block in blocks.iter().filter(|block| block.is_sendable()) {
                if let Kind::ToolUse { id, .. } = block.kind() {
                    if calls.iter().any(|call| call.id == *id) {
                        continue;
                    }
                    let shown = Block::tool_result(id, std::slice::from_ref(&INTERRUPTED), crate::Outcome::Failed);
                    calls.push(ViewCall { id: id.clone(), result: None, shown, rewrites: Vec::new(), dropped: false });
                    opened.push(id.clone());
                }
                added += block.size();
                all.push(block.clone());
            }
        }
        for id in opened {
            self.items_of_call.entry(id).or_default().push(item);
        }
        self.refresh(item);
        if self.last_reply == Some(item) {
            self.tally.reply(added, usage, self.unanswered(item));
        }
        change
    }

    /// Size of the placeholders for results of a reply that are still missing.
    fn unanswered(&self, item: usize) -> Size {
        match &self.items[item].content {
            ItemContent::Reply { calls, .. } if self.items[item].owner.is_none() => {
                calls.iter().filter(|call| call.result.is_none()).map(|call| call.shown.size()).sum()
            }
            _ => Size::default(),
        }
    }

    /// The calls a commit means: the one in the reply it names, else all that have the id by now.
    fn places_of(&self, name: &CallName) -> Vec<CallPlace> {
        let items = match &name.reply {
            Some(reply) => self.item_of_line.get(reply).map(std::slice::from_ref),
            None => self.items_of_call.get(name.id.as_str()).map(Vec::as_slice),
        };
        items.unwrap_or_default().iter().filter_map(|&item| self.place_in(item, &name.id)).collect()
    }

    fn place_in(&self, item: usize, id: &str) -> Option<CallPlace> {
        let ItemContent::Reply { calls, .. } = &self.items[item].content else { return None };
        let call = calls.iter().position(|call| &*call.id == id)?;
        Some(CallPlace { item, call })
    }

    fn call_mut(&mut self, place: CallPlace) -> Option<&mut ViewCall> {
        match &mut self.items[place.item].content {
            ItemContent::Reply { calls, .. } => calls.get_mut(place.call),
            ItemContent::Prompt { .. } => None,
        }
    }

    /// Adds a summary to the boundary it follows; without a boundary it is a prompt like any other.
    fn push_summary(&mut self, line: &Id, boundary: Option<&Id>, blocks: &[Block]) -> ViewChange {
        let boundary = boundary.and_then(|boundary| self.commit_of_line.get(boundary)).copied();
        match boundary.filter(|&commit| self.commits[commit].awaits_text()) {
            Some(commit) => self.complete(commit, blocks.to_vec()),
            None => self.push_prompt(line, blocks.to_vec(), TextOrigin::Program),
        }
    }

    fn push_commit(&mut self, line: Option<&Id>, commit: &Commit) -> ViewChange {
        let index = self.commits.len();
        let state = CommitState::new(commit, self.extent_of(&commit.act));
        self.commits.push(state);
        if let Some(line) = line {
            self.commit_of_line.insert(line.clone(), index);
        }
        match &commit.act {
            Act::Spill { replacements } => {
                for one in replacements {
                    // What goes to disk is what came last.
                    let newest = self.places_of(&one.call).pop();
                    self.add_rewrite(index, newest, Some(&one.replacement));
                }
            }
            Act::Clear { results, digest, .. } => {
                for (at, call) in results.iter().enumerate() {
                    let mut places = self.places_of(call);
                    if let Some(digest) = digest.as_deref().filter(|_| at + 1 == results.len()) {
                        self.add_rewrite(index, places.pop(), Some(digest));
                    }
                    self.add_rewrite(index, places, Some(crate::commit::CLEARED));
                }
            }
            Act::CacheEdit { results, .. } => {
                for id in results {
                    let places = self.places_of(&id.as_str().into());
                    self.add_rewrite(index, places, None);
                }
            }
            // Commits name what was said, never what another commit brought in: its line is not looked up.
            Act::Restore { blocks } => {
                if let Some(line) = line {
                    self.push_item(
                        line,
                        ItemContent::Prompt { blocks: blocks.clone(), origin: TextOrigin::Commit(index) },
                    );
                }
            }
            _ => {}
        }
        self.apply(index)
    }

    fn add_rewrite(&mut self, commit: usize, places: impl IntoIterator<Item = CallPlace>, text: Option<&str>) {
        for place in places {
            if let Some(call) = self.call_mut(place) {
                call.rewrites.push(Rewrite { commit, text: text.map(Arc::from) });
            }
            self.commits[commit].rewrites(place);
        }
    }

    fn push_item(&mut self, line: &Id, content: ItemContent) -> usize {
        let index = self.items.len();
        self.items.push(Item { line: line.clone(), content, owner: None, size: Size::default() });
        self.refresh(index);
        index
    }
}
