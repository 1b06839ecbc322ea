//! Effective commits, and the items they own.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::{CallPlace, ItemContent, TextOrigin, View, ViewChange};
use crate::block::{Block, Kind};
use crate::commit::{Act, Commit, Extent};

/// A commit as the view keeps it.
#[derive(Debug, Clone)]
pub(super) struct CommitState {
    /// The items it covers, if any.
    extent: Vec<RangeInclusive<usize>>,
    /// Text in their place; none until a compaction's summary has come.
    pub(super) text: Option<Vec<Block>>,
    /// The item that shows the text.
    pub(super) anchor: Option<usize>,
    /// Kind of cover, if it is one.
    pub(super) kind: Option<Cover>,
    /// Number of effective undos and rewinds that void it.
    voids: usize,
    effect: Effect,
}

/// Kind of a cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cover {
    /// A marker in place of dropped messages.
    Snip,
    /// A summary in place of a span.
    Collapse,
    /// The rest of a message without its pictures.
    Strip,
    /// A summary or notes in place of the conversation before.
    Compact,
    /// Nothing: the user went back.
    Rewind,
}

#[derive(Debug, Clone)]
enum Effect {
    /// `lifts` are the older covers that it voids while it is effective.
    Cover {
        lifts: Vec<usize>,
    },
    Rewrite {
        results: Vec<CallPlace>,
    },
    Restore {
        item: usize,
    },
    Undo {
        commit: Option<usize>,
    },
    CacheEdit {
        results: Vec<CallPlace>,
        item: Option<usize>,
    },
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
        Self { extent, text, anchor: None, kind, voids: 0, effect: effect.0 }
    }

    /// Adds a call whose result it rewrites.
    pub(super) fn rewrites(&mut self, place: CallPlace) {
        if let Effect::Rewrite { results } | Effect::CacheEdit { results, .. } = &mut self.effect {
            results.push(place);
        }
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

/// A cover that lifts no other.
const COVER: Effect = Effect::Cover { lifts: Vec::new() };

/// An effect with its names looked up.
pub(super) struct ResolvedEffect(Effect);

impl View {
    /// Resolves the names in a commit. Names that are not in the view resolve to nothing.
    pub(super) fn extent_of(&self, act: &Act) -> (Vec<RangeInclusive<usize>>, ResolvedEffect) {
        let item = |line| self.item_of_line.get(line).copied();
        let span = |first, last| item(first).zip(item(last)).map(|(first, last)| first..=last);
        let end = self.items.len();
        let (extent, effect) = match act {
            Act::Snip { uuids, .. } => (uuids.iter().filter_map(item).map(|at| at..=at).collect(), COVER),
            Act::Collapse { first, last, .. } => (span(first, last).into_iter().collect(), COVER),
            Act::Strip { line, .. } => (item(line).map(|at| at..=at).into_iter().collect(), COVER),
            // A last line that is no item, such as a summary, means all there is.
            Act::Rewind { first, last } => match item(first) {
                Some(first) => {
                    let last = item(last).or(end.checked_sub(1)).unwrap_or(first);
                    (vec![first..=last], Effect::Cover { lifts: self.covers_across(first) })
                }
                None => (Vec::new(), COVER),
            },
            Act::Compact { extent, .. } => {
                let range = match extent {
                    Extent::Span { first, last } => span(first, last),
                    Extent::Before(kept) => item(kept).and_then(|kept| kept.checked_sub(1)).map(|last| 0..=last),
                    Extent::Everything => end.checked_sub(1).map(|last| 0..=last),
                };
                (range.into_iter().collect(), COVER)
            }
            // Which results is told when they are looked up.
            Act::Spill { .. } | Act::Clear { .. } => (Vec::new(), Effect::Rewrite { results: Vec::new() }),
            Act::CacheEdit { anchor, .. } => {
                (Vec::new(), Effect::CacheEdit { results: Vec::new(), item: item(anchor) })
            }
            // The item of a restore is the next one to be pushed.
            Act::Restore { .. } => (Vec::new(), Effect::Restore { item: end }),
            Act::Undo { commit } => (Vec::new(), Effect::Undo { commit: self.commit_of_line.get(commit).copied() }),
            Act::ServerEdit { .. } => (Vec::new(), Effect::Nothing),
        };
        (extent, ResolvedEffect(effect))
    }

    /// Takes in a compaction's summary: from now on the commit is effective.
    pub(super) fn complete(&mut self, commit: usize, text: Vec<Block>) -> ViewChange {
        self.commits[commit].text = Some(text);
        self.apply(commit)
    }

    /// Updates the view after a commit became effective or void.
    pub(super) fn apply(&mut self, commit: usize) -> ViewChange {
        let counts = self.commits[commit].counts();
        match self.commits[commit].effect.clone() {
            Effect::Cover { lifts } => {
                self.tally.disturb();
                let lifted = lifts.into_iter().map(|cover| self.void(cover, counts)).min();
                self.cover(commit, counts).min(lifted.unwrap_or(ViewChange::Grew))
            }
            Effect::Rewrite { results } => {
                self.tally.disturb();
                self.rewrite(&results)
            }
            Effect::Restore { item } => {
                self.tally.disturb();
                self.refresh(item);
                if let Some(owner) = self.items[item].owner {
                    self.find_anchor(owner).for_each(|item| self.refresh(item));
                }
                if counts && item + 1 == self.items.len() { ViewChange::Grew } else { ViewChange::From(item) }
            }
            Effect::Undo { commit: Some(target) } if target < commit => self.void(target, counts),
            Effect::CacheEdit { results, .. } => {
                self.tally.disturb();
                results.into_iter().for_each(|place| self.show_result(place));
                ViewChange::Grew
            }
            Effect::Undo { .. } | Effect::Nothing => ViewChange::Grew,
        }
    }

    /// The covers that contain an item and begin before it.
    fn covers_across(&self, item: usize) -> Vec<usize> {
        let across = |(_, cover): &(usize, &CommitState)| {
            let before = cover.extent.iter().any(|range| *range.start() < item);
            cover.kind.is_some_and(|kind| kind != Cover::Rewind) && before && cover.covers(item)
        };
        self.commits.iter().enumerate().filter(across).map(|(at, _)| at).collect()
    }

    /// Adds or removes one void of `target`.
    fn void(&mut self, target: usize, undo_counts: bool) -> ViewChange {
        let was = self.commits[target].counts();
        let voids = &mut self.commits[target].voids;
        *voids = if undo_counts { *voids + 1 } else { voids.saturating_sub(1) };
        if self.commits[target].counts() == was { ViewChange::Grew } else { self.apply(target) }
    }

    fn cover(&mut self, commit: usize, counts: bool) -> ViewChange {
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
        first.map_or(ViewChange::Grew, ViewChange::From)
    }

    /// The effective covers older than a commit, newest first.
    fn covers_before(&self, commit: usize) -> impl Iterator<Item = usize> {
        (0..commit).rev().filter(|&cover| !self.commits[cover].extent.is_empty() && self.commits[cover].counts())
    }

    /// Makes the first item that a cover owns show its text. Returns the items that this changes.
    fn find_anchor(&mut self, commit: usize) -> impl Iterator<Item = usize> + use<> {
        let state = &self.commits[commit];
        let owned = |&item: &usize| self.items[item].owner == Some(commit) && self.exists(item);
        let anchor = state.extent.iter().filter_map(|range| range.clone().find(owned)).min();
        let old = std::mem::replace(&mut self.commits[commit].anchor, anchor);
        let both = if old == anchor { [None, None] } else { [old, anchor] };
        both.into_iter().flatten()
    }

    /// False for an item that a voided commit restored.
    pub(super) fn exists(&self, item: usize) -> bool {
        match self.items[item].content {
            ItemContent::Prompt { origin: TextOrigin::Commit(commit), .. } => self.commits[commit].counts(),
            _ => true,
        }
    }

    fn rewrite(&mut self, results: &[CallPlace]) -> ViewChange {
        for &place in results {
            self.show_result(place);
            let item = place.item;
            if self.last_reply.is_some_and(|reply| item < reply) {
                let (from, to) = self.rewritten.unwrap_or((item, item));
                self.rewritten = Some((from.min(item), to.max(item)));
            }
        }
        results.iter().map(|place| place.item).min().map_or(ViewChange::Grew, ViewChange::From)
    }

    /// Updates the shown result of a call: from the newest effective rewrite, else as the tool returned it.
    pub(super) fn show_result(&mut self, place: CallPlace) {
        let commits = &self.commits;
        if let ItemContent::Reply { calls, .. } = &mut self.items[place.item].content
            && let Some(call) = calls.get_mut(place.call)
            && let Some(result) = &call.result
        {
            let mut counting = call.rewrites.iter().rev().filter(|rewrite| commits[rewrite.commit].counts()).peekable();
            call.dropped = counting.peek().is_some_and(|newest| newest.text.is_none());
            call.shown = match (counting.find_map(|rewrite| rewrite.text.as_ref()), result.kind()) {
                (Some(text), Kind::ToolResult { failed, .. }) => {
                    let outcome = if *failed { crate::Outcome::Failed } else { crate::Outcome::Done };
                    Block::tool_result(&call.id, &[Block::text(text)], outcome)
                }
                _ => result.clone(),
            };
        }
        self.refresh(place.item);
    }

    /// Effective cache edits: the item whose message carries each, and the results it names that are still in view.
    pub fn cache_edits(&self) -> impl Iterator<Item = (usize, Vec<&str>)> {
        self.commits.iter().filter(|commit| commit.counts()).filter_map(|commit| match &commit.effect {
            Effect::CacheEdit { results, item: Some(item) } if self.shown.contains(item) => {
                let named: Vec<&str> = results.iter().filter_map(|place| self.dropped_at(*place)).collect();
                (!named.is_empty()).then_some((*item, named))
            }
            _ => None,
        })
    }

    /// True if the provider was asked to drop any results.
    pub fn has_cache_edits(&self) -> bool {
        self.commits.iter().any(|commit| commit.counts() && matches!(commit.effect, Effect::CacheEdit { .. }))
    }

    /// Id of a call whose result the provider drops, if it is in view.
    fn dropped_at(&self, place: CallPlace) -> Option<&str> {
        let item = &self.items[place.item];
        match &item.content {
            ItemContent::Reply { calls, .. } if item.owner.is_none() => {
                calls.get(place.call).filter(|call| call.dropped).map(|call| &*call.id)
            }
            _ => None,
        }
    }
}
