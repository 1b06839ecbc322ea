use crate::session::{Op, Session, some_index};

fn session_of(messages: usize) -> Session {
    let (mut session, any) = (Session::default(), some_index());
    for _ in 0..messages / 2 {
        session.happen(&Op::Reply { text: "on it".into(), calls: 1, split: false, thinking: false, usage: true });
        session.happen(&Op::Result(any, "done".into()));
    }
    session
}

fn visits(session: &mut Session, op: &Op) -> u64 {
    let before = session.log.view().visits();
    session.happen(op);
    session.log.view().visits() - before
}

/// LOG-4: taking in a message, or a commit that touches one result, visits as many items in a session of 100,000
/// messages as in one of 100.
#[test]
fn the_cost_of_a_line_does_not_grow_with_the_session() {
    let (mut short, mut long) = (session_of(100), session_of(100_000));
    for op in [
        Op::Say("next".into()),
        Op::Reply { text: "on it".into(), calls: 2, split: true, thinking: true, usage: true },
        Op::Result(some_index(), "done".into()),
        Op::Clear(vec![some_index()]),
        Op::Spill(vec![some_index()]),
        Op::Undo(some_index()),
    ] {
        let (a, b) = (visits(&mut short, &op), visits(&mut long, &op));
        assert_eq!(a, b, "{op:?}");
        assert!(a <= 8, "{op:?} visited {a}");
    }
}
