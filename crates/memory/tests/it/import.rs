//! Bringing in what other tools kept.

use std::path::Path;

use files::Root;
use memory::import::{Action, Source, apply, plan};
use memory::store::{Indexing, Store};
use memory::{Kind, Memory};

use super::scan::write;
use super::store::new;

/// `memory import`: a dry run with a diff first; what is known is not added twice; what is taken gets a number.
#[test]
fn a_plan_touches_nothing_and_is_applied_on_request() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path().join("memory"), Indexing::Kept).unwrap();
    store.add(&new("one")).unwrap();
    let other = directory.path().join("other");
    write(&other, "one.md", "---\nname: one\ntype: user\n# kept\n---\nAnother text.\n", 1_700_000_000);
    write(&other, "same.md", "---\nname: z\n---\nThe text of   one.\n", 1_700_000_000);
    write(&other, "MEMORY.md", "- [x](one.md)\n", 1_700_000_000);
    let claude = "# Project\n\nshort\n\n## Testing\n\nAlways run `make check` before a commit. It is slow.\n\n```\n# not a heading at all, code\n```\n\n## Layout\n\nThe server is in src/server and nothing else is there.\n";
    let rule = "---\ndescription: API handlers\nglobs: src/api/**/*.ts,src/{a,b}/*.ts\nalwaysApply: false\n---\n\nReturn problem+json.\n";
    let root = Root::open(&other).unwrap();
    let sources = [
        Source::Directory(&root),
        Source::Document { path: Path::new("CLAUDE.md"), text: claude },
        Source::CursorRule { path: Path::new(".cursor/rules/api.mdc"), text: rule },
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

    let saved = apply(&store, &planned).unwrap();
    assert_eq!(saved.len(), planned.additions());
    let read = |path: &str| Memory::read(store.root(), path).unwrap();
    assert_eq!(read("testing.md").kind, Some(Kind::Feedback));
    assert_eq!(read("testing.md").description.as_deref(), Some("Always run make check before a commit."));
    assert!(read("testing.md").body.contains("# not a heading"));
    assert_eq!(read("layout.md").kind, Some(Kind::Project));
    assert_eq!(read("api.md").applies_to, ["src/api/**/*.ts", "src/{a,b}/*.ts"]);
    let copied = store.root().read("one-2.md", 999).unwrap().bytes;
    assert_eq!(copied, std::fs::read(other.join("one.md")).unwrap(), "an imported file keeps its bytes");
    assert_eq!(memory::doctor::examine(&store).unwrap(), []);
    assert!(apply(&store, &planned).is_err(), "nothing is overwritten");
    assert_eq!(plan(&store, &sources).unwrap().additions(), 0);
}

/// An imported memory is as old as what it was made from; a section called "Memory" comes along; what cannot come is named.
#[test]
fn what_is_imported_keeps_its_age_and_nothing_is_dropped_silently() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path().join("memory"), Indexing::Kept).unwrap();
    let other = directory.path().join("other");
    write(&other, "old.md", "---\nname: old\ntype: user\n---\nAn old one.\n", 1_700_000_000);
    write(&other, "latin.md", "x", 1_700_000_000);
    std::fs::write(other.join("latin.md"), b"caf\xe9 au lait").unwrap();
    write(&other, "large.md", &"word ".repeat(300_000), 1_700_000_000);
    let root = Root::open(&other).unwrap();
    let claude = "## Memory\n\nThe cache lives in Redis and is emptied at night.\n";
    let sources = [Source::Directory(&root), Source::Document { path: Path::new("CLAUDE.md"), text: claude }];
    let planned = plan(&store, &sources).unwrap();
    assert_eq!(planned.skipped.len(), 2, "{:?}", planned.skipped);
    assert!(planned.skipped.iter().any(|one| one.contains("latin.md") && one.contains("UTF-8")));
    apply(&store, &planned).unwrap();
    let old = Memory::read(store.root(), "old.md").unwrap();
    assert_eq!(old.modified.unwrap().as_second(), 1_700_000_000);
    assert!(Memory::read(store.root(), "memory-notes.md").unwrap().body.contains("Redis"));
}
