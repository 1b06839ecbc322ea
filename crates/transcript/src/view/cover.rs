//! Which commits count, and which items they own.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::{Change, Content, Origin, View};
use crate::block::{Block, Kind};
use crate::commit::{Act, Commit, Extent};
use crate::size::Size;

/// A commit as the view keeps it.
#[derive(Debug, Clone)]
pub(super) struct CommitState {
    /// The items it covers, as far as it covers any.
    extent: Vec<RangeInclusive<usize>>,
    /// What stands in their place; none until a compaction's summary has come.
    pub(super) text: Option<Vec<Block>>,
    /// The item that shows it.
    pub(super) anchor: Option<usize>,
    /// Which cover it is, if it is one.
    pub(super) kind: Option<Cover>,
    /// How many undos that count name it.
    voids: usize,
    effect: Effect,
    /// Tokens it freed, where it says so.
    freed: Option<u64>,
}

/// What a cover is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cover {
    /// A marker stands for what was dropped.
    Snip,
    /// A summary stands for a span.
    Collapse,
    /// What is left of a message without its pictures.
    Strip,
    /// A summary, or notes, stand for what was said.
    Compact,
    /// The user went back: nothing stands there.
    Rewind,
}

#[derive(Debug, Clone)]
enum Effect {
    Cover,
    Rewrite { results: Vec<String> },
    Restore { item: usize },
    Undo { commit: Option<usize> },
    CacheEdit { results: Vec<String>, item: Option<usize> },
    Nothing,
}

impl CommitState {
    pub(super) fn new(commit: &Commit, (extent, effect): (Vec<RangeInclusive<usize>>, ResolvedEffect)) -> Self {
        let text = match &commit.act {
            Act::Snip { marker: text, .. } | Act::Collapse { summary: text, .. } | Act::Strip { text, .. } => {
                Some(vec![Block::text(text)])
            }
            Act::Restore { blocks } => Some(blocks.clone()),
            Act::Compact { .. } => None,
            _ => Some(Vec::new()),
        };
        let kind = match &commit.act {
            Act::Rewind { .. } => Some(Cover::Rewind),
            Act::Compact { .. } => Some(Cover::Compact),
            Act::Snip { .. } => Some(Cover::Snip),
            Act::Collapse { .. } => Some(Cover::Collapse),
            Act::Strip { .. } => Some(Cover::Strip),
            _ => None,
        };
        Self { extent, text, anchor: None, kind, voids: 0, effect: effect.0, freed: commit.reason.freed }
    }

    pub(super) fn counts(&self) -> bool {
        self.voids == 0 && self.text.is_some()
    }

    pub(super) fn awaits_text(&self) -> bool {
        self.text.is_none()
    }

    pub(super) fn covers(&self, item: usize) -> bool {
        self.extent.iter().any(|range| range.contains(&item))
    }
}

/// An effect with its names looked up.
pub(super) struct ResolvedEffect(Effect);

impl View {
    /// Looks up what a commit names. Names that are not in the view resolve to nothing.
    pub(super) fn extent_of(&self, act: &Act) -> (Vec<RangeInclusive<usize>>, ResolvedEffect) {
        let item = |line| self.item_of_line.get(line).copied();
        let span = |first, last| item(first).zip(item(last)).map(|(first, last)| first..=last);
        let end = self.items.len();
        let (extent, effect) = match act {
            Act::Snip { uuids, .. } => (uuids.iter().filter_map(item).map(|at| at..=at).collect(), Effect::Cover),
            Act::Collapse { first, last, .. } | Act::Rewind { first, last } => {
                (span(first, last).into_iter().collect(), Effect::Cover)
            }
            Act::Strip { line, .. } => (item(line).map(|at| at..=at).into_iter().collect(), Effect::Cover),
            Act::Compact { extent, .. } => {
                let range = match extent {
                    Extent::Span { first, last } => span(first, last),
                    Extent::Before(kept) => item(kept).and_then(|kept| kept.checked_sub(1)).map(|last| 0..=last),
                    Extent::Everything => end.checked_sub(1).map(|last| 0..=last),
                };
                (range.into_iter().collect(), Effect::Cover)
            }
            Act::Spill { replacements } => {
                let results = replacements.iter().map(|one| one.tool_use_id.clone()).collect();
                (Vec::new(), Effect::Rewrite { results })
            }
            Act::Clear { results, .. } => (Vec::new(), Effect::Rewrite { results: results.clone() }),
            Act::CacheEdit { results, anchor } => {
                (Vec::new(), Effect::CacheEdit { results: results.clone(), item: item(anchor) })
            }
            // The item of a restore is the next one to be pushed.
            Act::Restore { .. } => (Vec::new(), Effect::Restore { item: end }),
            Act::Undo { commit } => (Vec::new(), Effect::Undo { commit: self.commit_of_line.get(commit).copied() }),
            Act::ServerEdit { .. } => (Vec::new(), Effect::Nothing),
        };
        (extent, ResolvedEffect(effect))
    }

    /// A compaction's summary has come: from now on it counts.
    pub(super) fn complete(&mut self, commit: usize, text: Vec<Block>) -> Change {
        self.commits[commit].text = Some(text);
        self.apply(commit)
    }

    /// Brings the view in line with whether a commit counts now.
    pub(super) fn apply(&mut self, commit: usize) -> Change {
        let counts = self.commits[commit].counts();
        let before = self.visible;
        let change = match self.commits[commit].effect.clone() {
            Effect::Cover => self.cover(commit, counts),
            Effect::Rewrite { results } => self.rewrite(&results),
            Effect::Restore { item } => {
                self.refresh(item);
                if let Some(owner) = self.items[item].owner {
                    self.find_anchor(owner).for_each(|item| self.refresh(item));
                }
                if counts && item + 1 == self.items.len() { Change::Grew } else { Change::From(item) }
            }
            Effect::Undo { commit: Some(target) } if target < commit => return self.void(target, counts),
            Effect::Undo { .. } | Effect::CacheEdit { .. } | Effect::Nothing => Change::Grew,
        };
        self.account(commit, counts, before);
        change
    }

    /// An undo of `target` began or ceased to count.
    fn void(&mut self, target: usize, undo_counts: bool) -> Change {
        let was = self.commits[target].counts();
        let voids = &mut self.commits[target].voids;
        *voids = if undo_counts { *voids + 1 } else { voids.saturating_sub(1) };
        if self.commits[target].counts() == was { Change::Grew } else { self.apply(target) }
    }

    /// What a commit frees counts against the next request, and its own text for it; an undo counts the other way.
    fn account(&mut self, commit: usize, counts: bool, before: Size) {
        let state = &self.commits[commit];
        let text: Size = state.text.iter().flatten().map(Block::size).sum();
        let text = self.tally.estimate(text);
        let frees = match state.effect {
            Effect::Cover => !state.extent.is_empty(),
            Effect::Rewrite { .. } => true,
            Effect::Restore { .. } => {
                let added = text.cast_signed();
                return self.tally.shift(if counts { added } else { -added });
            }
            Effect::Undo { .. } | Effect::CacheEdit { .. } | Effect::Nothing => false,
        };
        if !frees || (!counts && state.freed.is_none()) {
            return;
        }
        let net = self.tally.estimate(before).saturating_sub(self.tally.estimate(self.visible));
        let freed = *self.commits[commit].freed.get_or_insert(net + text);
        let shift = text.cast_signed() - freed.cast_signed();
        self.tally.shift(if counts { shift } else { -shift });
    }

    fn cover(&mut self, commit: usize, counts: bool) -> Change {
        let older: Vec<usize> = if counts { Vec::new() } else { self.covers_before(commit).collect() };
        let mut owners = BTreeSet::from([commit]);
        let mut changed = Vec::new();
        for item in self.commits[commit].extent.clone().into_iter().flatten() {
            self.visits += 1;
            let old = self.items[item].owner;
            let owner = if counts {
                old.max(Some(commit)) // the newest
            } else if old == Some(commit) {
                older.iter().copied().find(|&cover| self.commits[cover].covers(item))
            } else {
                old
            };
            if old != owner {
                self.items[item].owner = owner;
                owners.extend(old);
                owners.extend(owner);
                // From behind one cover to behind another, it shows no more than before.
                if old.is_none() || owner.is_none() {
                    changed.push(item);
                }
            }
        }
        for owner in owners {
            changed.extend(self.find_anchor(owner));
        }
        let first = changed.iter().min().copied();
        for item in changed {
            self.refresh(item);
        }
        first.map_or(Change::Grew, Change::From)
    }

    /// The covers older than a commit that count, the newest first.
    fn covers_before(&self, commit: usize) -> impl Iterator<Item = usize> {
        (0..commit).rev().filter(|&cover| !self.commits[cover].extent.is_empty() && self.commits[cover].counts())
    }

    /// The first item a cover owns shows its text. Says which items that changes.
    fn find_anchor(&mut self, commit: usize) -> impl Iterator<Item = usize> + use<> {
        let state = &self.commits[commit];
        let owned = |&item: &usize| self.items[item].owner == Some(commit) && self.exists(item);
        let anchor = state.extent.iter().filter_map(|range| range.clone().find(owned)).min();
        let old = std::mem::replace(&mut self.commits[commit].anchor, anchor);
        let both = if old == anchor { [None, None] } else { [old, anchor] };
        both.into_iter().flatten()
    }

    /// Whether an item is there at all: what a voided commit brought in is not.
    pub(super) fn exists(&self, item: usize) -> bool {
        match self.items[item].content {
            Content::Prompt { origin: Origin::Commit(commit), .. } => self.commits[commit].counts(),
            _ => true,
        }
    }

    fn rewrite(&mut self, results: &[String]) -> Change {
        let mut first: Option<usize> = None;
        for id in results {
            if let Some(&item) = self.item_of_call.get(id.as_str()) {
                self.show_result(item, id);
                first = Some(first.map_or(item, |first| first.min(item)));
                if self.last_reply.is_some_and(|reply| item < reply) {
                    let (from, to) = self.rewritten.unwrap_or((item, item));
                    self.rewritten = Some((from.min(item), to.max(item)));
                }
            }
        }
        first.map_or(Change::Grew, Change::From)
    }

    /// Works out what is shown of a call's result: what the newest rewrite that counts says, else what the tool said.
    pub(super) fn show_result(&mut self, item: usize, id: &str) {
        let text = self.rewrites.get(id).and_then(|rewrites| {
            rewrites
                .iter()
                .rev()
                .find(|rewrite| self.commits[rewrite.commit].counts())
                .map(|rewrite| rewrite.text.clone())
        });
        if let Content::Reply { calls, .. } = &mut self.items[item].content
            && let Some(call) = calls.iter_mut().find(|call| &*call.id == id)
            && let Some(result) = &call.result
        {
            call.shown = match (text, result.kind()) {
                (Some(text), Kind::ToolResult { failed, .. }) => {
                    let outcome = if *failed { crate::Outcome::Failed } else { crate::Outcome::Done };
                    Block::tool_result(id, &[Block::text(&text)], outcome)
                }
                _ => result.clone(),
            };
        }
        self.refresh(item);
    }

    /// Cache edits that count: the item whose message carries each, and the results it names.
    pub fn cache_edits(&self) -> impl Iterator<Item = (usize, &[String])> {
        self.commits.iter().filter(|commit| commit.counts()).filter_map(|commit| match &commit.effect {
            Effect::CacheEdit { results, item: Some(item) } => Some((*item, results.as_slice())),
            _ => None,
        })
    }
}
