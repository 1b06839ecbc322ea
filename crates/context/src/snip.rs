//! Snip: the oldest messages are dropped, and a marker says where they are.
//!
//! Off by default: it asks no model and so writes nothing down. Dropped messages are out of the model's sight until it
//! looks them up by the ids in the marker. If the window requires compaction, messages go from the oldest on until
//! there is room; the newest reply and everything after it stay, and so does what programs put outside the conversation:
//! instructions, memories, summaries.

use transcript::commit::{Act, Commit, Reason};
use transcript::size::Size;
use transcript::view::{Cover, ItemState, View, ViewEntry};

use crate::layer::{Decision, Layer, LayerChange, LayerRole, Occasion, Situation};
use crate::layer_settings::Layers;

/// The oldest messages are dropped.
#[derive(Debug)]
pub struct Snip;

impl Layer for Snip {
    fn name(&self) -> &'static str {
        "snip"
    }

    fn role(&self) -> LayerRole {
        LayerRole::Snip
    }

    fn is_on(&self, layers: &Layers) -> bool {
        layers.snip
    }

    fn decide(&self, view: &View, now: &Situation<'_>) -> Decision {
        let (count, layers) = (view.tally().count(), now.layers);
        let is_due = layers.snip && *now.occasion == Occasion::Request && count > layers.threshold();
        if !is_due {
            return Decision::Nothing;
        }
        dropped(view, count - layers.warning()).map_or(Decision::Nothing, Decision::Commit)
    }
}

/// Drops the oldest messages until so many tokens are gone.
fn dropped(view: &View, tokens: u64) -> Option<LayerChange> {
    let newest = view.visible().rev().find(|entry| entry.is_reply())?.index();
    let goes = |entry: &ViewEntry<'_>| {
        matches!(entry.state(), ItemState::UserText | ItemState::Reply) && entry.index() < newest
    };
    let (mut size, mut fresh) = (Size::default(), Vec::new());
    for entry in view.visible().filter(goes) {
        if view.tally().estimate(size) >= tokens {
            break;
        }
        size += entry.size();
        fresh.push(entry.line().clone());
    }
    if fresh.is_empty() {
        return None;
    }
    // What was dropped before is named with it: one marker stands for all.
    let is_snipped = |entry: &ViewEntry<'_>| {
        matches!(entry.state(), ItemState::Covered(Cover::Snip) | ItemState::Behind(Cover::Snip))
    };
    let earlier = view.entries(0..newest).filter(is_snipped).map(|entry| entry.line().clone());
    let mut uuids: Vec<_> = earlier.chain(fresh).collect();
    uuids.sort_by_key(|line| view.item_of(line));
    let (first, last) = (uuids.first()?, uuids.last()?);
    let marker = format!(
        "[{} messages were dropped here to make room. The History tool shows them: {first} … {last}]",
        uuids.len()
    );
    let freed = Some(view.tally().estimate(size));
    let reason = Reason { freed, changes_from: None, why: Some("the window was full; the oldest go".to_owned()) };
    Some(LayerChange::of(Commit { act: Act::Snip { uuids, marker }, reason }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{SampleParts, Session};

    fn snipped(session: &Session, stage: &SampleParts) -> Option<LayerChange> {
        stage.with(|now| match Snip.decide(session.log.view(), now) {
            Decision::Commit(change) => Some(change),
            _ => None,
        })
    }

    /// SNIP-1, SNIP-3: above the threshold the oldest messages go, by tokens, down to 20,000 below it; a marker stands for
    /// all that were ever dropped, and the commit says what it freed. Off, nothing is dropped.
    #[test]
    fn the_oldest_go_until_there_is_room() {
        let (mut session, mut stage) = (Session::default(), SampleParts::new(100_000));
        session.say("go");
        while session.log.view().tally().count() <= stage.layers.threshold() {
            session.call("Bash", 3_000);
        }
        assert_eq!(snipped(&session, &stage), None, "it is off unless asked for");
        stage.layers.snip = true;
        let change = snipped(&session, &stage).unwrap();
        let before = session.log.view().tally().count();
        session.commit(change.commit.act.clone());
        let count = session.log.view().tally().count();
        assert!((stage.layers.warning() - 2_000..=stage.layers.warning()).contains(&count), "{count}");
        assert!((before - count).abs_diff(change.commit.reason.freed.unwrap()) < 100);
        while session.log.view().tally().count() <= stage.layers.threshold() {
            session.call("Bash", 3_000);
        }
        let again = snipped(&session, &stage).unwrap();
        session.commit(again.commit.act);
        let markers =
            session.log.view().blocks().filter(|(_, _, block)| {
                block.as_text().is_some_and(|text| text.contains("messages were dropped here"))
            });
        assert_eq!(markers.count(), 1);
    }

    /// SNIP-2: the newest reply and what follows it stay, however large they are; a call keeps its result.
    #[test]
    fn the_newest_reply_stays() {
        let (mut session, mut stage) = (Session::default(), SampleParts::new(100_000));
        stage.layers.snip = true;
        session.say("go");
        session.call("Bash", 300_000);
        assert_eq!(snipped(&session, &stage).map(|change| uuids(&change).len()), Some(1), "the words before it can go");
        session.call("Bash", 300);
        let change = snipped(&session, &stage).unwrap();
        assert_eq!(uuids(&change).len(), 2);
        session.commit(change.commit.act);
        assert_eq!(session.log.view().messages().len(), 3, "the marker, the newest reply, its result");
    }

    fn uuids(change: &LayerChange) -> &[transcript::Id] {
        match &change.commit.act {
            Act::Snip { uuids, .. } => uuids,
            _ => &[],
        }
    }
}
