//! Reading lines back: as the file has them, in bounded memory.

use files::{LineEnding, Lines, Text};
use proptest::prelude::*;

fn all(path: &std::path::Path, cap: usize) -> Vec<(u64, Vec<u8>, Option<u64>, LineEnding)> {
    collect(Lines::open(path).unwrap().with_cap(cap))
}

fn collect(mut lines: Lines) -> Vec<(u64, Vec<u8>, Option<u64>, LineEnding)> {
    let mut all = Vec::new();
    while let Some(line) = lines.next().unwrap() {
        all.push(match line.text {
            Text::Whole(text) => (line.offset, text.to_vec(), None, line.ending),
            Text::Oversized { head, len } => (line.offset, head.to_vec(), Some(len), line.ending),
        });
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn lines_and_offsets_are_those_of_the_file(bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..400)) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        let lines = all(file.path(), 1000);
        let mut rebuilt = Vec::new();
        for (offset, text, oversized, ending) in &lines {
            prop_assert_eq!(*offset, rebuilt.len() as u64);
            prop_assert!(oversized.is_none() && !text.contains(&b'\n'));
            rebuilt.extend_from_slice(text);
            if *ending == LineEnding::Newline {
                rebuilt.push(b'\n');
            }
        }
        prop_assert_eq!(rebuilt, bytes);
    }

    /// However a file is cut into parts, each line is read in one of them.
    #[test]
    fn parts_have_the_lines_of_the_whole(
        bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..400),
        cuts in proptest::collection::btree_set(1_u64..420, 0..6),
        cap in 1_usize..50,
    ) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        let whole = Lines::open(file.path()).unwrap().with_cap(cap);
        let ends: Vec<u64> = cuts.iter().copied().chain([u64::MAX]).collect();
        let starts = [0].into_iter().chain(cuts.iter().copied());
        let parts = starts.zip(ends).flat_map(|(start, end)| collect(whole.part(start..end).unwrap()));
        prop_assert_eq!(parts.collect::<Vec<_>>(), all(file.path(), cap));
    }
}

#[test]
fn lines_longer_than_the_block_are_whole_and_longer_than_the_cap_are_skipped() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (block, cap) = (1 << 20, 3 << 20);
    let long = vec![b'l'; block * 2 + 17];
    let oversized = vec![b'o'; cap + block * 5];
    let exact = vec![b'e'; cap];
    let mut bytes = Vec::new();
    for line in [&b"first"[..], &long, &oversized, b"", &exact, &vec![b'p'; cap + 1], b"last"] {
        bytes.extend_from_slice(line);
        bytes.push(b'\n');
    }
    bytes.extend_from_slice(&oversized);
    std::fs::write(file.path(), &bytes).unwrap();
    let lines = all(file.path(), cap);
    let texts: Vec<_> = lines.iter().map(|(_, text, oversized, _)| (text.len(), *oversized)).collect();
    let eight = 8 * 1024;
    assert_eq!(
        texts,
        [
            (5, None),
            (long.len(), None),
            (eight, Some(oversized.len() as u64)),
            (0, None),
            (cap, None),
            (eight, Some(cap as u64 + 1)),
            (4, None),
            (eight, Some(oversized.len() as u64)),
        ]
    );
    assert_eq!(lines.last().unwrap().3, LineEnding::EndOfFile);
    assert_eq!(lines[3].0, (6 + long.len() + 1 + oversized.len() + 1) as u64);
}

#[test]
fn reading_can_start_where_it_stopped() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "one\ntwo\n").unwrap();
    let mut lines = Lines::open_at(file.path(), 4).unwrap();
    assert_eq!(lines.next().unwrap().unwrap().text, Text::Whole(b"two"));
    assert!(lines.next().unwrap().is_none());
    assert!(all(std::path::Path::new("/proc/self/cmdline"), 100).len() == 1, "a file that does not know its length");
}
