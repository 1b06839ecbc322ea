use proptest::prelude::*;
use proptest::sample::Index;

use crate::session::{Session, bytes, ops, read};

proptest! {
    /// LOG-7: a file cut at any byte loads with every whole line, and what is written after it is read as well.
    #[test]
    fn a_torn_file_loads_with_every_whole_line(ops in ops(), cut in any::<Index>()) {
        let session = Session::of(&ops);
        let file = session.file().into_bytes();
        if !file.is_empty() {
            let cut = cut.index(file.len());
            let torn = &file[..cut];
            let ends_whole = file[cut] == b'\n';
            let whole = if ends_whole { cut } else { torn.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1) };
            prop_assert_eq!(bytes(&read(torn)), bytes(&read(&torn[..whole])));
            let mended = [torn, b"\n", &file[whole..]].concat();
            prop_assert_eq!(bytes(&read(&mended)), bytes(&session.log));
        }
    }
}

/// LOG-2: a commit in a line without a name brings nothing back, and breaks nothing.
#[test]
fn a_restore_without_a_name_is_passed_over() {
    let line = br#"{"type":"commit","commit":{"kind":"restore","blocks":[{"type":"text","text":"x"}]}}"#;
    assert!(bytes(&read(line)).is_empty());
}

/// LOG-12: a compaction whose summary never reached the disk is void.
#[test]
fn a_compaction_without_its_summary_changes_nothing() {
    use crate::session::Op;
    let mut session = Session::of(&[Op::Say("one".into())]);
    let before = bytes(&session.log);
    session.happen(&Op::CompactAll);
    assert_ne!(bytes(&session.log), before);
    let file = session.file();
    let cut = file.trim_end().rfind('\n').unwrap() + 1;
    assert_eq!(bytes(&read(&file.as_bytes()[..cut])), before);
}
