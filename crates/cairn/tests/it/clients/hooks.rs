//! What hooks are told, here and in Claude Code, on the same work: key by key, event by event.
//!
//! What Claude Code tells is recorded in `hook-inputs.json`; `./test full` records it anew and compares.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::claude_code;
use crate::hooks::{EVENTS, WORKER, command, settings};
use crate::stage::{Stage, piped, run};

/// What Claude Code tells.
const RECORDED: &str = include_str!("../../clients/hook-inputs.json");

/// Keys that Claude Code has and we have not, and why.
const NOT_OURS: [(&str, &str); 1] = [("effort", "there is no such setting here")];
/// Events that we have on this work and Claude Code has not, and why.
const OURS_ALONE: [(&str, &str); 1] =
    [("PermissionDenied", "there it is for its classifier alone; here rules, modes and an empty chair deny")];

/// A project in which every hook writes down what it is told.
fn recording() -> Stage {
    let stage = Stage::new(WORKER);
    stage.write("note.txt", "alpha\n");
    stage.write("CLAUDE.md", "# Rules\n");
    record_hooks(&stage);
    let mut all: Value = serde_json::from_slice(&std::fs::read(stage.config().join("settings.json")).unwrap()).unwrap();
    all["permissions"]["ask"] = json!(["Write"]);
    settings(&stage, &all);
    stage
}

/// Lets every hook write down what it is told.
fn record_hooks(stage: &Stage) {
    let told = stage.config().join("told");
    let write = command(&format!("printf '%s\\n' \"$(cat)\" >> {}", told.display()));
    // What is told of agents is compared where there are some.
    let events = EVENTS.iter().filter(|event| !event.starts_with("Subagent"));
    let hooks: serde_json::Map<String, Value> = events.map(|event| ((*event).to_owned(), json!([write]))).collect();
    settings(stage, &json!({"hooks": hooks, "permissions": {"deny": ["Bash(rm:*)"]}}));
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
    let stage = recording();
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

/// Work of every kind, a call a round: what a tool is called with, and in the last round calls at the same time.
const VARIED: &[(&str, &str)] = &[
    ("Read", r#"file_path = "{{ project }}/note.txt""#),
    ("Read", r#"file_path = "{{ project }}/long.txt", offset = 5, limit = 3"#),
    ("Read", r#"file_path = "{{ project }}/none.txt""#),
    ("Read", r#"file_path = "{{ project }}/empty.txt""#),
    ("Read", r#"file_path = "{{ project }}/dot.png""#),
    ("Read", r#"file_path = "{{ project }}/long.txt""#),
    ("Bash", r#"command = "echo out; echo err >&2", description = "Both""#),
    ("Bash", r#"command = "echo part; false", description = "Fails""#),
    ("Bash", r#"command = "true", description = "Nothing""#),
    ("Bash", r#"command = "echo only >&2; exit 3", description = "Fails""#),
    ("Bash", r#"command = "rm -rf ./nothing", description = "Denied""#),
    ("Write", r#"file_path = "{{ project }}/new.txt", content = "one\ntwo\n""#),
    ("Write", r#"file_path = "{{ project }}/note.txt", content = "alpha\nbeta\nbeta\n""#),
    ("Edit", r#"file_path = "{{ project }}/note.txt", old_string = "alpha", new_string = "gamma""#),
    ("Edit", r#"file_path = "{{ project }}/note.txt", old_string = "beta", new_string = "x", replace_all = true"#),
    ("Glob", r#"pattern = "**/*.txt""#),
    ("Glob", r#"pattern = "*.nothing""#),
    ("Glob", r#"pattern = "many/*""#),
    ("Grep", r#"pattern = "gamma""#),
    ("Grep", r#"pattern = "line 1", output_mode = "content", "-n" = true, "-C" = 1"#),
    ("Grep", r#"pattern = "line", output_mode = "content", head_limit = 3, offset = 2"#),
    ("Grep", r#"pattern = "line|gamma", output_mode = "count""#),
    ("Grep", r#"pattern = "x", glob = "f*", head_limit = 2"#),
    ("Grep", r#"pattern = "nowhere at all", output_mode = "content""#),
    ("Bash", r#"command = "mkdir -p sub && cd sub && pwd", description = "Moves""#),
];

/// Keys that Claude Code has on this work and we have not, and why.
const NOT_OURS_VARIED: [(&str, &str); 2] =
    [("effort", "there is no such setting here"), ("dimensions", "a picture is sent as it is")];

/// A project for it.
fn varied() -> Stage {
    let mut script = String::new();
    for (at, (tool, input)) in VARIED.iter().enumerate() {
        script += &format!(
            "[[rule]]\nwhen = {{ user = \"vary\", missing = \"step {at:02}:\" }}\nsay = \"step {at:02}:\"\n\
             call = [{{ tool = \"{tool}\", input = {{ {input} }} }}]\n"
        );
    }
    script += r#"
        [[rule]]
        when = { user = "vary", missing = "together:" }
        say = "together:"
        call = [{ tool = "Read", input = { file_path = "{{ project }}/note.txt" } },
                { tool = "Read", input = { file_path = "{{ project }}/gone.txt" } },
                { tool = "Grep", input = { pattern = "gamma" } }]
        [[rule]]
        say = "Done with it."
    "#;
    let stage = Stage::new(&script);
    stage.write("note.txt", "alpha\n");
    stage.write("empty.txt", "");
    stage.write("long.txt", &(1..=40).map(|at| format!("line {at}\n")).collect::<String>());
    std::fs::write(stage.project().join("dot.png"), DOT).unwrap();
    std::fs::create_dir(stage.project().join("many")).unwrap();
    (0..120).for_each(|at| drop(stage.write(&format!("many/f{at:03}"), "x\n")));
    record_hooks(&stage);
    stage
}

/// A picture of one point.
const DOT: [u8; 70] = [
    137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 1, 0, 0, 0, 1, 8, 6, 0, 0, 0, 31, 21, 196,
    137, 0, 0, 0, 13, 73, 68, 65, 84, 120, 218, 99, 100, 248, 207, 80, 15, 0, 3, 134, 1, 128, 90, 52, 125, 107, 0, 0,
    0, 0, 73, 69, 78, 68, 174, 66, 96, 130,
];

/// What was told, each as its name and the names of everything in it.
fn shapes(stage: &Stage, left_out: &[&str]) -> Vec<String> {
    fn names(value: &Value, path: &str, left_out: &[&str], out: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields.iter().filter(|(name, _)| !left_out.contains(&name.as_str())) {
                    out.insert(format!("{path}{name}"));
                    names(value, &format!("{path}{name}."), left_out, out);
                }
            }
            Value::Array(list) => list.iter().for_each(|value| names(value, path, left_out, out)),
            _ => {}
        }
    }
    let text = std::fs::read_to_string(stage.config().join("told")).unwrap_or_default();
    let shape = |line: &str| {
        let told: Value = serde_json::from_str(line).unwrap();
        let mut all = BTreeSet::new();
        names(&told, "", left_out, &mut all);
        let event = told["hook_event_name"].as_str().unwrap();
        (!OURS_ALONE.iter().any(|(ours, _)| *ours == event))
            .then(|| format!("{event} {} {all:?}", told["tool_name"].as_str().unwrap_or_default()))
    };
    text.lines().filter_map(shape).collect()
}

/// What Claude Code tells at the same time, so that either can be written down first: of a call and of the directory it
/// moved, of instruction files and of what was said.
const TOGETHER: [(&str, &str); 3] =
    [("PostToolUse Bash", "CwdChanged"), ("CwdChanged", "PostToolBatch"), ("InstructionsLoaded", "UserPromptSubmit")];

/// Puts into one order what is told at the same time.
pub(super) fn in_order<T>(told: &mut [T], name: fn(&T) -> &str) {
    for at in 1..told.len() {
        let (before, after) = (name(&told[at - 1]), name(&told[at]));
        if TOGETHER.iter().any(|(first, second)| before.starts_with(second) && after.starts_with(first)) {
            told.swap(at - 1, at);
        }
    }
}

/// HOOK-1: on work of every kind Claude Code and we tell hooks the same, event by event and key by key, side by side.
#[test]
fn on_varied_work_hooks_are_told_the_same_side_by_side() {
    let theirs = varied();
    let Some(mut claude) = claude_code(&theirs) else { return };
    let words = ["-p", "vary it", "--allowedTools", "Read", "Edit", "Write", "Bash", "Glob", "Grep"];
    let ran = run(claude.args(words));
    assert_eq!(ran.stdout, "Done with it.\n", "{ran:?}");
    let ours = varied();
    let ran = run(ours.cairn().args(words));
    assert_eq!(ran.stdout, "Done with it.\n", "{ran:?}");
    let left_out = NOT_OURS_VARIED.map(|(name, _)| name);
    let (mut theirs, mut ours) = (shapes(&theirs, &left_out), shapes(&ours, &left_out));
    // Of calls at the same time is told in any order.
    for told in [&mut theirs, &mut ours] {
        let together = told.len() - 9..told.len() - 3;
        told[together].sort();
        in_order(told, String::as_str);
    }
    for (at, (theirs, ours)) in theirs.iter().zip(&ours).enumerate() {
        assert_eq!(ours, theirs, "number {at}");
    }
    assert_eq!(ours.len(), theirs.len());
}

/// HOOK-1: what Claude Code tells is what was recorded.
#[test]
fn claude_code_tells_hooks_what_was_recorded() {
    let stage = recording();
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
