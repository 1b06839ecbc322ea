//! Saving, changing, removing and renaming: file and index together.

use std::os::unix::fs::PermissionsExt;

use memory::store::{IndexUpkeep, MemoryEdit, NewMemory, Store};
use memory::{Error, Kind, Memory};

pub(super) fn new(name: &str) -> NewMemory {
    NewMemory {
        name: name.to_owned(),
        description: format!("about {name}"),
        kind: Some(Kind::Project),
        body: format!("The text of {name}.\n"),
        ..NewMemory::default()
    }
}

fn read(store: &Store, path: &str) -> String {
    String::from_utf8(store.root().read(path, 1 << 20).unwrap().bytes).unwrap()
}

/// MEM-6: an edit says when it was made, where the file says such things, and a text ends with its line.
#[test]
fn an_edit_is_dated() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path(), IndexUpkeep::Kept).unwrap();
    store.add(&new("One")).unwrap();
    let at = "2026-03-01T10:00:00Z".parse().ok();
    store.edit("one.md", &MemoryEdit { body: Some("No end of line".to_owned()), at, ..MemoryEdit::default() }).unwrap();
    let text = read(&store, "one.md");
    assert!(text.contains("modified: \"2026-03-01T10:00:00Z\"\n") && text.ends_with("\n\nNo end of line\n"), "{text}");
}

/// MEM-3: add, edit, rm and mv keep the index in step. MEM-7: private files.
#[test]
fn each_change_does_file_and_index() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path().join("deep/memory"), IndexUpkeep::Kept).unwrap();
    let saved = store.add(&new("Merge Freeze!")).unwrap();
    assert_eq!(saved.path, "merge-freeze.md");
    assert_eq!(read(&store, "MEMORY.md"), "- [Merge Freeze!](merge-freeze.md) — about Merge Freeze!\n");
    let text = read(&store, "merge-freeze.md");
    assert_eq!(
        text,
        "---\nname: Merge Freeze!\ndescription: about Merge Freeze!\ntype: project\n---\n\nThe text of Merge Freeze!.\n"
    );
    for path in ["merge-freeze.md", "MEMORY.md"] {
        let mode = std::fs::metadata(store.root().path().join(path)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let asked = || Some("when may I merge? until when: Monday?".to_owned());
    store.edit("merge-freeze.md", &MemoryEdit { asked: asked(), ..MemoryEdit::default() }).unwrap();
    assert_eq!(Memory::read(store.root(), "merge-freeze.md").unwrap().asked, asked());
    store
        .edit("merge-freeze.md", &MemoryEdit { description: Some("until: May".to_owned()), ..MemoryEdit::default() })
        .unwrap();
    assert_eq!(read(&store, "MEMORY.md"), "- [Merge Freeze!](merge-freeze.md) — until: May\n");
    assert!(read(&store, "merge-freeze.md").contains("description: \"until: May\"\n"));
    store
        .edit("merge-freeze.md", &MemoryEdit { body: Some("New text.\n".to_owned()), ..MemoryEdit::default() })
        .unwrap();
    assert!(read(&store, "merge-freeze.md").ends_with("---\n\nNew text.\n"));
    let before = std::fs::metadata(store.root().path().join("merge-freeze.md")).unwrap().modified().unwrap();
    store.rename("merge-freeze.md", "freeze/may.md").unwrap();
    assert_eq!(read(&store, "MEMORY.md"), "- [Merge Freeze!](freeze/may.md) — until: May\n");
    let after = std::fs::metadata(store.root().path().join("freeze/may.md")).unwrap().modified().unwrap();
    assert_eq!(before, after, "the age of a memory is meaningful");
    store.rename("freeze/may.md", "team/may.md").unwrap();
    assert_eq!(read(&store, "MEMORY.md"), "");
    assert_eq!(read(&store, "team/MEMORY.md"), "- [Merge Freeze!](may.md) — \"until: May\"\n".replace('"', ""));
    store.remove("team/may.md").unwrap();
    assert_eq!(read(&store, "team/MEMORY.md"), "");
    assert!(matches!(store.remove("team/may.md"), Err(Error::NoMemory { .. })));
    assert!(matches!(store.edit("none.md", &MemoryEdit::default()), Err(Error::NoMemory { .. })));
    assert!(matches!(store.rename("none.md", "x.md"), Err(Error::NoMemory { .. })));
}

/// MEM-3: nothing is overwritten by a new memory or a new name.
#[test]
fn a_name_that_is_taken_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path(), IndexUpkeep::Kept).unwrap();
    store.add(&new("one")).unwrap();
    store.add(&new("two")).unwrap();
    assert!(matches!(store.add(&new("one")), Err(Error::Files(files::Error::Exists { .. }))));
    assert!(matches!(store.rename("one.md", "two.md"), Err(Error::Files(files::Error::Exists { .. }))));
    assert!(read(&store, "two.md").contains("text of two"));
}

/// SEC-1: paths that lead out, or look like others, are refused before and by the opened directory.
#[test]
fn bad_names_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path().join("memory"), IndexUpkeep::Kept).unwrap();
    std::os::unix::fs::symlink(directory.path(), directory.path().join("memory/out")).unwrap();
    let bad = [
        "../x.md",
        "/x.md",
        "a/../../x.md",
        "x",
        "MEMORY.md",
        "a/memory.md",
        ".md",
        "x.txt",
        ".hidden.md",
        "a\0.md",
        "logs/x.md",
        "MEMORY.md/x.md",
        "sub/memory.MD/x.md",
        "known.md/x.md",
        "\u{ff0e}\u{ff0e}/x.md",
        "a\u{2215}b.md",
        "a\\b.md",
        "c:x.md",
        "x\u{202e}.md",
        "a//b.md",
        "./x.md",
        "",
    ];
    for path in bad {
        let attempt = NewMemory { path: Some(path.to_owned()), ..new("x") };
        assert!(matches!(store.add(&attempt), Err(Error::BadName { .. })), "{path:?}");
        assert!(store.remove(path).is_err() && store.rename("x.md", path).is_err());
    }
    assert!(matches!(store.add(&NewMemory { path: Some("out/x.md".to_owned()), ..new("x") }), Err(Error::Files(_))));
    assert!(!directory.path().join("x.md").exists());
    assert!(matches!(store.add(&new("!!!")), Err(Error::BadName { .. })));
    assert_eq!(store.add(&new("数据库 备份")).unwrap().path, "数据库-备份.md");
}

/// MEM-2: a write that leaves the index over its limit succeeds and says so.
#[test]
fn an_index_over_its_limit_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path(), IndexUpkeep::Kept).unwrap();
    let full: String = (0..200).map(|n| format!("- [T{n}](t{n}.md) — x\n")).collect();
    store.root().replace("MEMORY.md", full.as_bytes(), 0o600).unwrap();
    let saved = store.add(&new("one more")).unwrap();
    assert_eq!(saved.warnings.len(), 1);
    let skipped = Store::open(directory.path(), IndexUpkeep::Skipped).unwrap();
    assert_eq!(skipped.add(&new("without")).unwrap().warnings, []);
    assert!(!read(&store, "MEMORY.md").contains("without"));
}

/// Files of other formats keep every byte that was not edited.
#[test]
fn files_of_other_formats_keep_their_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path(), IndexUpkeep::Kept).unwrap();
    let nested = "---\n# by hand\nname:   Odd   # note\nmetadata:\n  type: user\n  originSessionId: 'x'\nzzz: [1,  2]\n---\nbody\n\n";
    store.root().replace("odd.md", nested.as_bytes(), 0o600).unwrap();
    store.edit("odd.md", &MemoryEdit { kind: Some(Kind::Feedback), ..MemoryEdit::default() }).unwrap();
    assert_eq!(read(&store, "odd.md"), nested.replace("type: user", "type: feedback"));
    store.root().replace("plain.md", b"no frontmatter\n", 0o600).unwrap();
    store.edit("plain.md", &MemoryEdit { kind: Some(Kind::User), ..MemoryEdit::default() }).unwrap();
    assert_eq!(read(&store, "plain.md"), "---\ntype: user\n---\n\nno frontmatter\n");
    store.root().replace("bytes.md", b"\xff\xfe", 0o600).unwrap();
    let change = MemoryEdit { name: Some("x".to_owned()), ..MemoryEdit::default() };
    assert!(matches!(store.edit("bytes.md", &change), Err(Error::NotText { .. })));
}
