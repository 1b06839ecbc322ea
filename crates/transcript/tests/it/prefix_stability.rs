use proptest::prelude::*;
use transcript::view::Change;

use crate::session::{Session, bytes, ops, read, seen};

proptest! {
    /// LOG-5: the blocks of the next request start with those of the last one, byte for byte, up to the first block a
    /// commit in between declared.
    #[test]
    fn sent_blocks_stay_as_they_are_up_to_the_declared_change(before in ops(), after in ops()) {
        let mut session = Session::of(&before);
        session.close_calls(); // a request is sent when every call has its result
        let sent = seen(&session.log);
        let change = after.iter().map(|op| session.happen(op)).min().unwrap_or(Change::Grew);
        let stable = sent.iter().take_while(|(item, _, _)| match change {
            Change::Prologue => false,
            Change::From(first) => *item < first,
            Change::Grew => true,
        }).count();
        let now = seen(&session.log);
        prop_assert!(now.len() >= stable);
        prop_assert_eq!(&now[..stable], &sent[..stable]);
    }

    /// LOG-3: the view is a function of the lines: written, read back and projected at once, it is the same, in the
    /// same bytes, as when it was built line by line.
    #[test]
    fn a_resumed_session_sends_the_same_bytes(ops in ops()) {
        let session = Session::of(&ops);
        let resumed = read(session.file().as_bytes());
        prop_assert_eq!(bytes(&resumed), bytes(&session.log));
        prop_assert_eq!(resumed.view().prologue(), session.log.view().prologue());
        prop_assert_eq!(resumed.view().cache_edits().collect::<Vec<_>>(), session.log.view().cache_edits().collect::<Vec<_>>());
        prop_assert_eq!(resumed.view().tally().count(), session.log.view().tally().count());
    }
}

/// LOG-5: a change that touches what was sent is declared, not silent: clearing the first result says so.
#[test]
fn clearing_an_old_result_declares_where_it_changes_the_view() {
    use crate::session::{Op, some_index};
    let reply = |calls| Op::Reply { text: "ok".into(), calls, split: false, thinking: false, usage: true };
    let result = Op::Result(some_index(), "one".into());
    let mut session = Session::of(&[Op::Say("go".into()), reply(1), result, reply(0)]);
    assert_eq!(session.happen(&Op::Clear(vec![some_index()])), Change::From(1));
    assert!(bytes(&session.log)[3].1.contains("cleared"), "{:?}", bytes(&session.log));
}
