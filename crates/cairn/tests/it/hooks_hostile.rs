//! Hooks that misbehave: the session stays usable, says what happened, and nothing is left of them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::hooks::{EVENTS, command, settings};
use crate::stage::{Stage, run};
use crate::terminal::Terminal;

const CALLER: &str = r#"
    [[rule]]
    when = { tool = "Bash" }
    say = "Well."
    [[rule]]
    when = { user = "call" }
    call = [{ tool = "Bash", input = { command = "touch made; echo said" } }]
    [[rule]]
    say = "Well."
"#;

/// Whether a process with these words runs.
pub fn runs(words: &str) -> bool {
    let is_it = |entry: std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").contains(words)
    };
    std::fs::read_dir("/proc").unwrap().flatten().any(is_it)
}

fn call(stage: &Stage) -> crate::stage::Ran {
    run(stage.cairn().args(["-p", "call", "--allowedTools", "Bash", "--verbose"]))
}

/// HOOK-2: one that hangs is ended after its time, also what left its group; the call it was asked about runs.
#[test]
fn a_hook_that_hangs_is_ended_after_its_time() {
    let stage = Stage::new(CALLER);
    let hangs = "setsid sleep 1003.001 & trap '' TERM; sleep 1003.001";
    let hook = json!({"hooks": [{"type": "command", "command": hangs, "timeout": 0.3}]});
    settings(&stage, &json!({"hooks": {"PreToolUse": [hook]}}));
    let ran = call(&stage);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Well.\n"), "{ran:?}");
    assert!(ran.stderr.contains("a PreToolUse hook failed") && ran.stderr.contains("longer than 0.3 s"), "{ran:?}");
    assert!(stage.project().join("made").exists());
    assert!(!runs("sleep 1003.001"));
}

/// HOOK-2, BUDGET-3: a daemon that leaves its group and its parent does not outlive its hook.
#[test]
fn a_daemon_does_not_outlive_its_hook() {
    let stage = Stage::new(CALLER);
    let daemon = "setsid bash -c '(setsid sleep 1003.002 &) & disown' </dev/null >/dev/null 2>&1; echo up";
    let all: serde_json::Map<String, Value> =
        EVENTS.iter().map(|event| ((*event).to_owned(), json!([command(daemon)]))).collect();
    settings(&stage, &json!({"hooks": all}));
    let ran = call(&stage);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Well.\n"), "{ran:?}");
    assert!(!runs("sleep 1003.002"));
}

/// HOOK-2: a gigabyte of output is drained; what is kept of it goes to a file.
#[test]
fn a_gigabyte_of_output_is_drained() {
    let stage = Stage::new(CALLER);
    // As long as it takes on a busy machine: what is asked here is what becomes of the output.
    let prints = json!({"type": "command", "command": "head -c 1000000000 /dev/zero | tr '\\0' x", "timeout": 600});
    settings(&stage, &json!({"hooks": {"UserPromptSubmit": [{"hooks": [prints]}]}}));
    let ran = call(&stage);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Well.\n"), "{ran:?}");
    let sent = stage.simulator.requests().pop().unwrap()["messages"].to_string();
    assert!(sent.len() < 100_000 && sent.contains("all of it is in"), "{}", sent.len());
}

/// HOOK-2: broken JSON decides nothing, and is told.
#[test]
fn broken_json_decides_nothing() {
    let stage = Stage::new(CALLER);
    let broken = r#"echo '{"hookSpecificOutput": {"permissionDecision": "allow"'"#;
    let all: serde_json::Map<String, Value> =
        EVENTS.iter().map(|event| ((*event).to_owned(), json!([command(broken)]))).collect();
    settings(&stage, &json!({"hooks": all}));
    let ran = run(stage.cairn().args(["-p", "call", "--verbose"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Well.\n"), "{ran:?}");
    assert!(ran.stderr.contains("its output begins like JSON and is none"), "{ran:?}");
    assert!(!stage.project().join("made").exists(), "nobody allowed it");
}

/// HOOK-2: one that exits with 2 at every moment prevents what can be prevented; the session ends properly.
#[test]
fn one_that_says_no_to_everything_ends_properly() {
    for event in EVENTS {
        let stage = Stage::new(CALLER);
        stage.write("CLAUDE.md", "# Rules\n");
        settings(&stage, &json!({"hooks": {event: [command("echo never >&2; exit 2")]}}));
        let ran = call(&stage);
        match event {
            "UserPromptSubmit" | "PostToolBatch" => assert_eq!(ran.code, Some(6), "{event} {ran:?}"),
            _ => assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Well.\n"), "{event} {ran:?}"),
        }
        assert_eq!(
            stage.project().join("made").exists(),
            !["PreToolUse", "UserPromptSubmit"].contains(&event),
            "{event}"
        );
    }
}

/// HOOK-1, CONF-2: a hook that edits the settings file changes what counts from the next request on, and not more.
#[test]
fn a_hook_that_edits_the_settings() {
    let stage = Stage::new(
        r#"
        [[rule]]
        when = { tool = "Bash", result = "first" }
        call = [{ tool = "Bash", input = { command = "touch again; echo second" } }]
        [[rule]]
        when = { tool = "Bash" }
        say = "Well."
        [[rule]]
        call = [{ tool = "Bash", input = { command = "touch made; echo first" } }]
    "#,
    );
    let file = stage.config().join("settings.json");
    let removes = format!("echo '{{}}' > {}; touch hooked", file.display());
    settings(&stage, &json!({"hooks": {"PreToolUse": [command(&removes)]}}));
    let ran = call(&stage);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Well.\n"), "{ran:?}");
    assert!(ran.stderr.contains("the settings have changed"), "{ran:?}");
    assert!(stage.project().join("again").exists());

    // One that adds a rule for itself is heard; a project's would have to be trusted first.
    let adds = format!("echo '{{\"permissions\": {{\"deny\": [\"Bash(touch:*)\"]}}}}' > {}", file.display());
    settings(&stage, &json!({"hooks": {"PostToolUse": [command(&adds)]}}));
    std::fs::remove_file(stage.project().join("again")).unwrap();
    call(&stage);
    assert!(!stage.project().join("again").exists(), "the deny rule counts");
}

/// HOOK-2: a script that removes itself while it runs, or is not there at all.
#[test]
fn one_that_is_removed_while_it_runs() {
    let stage = Stage::new(CALLER);
    let script = stage.write("hook.sh", "#!/bin/bash\nrm -f \"$0\"\necho gone >&2\nexit 2\n");
    let line = format!("bash {}", script.display());
    settings(&stage, &json!({"hooks": {"PreToolUse": [command(&line)]}}));
    let ran = call(&stage);
    assert!(ran.code == Some(0) && !stage.project().join("made").exists(), "{ran:?}");
    let ran = call(&stage);
    assert!(ran.stderr.contains("a PreToolUse hook failed") && ran.stderr.contains("exit code 127"), "{ran:?}");
    assert!(stage.project().join("made").exists());
}

/// HOOK-2, LOOP-4: Esc ends a turn whose hook hangs; what the hook would have said later counts for nothing.
#[test]
fn a_turn_is_cancelled_while_a_hook_runs() {
    let stage = Stage::new(CALLER);
    let late = "touch waiting; sleep 1003.003; touch late; echo no >&2; exit 2";
    settings(&stage, &json!({"hooks": {"PreToolUse": [command(late)]}, "permissions": {"allow": ["Bash"]}}));
    let mut terminal = Terminal::open(stage.cairn().env("TERM", "xterm-256color"), 80, 24);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal.say("call");
    let began = Instant::now();
    while !stage.project().join("waiting").exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "the hook never ran");
        std::thread::yield_now();
    }
    terminal.keys("\x1b");
    terminal.rests("stopped");
    terminal.until("a prompt", |screen| screen.has_prompt());
    assert!(!runs("sleep 1003.003") && !stage.project().join("late").exists());
    assert!(!stage.project().join("made").exists());
    settings(&stage, &json!({}));
    terminal.say("hello");
    terminal.rests("Well.");
    terminal.leave();
}
