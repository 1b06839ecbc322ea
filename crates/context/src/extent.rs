//! Extent of a compaction: what it covers, and what stays.
//!
//! An item is a reply with its results, so no choice here can separate them.

use std::ops::Range;

use transcript::Id;
use transcript::commit::Extent;
use transcript::size::Size;
use transcript::view::{Cover, ItemState, View, ViewEntry};

use crate::layer_settings::Layers;

/// Number of newest replies whose results stay when room is made: the model is working with them.
pub(crate) const YOUNG_ROUNDS: usize = 3;

/// Share of the threshold, one in this many, that limits the tail in a small window.
const TAIL_SHARE: u64 = 4;

/// Covered items, with their extent as a commit names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoveredItems {
    /// The extent for the commit.
    pub extent: Extent,
    /// The items.
    pub items: Range<usize>,
}

impl CoveredItems {
    /// Everything before an item. Blocks that a commit added have no id of their own and go with what is before them.
    /// None if nothing would be covered.
    pub fn before(view: &View, kept: usize) -> Option<Self> {
        let first = view.entries(kept..view.len()).find(ViewEntry::is_original);
        let (extent, end) = match first {
            Some(entry) => (Extent::Before(entry.line().clone()), entry.index()),
            None => (Extent::Everything, view.len()),
        };
        let covered = Self { extent, items: 0..end };
        covered.hides(view).then_some(covered)
    }

    /// The items from one line to another.
    pub fn span(view: &View, first: Id, last: Id) -> Option<Self> {
        let items = view.item_of(&first)?..view.item_of(&last)? + 1;
        let covered = Self { extent: Extent::Span { first, last }, items };
        covered.hides(view).then_some(covered)
    }

    fn hides(&self, view: &View) -> bool {
        view.visible().any(|entry| self.items.contains(&entry.index()))
    }

    /// The first line whose bytes change.
    pub fn changes_from(&self, view: &View) -> Option<Id> {
        view.visible().find(|entry| self.items.contains(&entry.index())).map(|entry| entry.line().clone())
    }
}

/// The first item of the newest rounds, which the model is working with.
pub fn young_from(view: &View) -> Option<usize> {
    let mut replies = view.visible().rev().filter(|entry| entry.state() == ItemState::Reply);
    replies.nth(YOUNG_ROUNDS - 1).map(|entry| entry.index())
}

/// The first item that stays when everything is summarised: what the model has not answered yet, if it fits. None if
/// nothing stays.
pub fn unanswered_from(view: &View, layers: &Layers) -> Option<usize> {
    let first = view.visible().rev().take_while(|entry| entry.is_original() && !entry.is_reply()).last();
    let newest = view.visible().next_back()?;
    let first = match first {
        Some(prompt) => prompt.index(),
        None if newest.state() == ItemState::Reply => newest.index(),
        None => return None,
    };
    // What the user said stays, however long it is; what tools said is in the log.
    let fits = tokens_from(view, first) <= layers.threshold() / 2;
    (fits || view.visible().any(|entry| entry.index() >= first && !entry.is_reply())).then_some(first)
}

/// The first item that stays beside notes which cover everything up to an item: what came after it, and before that
/// enough to go on with, but never beyond an earlier boundary.
pub fn kept_with_notes(view: &View, covered: usize, layers: &Layers) -> usize {
    let (least, most) = (layers.part(layers.tail.tokens, TAIL_SHARE), layers.part(layers.tail.most, TAIL_SHARE));
    let (mut size, mut texts, mut first) = (Size::default(), 0, view.len());
    let is_boundary =
        |entry: &ViewEntry<'_>| matches!(entry.state(), ItemState::Covered(Cover::Compact | Cover::Collapse));
    for entry in view.visible().rev().take_while(|entry| !is_boundary(entry)) {
        if entry.index() <= covered {
            let enough = view.tally().estimate(size) >= least && texts >= layers.tail.texts;
            let mut longer = size;
            longer += entry.size();
            if enough || view.tally().estimate(longer) > most {
                break;
            }
        }
        size += entry.size();
        texts += usize::from(entry.has_text());
        first = entry.index();
    }
    first
}

/// A span that grows backwards from the newest rounds, a round at a time, until it has so many tokens. What is before
/// it, and the provider's cache of that, stays; so do the newest rounds, the unanswered one and as many as make up the
/// spare tokens, so that a summariser has to be sent no more than what did fit.
pub fn span_back(view: &View, tokens: u64, spare: u64) -> Option<CoveredItems> {
    let estimate = |size: Size| view.tally().estimate(size);
    let originals = || view.visible().rev().filter(ViewEntry::is_original);
    let mut skipped = Size::default();
    let mut skip = 0;
    for entry in originals() {
        if estimate(skipped) >= spare && skip > 0 && !entry.is_reply() {
            break;
        }
        skipped += entry.size();
        skip += 1;
        if estimate(skipped) >= spare && entry.is_reply() {
            break;
        }
    }
    // Where that is all there is, nothing can be spared.
    let skip = if originals().count() > skip { skip } else { 0 };
    let (mut size, mut span) = (Size::default(), None);
    for entry in originals().skip(skip) {
        size += entry.size();
        let last = span.map_or_else(|| entry.line().clone(), |(_, last)| last);
        span = Some((entry.line().clone(), last));
        if estimate(size) >= tokens && entry.is_reply() {
            break;
        }
    }
    let (first, last) = span?;
    CoveredItems::span(view, first, last)
}

/// Tokens of what is visible from an item on.
pub fn tokens_from(view: &View, first: usize) -> u64 {
    let sizes = view.visible().rev().take_while(|entry| entry.index() >= first).map(|entry| entry.size());
    view.tally().estimate(sizes.sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Session, layers};
    use transcript::Block;
    use transcript::commit::{Act, Trigger};
    use transcript::line::{Body, TextSource};

    /// COMPACT-2: beside notes stay what came after them, and going back from there 10,000 tokens and five messages with
    /// text; going back stops at 40,000 tokens and at an earlier boundary; a call keeps its result.
    #[test]
    fn enough_stays_beside_notes() {
        let layers = layers(200_000);
        let mut session = Session::default();
        session.say("go");
        for _ in 0..20 {
            session.call("Bash", 3_000);
            session.reply("a word");
        }
        let view = session.log.view();
        let last = view.len() - 1;
        let kept = kept_with_notes(view, last, &layers);
        let size = tokens_from(view, kept);
        assert!((10_000..12_500).contains(&size), "{size}");
        assert_eq!(kept_with_notes(view, 3, &layers), 4, "what notes do not cover stays");
        let mut session = Session::default();
        session.say("go");
        for _ in 0..9 {
            session.call("Bash", 20_000);
        }
        let view = session.log.view();
        let kept = kept_with_notes(view, view.len() - 1, &layers);
        let size = tokens_from(view, kept);
        assert!((30_000..=40_000).contains(&size), "calls without a word are no messages with text: {size}");
        let first = session.log.view().line_of(2).unwrap().clone();
        let boundary =
            session.commit(Act::Compact { extent: Extent::Before(first), trigger: Trigger::Auto, pre_tokens: 0 });
        session.append(Body::User { blocks: vec![Block::text("so far")], source: TextSource::Summary });
        let view = session.log.view();
        assert!(view.counts(&boundary) && kept_with_notes(view, view.len(), &layers) >= 2);
    }

    /// REACT-4: the span grows backwards from the newest closed round until it holds enough; what stands before it stays,
    /// and so does the round that is not answered yet.
    #[test]
    fn a_span_grows_backwards_from_the_newest_rounds() {
        let mut session = Session::default();
        session.say("go");
        for _ in 0..10 {
            session.call("Bash", 6_000);
        }
        let view = session.log.view();
        assert_eq!(span_back(view, 7_000, 0).unwrap().items, 6..10, "four rounds of 2,000 tokens, the newest stays");
        assert_eq!(span_back(view, 7_000, 5_000).unwrap().items.end, 8, "so many tokens are spared");
        let mut alone = Session::default();
        alone.call("Bash", 90_000);
        assert!(span_back(alone.log.view(), 10_000, 0).is_some(), "where there is nothing else, it goes");
    }

    /// COMPACT-12: a compaction covers something, also where what would be kept begins with files that were brought back;
    /// where nothing would be covered there is none.
    #[test]
    fn a_compaction_covers_something_or_is_none() {
        let mut session = Session::default();
        session.say("go");
        session.reply("yes");
        session.commit(Act::Compact { extent: Extent::Everything, trigger: Trigger::Auto, pre_tokens: 0 });
        session.append(Body::User { blocks: vec![Block::text("so far")], source: TextSource::Summary });
        session.commit(Act::Restore { blocks: vec![Block::text("a file")] });
        let view = session.log.view();
        assert_eq!(
            CoveredItems::before(view, 2).unwrap().extent,
            Extent::Everything,
            "the file has no name of its own"
        );
        session.say("and now");
        let view = session.log.view();
        let covered = CoveredItems::before(view, 2).unwrap();
        assert_eq!(covered.items, 0..3);
        assert_eq!(covered.changes_from(view), view.line_of(0).cloned());
        assert_eq!(CoveredItems::before(&View::default(), 0), None);
        let mut fresh = Session::default();
        fresh.say("go");
        assert_eq!(CoveredItems::before(fresh.log.view(), 0), None);
    }
}
