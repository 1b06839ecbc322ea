//! Scanning: what is a memory, and its line in the manifest.

use std::fs::{FileTimes, OpenOptions};
use std::path::Path;
use std::time::{Duration, SystemTime};

use files::Root;
use memory::scan::{headers, manifest};

pub(super) fn write(directory: &Path, path: &str, text: &str, seconds: u64) {
    let path = directory.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    OpenOptions::new().write(true).open(&path).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
}

/// RECALL-1: recursive, `team/` included, `logs/` not, no MEMORY.md anywhere, newest first, 30 lines only.
/// RECALL-2: the form of a line.
#[test]
fn the_manifest_lists_memories_newest_first() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    write(at, "old.md", "---\nname: o\ndescription: first thing\ntype: user\n---\nbody", 1_700_000_000);
    write(at, "team/shared.md", "---\ndescription: shared\nmetadata:\n  type: project\n---\n", 1_700_000_200);
    write(at, "deep/er/bare.md", "no frontmatter", 1_700_000_100);
    write(at, "odd.md", "---\ntype: nothing\n---\n", 1_600_000_000);
    for path in ["MEMORY.md", "team/MEMORY.md", "deep/memory.md", "logs/2026/03/2026-03-01.md", "notes.txt", ".md"] {
        write(at, path, "---\ndescription: no\n---\n", 1_800_000_000);
    }
    let late = format!("---\n{}description: too late\n---\n", "x: y\n".repeat(40));
    write(at, "late.md", &late, 1_500_000_000);
    let root = Root::open(at).unwrap();
    let lines = manifest(&headers(&root).unwrap());
    assert_eq!(
        lines,
        "- [project] team/shared.md (2023-11-14T22:16:40.000Z): shared\n\
         - deep/er/bare.md (2023-11-14T22:15:00.000Z)\n\
         - [user] old.md (2023-11-14T22:13:20.000Z): first thing\n\
         - odd.md (2020-09-13T12:26:40.000Z)\n\
         - late.md (2017-07-14T02:40:00.000Z)"
    );
}

/// RECALL-1: many files are read by several threads, in the same order.
#[test]
fn many_files_are_all_listed() {
    let directory = tempfile::tempdir().unwrap();
    for n in 0..500_u64 {
        write(directory.path(), &format!("m{n}.md"), "---\ndescription: d\n---\n", 1_700_000_000 + n);
    }
    let all = headers(&Root::open(directory.path()).unwrap()).unwrap();
    assert_eq!(all.len(), 500);
    assert!(all.windows(2).all(|pair| pair[0].modified > pair[1].modified));
}

/// MEM-6: a memory is as old as the later of what it says and when its file was written: a correction by hand is the newest word.
#[test]
fn a_memory_that_was_edited_by_hand_is_as_new_as_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let text = |port: u16, at: &str| {
        format!(
            "---\nname: Port\ndescription: the web client of the shop listens on port {port}\ntype: project\nmetadata:\n  modified: {at}\n---\n\nx\n"
        )
    };
    write(directory.path(), "edited.md", &text(3000, "2025-01-01T00:00:00Z"), 1_770_000_000);
    write(directory.path(), "saved.md", &text(5173, "2025-06-01T00:00:00Z"), 1_750_000_000);
    write(directory.path(), "copied.md", &text(8080, "2025-07-01T00:00:00Z"), 1_600_000_000);
    let root = files::Root::open(directory.path()).unwrap();
    let dated = |path: &str| memory::Memory::read(&root, path).unwrap().dated.unwrap();
    assert_eq!(dated("edited.md").as_second(), 1_770_000_000);
    assert_eq!(dated("copied.md").to_string(), "2025-07-01T00:00:00Z");
    let order: Vec<String> = memory::scan::headers(&root).unwrap().into_iter().map(|header| header.path).collect();
    assert_eq!(order, ["edited.md", "copied.md", "saved.md"]);
    // RECALL-10: of memories that differ in a value, the one the user corrected stands for the others.
    let ranker = memory::Ranker::load(&root).unwrap();
    let (doing, now) = (memory::rank::WorkAtHand::default(), jiff::Timestamp::from_second(1_772_800_000).unwrap());
    let text = "on which port does the web client of the shop listen?";
    let hits = ranker.choose(&memory::rank::RankQuestion { text, doing: &doing, now }, |_| true);
    assert_eq!(hits.iter().map(|hit| hit.path.as_str()).collect::<Vec<_>>(), ["edited.md"]);
    assert_eq!(hits[0].older.len(), 2);
}
