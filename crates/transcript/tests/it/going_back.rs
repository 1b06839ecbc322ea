//! Going back, and what a compaction has to do with it.

use crate::session::{Op, Session, bytes, read};

fn texts(session: &Session) -> Vec<String> {
    let texts = |log: &transcript::Log| -> Vec<String> {
        log.view().blocks().filter_map(|(_, _, block)| block.as_text()).collect()
    };
    assert_eq!(texts(&read(session.file().as_bytes())), texts(&session.log), "read back it is the same");
    texts(&session.log)
}

fn reply(text: &str) -> Op {
    Op::Reply { text: text.into(), calls: 0, split: false, thinking: false, usage: false }
}

/// Two questions with their answers.
fn talk() -> Session {
    Session::of(&[Op::Say("one".into()), reply("first"), Op::Say("two".into()), reply("second")])
}

/// LOG-14: going back right after a compaction, to what it kept, takes back what was asked for.
#[test]
fn going_back_right_after_a_compaction_takes_back_what_it_kept() {
    let mut session = talk();
    session.compact_before("line-3");
    assert_eq!(texts(&session), ["summary 5", "two", "second"]);
    session.rewind_to("line-3");
    assert_eq!(texts(&session), ["summary 5"]);
    session.happen(&Op::Say("three".into()));
    assert_eq!(texts(&session), ["summary 5", "three"]);
}

/// LOG-14: going back to a place behind a compaction lifts it: the conversation is as it was there. Undone, the summary
/// stands again.
#[test]
fn going_back_behind_a_compaction_lifts_it() {
    let mut session = talk();
    session.happen(&Op::CompactAll);
    session.happen(&Op::Say("three".into()));
    assert_eq!(texts(&session), ["summary 5", "three"]);
    session.rewind_to("line-3");
    assert_eq!(texts(&session), ["one", "first"]);
    assert_eq!(session.log.tip().unwrap().as_str(), "line-2", "others go on from there, too");
    let rewind = session.commits.last().cloned().unwrap();
    session.undo(rewind);
    assert_eq!(texts(&session), ["summary 5", "three"]);
}

/// LOG-14: words that were taken back stay so, however often the conversation is compacted afterwards.
#[test]
fn words_taken_back_do_not_return_with_a_compaction() {
    let mut session = talk();
    session.rewind_to("line-3");
    session.happen(&Op::CompactAll);
    session.happen(&Op::Say("three".into()));
    session.happen(&Op::CompactAll);
    let view = session.log.view();
    let said: Vec<String> = view.user_messages().flat_map(|entry| entry.blocks()[0].as_text()).collect();
    assert_eq!(said, ["one", "three"]);
    assert_eq!(view.entries(0..view.len()).count(), 3, "one, first, three");
}

/// LOG-14: a session that went back in any of these ways is the same when it is resumed.
#[test]
fn a_resumed_session_stands_where_it_stood() {
    let mut session = talk();
    session.compact_before("line-3");
    session.rewind_to("line-4");
    let resumed = read(session.file().as_bytes());
    assert_eq!((bytes(&resumed), resumed.tip()), (bytes(&session.log), session.log.tip()));
}
