//! Sessions that go back and forth between this program and Claude Code.

use std::path::PathBuf;

use serde_json::Value;

use super::claude_code;
use crate::stage::{Ran, Stage, run};

const TALKER: &str = include_str!("../../clients/talk.toml");

fn ours(stage: &Stage, words: &[&str]) -> Ran {
    let ran = run(stage.cairn().args(["-p"]).args(words));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran
}

/// The only session of the project, or the one that is not `other`.
fn file(stage: &Stage, other: Option<&PathBuf>) -> PathBuf {
    let mut files = stage.session_files();
    files.retain(|file| Some(file) != other);
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

fn id(file: &std::path::Path) -> String {
    file.file_stem().unwrap().to_str().unwrap().to_owned()
}

/// LOG-2: Claude Code goes on with a session of ours in the same file: it sees what was said, our lines keep every
/// byte, and it appends. We then read what it wrote, and go on in a copy.
#[test]
fn claude_code_continues_our_session_and_we_continue_it_again() {
    let stage = Stage::new(TALKER);
    let Some(mut claude) = claude_code(&stage) else { return };
    stage.write("stone.txt", "granite\n");
    ours(&stage, &["the word is quartz"]);
    ours(&stage, &["look at the stone", "--continue"]);
    let file = file(&stage, None);
    let written = std::fs::read(&file).unwrap();
    let ran = run(claude.args(["-p", "what was the word?", "--resume", &id(&file)]));
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "It was quartz.\n", ""), "{ran:?}");
    let ran = run(claude_code(&stage).unwrap().args(["-p", "what was the stone?", "--continue"]));
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "It was granite.\n", ""), "{ran:?}");
    assert_eq!(stage.session_files(), std::slice::from_ref(&file), "it went on in our file");
    let both = std::fs::read(&file).unwrap();
    assert!(both.len() > written.len() && both.starts_with(&written), "our lines are as they were");

    let shown = run(stage.cairn().args(["session", "show", &id(&file)])).stdout;
    for words in ["› the word is quartz", "It is granite.", "› what was the stone?", "It was granite."] {
        assert!(shown.contains(words), "{shown}");
    }
    let answer = ours(&stage, &["what was the word, once more?", "--continue"]);
    assert_eq!(answer.stdout, "It was quartz.\n");
    assert_eq!(std::fs::read(&file).unwrap(), both, "continued in a copy");
    assert_eq!(stage.session_files().len(), 2);
    let totals = stage.simulator.report().totals;
    assert_eq!((totals.requests, totals.refused), (6, 0), "{:?}", stage.simulator.report());
}

/// LOG-2, LOG-11: a session of Claude Code is listed, shown, counted and continued; its file keeps every byte.
#[test]
fn we_continue_a_session_of_claude_code() {
    let stage = Stage::new(TALKER);
    let Some(mut claude) = claude_code(&stage) else { return };
    stage.write("stone.txt", "granite\n");
    let first = run(claude.args(["-p", "the word is quartz"]));
    assert_eq!(first.stdout, "I heard.\n", "{first:?}");
    let next =
        run(claude_code(&stage).unwrap().args(["-p", "look at the stone", "--continue", "--allowedTools", "Read"]));
    assert_eq!(next.stdout, "It is granite.\n", "{next:?}");
    let theirs = file(&stage, None);
    let written = std::fs::read(&theirs).unwrap();

    let list = run(stage.cairn().args(["session", "list", "--json"])).stdout;
    let list: Vec<Value> = serde_json::from_str(&list).unwrap();
    assert_eq!(list[0]["title"], "the word is quartz");
    let shown = run(stage.cairn().args(["session", "show", &id(&theirs)]));
    assert!(shown.stderr.is_empty(), "no line of theirs is skipped: {}", shown.stderr);
    assert!(shown.stdout.contains("Read {") && shown.stdout.contains("It is granite."), "{}", shown.stdout);
    let counted = run(stage.cairn().args(["session", "tokens", "--json", &id(&theirs)])).stdout;
    let counted: Vec<Value> = serde_json::from_str(&counted).unwrap();
    // What stood before the first message is not in their file, so counting begins with the second reply.
    assert_eq!(counted.len(), 2);
    let (estimated, reported) = (counted[1]["estimated"].as_f64().unwrap(), counted[1]["reported"].as_f64().unwrap());
    assert!((estimated / reported - 1.0).abs() < 0.02, "{counted:?}");

    let answer = ours(&stage, &["what was the word?", "--continue"]);
    assert_eq!(answer.stdout, "It was quartz.\n");
    assert_eq!(std::fs::read(&theirs).unwrap(), written, "continued in a copy");
    // And back: what we have said since is in the copy, which they can go on with.
    let copy = file(&stage, Some(&theirs));
    // Their figures contain their own system prompt and tools; ours was estimated without them.
    let counted = run(stage.cairn().args(["session", "tokens", "--json", &id(&copy)])).stdout;
    let counted: Vec<Value> = serde_json::from_str(&counted).unwrap();
    let last = counted.last().unwrap();
    let (estimated, reported) = (last["estimated"].as_f64().unwrap(), last["reported"].as_f64().unwrap());
    assert!((estimated / reported - 1.0).abs() < 0.2, "{counted:?}");
    let ran = run(claude_code(&stage).unwrap().args(["-p", "what was the stone?", "--resume", &id(&copy)]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "It was granite.\n"), "{ran:?}");
    let sent = stage.simulator.requests().pop().unwrap();
    assert!(sent["messages"].to_string().contains("what was the word?"), "our turn is part of it");
    assert_eq!(stage.simulator.report().totals.refused, 0, "{:?}", stage.simulator.report());
}
