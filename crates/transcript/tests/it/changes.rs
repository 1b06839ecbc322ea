//! Where a commit changes what was sent.

use proptest::prelude::*;
use transcript::commit::Act;
use transcript::line::{Body, TextSource};

use crate::session::{Session, op, ops, seen};

proptest! {
    /// LOG-5: the line a commit is said to change the view from is the one where the bytes really change first, of those
    /// that were sent; none if they do not.
    #[test]
    fn a_commit_changes_the_view_from_where_it_says(before in ops(), decided in op()) {
        let mut session = Session::of(&before);
        let log = session.log.clone();
        session.happen(&decided);
        let mut acts = session.log.lines()[log.lines().len()..].iter().filter_map(|line| match &line.body {
            Body::Commit(commit) => Some(commit.act.clone()),
            _ => None,
        });
        let act: Option<Act> = acts.next_back();
        let new = &session.log.lines()[log.lines().len()..];
        let summed_up = new.iter().any(|line| matches!(&line.body, Body::User { source: TextSource::Summary, .. }));
        // A compaction whose summary never came is void.
        if let Some(act) = act.filter(|act| summed_up || !matches!(act, Act::Compact { .. })) {
            let (was, is) = (seen(&log), seen(&session.log));
            let sent = log.view().seams().answered;
            let same = was.iter().zip(&is).take_while(|(was, is)| (was.1, &was.2) == (is.1, &is.2)).count();
            let really = (same < sent).then(|| log.view().line_of(was[same].0).unwrap().clone());
            prop_assert_eq!(log.first_change(&act), really, "{:?}", act);
        }
    }
}
