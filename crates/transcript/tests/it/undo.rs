use std::collections::HashMap;

use proptest::prelude::*;
use proptest::sample::Index;
use transcript::line::{Body, Line, Source};
use transcript::{Id, Log};

use crate::session::{Session, bytes, ops};

/// The log as if a commit had never been written: without its line and, for a compaction, its summary.
fn without(lines: &[Line], commit: &Id) -> Log {
    let mut parent_of: HashMap<Id, Option<Id>> = HashMap::new();
    let mut kept = Vec::new();
    for line in lines {
        let payload =
            matches!(&line.body, Body::User { source: Source::Summary, .. }) && line.parent.as_ref() == Some(commit);
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
            !matches!(line.body, Body::User { source: Source::Summary, .. })
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
