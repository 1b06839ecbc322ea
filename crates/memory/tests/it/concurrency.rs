//! Two processes that add at the same time lose nothing.

use std::process::Command;

use memory::doctor;
use memory::index;
use memory::store::{IndexUpkeep, NewMemory, Store};

/// How many memories each process adds.
const EACH: usize = 2_000;

const DIRECTORY: &str = "MEMORY_TEST_DIRECTORY";
const WRITER: &str = "MEMORY_TEST_WRITER";

/// Where files need no disk, if there is such a place: the test is about order, not about flushing.
fn scratch() -> tempfile::TempDir {
    let shared = std::path::Path::new("/dev/shm");
    if shared.is_dir() { tempfile::tempdir_in(shared).unwrap() } else { tempfile::tempdir().unwrap() }
}

/// What each process runs; by itself it does nothing.
#[test]
fn a_writer_process() {
    let (Ok(directory), Ok(writer)) = (std::env::var(DIRECTORY), std::env::var(WRITER)) else { return };
    let store = Store::open(directory, IndexUpkeep::Kept).unwrap();
    for n in 0..EACH {
        let name = format!("w{writer} n{n}");
        store
            .add(&NewMemory { description: "x".to_owned(), body: "y".to_owned(), name, ..NewMemory::default() })
            .unwrap();
        if n % 100 == 99 {
            // Edits of the index by the same process are not lost either.
            store.remove(&format!("w{writer}-n{}.md", n - 50)).unwrap();
        }
    }
}

/// MEM-3: two processes adding 2,000 memories each and editing the index lose none.
#[test]
fn two_processes_lose_nothing() {
    let directory = scratch();
    Store::create(directory.path(), IndexUpkeep::Kept).unwrap();
    let test = std::env::current_exe().unwrap();
    let start = |writer: &str| {
        Command::new(&test)
            .args(["it::concurrency::a_writer_process", "--exact", "--nocapture"])
            .env(DIRECTORY, directory.path())
            .env(WRITER, writer)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    for mut writer in [start("1"), start("2")] {
        assert!(writer.wait().unwrap().success());
    }
    let store = Store::open(directory.path(), IndexUpkeep::Kept).unwrap();
    let text = String::from_utf8(store.root().read("MEMORY.md", 1 << 24).unwrap().bytes).unwrap();
    let kept = 2 * (EACH - EACH / 100);
    assert_eq!(index::links(&text).len(), kept);
    assert_eq!(memory::scan::paths(store.root()).unwrap().len(), kept);
    let left_over = std::fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(left_over, kept + 2, "the files, the index and the lock, and nothing temporary");
    let findings = doctor::examine(&store).unwrap();
    let wrong = findings.iter().any(|finding| {
        matches!(finding, doctor::DoctorFinding::Orphan { .. } | doctor::DoctorFinding::DeadLink { .. })
    });
    assert!(!wrong);
}
