//! What memories name that is gone.

use std::path::Path;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use memory::Memory;
use memory::drift::{NamedThing, check, named, record};
use memory::recall::surface_over;
use memory::remember::MemoryOrigin;
use memory::store::{IndexUpkeep, NewMemory, Store};

use super::store::new;

fn tree() -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(tree.path().join("scripts")).unwrap();
    std::fs::create_dir_all(tree.path().join("src")).unwrap();
    std::fs::write(tree.path().join("scripts/deploy.sh"), "#!/bin/sh\nrun --fast-lane\n").unwrap();
    std::fs::write(tree.path().join("src/main.rs"), "fn load_orders() {}\nstruct OrderBook;\n").unwrap();
    tree
}

fn memory(body: &str) -> Memory {
    Memory::parse("a.md", body.as_bytes(), None, body.len() as u64)
}

/// DRIFT-1: files, functions, flags and types in code marks are what a memory names; prose and plain words are not.
#[test]
fn what_is_named_stands_in_code_marks() {
    let text = "Run `scripts/deploy.sh --fast-lane`, it calls `load_orders()` and `OrderBook`. See `main.rs`, not `cargo test` \
                or https://example.org/a.html, `true`, `3.5` or src/other.rs.";
    let files = |path: &str| NamedThing::File(path.to_owned());
    let word = |name: &str| NamedThing::Word(name.to_owned());
    let expected =
        [files("main.rs"), files("scripts/deploy.sh"), word("--fast-lane"), word("OrderBook"), word("load_orders")];
    assert_eq!(named(text), expected);
}

/// DRIFT-1: what is there is recorded when it is saved; what is gone since is said so, and what never was there is not spoken of.
#[test]
fn only_what_was_there_and_is_gone_is_told() {
    let tree = tree();
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path(), IndexUpkeep::Kept).unwrap();
    let body = "Deploy with `deploy.sh --fast-lane`; it uses `load_orders()` and `missing_one()`.".to_owned();
    let saved =
        store.remember(&NewMemory { body, ..new("deploys") }, &MemoryOrigin::default(), Some(tree.path())).unwrap();
    let read = || Memory::read(store.root(), &saved.path).unwrap();
    assert_eq!(read().named, ["deploy.sh", "--fast-lane", "load_orders"]);
    let said = || check(&read(), tree.path()).iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(said(), Vec::<String>::new());
    std::fs::remove_file(tree.path().join("scripts/deploy.sh")).unwrap();
    std::fs::write(tree.path().join("src/main.rs"), "fn load_all_orders() {}\n").unwrap();
    let gone = |name: &str| format!("`{name}`, there when this was written, is gone");
    assert_eq!(said(), [gone("deploy.sh"), gone("--fast-lane"), gone("load_orders")]);
    let now = Timestamp::from_second(1_772_800_000).unwrap();
    let shown = surface_over(store.root(), &saved.path, &[], Some(tree.path()), now).unwrap();
    assert!(shown.text.contains(&gone("deploy.sh")), "{}", shown.text);
}

/// DRIFT-1: a memory that was just saved never cries wolf, whatever it names; a file that changes later is told.
#[test]
fn what_was_never_here_is_no_drift_and_a_changed_file_is() {
    let tree = tree();
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path(), IndexUpkeep::Kept).unwrap();
    let save = |name: &str, body: &str| {
        let new = NewMemory { body: body.to_owned(), ..new(name) };
        store.remember(&new, &MemoryOrigin::default(), Some(tree.path())).unwrap().path
    };
    let said = |path: &str| {
        let drifted = check(&Memory::read(store.root(), path).unwrap(), tree.path());
        drifted.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let elsewhere = save("elsewhere", "Roll out `deployment/api` from `origin/main` with `--release` on `PostgreSQL`.");
    let here = save("here", "`scripts/deploy.sh` does it, and `src/lib.rs` will.");
    assert_eq!((said(&elsewhere), said(&here)), (Vec::new(), Vec::new()));
    std::fs::write(tree.path().join("scripts/deploy.sh"), "#!/bin/sh\nrun otherwise\n").unwrap();
    assert_eq!(said(&here), ["`scripts/deploy.sh` has changed since this was written"]);
    assert_eq!(said(&elsewhere), Vec::<String>::new());
    // One without a record is held to the files of folders that are here.
    let old = memory("See `src/gone.rs`, `infra/main.tf`, `deploy.sh`, `origin/main` and `load_everything()`.");
    let found: Vec<String> = check(&old, tree.path()).iter().map(ToString::to_string).collect();
    assert_eq!(found, ["`src/gone.rs` was not found here"]);
}

/// DRIFT-1: nothing is said where not all could be read, and it takes no time anybody notices.
#[test]
fn a_large_tree_is_checked_quickly_and_nothing_is_claimed() {
    let tree = tempfile::tempdir().unwrap();
    for folder in 0..20 {
        let folder = tree.path().join(format!("f{folder}"));
        std::fs::create_dir(&folder).unwrap();
        for file in 0..50 {
            std::fs::write(folder.join(format!("{file}.rs")), "fn something_else() {}\n".repeat(100)).unwrap();
        }
    }
    let memory = memory("Call `never_written()`.");
    let quickest = (0..5).map(|_| timed(&memory, tree.path())).min().unwrap();
    assert!(quickest < Duration::from_millis(200), "{quickest:?}"); // twenty when it is built for speed
    assert!(check(&memory, tree.path()).is_empty());
    assert!(record("`never_written()`", Path::new("/nowhere")).is_empty());
}

/// DRIFT-1: a folder of thousands of files takes no longer, and what could lie among those that were not looked at is not said
/// to be gone.
#[test]
fn a_folder_of_thousands_of_files_is_not_gone_through() {
    let tree = tempfile::tempdir().unwrap();
    for file in 0..7_000 {
        std::fs::write(tree.path().join(format!("row-{file}.csv")), "").unwrap();
    }
    std::fs::create_dir(tree.path().join("tools")).unwrap();
    let memory = memory("Run `deploy.sh`, then `tools/load.sh`.");
    let said: Vec<String> = check(&memory, tree.path()).iter().map(ToString::to_string).collect();
    assert_eq!(said, ["`tools/load.sh` was not found here"]);
    let root = files::Root::open(tree.path()).unwrap();
    assert_eq!(root.walk_some(100, |_| true).unwrap().len(), 100);
}

fn timed(memory: &Memory, tree: &Path) -> Duration {
    let start = Instant::now();
    check(memory, tree);
    start.elapsed()
}
