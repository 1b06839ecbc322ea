//! Sessions that go on in a file of their own.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};
use session::{Fork, Home, Session, World, record};
use transcript::{Block, Log};

use crate::skipped::skipped_on_this_machine;

/// What a line of another program says, and how odd it is.
#[derive(Debug, Clone)]
enum Said {
    User(String),
    Reply {
        text: String,
        calls: usize,
    },
    Results,
    /// The next line follows one before the last.
    Branch,
}

#[derive(Debug, Clone, Copy)]
enum Oddity {
    None,
    /// Half of a pair, as JavaScript allows.
    LoneSurrogate,
    /// A number no reader of ours can hold, in a field nobody looks at.
    HugeNumber,
    /// The same key twice.
    Twice,
    /// A mark at the start of the line.
    Mark,
    Carriage,
}

fn said() -> impl Strategy<Value = (Said, Oddity)> {
    let text = "[a-z]{1,8}";
    let said = prop_oneof![
        3 => text.prop_map(Said::User),
        4 => (text, 0..3usize).prop_map(|(text, calls)| Said::Reply { text, calls }),
        4 => Just(Said::Results),
        1 => Just(Said::Branch),
    ];
    let odd = prop_oneof![
        4 => Just(Oddity::None),
        1 => Just(Oddity::LoneSurrogate),
        1 => Just(Oddity::HugeNumber),
        1 => Just(Oddity::Twice),
        1 => Just(Oddity::Mark),
        1 => Just(Oddity::Carriage),
    ];
    (said, odd)
}

/// A file as another program would write it.
fn file(said: &[(Said, Oddity)]) -> String {
    let (mut lines, mut ids, mut open): (Vec<String>, Vec<String>, Vec<String>) = Default::default();
    let mut calls = 0;
    for (said, odd) in said {
        let id = format!("u{}", lines.len());
        let mut line = json!({"uuid": id, "parentUuid": ids.last(), "sessionId": "theirs", "version": "2.1.25"});
        let (kind, message): (&str, Value) = match said {
            Said::User(text) => ("user", json!({"role": "user", "content": text})),
            Said::Reply { text, calls: more } => {
                let mut content = vec![json!({"type": "text", "text": text})];
                open.clear();
                for _ in 0..*more {
                    // Some servers begin to count anew.
                    let call = format!("call_{}", calls % 4);
                    calls += 1;
                    content.push(json!({"type": "tool_use", "id": call, "name": "Bash", "input": {}}));
                    open.push(call);
                }
                (
                    "assistant",
                    json!({"id": format!("m{}", lines.len()), "role": "assistant", "model": "m", "content": content}),
                )
            }
            Said::Results if open.is_empty() => continue,
            Said::Results => {
                let result = |id: String| json!({"type": "tool_result", "tool_use_id": id, "content": "done"});
                ("user", json!({"role": "user", "content": open.drain(..).map(result).collect::<Vec<_>>()}))
            }
            Said::Branch => {
                ids.pop();
                continue;
            }
        };
        line["type"] = kind.into();
        line["message"] = message;
        let text = line.to_string();
        let inside = text.strip_suffix('}').unwrap();
        lines.push(match odd {
            Oddity::None => text,
            Oddity::LoneSurrogate => format!(r#"{inside},"toolUseResult":"\ud83d"}}"#),
            Oddity::HugeNumber => format!(r#"{inside},"durationMs":1e999}}"#),
            Oddity::Twice => format!(r#"{inside},"cwd":"/a","cwd":"/b"}}"#),
            Oddity::Mark => format!("\u{feff}{text}"),
            Oddity::Carriage => format!("{text}\r"),
        });
        ids.push(id);
    }
    lines.join("\n") + "\n"
}

fn seen(log: &Log) -> Vec<String> {
    log.view().blocks().map(|(_, role, block)| format!("{role:?} {}", block.json())).collect()
}

fn continued(home: &Path, file: &Path) -> Session {
    let home = Home::at(home);
    Session::resume_file(&home, Path::new("/work"), file, Fork::No, World::real()).unwrap().0
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// LOG-2: a session that another program wrote continues with every live line, however odd; on the disk as in memory,
    /// and the original stays as it is.
    #[test]
    fn a_session_of_another_program_continues_with_every_live_line(said in prop::collection::vec(said(), 1..25)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("theirs.jsonl");
        let text = file(&said);
        std::fs::write(&path, &text).unwrap();
        let Ok(theirs) = record::read(&path) else { return Ok(()) };
        let session = continued(&folder.path().join("home"), &path);
        let open = theirs.log.view().open_calls().len();
        let expected = seen(&theirs.log);
        let ours = seen(session.log());
        prop_assert_eq!(ours.len(), expected.len());
        let changed = ours.iter().zip(&expected).filter(|(ours, theirs)| ours != theirs).count();
        prop_assert!(changed <= open, "{changed} blocks differ, and {open} calls were open");
        let path = session.path().to_owned();
        drop(session);
        prop_assert_eq!(seen(&record::read(&path).unwrap().log), ours);
        prop_assert_eq!(std::fs::read_to_string(folder.path().join("theirs.jsonl")).unwrap(), text);
    }
}

/// LOG-2: recorded sessions of other agents continue with all that was in view. (Runs where the recordings lie beside the
/// project.)
#[test]
fn recorded_sessions_continue_as_they_were() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/transcripts");
    let Ok(files) = std::fs::read_dir(&folder) else {
        return skipped_on_this_machine(&format!("there are no recordings at {}", folder.display()));
    };
    for path in
        files.flatten().map(|file| file.path()).filter(|path| path.extension().is_some_and(|ext| ext == "jsonl"))
    {
        let home = tempfile::tempdir().unwrap();
        let session = continued(home.path(), &path);
        assert_eq!(seen(session.log()), seen(&record::read(&path).unwrap().log), "{}", path.display());
    }
}

/// LOG-2, SPILL-4: a copy has the results that went to files, and points to its own: the original can be removed.
#[test]
fn a_copy_keeps_the_results_of_its_original() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    let mut original = Session::create(&home, Path::new("/work"), None, World::real()).unwrap();
    let id = original.id().to_owned();
    let call = Block::tool_use("toolu_1", "Bash", &json!({"command": "ls"}));
    let body = transcript::line::Body::Assistant {
        id: "m1".into(),
        model: "m".into(),
        blocks: vec![call],
        usage: None,
        stop: None,
    };
    original.append(body).unwrap();
    let result = Block::tool_result("toolu_1", &[Block::text("all of it")], transcript::Outcome::Done);
    let said = transcript::line::TextSource::Direct;
    original.append(transcript::line::Body::User { blocks: vec![result], source: said }).unwrap();
    let path = original.keep_result("toolu_1", "txt", "all of it").unwrap();
    let replacement = format!("<persisted-output>{}</persisted-output>", path.display());
    let act = transcript::commit::Act::Spill {
        replacements: vec![transcript::commit::Replacement { call: "toolu_1".into(), replacement }],
    };
    let commit = transcript::commit::Commit { act, reason: Default::default() };
    original.append(transcript::line::Body::Commit(commit)).unwrap();
    // The original is still open: what is being written to can be copied.
    let (copy, _) = Session::resume(&home, Path::new("/work"), &id, Fork::Yes, World::real()).unwrap();
    let file = original.path().to_owned();
    drop(original);
    files::remove_tree(file.with_extension("")).unwrap();
    files::remove(&file).unwrap();
    let shown = seen(copy.log()).join("\n");
    let start = shown.find("<persisted-output>").unwrap() + "<persisted-output>".len();
    let named = &shown[start..shown.find("</persisted-output>").unwrap()];
    assert!(named.contains(copy.id()), "{named}");
    assert_eq!(std::fs::read_to_string(named).unwrap(), "all of it");
}

/// SPILL-5: where a server uses an id again, the second result has a file of its own.
#[test]
fn a_result_whose_id_was_used_before_has_a_file_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let session = Session::create(&Home::at(folder.path()), Path::new("/work"), None, World::real()).unwrap();
    let keep = |text: &str| session.keep_result("functions.Bash:0", "txt", text).unwrap();
    let (one, two, again) = (keep("one"), keep("two"), keep("one"));
    assert_eq!(std::fs::read_to_string(&one).unwrap(), "one");
    assert_eq!(std::fs::read_to_string(&two).unwrap(), "two");
    assert_eq!(one, again, "the same text is the same file");
}
