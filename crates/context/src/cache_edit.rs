//! Cache edits: the provider drops old results from its cache, and nothing has to be written again.
//!
//! Off unless asked for, and only with a provider that can: what is sent stays as it is, and a block in the newest message
//! tells the provider which results to drop, there and in every request after it. It asks no model, so nothing is written
//! down of what goes; History shows it. Where the cache is gone, the provider cannot do it any more, or what was sent
//! changes anyway, all such edits become one clearing.

use std::collections::HashMap;

use transcript::commit::{Act, CallName, Commit, Reason, Trigger};
use transcript::size::Size;
use transcript::view::{AnsweredCall, ItemState, View, ViewEntry};

use crate::clear::is_clearable;
use crate::layer::{Decision, Layer, LayerChange, LayerRole, Occasion, Situation};
use crate::layer_settings::{KEPT_WHEN_IDLE, Layers};

/// The provider drops old results from its cache.
#[derive(Debug)]
pub struct CacheEdit;

impl Layer for CacheEdit {
    fn name(&self) -> &'static str {
        "cache-edit"
    }

    fn is_on(&self, layers: &Layers) -> bool {
        layers.cache_edits
    }

    fn decide(&self, view: &View, now: &Situation<'_>) -> Decision {
        let changes_anyway = now.has_acted(LayerRole::Compaction)
            || now.has_acted(LayerRole::Collapse)
            || now.has_acted(LayerRole::Snip);
        let why = match () {
            () if now.is_cold() => "the cache is cold",
            () if !now.layers.cache_edits => "the provider cannot drop results from its cache any more",
            () if changes_anyway => "what was sent changes anyway",
            () => return edited(view, now).map_or(Decision::Nothing, Decision::Commit),
        };
        cleared(view, why).map_or(Decision::Nothing, Decision::Commit)
    }
}

/// All that the provider dropped is cleared.
fn cleared(view: &View, why: &str) -> Option<LayerChange> {
    if !view.has_cache_edits() {
        return None;
    }
    let mut results: Vec<CallName> = Vec::new();
    let mut first = None;
    for entry in view.visible().filter(|entry| entry.state() == ItemState::Reply) {
        let dropped: Vec<CallName> = entry.calls().filter(|call| call.dropped).map(|call| call.name()).collect();
        first = first.or_else(|| (!dropped.is_empty()).then(|| entry.line().clone()));
        results.extend(dropped);
    }
    let why = Some(format!("results that the provider had dropped are cleared: {why}"));
    let reason = Reason { freed: Some(0), changes_from: Some(first?), why };
    Some(LayerChange::of(Commit { act: Act::Clear { results, trigger: Trigger::Auto, digest: None }, reason }))
}

/// The oldest results are dropped, all but the newest few.
fn edited(view: &View, now: &Situation<'_>) -> Option<LayerChange> {
    if *now.occasion != Occasion::Request || now.has_acted(LayerRole::Clear) {
        return None;
    }
    let unsent = view.visible().rev().find(|entry| entry.is_reply())?.index();
    let replies = || view.visible().filter(|entry| entry.state() == ItemState::Reply);
    // A server may use an id again: then it names more than one, and the provider would drop all of them.
    let mut uses: HashMap<&str, usize> = HashMap::new();
    replies().flat_map(ViewEntry::calls).for_each(|call| *uses.entry(call.id).or_default() += 1);
    let may_go = |call: &AnsweredCall<'_>| is_clearable(call) && uses[&**call.id] == 1;
    let sent = replies().filter(|entry| entry.index() < unsent);
    let results: Vec<(String, Size)> =
        sent.flat_map(ViewEntry::calls).filter(may_go).map(|call| (call.id.to_string(), call.shown.size())).collect();
    if results.len() <= now.layers.cache_edits_after {
        return None;
    }
    let goes = &results[..results.len() - KEPT_WHEN_IDLE.min(results.len())];
    let freed = view.tally().estimate(goes.iter().map(|(_, size)| *size).sum());
    let anchor = view.visible().next_back()?.line().clone();
    let why = Some(format!("{} results are more than {}", results.len(), now.layers.cache_edits_after));
    let reason = Reason { freed: Some(freed), changes_from: None, why };
    let results = goes.iter().map(|(id, _)| id.clone()).collect();
    Some(LayerChange::of(Commit { act: Act::CacheEdit { results, anchor }, reason }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{SampleParts, Session};
    use jiff::Timestamp;

    fn decide(session: &Session, stage: &SampleParts) -> Option<LayerChange> {
        stage.with(|now| match CacheEdit.decide(session.log.view(), now) {
            Decision::Commit(change) => Some(change),
            _ => None,
        })
    }

    /// MICRO-3: when more than twenty results could go, the provider drops all but the newest five; what is sent stays as it
    /// is, and counts for less; those that were dropped are not dropped again.
    #[test]
    fn more_than_twenty_results_are_dropped() {
        let (mut session, mut stage) = (Session::default(), SampleParts::new(200_000));
        session.say("go");
        let calls: Vec<String> = (0..21).map(|_| session.call("Bash", 2_000)).collect();
        assert_eq!(decide(&session, &stage), None, "it is off unless asked for");
        stage.layers.cache_edits = true;
        assert_eq!(decide(&session, &stage), None, "the newest was not sent yet");
        let newest = session.call("Bash", 2_000);
        let change = decide(&session, &stage).unwrap();
        let Act::CacheEdit { results, anchor } = &change.commit.act else { panic!("{change:?}") };
        assert_eq!((results.as_slice(), change.commit.reason.changes_from.as_ref()), (&calls[..16], None));
        assert_eq!(Some(anchor), session.log.view().visible().next_back().map(|entry| entry.line()));
        let (before, bytes) = (session.log.view().tally().count(), session.log.view().messages());
        session.commit(change.commit.act.clone());
        assert_eq!(session.log.view().messages(), bytes, "what is sent stays as it is");
        let freed = before - session.log.view().tally().count();
        assert!(freed.abs_diff(change.commit.reason.freed.unwrap()) < 50, "{freed}");
        let edits: Vec<(usize, Vec<&str>)> = session.log.view().cache_edits().collect();
        assert_eq!((edits.len(), edits[0].1.len()), (1, 16));
        assert!(session.log.view().shows(anchor) && !newest.is_empty());
        assert_eq!(decide(&session, &stage), None);
        stage.layers.cache_edits_after = 3;
        let Act::CacheEdit { results, .. } = decide(&session, &stage).unwrap().commit.act else { panic!("an edit") };
        assert!(results.is_empty() || results.iter().all(|id| !calls[..16].contains(id)));
    }

    /// MICRO-3: on a cold cache, with the switch off, and after a compaction all that was dropped is cleared, in one commit.
    #[test]
    fn where_the_cache_is_gone_edits_become_one_clearing() {
        let (mut session, mut stage) = (Session::default(), SampleParts::new(200_000));
        stage.layers.cache_edits = true;
        session.say("go");
        (0..24).for_each(|_| drop(session.call("Bash", 2_000)));
        let edit = decide(&session, &stage).unwrap().commit.act;
        session.commit(edit);
        let count = session.log.view().tally().count();
        let ways: [fn(&mut SampleParts); 3] = [
            |stage| stage.now = Timestamp::from_second(400).unwrap(),
            |stage| stage.layers.cache_edits = false,
            |stage| stage.done = vec![LayerRole::Compaction],
        ];
        for way in ways {
            let mut changed = stage.clone();
            way(&mut changed);
            let change = decide(&session, &changed).unwrap();
            let Act::Clear { results, .. } = &change.commit.act else { panic!("{change:?}") };
            assert_eq!((results.len(), change.commit.reason.changes_from.is_some()), (18, true));
        }
        stage.layers.cache_edits = false;
        let clearing = decide(&session, &stage).unwrap().commit.act;
        session.commit(clearing);
        assert_eq!(session.log.view().cache_edits().count(), 0);
        assert!(session.log.view().tally().count().abs_diff(count) < 300, "the marks are all that came");
        assert_eq!(decide(&session, &stage), None);
    }
}
