//! Remembering as an agent does it.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use files::Stamp;
use memory::changes::KeptChange;
use memory::remember::MemoryOrigin;
use memory::revise::RevisionResult;
use memory::store::{IndexUpkeep, Store};
use memory::{Error, Memory};

pub(crate) fn text(name: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: About {name}\ntype: project\n---\n\n{body}\n")
}

fn store() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path().join("memory"), IndexUpkeep::Kept).unwrap();
    (directory, store)
}

fn write(store: &Store, path: &str, text: &str, seen: Option<&Stamp>) -> Result<RevisionResult, Error> {
    let origin = MemoryOrigin { agent: Some("extract".into()), session: Some("s".into()), ..MemoryOrigin::default() };
    store.revise(path, text, seen, &origin, None, &mut |_| Ok(()))
}

fn on_disk(store: &Store, path: &str) -> String {
    std::fs::read_to_string(store.root().path().join(path)).unwrap_or_default()
}

/// SHELF-2, SEC-2: a text that an agent writes becomes a memory with its origin, its mode and its line.
#[test]
fn a_text_of_an_agent_becomes_a_memory_with_origin_and_line() {
    let (_held, store) = store();
    write(&store, "deploys.md", &text("Deploys", "On Mondays."), None).unwrap();
    let memory = Memory::read(store.root(), "deploys.md").unwrap();
    assert!(memory.diagnostics.is_empty(), "{:?}", memory.diagnostics);
    assert_eq!(memory.body.trim(), "On Mondays.");
    let written = on_disk(&store, "deploys.md");
    assert!(written.contains("metadata:\n  originSessionId: s\n  agent: extract\n---\n"), "{written}");
    assert_eq!(on_disk(&store, "MEMORY.md"), "- [Deploys](deploys.md) — About Deploys\n");
    let mode = std::fs::metadata(store.root().path().join("deploys.md")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// MEM-7, SEC-2: what was not read is not written over, and neither is what changed since.
#[test]
fn what_was_not_read_or_changed_since_is_not_written_over() {
    let (_held, store) = store();
    let first = write(&store, "a.md", &text("A", "one"), None).unwrap();
    let unseen = write(&store, "a.md", &text("A", "two"), None).unwrap_err();
    assert!(matches!(unseen, Error::Unseen { .. }), "{unseen}");
    std::fs::write(store.root().path().join("a.md"), text("A", "the user's own edit")).unwrap();
    let changed = write(&store, "a.md", &text("A", "two"), Some(&first.stamp)).unwrap_err();
    assert!(matches!(changed, Error::Files(files::Error::Changed { .. })), "{changed}");
    assert!(store.discard("a.md", Some(&first.stamp), &mut |_| Ok(())).is_err());
    assert!(on_disk(&store, "a.md").contains("the user's own edit"));
}

/// EXTRACT-5: a model copies the form with the block of code that it was shown in, and begins a type with a capital: that is
/// no reason to lose a round.
#[test]
fn a_memory_in_a_block_of_code_is_taken_out_of_it() {
    let (_held, store) = store();
    let plain = text("Deploys", "On Mondays:\n\n```sh\nmake deploy\n```");
    let fenced = format!("```markdown\n{}```\n", plain.replace("type: project", "type: Project"));
    write(&store, "deploys.md", &fenced, None).unwrap();
    let memory = Memory::read(store.root(), "deploys.md").unwrap();
    assert_eq!(memory.kind, Some(memory::Kind::Project));
    assert_eq!(memory.body.trim(), "On Mondays:\n\n```sh\nmake deploy\n```");
    assert!(on_disk(&store, "deploys.md").starts_with("---\nname: Deploys\n"));
    // What only begins or ends like one is as it was written.
    assert!(write(&store, "other.md", &format!("```markdown\n{plain}"), None).is_err());
}

/// EXTRACT-5: models write `description: a: b`; what is only not quoted is quoted, and no round is lost with a refusal.
#[test]
fn what_is_only_not_quoted_is_saved() {
    let (_directory, store) = store();
    let text = "---\nname: Freeze: merges\ndescription: when: Tuesday\nasked: until when: noon?\ntype: project\n---\n\nIt begins.\n";
    write(&store, "freeze.md", text, None).unwrap();
    let saved = Memory::read(store.root(), "freeze.md").unwrap();
    assert_eq!(saved.diagnostics, []);
    assert_eq!((saved.name.as_str(), saved.description.as_deref()), ("Freeze: merges", Some("when: Tuesday")));
    assert_eq!(saved.asked.as_deref(), Some("until when: noon?"));
    assert!(on_disk(&store, "MEMORY.md").contains("[Freeze: merges](freeze.md) — when: Tuesday"));
}

/// SHELF-2: frontmatter that is none, a secret, a copy and a name that is none are refused, and nothing is written.
#[test]
fn what_is_no_memory_is_refused() {
    let (held, store) = store();
    write(&store, "known.md", &text("Known", "The build needs network."), None).unwrap();
    let before = marked(held.path());
    let key = format!("ghp_{}", "aB3dE5gH7jK9mN1pQ2sT4vW6xY8zA0cD2fG4");
    let long = "x".repeat(40_000);
    for (path, text) in [
        ("no-front.md", "just text".to_owned()),
        ("open.md", "---\nname: x\ndescription: y\ntype: user\n\nbody".to_owned()),
        ("no-type.md", "---\nname: x\ndescription: y\n---\nbody".to_owned()),
        ("odd-type.md", "---\nname: x\ndescription: y\ntype: secret\n---\nbody".to_owned()),
        ("no-name.md", "---\ndescription: y\ntype: user\n---\nbody".to_owned()),
        ("no-body.md", "---\nname: x\ndescription: y\ntype: user\n---\n  \n".to_owned()),
        ("not-yaml.md", "---\nname: [x\ndescription: y: z: {\ntype: user\n---\nbody".to_owned()),
        ("twice.md", "---\nname: x\nname: y\ndescription: z: {\ntype: user\n---\nbody".to_owned()),
        ("long.md", text("Long", &long)),
        ("key.md", text("Key", &format!("the token is {key}"))),
        ("copy.md", text("Copy", "The build  needs network.")),
        ("MEMORY.md", text("Index", "x")),
        ("team/MEMORY.md", text("Index", "x")),
        ("../out.md", text("Out", "x")),
        ("/etc/out.md", text("Out", "x")),
        ("a/../../out.md", text("Out", "x")),
        (".hidden.md", text("Hidden", "x")),
        ("logs/2026/01/x.md", text("Log", "x")),
        ("script.sh", text("Script", "x")),
        ("a\u{2215}b.md", text("Slash", "x")),
        ("．．/out.md", text("Dots", "x")),
    ] {
        let refused = write(&store, path, &text, None).map(|_| path);
        let why = refused.expect_err("refused").to_string();
        assert!(!why.contains(&key[4..]), "{why}");
    }
    assert_eq!(marked(held.path()), before);
}

/// SEC-1: no link is followed, whether the file or a folder on the way is one.
#[test]
fn links_are_not_followed() {
    let (held, store) = store();
    let outside = held.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("mine.md"), text("Mine", "untouched")).unwrap();
    let memory = store.root().path();
    symlink(&outside, memory.join("folder")).unwrap();
    symlink(outside.join("mine.md"), memory.join("link.md")).unwrap();
    std::fs::create_dir(memory.join("inside")).unwrap();
    symlink("inside", memory.join("alias")).unwrap();
    let seen = files::stamp(outside.join("mine.md")).unwrap();
    for path in ["folder/new.md", "folder/mine.md", "link.md", "alias/new.md"] {
        for seen in [None, Some(&seen)] {
            assert!(write(&store, path, &text("X", "changed"), seen).is_err(), "{path}");
            assert!(store.discard(path, seen, &mut |_| Ok(())).is_err(), "{path}");
        }
    }
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
    assert!(std::fs::read_to_string(outside.join("mine.md")).unwrap().contains("untouched"));
    assert_eq!(std::fs::read_dir(memory.join("inside")).unwrap().count(), 0);
}

/// SEC-2: a change is kept before it is made; where it cannot be kept, nothing changes.
#[test]
fn a_change_that_cannot_be_kept_is_not_made() {
    let (held, store) = store();
    let seen = write(&store, "a.md", &text("A", "one"), None).unwrap().stamp;
    let before = marked(held.path());
    let mut full = |_: &KeptChange| Err(files::Error::Full { path: "x".into() }.into());
    let origin = MemoryOrigin::default();
    assert!(store.revise("a.md", &text("A", "two"), Some(&seen), &origin, None, &mut full).is_err());
    assert!(store.revise("b.md", &text("B", "new"), None, &origin, None, &mut full).is_err());
    assert!(store.discard("a.md", Some(&seen), &mut full).is_err());
    assert_eq!(marked(held.path()), before);
}

/// MEM-1: what others wrote under `metadata` stays when an agent writes the file back; where it came from first, too.
#[test]
fn what_stood_under_metadata_stays() {
    let (_held, store) = store();
    let path = store.root().path().join("a.md");
    let text =
        "---\nname: A\ndescription: d\nmetadata:\n  type: user\n  originSessionId: first\n  theirs: 7\n---\nold\n";
    std::fs::write(&path, text).unwrap();
    let seen = files::stamp(&path).unwrap();
    write(&store, "a.md", &text.replace("old", "new"), Some(&seen)).unwrap();
    let now = on_disk(&store, "a.md");
    for part in ["originSessionId: first", "theirs: 7", "agent: extract", "type: user", "\nnew\n"] {
        assert!(now.contains(part), "{part}: {now}");
    }
}

/// Every file below a folder, with what it holds and where links lead; lock files aside.
pub(crate) fn marked(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(at) = waiting.pop() {
        for entry in std::fs::read_dir(&at).unwrap().flatten() {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let what = match std::fs::read_link(&path) {
                Ok(link) => format!("-> {}", link.display()),
                Err(_) if kind.is_dir() => {
                    waiting.push(path.clone());
                    "a folder".to_owned()
                }
                Err(_) => String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned(),
            };
            if !path.ends_with(".index-lock") {
                found.push((path.display().to_string(), what));
            }
        }
    }
    found.sort();
    found
}
