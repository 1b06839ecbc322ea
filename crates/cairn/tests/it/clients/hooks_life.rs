//! What hooks are told of a session's life, here and in Claude Code, side by side: agents, failures, a Stop hook that sends
//! the model on, going on with a session, compacting it, leaving it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::claude_code;
use super::hooks::in_order;
use crate::hooks::{EVENTS, command, settings};
use crate::stage::{Stage, piped_into, run};
use crate::terminal::Terminal;

const WORKER: &str = r#"
    [[rule]]
    when = { user = "^send", tool = "Agent" }
    say = "It is back."
    [[rule]]
    when = { user = "^send" }
    call = [{ tool = "Agent", input = { description = "look", prompt = "look at the note", subagent_type = "general-purpose", run_in_background = false } }]
    [[rule]]
    when = { user = "^look at the note", tool = "Read" }
    say = "It says alpha."
    [[rule]]
    when = { user = "^look at the note" }
    call = [{ tool = "Read", input = { file_path = "{{ project }}/note.txt" } }]
    [[rule]]
    when = { user = "^break", tool = "Bash" }
    say = "Broken."
    [[rule]]
    when = { user = "^break", tool = "Edit" }
    call = [{ tool = "Bash", input = { command = "cd / && pwd", description = "Leave" } }]
    [[rule]]
    when = { user = "^break", tool = "Read" }
    call = [{ tool = "Edit", input = { file_path = "{{ project }}/note.txt", old_string = "gamma", new_string = "beta" } }]
    [[rule]]
    when = { user = "^break" }
    call = [{ tool = "Read", input = { file_path = "{{ project }}/note.txt" } }]
    [[rule]]
    when = { user = "^touch", offered = "Bash" }
    call = [{ tool = "Bash", input = { command = "touch it", description = "Touch" } }]
    [[rule]]
    say = "Well."
"#;

fn stage() -> Stage {
    let stage = Stage::new(WORKER);
    stage.write("note.txt", "alpha\n");
    stage.write("CLAUDE.md", "# Rules\n");
    let told = stage.config().join("told");
    let write = format!("input=$(cat); printf '%s\\n' \"$input\" >> {}", told.display());
    let mut hooks: serde_json::Map<String, Value> =
        EVENTS.iter().map(|event| ((*event).to_owned(), json!([command(&write)]))).collect();
    let again = r#"case "$input" in *'"stop_hook_active":false'*Broken*) echo once more >&2; exit 2;; esac"#;
    hooks.insert("Stop".into(), json!([command(&format!("{write}; {again}"))]));
    settings(&stage, &json!({"hooks": hooks}));
    stage
}

const ALLOWED: [&str; 6] = ["--allowedTools", "Read", "Edit", "Bash", "Agent", "Task"];

fn told(stage: &Stage) -> Vec<Value> {
    let text = std::fs::read_to_string(stage.config().join("told")).unwrap_or_default();
    // The last may be half written.
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Keys that Claude Code has on this work and we have not, and why.
const NOT_OURS: [(&str, &str); 7] = [
    ("effort", "there is no such setting here"),
    ("toolsUsed", "an agent's transcript has them"),
    ("toolStats", "an agent's transcript has them"),
    ("harnessNoteCount", "it is about how Claude Code frames a report"),
    ("harnessTailCount", "it is about how Claude Code frames a report"),
    ("harnessSectionHash", "it is about how Claude Code frames a report"),
    ("usage", "of an agent four counts are told, and not the provider's other fields"),
];

/// The names of everything in a value.
fn names(value: &Value, path: &str, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter().filter(|(name, _)| !NOT_OURS.iter().any(|(not, _)| not == name)) {
                out.insert(format!("{path}{name}"));
                names(value, &format!("{path}{name}."), out);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| names(value, path, out)),
        _ => {}
    }
}

/// What was told, each as what it is about and its keys.
fn shape(told: &Value) -> (String, BTreeSet<String>) {
    let about = ["tool_name", "source", "notification_type", "load_reason"];
    let about = about.iter().find_map(|key| told[key].as_str()).unwrap_or_default();
    let who = if told["agent_id"].is_string() { "agent" } else { "" };
    let mut all = BTreeSet::new();
    names(told, "", &mut all);
    if told["hook_event_name"] == "InstructionsLoaded" {
        all.remove("prompt_id"); // Claude Code loads them beside the first prompt, before it or after
    }
    (format!("{} {about} {who}", told["hook_event_name"].as_str().unwrap()), all)
}

/// Whether it is told on both sides; if not, why.
fn is_common(told: &Value) -> bool {
    match told["hook_event_name"].as_str().unwrap() {
        // Claude Code refuses an Edit whose text is not there before its hooks hear of it.
        "PreToolUse" | "PostToolUseFailure" => told["tool_name"] != "Edit",
        // Its own helpers at a compaction are agents without a type; here they are none.
        "SubagentStop" => told["agent_type"] != "",
        // Here instructions are loaded at once after a compaction, there when they are needed.
        "InstructionsLoaded" => told["load_reason"] != "compact",
        "PermissionDenied" => false,
        _ => true,
    }
}

/// HOOK-1: what hooks are told of agents, of a Stop hook that sends the model on, of going on with a session and of
/// compacting it, is the same, event by event and key by key.
#[test]
fn a_sessions_life_is_told_the_same_side_by_side() {
    let theirs = stage();
    if claude_code(&theirs).is_none() {
        return;
    }
    let ours = stage();
    for (words, more) in [
        ("send somebody", &[][..]),
        ("break it", &[]),
        ("so?", &["--continue"]),
        ("/compact the names", &["--continue"]),
        ("after", &["--continue"]),
    ] {
        let ran = run(claude_code(&theirs).unwrap().args(["-p", words]).args(more).args(ALLOWED));
        assert_eq!(ran.code, Some(0), "{words} {ran:?}");
        if words.starts_with('/') {
            piped_into(ours.cairn().args(more).args(ALLOWED), &format!("{words}\n"));
        } else {
            let ran = run(ours.cairn().args(["-p", words]).args(more).args(ALLOWED));
            assert_eq!(ran.code, Some(0), "{words} {ran:?}");
        }
    }
    let shapes = |stage: &Stage| -> Vec<_> { told(stage).iter().filter(|told| is_common(told)).map(shape).collect() };
    let (mut theirs, mut ours) = (shapes(&theirs), shapes(&ours));
    for told in [&mut theirs, &mut ours] {
        in_order(told, |(name, _)| name);
    }
    for (at, (theirs, ours)) in theirs.iter().zip(&ours).enumerate() {
        assert_eq!(ours, theirs, "number {at}");
    }
    assert_eq!(ours.len(), theirs.len());
}

/// A program in a terminal, and the stage it is on.
struct Talking {
    terminal: Terminal,
    stage: Stage,
}

impl Talking {
    fn types(&mut self, text: &str) {
        self.terminal.keys(text);
        self.terminal.comes(text, |screen| screen.contains(text));
        self.terminal.keys("\r");
    }

    /// Waits until something was told.
    fn hears(&mut self, what: impl Fn(&Value) -> bool) {
        self.hears_often(1, what);
    }

    fn hears_often(&mut self, times: usize, what: impl Fn(&Value) -> bool) {
        let began = Instant::now();
        while told(&self.stage).iter().filter(|told| what(told)).count() < times {
            assert!(
                began.elapsed() < Duration::from_secs(90),
                "{:#?}\n{}",
                told(&self.stage),
                self.terminal.screen().text()
            );
            // What it prints meanwhile has to be read.
            self.terminal.comes("anything", |_| true);
            std::thread::yield_now();
        }
    }

    /// A talk with a question that is not answered, a new session, and an end.
    fn talk(mut self) -> Vec<Value> {
        self.types("hello");
        self.hears(|told| told["notification_type"] == "idle_prompt");
        self.types("touch it");
        self.hears(|told| told["notification_type"] == "permission_prompt");
        self.terminal.keys("\x1b");
        self.terminal.comes("an end", |screen| screen.contains("nterrupted") || screen.contains("stopped"));
        self.types("/clear");
        self.hears(|told| told["reason"] == "clear");
        self.types("hello again");
        self.hears(|told| told["prompt"] == "hello again");
        self.hears_often(2, |told| told["hook_event_name"] == "Stop");
        self.types("/exit");
        self.hears(|told| told["reason"] == "prompt_input_exit");
        self.terminal.ended();
        told(&self.stage)
    }
}

/// HOOK-1: in a terminal, too: who is waited for, what is asked, `/clear`, and how a session is left.
#[test]
fn in_a_terminal_hooks_are_told_the_same_side_by_side() {
    let asking = || {
        let stage = stage();
        let file = stage.config().join("settings.json");
        let mut all: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        (all["permissions"], all["messageIdleNotifThresholdMs"]) = (json!({"ask": ["Bash"]}), json!(200));
        settings(&stage, &all);
        stage
    };
    let theirs = asking();
    let Some(mut claude) = claude_code(&theirs) else { return };
    // What it asks on a first start is answered.
    let mut own = json!({
        "hasCompletedOnboarding": true, "theme": "dark", "messageIdleNotifThresholdMs": 200,
        "customApiKeyResponses": {"approved": [super::KEY], "rejected": []}, "projects": {},
    });
    own["projects"][theirs.project().to_str().unwrap()] =
        json!({"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true});
    std::fs::write(theirs.config().join(".claude.json"), own.to_string()).unwrap();
    let mut terminal = Terminal::open(claude.env("TERM", "xterm-256color"), 100, 40);
    terminal.comes("a prompt", |screen| screen.contains("❯"));
    let theirs = Talking { terminal, stage: theirs }.talk();
    let stage = asking();
    let terminal = Terminal::start(&stage);
    let ours = Talking { terminal, stage }.talk();
    let shapes = |told: &[Value]| -> Vec<(String, BTreeSet<String>)> {
        let label = |one: &Value| format!("{} {}", shape(one).0, one["reason"].as_str().unwrap_or_default());
        // How often somebody is waited for is a matter of time.
        let is_again = |at: usize| {
            told[at]["hook_event_name"] == "Notification"
                && at > 0
                && told[..at].iter().any(|one| shape(one).0 == shape(&told[at]).0)
        };
        let once = (0..told.len()).filter(|at| !is_again(*at)).map(|at| &told[at]);
        once.filter(|told| is_common(told)).map(|told| (label(told), shape(told).1)).collect()
    };
    let (mut theirs, mut ours) = (shapes(&theirs), shapes(&ours));
    for told in [&mut theirs, &mut ours] {
        in_order(told, |(name, _)| name);
    }
    for (at, (theirs, ours)) in theirs.iter().zip(&ours).enumerate() {
        assert_eq!(ours, theirs, "number {at}");
    }
    assert_eq!(ours.len(), theirs.len());
}
