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
