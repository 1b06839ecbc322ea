//! What hooks are told, here and in Claude Code, on the same work: key by key, event by event.
//!
//! What Claude Code tells is recorded in `hook-inputs.json`; `./test full` records it anew and compares.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::claude_code;
use crate::hooks::{WORKER, settings};
use crate::stage::{Stage, piped, run};

/// What Claude Code tells.
const RECORDED: &str = include_str!("../../clients/hook-inputs.json");

const EVENTS: [&str; 18] = [
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "PermissionRequest",
    "PermissionDenied",
    "UserPromptSubmit",
    "SessionStart",
    "SessionEnd",
    "Stop",
    "StopFailure",
    "PreCompact",
    "PostCompact",
    "InstructionsLoaded",
    "ConfigChange",
    "CwdChanged",
    "FileChanged",
    "Notification",
];

/// Keys that Claude Code has and we have not, and why.
const NOT_OURS: [(&str, &str); 1] = [("effort", "there is no such setting here")];
/// Events that we have on this work and Claude Code has not, and why.
const OURS_ALONE: [(&str, &str); 1] =
    [("PermissionDenied", "there it is for its classifier alone; here rules, modes and an empty chair deny")];

/// A project in which every hook writes down what it is told.
fn recording() -> (Stage, Value) {
    let stage = Stage::new(WORKER);
    stage.write("note.txt", "alpha\n");
    stage.write("CLAUDE.md", "# Rules\n");
    let told = stage.config().join("told");
    let write = format!("printf '%s\\n' \"$(cat)\" >> {}", told.display());
    let hook = json!([{"hooks": [{"type": "command", "command": write}]}]);
    let hooks: serde_json::Map<String, Value> =
        EVENTS.iter().map(|event| ((*event).to_owned(), hook.clone())).collect();
    let all = json!({"hooks": hooks, "permissions": {"deny": ["Bash(rm:*)"], "ask": ["Write"]}});
    settings(&stage, &all);
    (stage, all)
}

/// What was told, in the form of the recording.
fn told(stage: &Stage) -> (Vec<String>, BTreeMap<String, Vec<String>>) {
    let text = std::fs::read_to_string(stage.config().join("told")).unwrap_or_default();
    let (mut events, mut keys) = (Vec::new(), BTreeMap::<String, Vec<String>>::new());
    for line in text.lines() {
        let told: Value = serde_json::from_str(line).unwrap();
        let event = told["hook_event_name"].as_str().unwrap();
        events.push(event.to_owned());
        let name = match event {
            "PostToolUse" => format!("{event}/{}", told["tool_name"].as_str().unwrap()),
            "SessionStart" => format!("{event}/{}", told["source"].as_str().unwrap()),
            "InstructionsLoaded" if told["load_reason"] == "compact" => format!("{event}/compact"),
            _ => event.to_owned(),
        };
        let names = |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
        let known = keys.entry(name.clone()).or_default();
        let new: Vec<String> = names(&told).into_iter().filter(|key| !known.contains(key)).collect();
        known.extend(new);
        if event == "PostToolUse" {
            keys.insert(format!("{name}.tool_response"), names(&told["tool_response"]));
        }
        if event == "PostToolBatch" {
            keys.insert(format!("{name}.tool_calls"), names(&told["tool_calls"][0]));
        }
    }
    (events, keys)
}

fn recorded() -> (Vec<String>, BTreeMap<String, Vec<String>>) {
    let recorded: Value = serde_json::from_str(RECORDED).unwrap();
    let take = |key: &str| recorded[key].clone();
    (serde_json::from_value(take("events")).unwrap(), serde_json::from_value(take("keys")).unwrap())
}

const ALLOWED: [&str; 4] = ["--allowedTools", "Read", "Edit", "Bash"];

/// HOOK-1: on the same work the same events with the same keys, in the same order but for what is said above.
#[test]
fn hooks_are_told_what_claude_code_tells_them() {
    let (stage, _) = recording();
    let ran = run(stage.cairn().args(["-p", "mend the note"]).args(ALLOWED));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "The note says beta now.\n"), "{ran:?}");
    let (events, mut keys) = told(&stage);
    let (their_events, their_keys) = recorded();
    let first = |events: &[String]| -> Vec<String> {
        let end = events.iter().position(|event| event == "SessionEnd").unwrap();
        let mut events = events[..=end].to_vec();
        events.retain(|event| !OURS_ALONE.iter().any(|(ours, _)| ours == event));
        // Those of calls at the same time come in any order.
        let (failed, done) = ("PostToolUseFailure".to_owned(), "PostToolUse".to_owned());
        if let Some(at) = events.windows(2).position(|pair| pair == [failed.clone(), done.clone()]) {
            events.swap(at, at + 1);
        }
        events
    };
    assert_eq!(first(&events), first(&their_events));

    piped(&stage, &["--continue"], "so?\n/compact the names\n");
    keys.extend(told(&stage).1);
    let without = |keys: &[String]| -> BTreeSet<String> {
        keys.iter().filter(|key| !NOT_OURS.iter().any(|(theirs, _)| theirs == key)).cloned().collect()
    };
    for (event, theirs) in &their_keys {
        let ours = keys.get(event).unwrap_or_else(|| panic!("{event} did not come: {:?}", keys.keys()));
        assert_eq!(without(ours), without(theirs), "{event}");
    }
}

/// HOOK-1: what Claude Code tells is what was recorded.
#[test]
fn claude_code_tells_hooks_what_was_recorded() {
    let (stage, _) = recording();
    let Some(mut claude) = claude_code(&stage) else { return };
    let ran = run(claude.args(["-p", "mend the note"]).args(ALLOWED));
    assert_eq!(ran.stdout, "The note says beta now.\n", "{ran:?}");
    run(claude_code(&stage).unwrap().args(["-p", "/compact the names", "--continue"]));
    let (events, keys) = told(&stage);
    let (their_events, their_keys) = recorded();
    assert_eq!(keys, their_keys);
    let sorted = |mut events: Vec<String>| {
        events.sort();
        events
    };
    assert_eq!(sorted(events), sorted(their_events));
}
