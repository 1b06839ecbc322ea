use proptest::prelude::*;
use transcript::mark::{Seams, Ttl, mark, mark_answered};
use transcript::view::ViewChange;
use transcript::{Block, Message, Prologue, Role};

use crate::session::{Session, bytes, ops, read, seen};

proptest! {
    /// LOG-5: the blocks of the next request start with those of the last one, byte for byte, up to the first block a
    /// commit in between declared.
    #[test]
    fn sent_blocks_stay_as_they_are_up_to_the_declared_change(before in ops(), after in ops()) {
        let mut session = Session::of(&before);
        session.close_calls(); // a request is sent when every call has its result
        let sent = seen(&session.log);
        let change = after.iter().map(|op| session.happen(op)).min().unwrap_or(ViewChange::Grew);
        let stable = sent.iter().take_while(|(item, _, _)| match change {
            ViewChange::Prologue => false,
            ViewChange::From(first) => *item < first,
            ViewChange::Grew => true,
        }).count();
        let now = seen(&session.log);
        prop_assert!(now.len() >= stable);
        prop_assert_eq!(&now[..stable], &sent[..stable]);
    }

    /// CACHE-3: what a fork sends begins as its parent's request does, block for block, wherever it is cut; its
    /// breakpoints are where the parent's cache is, and none stands behind it.
    #[test]
    fn a_fork_begins_as_its_parent_does(ops in ops(), cut in any::<prop::sample::Index>()) {
        let mut session = Session::of(&ops);
        session.close_calls();
        let view = session.log.view();
        let blocks = |messages: &[Message]| -> Vec<(Role, String)> {
            let of = |message: &Message| message.blocks.iter().map(|block| (message.role, block.json().to_owned())).collect::<Vec<_>>();
            messages.iter().flat_map(of).collect()
        };
        let (whole, part) = (view.messages(), view.messages_before(cut.index(view.len() + 1)));
        prop_assert_eq!(&blocks(&whole)[..blocks(&part).len()], &blocks(&part)[..]);
        let prologue = Prologue { system: vec![Block::text("s"), Block::text("t")], static_blocks: 1, ..Prologue::default() };
        let parent = mark(&prologue, &whole, &Seams::answered(view.seams().answered), Ttl::FiveMinutes);
        let fork = mark_answered(&prologue, &part, &Seams::answered(view.seams().answered), Ttl::FiveMinutes);
        prop_assert_eq!(&fork.system, &parent.system);
        if blocks(&part).len() == blocks(&whole).len() {
            prop_assert!(fork.messages.iter().all(|place| parent.messages.contains(place)));
        }
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
    assert_eq!(session.happen(&Op::Clear(vec![some_index()])), ViewChange::From(1));
    assert!(bytes(&session.log)[3].1.contains("cleared"), "{:?}", bytes(&session.log));
}
