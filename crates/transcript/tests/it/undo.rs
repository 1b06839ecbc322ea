use std::collections::HashMap;

use proptest::prelude::*;
use proptest::sample::Index;
use transcript::line::{Body, Line, TextSource};
use transcript::view::{Cover, ItemState};
use transcript::{Id, Log};

use crate::session::{Op, Session, bytes, ops};

/// The log as if a commit had never been written: without its line and, for a compaction, its summary.
fn without(lines: &[Line], commit: &Id) -> Log {
    let mut parent_of: HashMap<Id, Option<Id>> = HashMap::new();
    let mut kept = Vec::new();
    for line in lines {
        let payload = matches!(&line.body, Body::User { source: TextSource::Summary, .. })
            && line.parent.as_ref() == Some(commit);
        let mut line = line.clone();
        while let Some(up) = line.parent.as_ref().and_then(|parent| parent_of.get(parent)) {
            line.parent = up.clone();
        }
        if line.id.as_ref() == Some(commit) || payload {
            parent_of.insert(line.id.clone().unwrap(), line.parent.clone());
        } else {
            kept.push(line);
        }
    }
    Log::load(kept)
}

proptest! {
    /// LOG-12: undoing a commit gives the view that would be had it never been written.
    #[test]
    fn undo_is_the_absence_of_the_commit(ops in ops(), at in any::<Index>()) {
        let mut session = Session::of(&ops);
        if let Some(commit) = session.pick_commit(&at) {
            session.undo(commit.clone());
            prop_assert_eq!(bytes(&session.log), bytes(&without(session.log.lines(), &commit)));
        }
    }

    /// TOK-1, LOG-12: the count after an undo is what it would be had the commit never been written, where no reply has
    /// told a figure since; and the visible size always is.
    #[test]
    fn undo_is_the_absence_of_the_commit_for_counts_too(ops in ops(), at in any::<Index>()) {
        let mut session = Session::of(&ops);
        if let Some(commit) = session.pick_commit(&at) {
            session.undo(commit.clone());
            let absent = without(session.log.lines(), &commit);
            let (view, without) = (session.log.view(), absent.view());
            prop_assert_eq!(view.tally().visible(), without.tally().visible());
            let after = session.log.lines().iter().rev().take_while(|line| line.id.as_ref() != Some(&commit));
            let told = |line: &Line| matches!(&line.body, Body::Assistant { .. });
            if !after.into_iter().any(told) {
                prop_assert_eq!(view.tally().count(), without.tally().count());
            }
        }
    }

    /// TOK-1: redo gives back the count as it gives back the view.
    #[test]
    fn redo_restores_the_count(ops in ops(), at in any::<Index>()) {
        let mut session = Session::of(&ops);
        if let Some(commit) = session.pick_commit(&at) {
            let before = session.log.view().tally().count();
            session.undo(commit);
            let undo = session.commits.last().cloned().unwrap();
            session.undo(undo);
            prop_assert_eq!(session.log.view().tally().count(), before);
        }
    }

    /// LOG-12: redo voids the undo, and the view is again what it was.
    #[test]
    fn redo_restores_the_view(ops in ops(), at in any::<Index>()) {
        let mut session = Session::of(&ops);
        if let Some(commit) = session.pick_commit(&at) {
            let before = bytes(&session.log);
            session.undo(commit);
            let undo = session.commits.last().cloned().unwrap();
            session.undo(undo);
            prop_assert_eq!(bytes(&session.log), before);
        }
    }

    /// LOG-6: with every commit undone, newest first, the view shows everything that was ever said.
    #[test]
    fn undoing_everything_brings_everything_back(ops in ops()) {
        let mut session = Session::of(&ops);
        let plain: Vec<_> = session.log.lines().iter().filter(|line| !matches!(line.body, Body::Commit(_))).filter(|line| {
            !matches!(line.body, Body::User { source: TextSource::Summary, .. })
        }).cloned().collect();
        let mut tip = None;
        let relinked = plain.into_iter().map(|mut line| {
            line.parent = tip.clone();
            if line.in_chain() { tip.clone_from(&line.id); }
            line
        }).collect();
        for commit in session.commits.clone().into_iter().rev() {
            session.undo(commit);
        }
        prop_assert_eq!(bytes(&session.log), bytes(&Log::load(relinked)));
    }
}

/// LOG-12: what a restore brought in, when it is undone, does not hold the place of a cover over it.
#[test]
fn an_undone_restore_holds_no_place() {
    use crate::session::Op;
    let mut session = Session::of(&[Op::Restore("x".into()), Op::CompactAll, Op::Say("next".into())]);
    let restore = session.commits[0].clone();
    session.undo(restore);
    assert_eq!(bytes(&session.log).len(), 1, "{:?}", bytes(&session.log));
}

/// MICRO-7: what was written down before a clearing stands where the newest result stood, survives the file, and goes with
/// the clearing.
#[test]
fn what_was_written_down_stands_where_the_newest_result_stood() {
    let index = crate::session::some_index();
    let reply = Op::Reply { text: "look".into(), calls: 2, split: false, thinking: false, usage: false };
    let said = [Op::Say("go".into()), reply, Op::Result(index, "one".into()), Op::Result(index, "two".into())];
    let mut session = Session::of(&said);
    let whole = bytes(&session.log);
    session.happen(&Op::Clear(vec![index, index]));
    let commit = session.commits.last().unwrap().clone();
    let shown: Vec<Vec<String>> = session
        .log
        .view()
        .visible()
        .map(|entry| entry.calls().map(|call| call.shown.result_text()).collect())
        .collect();
    assert!(shown[1].iter().any(|text| text == "[cleared] 2 results"), "{shown:?}");
    session.undo(commit);
    assert_eq!(bytes(&session.log), whole);
}

/// LOG-6: what an item is, said once: by whom, or behind which cover.
#[test]
fn an_item_says_what_it_is() {
    let reply = || Op::Reply { text: "yes".into(), calls: 0, split: false, thinking: false, usage: false };
    let said = [Op::Attach("rules".into()), Op::Say("go".into()), reply(), Op::CompactAll, Op::Restore("file".into())];
    let mut session = Session::of(&said);
    let stands = |session: &Session| -> Vec<ItemState> {
        let view = session.log.view();
        view.entries(0..view.len()).map(|entry| entry.state()).collect()
    };
    let behind = ItemState::Behind(Cover::Compact);
    assert_eq!(stands(&session), [ItemState::Covered(Cover::Compact), behind, behind, ItemState::Restored]);
    for commit in session.commits.clone() {
        session.undo(commit);
    }
    assert_eq!(stands(&session), [ItemState::AddedText, ItemState::UserText, ItemState::Reply, ItemState::Void]);
}
