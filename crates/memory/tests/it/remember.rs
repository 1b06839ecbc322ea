//! The one way to remember.

use std::os::unix::fs::PermissionsExt;

use jiff::Timestamp;
use memory::remember::MemoryOrigin;
use memory::store::{IndexUpkeep, NewMemory, Store};
use memory::{Error, Memory};

use super::store::new;

fn store() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path(), IndexUpkeep::Kept).unwrap();
    (directory, store)
}

fn index(store: &Store) -> String {
    String::from_utf8(store.root().read("MEMORY.md", 1 << 20).unwrap().bytes).unwrap()
}

/// SHELF-2: file and index, mode 0600, and where it comes from under `metadata`.
#[test]
fn what_is_remembered_says_where_it_comes_from() {
    let (directory, store) = store();
    let origin = MemoryOrigin {
        session: Some("s-1".into()),
        message: Some("m-2".into()),
        agent: Some("extract".into()),
        model: Some("a model: with a colon".into()),
        at: Some(Timestamp::from_second(1_772_800_000).unwrap()),
    };
    let saved = store.remember(&new("deploys"), &origin, None).unwrap();
    let file = directory.path().join(&saved.path);
    let text = std::fs::read_to_string(&file).unwrap();
    for part in ["originSessionId: s-1", "originMessageId: m-2", "agent: extract", "modified: 2026-03-06T12:26:40Z"] {
        assert!(text.contains(&format!("\n  {part}")), "{text}");
    }
    let memory = Memory::read(store.root(), &saved.path).unwrap();
    assert!(memory.diagnostics.is_empty(), "{:?}", memory.diagnostics);
    assert!(memory.dated >= origin.at, "{:?}", memory.dated);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(index(&store).contains(&format!("({})", saved.path)));
}

/// SHELF-2: a secret is refused with the rule's name and never the secret; nothing is written.
#[test]
fn a_secret_is_refused_and_nothing_is_written() {
    let (directory, store) = store();
    let token = format!("ghp_{}", "aB3dE5gH7jK9mN1pQ2sT4vW6xY8zA0cD2fG4");
    let secret = NewMemory { body: format!("The token is {token} # gitleaks:allow\n"), ..new("token") };
    let error = store.remember(&secret, &MemoryOrigin::default(), None).unwrap_err();
    assert!(matches!(&error, Error::Secret { rule: "github-pat", .. }), "{error}");
    assert!(!error.to_string().contains(&token[4..20]));
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().ends_with(".md")), "{left:?}");
}

/// SHELF-2: what is known already is refused, and the reason names the file.
#[test]
fn a_duplicate_is_refused_by_the_name_of_what_is_there() {
    let (_directory, store) = store();
    let first = store.remember(&new("one"), &MemoryOrigin::default(), None).unwrap();
    let again = NewMemory { body: format!("  {}\n\n", new("one").body.to_uppercase()), ..new("another name") };
    let error = store.remember(&again, &MemoryOrigin::default(), None).unwrap_err();
    assert!(matches!(&error, Error::Known { by } if *by == first.path), "{error}");
}

/// SHELF-2: what a model wrote by itself gets the mode of a memory, and a line if it has none; its text stays.
#[test]
fn what_others_wrote_is_brought_into_order() {
    let (directory, store) = store();
    let file = directory.path().join("by-hand.md");
    let text = "---\nname: By hand\ndescription: written by a tool\n---\nText.\n";
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    store.settle("by-hand.md", &MemoryOrigin::default(), None).unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    let once = index(&store);
    assert_eq!(once, "- [By hand](by-hand.md) — written by a tool\n");
    store.settle("by-hand.md", &MemoryOrigin::default(), None).unwrap();
    assert_eq!(index(&store), once);
    assert_eq!(store.settle("MEMORY.md", &MemoryOrigin::default(), None).unwrap(), None);
}

/// SHELF-2, DRIFT-1: what a model wrote with a tool says afterwards where it comes from and what it names that is there; a
/// file without frontmatter stays as it is.
#[test]
fn what_a_model_wrote_gets_its_origin_and_what_it_names() {
    let (directory, store) = store();
    let tree = tempfile::tempdir().unwrap();
    std::fs::write(tree.path().join("deploy.sh"), "").unwrap();
    let text = "---\nname: Deploys\ndescription: How\ntype: project\n---\n\nRun `deploy.sh`, never `gone.sh`.\n";
    std::fs::write(directory.path().join("deploys.md"), text).unwrap();
    std::fs::write(directory.path().join("bare.md"), "no frontmatter").unwrap();
    let origin = MemoryOrigin { session: Some("s-1".into()), model: Some("m".into()), ..MemoryOrigin::default() };
    for path in ["deploys.md", "bare.md"] {
        store.settle(path, &origin, Some(tree.path())).unwrap();
    }
    let memory = Memory::read(store.root(), "deploys.md").unwrap();
    assert_eq!(memory.named, ["deploy.sh#af1349b9"]);
    let written = std::fs::read_to_string(directory.path().join("deploys.md")).unwrap();
    assert!(written.contains("  originSessionId: s-1\n  model: m\n"), "{written}");
    assert_eq!(std::fs::read_to_string(directory.path().join("bare.md")).unwrap(), "no frontmatter");
    std::fs::remove_file(tree.path().join("deploy.sh")).unwrap();
    let gone: Vec<String> = memory::drift::check(&memory, tree.path()).iter().map(ToString::to_string).collect();
    assert!(gone.contains(&"`deploy.sh`, there when this was written, is gone".to_owned()), "{gone:?}");
}
