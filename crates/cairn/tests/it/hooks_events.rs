//! What hooks hear of that nobody decides: directories, files, failures, settings.

use serde_json::{Value, json};
use simulator::Fault;

use crate::hooks::{command, settings};
use crate::stage::{Stage, run};

/// A hook that writes down what it is told.
fn writes() -> Value {
    command("printf '%s\\n' \"$(cat)\" >> \"$CLAUDE_PROJECT_DIR/told\"")
}

fn told(stage: &Stage, event: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(stage.project().join("told")).unwrap_or_default();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|told| told["hook_event_name"] == event).collect()
}

/// HOOK-1: a directory that moves, and files that come, change and go, in Claude Code's words.
#[test]
fn hooks_hear_of_directories_and_files() {
    let stage = Stage::new(
        r#"
        [[rule]]
        when = { tool = "Bash", result = "three" }
        call = [{ tool = "Bash", input = { command = "mkdir -p sub && cd sub && echo four" } }]
        [[rule]]
        when = { tool = "Bash", result = "two" }
        call = [{ tool = "Bash", input = { command = "rm watched.txt; echo three" } }]
        [[rule]]
        when = { tool = "Bash", result = "one" }
        call = [{ tool = "Bash", input = { command = "echo longer than before > watched.txt; echo two" } }]
        [[rule]]
        when = { tool = "Bash" }
        say = "Well."
        [[rule]]
        call = [{ tool = "Bash", input = { command = "echo x > watched.txt; echo one" } }]
    "#,
    );
    let file = json!({"matcher": "watched.txt", "hooks": writes()["hooks"]});
    settings(&stage, &json!({"hooks": {"FileChanged": [file], "CwdChanged": [writes()]}}));
    let ran = run(stage.cairn().args(["-p", "go", "--allowedTools", "Bash"]));
    assert_eq!(ran.stdout, "Well.\n", "{ran:?}");
    let files = told(&stage, "FileChanged");
    let events: Vec<&str> = files.iter().map(|told| told["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["add", "change", "unlink"]);
    assert_eq!(files[0]["file_path"], json!(stage.project().join("watched.txt")));
    let moved = told(&stage, "CwdChanged");
    assert_eq!(moved.len(), 1);
    assert_eq!(
        (&moved[0]["old_cwd"], &moved[0]["new_cwd"]),
        (&json!(stage.project()), &json!(stage.project().join("sub")))
    );
}

/// HOOK-1: a turn that ends by an error, and a Stop hook that fails, are told of.
#[test]
fn hooks_hear_of_failures() {
    let stage = Stage::new("[[rule]]\nsay = \"Well.\"");
    settings(&stage, &json!({"hooks": {"StopFailure": [writes()], "Stop": [command("exit 7")]}}));
    stage.simulator.push_fault(Fault { message: Some("no such thing".into()), ..Fault::status(400) }).unwrap();
    assert_ne!(run(stage.cairn().args(["-p", "hello"])).code, Some(0));
    let failed = told(&stage, "StopFailure");
    assert_eq!((failed.len(), &failed[0]["error"]), (1, &json!("invalid_request")));
    assert!(failed[0]["last_assistant_message"].as_str().unwrap().contains("no such thing"), "{failed:?}");
    assert_eq!(run(stage.cairn().args(["-p", "hello"])).stdout, "Well.\n");
    assert_eq!(told(&stage, "StopFailure")[1]["error"], "stop_hook_failed");
}

/// HOOK-1, CONF-2: a hook can keep changed settings from counting, and that is said.
#[test]
fn a_hook_keeps_settings_from_changing() {
    let stage = Stage::new(
        r#"
        [[rule]]
        when = { tool = "Bash", result = "first" }
        call = [{ tool = "Bash", input = { command = "touch again; echo second" } }]
        [[rule]]
        when = { tool = "Bash" }
        say = "Well."
        [[rule]]
        call = [{ tool = "Bash", input = { command = "echo first" } }]
    "#,
    );
    let file = stage.config().join("settings.json");
    let edits = format!("echo '{{\"permissions\": {{\"deny\": [\"Bash(touch:*)\"]}}}}' > {}", file.display());
    let keeps = command("cat > \"$CLAUDE_PROJECT_DIR/changed\"; echo as they are >&2; exit 2");
    settings(&stage, &json!({"hooks": {"PreToolUse": [command(&edits)], "ConfigChange": [keeps]}}));
    let ran = run(stage.cairn().args(["-p", "go", "--allowedTools", "Bash"]));
    assert_eq!(ran.stdout, "Well.\n", "{ran:?}");
    assert!(ran.stderr.contains("a hook keeps the change from taking effect: as they are"), "{ran:?}");
    assert!(stage.project().join("again").exists(), "the rule does not count");
    let changed: Value =
        serde_json::from_str(&std::fs::read_to_string(stage.project().join("changed")).unwrap()).unwrap();
    assert_eq!((&changed["source"], &changed["file_path"]), (&json!("user_settings"), &json!(file)));
}
