//! Finding and mending what is wrong with a directory.

use std::sync::{Arc, Mutex};

use memory::Kind;
use memory::changes::{Changes, RunHead, USER};
use memory::doctor::{DoctorFinding, examine, mend};
use memory::store::{IndexUpkeep, Store};

use super::store::new;

fn put(store: &Store, path: &str, text: &str) {
    store.root().replace(path, text.as_bytes(), 0o600).unwrap();
}

fn text(store: &Store, path: &str) -> String {
    String::from_utf8(store.root().read(path, 1 << 20).unwrap().bytes).unwrap()
}

/// MEM-3: a memory whose last day is over is named.
#[test]
fn what_is_over_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path(), IndexUpkeep::Kept).unwrap();
    put(&store, "sale.md", "---\nname: Sale\ndescription: d\nuntil: 2026-11-01\ntype: project\n---\nx\n");
    put(&store, "odd.md", "---\nname: Odd\ndescription: d\nuntil: some day\ntype: project\n---\ny\n");
    let over = |now: &str| memory::doctor::over(&store, now.parse().unwrap()).unwrap();
    assert_eq!(over("2026-11-01T12:00:00Z"), []);
    let found = over("2026-11-02T12:00:00Z");
    assert_eq!(
        found.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["sale.md: out of date: it names 2026-11-01 as its last day"]
    );
}

/// MEM-3: orphans, dead links, duplicates, overlong lines, wrong types and unparsable frontmatter are found and fixed.
#[test]
fn what_is_wrong_is_found_and_mended() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path(), IndexUpkeep::Kept).unwrap();
    store.add(&new("good")).unwrap();
    put(&store, "orphan.md", "---\nname: Orphan\ndescription: lost\ntype: user\n---\nalone\n");
    put(&store, "team/orphan.md", "---\nname: T\ntype: project\n---\nshared\n");
    put(&store, "typo.md", "---\nname: Typo\ntype: Feedbacks\n---\nx\n");
    put(&store, "colon.md", "---\nname: Colon\ndescription: a: b\ntype: user\n---\ny\n");
    put(&store, "untyped.md", "---\nname: U\n---\nz\n");
    put(&store, "copy.md", "---\nname: Copy\ntype: user\n---\nalone\n");
    let index = text(&store, "MEMORY.md");
    let long = format!("- [Typo](typo.md) — {}\n", "long ".repeat(60));
    put(
        &store,
        "MEMORY.md",
        &format!(
            "# Mine\n{index}- [Gone](gone.md) — x\n{long}- [C](colon.md)\n- [C again](colon.md)\n- [U](untyped.md)\n- [Copy](copy.md)\n"
        ),
    );
    let findings = examine(&store).unwrap();
    let has = |wanted: &DoctorFinding| assert!(findings.contains(wanted), "{wanted:?} in {findings:?}");
    let index = || "MEMORY.md".to_owned();
    has(&DoctorFinding::Orphan { path: "orphan.md".to_owned() });
    has(&DoctorFinding::Orphan { path: "team/orphan.md".to_owned() });
    has(&DoctorFinding::DeadLink { index: index(), line: 3, target: "gone.md".to_owned() });
    has(&DoctorFinding::ListedTwice { index: index(), target: "colon.md".to_owned() });
    has(&DoctorFinding::SameText { paths: vec!["copy.md".to_owned(), "orphan.md".to_owned()] });
    has(&DoctorFinding::WrongType { path: "typo.md".to_owned(), found: Some("Feedbacks".to_owned()) });
    has(&DoctorFinding::WrongType { path: "untyped.md".to_owned(), found: None });
    assert!(findings.iter().any(|finding| matches!(finding, DoctorFinding::LongLine { line: 4, .. })));
    assert!(findings.iter().any(|finding| matches!(finding, DoctorFinding::Odd { path, .. } if path == "colon.md")));

    let mended = mend(&store).unwrap();
    assert_eq!(mended.len(), 7, "{mended:?}");
    let left = examine(&store).unwrap();
    assert_eq!(
        left,
        [
            DoctorFinding::WrongType { path: "untyped.md".to_owned(), found: None },
            DoctorFinding::SameText { paths: vec!["copy.md".to_owned(), "orphan.md".to_owned()] },
        ],
        "what would be a guess is left"
    );
    assert!(text(&store, "MEMORY.md").starts_with("# Mine\n- [good](good.md)"));
    assert_eq!(text(&store, "colon.md"), "---\nname: Colon\ndescription: \"a: b\"\ntype: user\n---\ny\n\nC again\n");
    assert_eq!(memory::Memory::read(store.root(), "typo.md").unwrap().kind, Some(Kind::Feedback));
    assert_eq!(mend(&store).unwrap(), []);
}

/// MEM-3: a crash between file and index leaves something that is mended in the direction the change was going.
#[test]
fn a_crash_between_file_and_index_is_mended() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path(), IndexUpkeep::Kept).unwrap();
    store.add(&new("added")).unwrap();
    store.add(&new("removed")).unwrap();
    store.add(&new("moved")).unwrap();
    // Only the first half of an add, a removal and a renaming.
    put(&store, "half.md", "---\nname: half\ndescription: d\ntype: user\n---\n");
    store.root().remove("removed.md").unwrap();
    store.root().rename("moved.md", "new-name.md").unwrap();
    mend(&store).unwrap();
    assert_eq!(examine(&store).unwrap(), []);
    let targets: Vec<_> =
        memory::index::links(&text(&store, "MEMORY.md")).into_iter().map(|link| link.target).collect();
    assert_eq!(targets, ["added.md", "half.md", "new-name.md"]);
}

/// MEM-3: a line is shortened only when the file says what it said.
#[test]
fn a_long_line_is_cut_only_when_its_file_has_the_text() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path(), IndexUpkeep::Kept).unwrap();
    put(&store, "a.md", "---\nname: A\ndescription: short\ntype: user\n---\nBody.\n");
    let detail = format!("the detail that stands nowhere else, {}and its end", "word ".repeat(60));
    put(&store, "MEMORY.md", &format!("- [A](a.md) — {detail}\n- [B](b.md) — {detail}\n"));
    mend(&store).unwrap();
    assert!(text(&store, "a.md").contains(&detail), "{}", text(&store, "a.md"));
    assert!(text(&store, "MEMORY.md").lines().next().unwrap().chars().count() <= 200);
    assert_eq!(mend(&store).unwrap(), []);
    assert_eq!(text(&store, "a.md").matches("stands nowhere else").count(), 1);
}

/// MEM-3: a folder, a part of a file, a file that cannot be read and an encoded name are no dead links.
#[test]
fn what_is_there_in_another_form_is_no_dead_link() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path(), IndexUpkeep::Kept).unwrap();
    let memory = |name: &str| format!("---\nname: {name}\ndescription: d\ntype: user\n---\n{name}.\n");
    put(&store, "a.md", &memory("A"));
    put(&store, "a b.md", &memory("AB"));
    put(&store, "a%20b.md", &memory("Percent"));
    put(&store, "notes/one.md", &memory("One"));
    std::os::unix::fs::symlink("/nowhere/at/all", directory.path().join("linked.md")).unwrap();
    let index = "- [A](a.md)\n- [Part](a.md#part)\n- [AB](a%20b.md)\n- [Notes](notes)\n- [One](notes/one.md)\n";
    put(&store, "MEMORY.md", index);
    let dead =
        |findings: &[DoctorFinding]| findings.iter().any(|finding| matches!(finding, DoctorFinding::DeadLink { .. }));
    assert!(!dead(&examine(&store).unwrap()), "{:?}", examine(&store).unwrap());
    mend(&store).unwrap();
    assert!(text(&store, "MEMORY.md").starts_with(index));
    assert_eq!(mend(&store).unwrap(), [], "it comes to an end");
}

/// MEM-3: no word is lost: what the second line of a memory says goes into its file, and the words of a line whose file is gone stay
/// unless a memory says them. What was changed is named.
#[test]
fn mending_loses_no_word_and_says_what_it_changed() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path(), IndexUpkeep::Kept).unwrap();
    put(&store, "a.md", "---\nname: A\ndescription: the first of all\ntype: user\n---\nBody.\n");
    let long = format!("a first line of its own, {}", "with many words ".repeat(20));
    let index = format!(
        "- [A](a.md) — {long}\n- [Other title](a.md) — only the second says this\n- [Gone](gone.md) — words of a lost file\n- [Moved](old.md) — the first of all\n"
    );
    put(&store, "MEMORY.md", &index);
    let mended = mend(&store).unwrap();
    let (index, file) = (text(&store, "MEMORY.md"), text(&store, "a.md"));
    for words in [long.trim(), "Other title", "only the second says this"] {
        assert!(file.contains(words), "{words}: {file}");
    }
    assert!(index.contains("- Gone — words of a lost file\n") && !index.contains("old.md"), "{index}");
    assert_eq!(index.matches("(a.md)").count(), 1, "{index}");
    let said: Vec<String> = mended.iter().map(ToString::to_string).collect();
    for part in [
        "MEMORY.md:3: gone.md",
        "the words stay: - Gone",
        "MEMORY.md:4: old.md",
        "- [Moved](old.md)",
        "in a.md: Other title",
    ] {
        assert!(said.iter().any(|one| one.contains(part)), "{part}: {said:#?}");
    }
    assert_eq!(mend(&store).unwrap(), [], "it comes to an end");
}

/// MEM-3: what was mended is kept, and taken back whole; files stay as old as they were.
#[test]
fn what_was_mended_can_be_taken_back() {
    let directory = tempfile::tempdir().unwrap();
    let changes = Changes::at(directory.path().join("changes"));
    let at = "2026-03-01T00:00:00Z".to_owned();
    let memory = directory.path().join("memory");
    let head = RunHead { agent: USER.into(), session: None, model: None, at, directory: memory.clone() };
    let recorder = Arc::new(Mutex::new(changes.recorder("r-1".into(), head)));
    let keeping = recorder.clone();
    let store =
        Store::create(&memory, IndexUpkeep::Kept).unwrap().keeping(move |change| keeping.lock().unwrap().keep(change));
    super::scan::write(&memory, "typo.md", "---\nname: Typo\ntype: Feedbacks\n---\nx\n", 1_700_000_000);
    let index = "- [Typo](typo.md)\n- [Typo again](typo.md) — and more\n- [Gone](gone.md)\n";
    put(&store, "MEMORY.md", index);
    let typo = text(&store, "typo.md");
    assert_eq!(mend(&store).unwrap().len(), 3);
    assert_eq!(recorder.lock().unwrap().end().unwrap().as_deref(), Some("r-1"));
    assert_eq!(memory::Memory::read(store.root(), "typo.md").unwrap().dated.unwrap().as_second(), 1_700_000_000);
    assert_ne!(text(&store, "MEMORY.md"), index);
    let run = changes.run("r-1").unwrap();
    let changed: Vec<String> = run.net().into_iter().map(|change| change.path).collect();
    assert_eq!(changed, ["typo.md", "MEMORY.md"]);
    changes.undo("r-1", None, &store, jiff::Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!((text(&store, "MEMORY.md"), text(&store, "typo.md")), (index.to_owned(), typo));
}
