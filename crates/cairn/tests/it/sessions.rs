use serde_json::Value;

use crate::stage::{Stage, bare, run};

const TALKER: &str = r#"
    [[rule]]
    name = "recall"
    when = { user = "what was", visible = "the word is (?P<word>\\w+)" }
    say = "It was {{ word }}."
    [[rule]]
    name = "hear"
    when = { user = "the word is" }
    say = "I heard."
"#;

/// LOG-11: what would be sent, as the API takes it: the simulator accepts the printed request as it is.
#[test]
fn the_view_of_a_session_is_the_request_that_would_be_sent() {
    let stage = Stage::new(TALKER);
    run(stage.cairn().args(["-p", "the word is quartz"]));
    let file = stage.session_files().remove(0);
    let ran = run(stage.cairn().args(["session", "view", "--json"]).arg(&file));
    let view: Value = serde_json::from_str(&ran.stdout).unwrap();
    run(stage.cairn().args(["-p", "what was it?", "--continue"]));
    let sent = stage.simulator.requests().pop().unwrap();
    let texts = |body: &Value| -> Vec<String> {
        let messages = body["messages"].as_array().unwrap().iter();
        let blocks = messages.flat_map(|message| message["content"].as_array().unwrap().iter());
        blocks.map(|block| block["text"].as_str().unwrap().to_owned()).filter(|text| !text.starts_with('<')).collect()
    };
    assert_eq!(texts(&view), ["the word is quartz", "I heard."]);
    assert_eq!(texts(&sent)[..2], texts(&view)[..]);
    assert_eq!((&sent["tools"], &sent["model"]), (&view["tools"], &view["model"]));
}

/// LOG-11: for every reply the estimate made before it and what the API reported.
#[test]
fn the_token_counts_of_a_session_can_be_checked() {
    let stage = Stage::new(TALKER);
    run(stage.cairn().args(["-p", "the word is quartz"]));
    run(stage.cairn().args(["-p", "what was it?", "--continue"]));
    let file = stage.session_files().remove(0);
    let ran = run(stage.cairn().args(["session", "tokens", "--json"]).arg(&file));
    let made: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(made.len(), 2);
    let (estimated, reported) = (made[1]["estimated"].as_f64().unwrap(), made[1]["reported"].as_f64().unwrap());
    assert!((estimated / reported - 1.0).abs() < 0.02, "{made:?}");
    let stats = run(stage.cairn().args(["session", "stats", "--json"]).arg(&file));
    let stats: Value = serde_json::from_str(&stats.stdout).unwrap();
    assert_eq!((stats["replies"].as_u64(), stats["skippedLines"].as_u64()), (Some(2), Some(0)));
    assert!(stats["costUsd"].as_f64() > Some(0.0) && stats["hitRatio"].as_f64() > Some(0.3), "{stats}");
}

#[test]
fn sessions_are_listed_with_what_they_are_about() {
    let stage = Stage::new(TALKER);
    assert!(run(stage.cairn().args(["session", "list"])).stderr.contains("No sessions"));
    run(stage.cairn().args(["-p", "the word is quartz"]));
    let ran = run(stage.cairn().args(["session", "list", "--json"]));
    let list: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(list[0]["title"].as_str(), Some("the word is quartz"));
    let id = list[0]["id"].as_str().unwrap();
    let shown = run(stage.cairn().args(["session", "show", &id[..13]]));
    assert!(shown.stdout.contains("› the word is quartz") && shown.stdout.contains("I heard."), "{shown:?}");
}

/// LOG-2: a session last written by another program is continued in a new file; the original keeps every byte.
#[test]
fn a_session_of_another_program_is_continued_in_a_copy() {
    let stage = Stage::new(TALKER);
    run(stage.cairn().args(["-p", "the word is quartz"]));
    let ours = stage.session_files().remove(0);
    let theirs = ours.with_file_name("11111111-2222-3333-4444-555555555555.jsonl");
    let text = std::fs::read_to_string(&ours).unwrap().replace("\"version\":\"cairn-", "\"version\":\"2.1.25-");
    let text = text.replace("\"userType\":\"external\"", "\"userType\":\"external\",\"theirs\":{\"kept\":1}");
    std::fs::write(&theirs, &text).unwrap();
    std::fs::remove_file(&ours).unwrap();
    let ran = run(stage.cairn().args(["-p", "what was it?", "--resume", "11111111"]));
    assert_eq!(ran.stdout, "It was quartz.\n");
    assert_eq!(std::fs::read_to_string(&theirs).unwrap(), text, "the original is untouched");
    let copy = stage.session_files().into_iter().find(|path| *path != theirs).unwrap();
    let copied = std::fs::read_to_string(&copy).unwrap();
    assert!(copied.contains("\"theirs\":{\"kept\":1}"), "unknown fields are carried along");
    let id = copy.file_stem().unwrap().to_str().unwrap();
    assert!(copied.lines().all(|line| line.contains(&format!("\"sessionId\":\"{id}\""))));
    // The copy is ours now: going on with it makes no further copy.
    let ran = run(stage.cairn().args(["-p", "what was it?", "--resume", id]));
    assert_eq!((ran.stdout.as_str(), stage.session_files().len()), ("It was quartz.\n", 2));
}

/// LOG-8: the second to open a session for writing is told who holds it; a copy can still be made.
#[test]
fn the_second_writer_is_told_who_holds_the_session() {
    let stage = Stage::new(TALKER);
    run(stage.cairn().args(["-p", "the word is quartz"]));
    let file = stage.session_files().remove(0);
    let _held = files::Log::open(&file, "process 4711, since noon").unwrap();
    let ran = run(stage.cairn().args(["-p", "what was it?", "--continue"]));
    assert_eq!(ran.code, Some(7));
    assert!(ran.stderr.contains("process 4711, since noon") && ran.stderr.contains("--fork-session"), "{ran:?}");
    let ran = run(stage.cairn().args(["-p", "what was it?", "--continue", "--fork-session"]));
    assert_eq!(ran.stdout, "It was quartz.\n");
}

#[test]
fn help_has_examples_and_version_is_short() {
    let root = tempfile::tempdir().unwrap();
    let cairn = || bare(root.path(), &root.path().join("config"));
    let help = run(cairn().arg("--help"));
    assert!(help.stdout.contains("Examples:") && help.stdout.contains("Exit codes:"), "{help:?}");
    assert_eq!(run(cairn().arg("--version")).stdout, format!("cairn {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(run(cairn().arg("--no-such-flag")).code, Some(2));
}
