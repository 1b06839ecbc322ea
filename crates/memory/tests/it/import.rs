//! Bringing in what other tools kept.

use std::path::Path;

use files::Root;
use memory::import::{Action, ImportSource, apply, plan};
use memory::remember::MemoryOrigin;
use memory::store::{IndexUpkeep, Store};
use memory::{Kind, Memory};

use super::scan::write;
use super::store::new;

fn importing() -> MemoryOrigin {
    MemoryOrigin {
        agent: Some("import".to_owned()),
        at: "2026-03-01T00:00:00Z".parse().ok(),
        ..MemoryOrigin::default()
    }
}

/// SHELF-2: what is imported goes the one way to save: a secret is refused and named with its file and section, what is saved says
/// where it comes from and what it names.
#[test]
fn what_is_imported_is_checked_and_says_where_it_comes_from() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path().join("memory"), IndexUpkeep::Kept).unwrap();
    let token = format!("ghp_{}", "a8Kd93JfLq0ZxC7VbN2mTyR5uWe1PoIh4GsD");
    let claude = format!(
        "## Access\n\nThe token of the robot is {token} and nobody else has it.\n\n## Build\n\nRun `scripts/build.sh` before each release.\n"
    );
    let other = directory.path().join("other");
    write(&other, "bare.md", "Never push on a Friday. It ends badly.\n", 1_700_000_000);
    let root = Root::open(&other).unwrap();
    let document = ImportSource::Document { path: Path::new("CLAUDE.md"), text: &claude };
    let planned = plan(&store, &[document, ImportSource::Directory(&root)]).unwrap();
    assert_eq!(planned.skipped.len(), 1);
    let why = &planned.skipped[0];
    assert!(
        why.contains("CLAUDE.md, section \"Access\"") && why.contains("github-pat") && !why.contains(&token),
        "{why}"
    );
    assert!(!planned.diff().contains(&token));
    std::fs::create_dir_all(directory.path().join("tree/scripts")).unwrap();
    std::fs::write(directory.path().join("tree/scripts/build.sh"), "").unwrap();
    let imported = apply(&store, &planned, &importing(), Some(&directory.path().join("tree"))).unwrap();
    assert_eq!(imported.saved.len(), 2);
    let build = String::from_utf8(store.root().read("build.md", 9_999).unwrap().bytes).unwrap();
    for part in ["agent: import", "importedFrom: ", "modified: \"2026-03-01T00:00:00Z\"", "names: scripts/build.sh"] {
        assert!(build.contains(part), "{part}: {build}");
    }
    let bare = Memory::read(store.root(), "bare.md").unwrap();
    assert_eq!((bare.kind, bare.description.as_deref()), (Some(Kind::Feedback), Some("Never push on a Friday.")));
    let index = String::from_utf8(store.root().read("MEMORY.md", 9_999).unwrap().bytes).unwrap();
    assert!(!index.contains(&token), "{index}");
}

/// `memory import`: a dry run with a diff first; what is known is not added twice; what is taken gets a number.
#[test]
fn a_plan_touches_nothing_and_is_applied_on_request() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path().join("memory"), IndexUpkeep::Kept).unwrap();
    store.add(&new("one")).unwrap();
    let other = directory.path().join("other");
    write(&other, "one.md", "---\nname: one\ntype: user\n# kept\n---\nAnother text.\n", 1_700_000_000);
    write(&other, "same.md", "---\nname: z\n---\nThe text of   one.\n", 1_700_000_000);
    write(&other, "MEMORY.md", "- [x](one.md)\n", 1_700_000_000);
    let claude = "# Project\n\nshort\n\n## Testing\n\nAlways run `make check` before a commit. It is slow.\n\n```\n# not a heading at all, code\n```\n\n## Layout\n\nThe server is in src/server and nothing else is there.\n";
    let rule = "---\ndescription: API handlers\nglobs: src/api/**/*.ts,src/{a,b}/*.ts\nalwaysApply: false\n---\n\nReturn problem+json.\n";
    let root = Root::open(&other).unwrap();
    let sources = [
        ImportSource::Directory(&root),
        ImportSource::Document { path: Path::new("CLAUDE.md"), text: claude },
        ImportSource::CursorRule { path: Path::new(".cursor/rules/api.mdc"), text: rule },
    ];
    let planned = plan(&store, &sources).unwrap();
    let items: Vec<_> = planned.items.iter().map(|item| (item.path.as_str(), &item.action)).collect();
    let known = Action::Known { by: "one.md".to_owned() };
    assert_eq!(
        items,
        [
            ("one-2.md", &Action::Add),
            ("same.md", &known),
            ("testing.md", &Action::Add),
            ("layout.md", &Action::Add),
            ("api.md", &Action::Add),
        ]
    );
    let diff = planned.diff();
    assert!(diff.contains("+++ testing.md") && diff.contains("+Always run `make check`") && !diff.contains("same.md"));
    assert_eq!(memory::scan::paths(store.root()).unwrap(), ["one.md"], "a plan touches nothing");

    let (origin, tree) = (importing(), directory.path());
    let imported = apply(&store, &planned, &origin, Some(tree)).unwrap();
    assert_eq!((imported.saved.len(), imported.refused.len()), (planned.additions(), 0));
    let read = |path: &str| Memory::read(store.root(), path).unwrap();
    assert_eq!(read("testing.md").kind, Some(Kind::Feedback));
    assert_eq!(read("testing.md").description.as_deref(), Some("Always run make check before a commit."));
    assert!(read("testing.md").body.contains("# not a heading"));
    assert_eq!(read("layout.md").kind, Some(Kind::Project));
    assert_eq!(read("api.md").applies_to, ["src/api/**/*.ts", "src/{a,b}/*.ts"]);
    let copied = String::from_utf8(store.root().read("one-2.md", 9_999).unwrap().bytes).unwrap();
    let (head, rest) = copied.split_once("metadata:\n").unwrap();
    assert_eq!(head, "---\nname: one\ntype: user\n# kept\n", "an imported file keeps its lines");
    assert!(rest.ends_with("---\nAnother text.\n"), "{rest}");
    assert_eq!(memory::doctor::examine(&store).unwrap(), []);
    let again = apply(&store, &planned, &origin, Some(tree)).unwrap();
    assert_eq!((again.saved.len(), again.refused.len()), (0, 4), "nothing is overwritten");
    assert_eq!(plan(&store, &sources).unwrap().additions(), 0);
}

/// An imported memory is as old as what it was made from; a section called "Memory" comes along; what cannot come is named.
#[test]
fn what_is_imported_keeps_its_age_and_nothing_is_dropped_silently() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path().join("memory"), IndexUpkeep::Kept).unwrap();
    let other = directory.path().join("other");
    write(&other, "old.md", "---\nname: old\ntype: user\n---\nAn old one.\n", 1_700_000_000);
    write(&other, "latin.md", "x", 1_700_000_000);
    std::fs::write(other.join("latin.md"), b"caf\xe9 au lait").unwrap();
    write(&other, "large.md", &"word ".repeat(300_000), 1_700_000_000);
    let root = Root::open(&other).unwrap();
    let claude = "## Memory\n\nThe cache lives in Redis and is emptied at night.\n";
    let sources =
        [ImportSource::Directory(&root), ImportSource::Document { path: Path::new("CLAUDE.md"), text: claude }];
    let planned = plan(&store, &sources).unwrap();
    assert_eq!(planned.skipped.len(), 2, "{:?}", planned.skipped);
    assert!(planned.skipped.iter().any(|one| one.contains("latin.md") && one.contains("UTF-8")));
    apply(&store, &planned, &importing(), None).unwrap();
    let old = Memory::read(store.root(), "old.md").unwrap();
    assert_eq!(old.modified.unwrap().as_second(), 1_700_000_000);
    assert_eq!(old.dated, old.modified, "what is written in it is no newer");
    assert!(Memory::read(store.root(), "memory-notes.md").unwrap().body.contains("Redis"));
}
