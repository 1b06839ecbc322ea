//! Hooks that misbehave, in a run without a terminal and in one: the session stays usable, says what happened, and nothing
//! is left of them.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::hooks::{EVENTS, command, settings};
use crate::stage::{Ran, Stage, run};
use crate::terminal::{Screen, Terminal};

const CALLER: &str = r#"
    [[rule]]
    when = { user = "call", tool = "Bash" }
    say = "Called."
    [[rule]]
    when = { user = "call" }
    call = [{ tool = "Bash", input = { command = "touch made; echo said" } }]
    [[rule]]
    say = "Well."
"#;

/// Seconds to sleep that no other run of these tests sleeps.
fn seconds(number: u32) -> String {
    format!("{number}.{}00", std::process::id())
}

/// Whether a process with these words runs.
pub fn runs(words: &str) -> bool {
    let is_it = |entry: std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").contains(words)
    };
    std::fs::read_dir("/proc").unwrap().flatten().any(is_it)
}

fn appears(path: &Path) {
    let began = Instant::now();
    while !path.exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "{} never came", path.display());
        std::thread::yield_now();
    }
}

/// A window in which nothing scrolls away.
fn open(stage: &Stage) -> Terminal {
    let mut terminal = Terminal::open(stage.cairn().env("TERM", "xterm-256color"), 100, 300);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal
}

/// Says something, and waits until one of these words stands there once more and nothing is under way.
#[track_caller]
fn say(terminal: &mut Terminal, line: &str, words: &[&str]) {
    let count = |screen: &Screen| words.iter().map(|word| screen.count(word)).sum::<usize>();
    let before = count(&terminal.screen());
    terminal.say(line);
    terminal.until(&format!("{words:?} after {line:?}"), |screen| {
        count(screen) > before && !screen.is_working() && screen.has_prompt()
    });
}

fn call(stage: &Stage) -> Ran {
    run(stage.cairn().args(["-p", "call", "--allowedTools", "Bash", "--verbose"]))
}

/// The same hook at every moment.
fn everywhere(hook: &Value) -> Value {
    let all: Map<String, Value> = EVENTS.iter().map(|event| ((*event).to_owned(), json!([hook]))).collect();
    Value::Object(all)
}

/// A hook that misbehaves.
struct Hostile {
    hooks: Value,
    /// What is said of it.
    says: &'static str,
    /// Whether the call runs that it was asked about.
    call_runs: bool,
}

/// All of them; `mark` is how long those sleep that sleep, and so how they are found.
fn hostile(mark: &str) -> Vec<Hostile> {
    let one = |event: &str, hook: Value| json!({event: [hook]});
    let hangs = json!({"hooks": [{"type": "command", "timeout": 0.3,
        "command": format!("setsid sleep {mark}1 & trap '' TERM HUP INT; sleep {mark}1; sleep {mark}1")}]});
    let daemon = format!("setsid bash -c '(setsid sleep {mark}2 &) & disown' </dev/null >/dev/null 2>&1; echo up");
    let waits = json!({"hooks": [{"type": "command", "async": true, "command": format!("setsid sleep {mark}3")}]});
    let gone = "cp ./hook.sh ./copy.sh; exec bash ./copy.sh";
    vec![
        Hostile { hooks: one("PreToolUse", hangs), says: "longer than 0.3 s", call_runs: true },
        Hostile { hooks: everywhere(&command(&daemon)), says: "", call_runs: true },
        Hostile { hooks: everywhere(&waits), says: "", call_runs: true },
        Hostile {
            hooks: everywhere(&command(r#"echo '{"continue": fals'"#)),
            says: "its output begins like JSON but is",
            call_runs: true,
        },
        Hostile { hooks: one("PreToolUse", command(gone)), says: "", call_runs: false },
        Hostile { hooks: one("PreToolUse", command("bash ./nowhere.sh")), says: "exit code 127", call_runs: true },
        Hostile { hooks: one("PreToolUse", command("kill -9 $$")), says: "a PreToolUse hook failed", call_runs: true },
        Hostile { hooks: one("PreToolUse", command("head -c 100000 /dev/urandom")), says: "", call_runs: true },
    ]
}

/// A project in which a script removes itself before it says no.
fn stage(hostile: &Hostile) -> Stage {
    let stage = Stage::new(CALLER);
    stage.write("hook.sh", "rm -f \"$0\"\n[ ! -e \"$0\" ] || exit 0\necho gone >&2\nexit 2\n");
    settings(&stage, &json!({"hooks": hostile.hooks, "permissions": {"allow": ["Bash"]}}));
    stage
}

/// HOOK-2, BUDGET-3: one that hangs and does not hear, leaves daemons outside of its group, is not waited for, prints what
/// is none, is removed while it runs or killed: the run ends properly and no process is left.
#[test]
fn a_run_ends_properly_and_nothing_is_left() {
    let sleeps = seconds(1003);
    for hostile in hostile(&sleeps) {
        let stage = stage(&hostile);
        let ran = call(&stage);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Called.\n"), "{ran:?}");
        assert!(ran.stderr.contains(hostile.says), "{}: {ran:?}", hostile.says);
        assert_eq!(stage.project().join("made").exists(), hostile.call_runs, "{}", hostile.hooks);
        assert!(!runs(&format!("sleep {sleeps}")), "{}", hostile.hooks);
    }
}

/// HOOK-2, BUDGET-3: in a terminal, too, a session with such a hook can be used, and no process is left.
#[test]
fn a_terminal_stays_usable_and_nothing_is_left() {
    let sleeps = seconds(1005);
    for hostile in hostile(&sleeps) {
        let stage = stage(&hostile);
        let mut terminal = open(&stage);
        say(&mut terminal, "call", &["Called."]);
        assert!(terminal.everything().contains(hostile.says), "{}: {}", hostile.says, terminal.everything());
        say(&mut terminal, "hello", &["Well."]);
        terminal.leave();
        assert_eq!(stage.project().join("made").exists(), hostile.call_runs, "{}", hostile.hooks);
        assert!(!runs(&format!("sleep {sleeps}")), "{}", hostile.hooks);
    }
}

/// HOOK-2: a gigabyte of output is drained; what is kept of it goes to a file.
#[test]
fn a_gigabyte_of_output_is_drained() {
    let stage = Stage::new(CALLER);
    // As long as it takes on a busy machine: what is asked here is what becomes of the output.
    let prints = json!({"type": "command", "command": "head -c 1000000000 /dev/zero | tr '\\0' x", "timeout": 600});
    settings(
        &stage,
        &json!({"hooks": {"UserPromptSubmit": [{"hooks": [prints]}]}, "permissions": {"allow": ["Bash"]}}),
    );
    let bounded = |stage: &Stage| {
        let sent = stage.simulator.requests().pop().unwrap()["messages"].to_string();
        assert!(sent.len() < 100_000 && sent.contains("all of it is in"), "{}", sent.len());
    };
    let ran = call(&stage);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Called.\n"), "{ran:?}");
    bounded(&stage);

    let mut terminal = open(&stage).patient(Duration::from_secs(600));
    say(&mut terminal, "call", &["Called."]);
    bounded(&stage);
    settings(&stage, &json!({}));
    say(&mut terminal, "hello", &["Well."]);
    terminal.leave();
}

/// HOOK-2: broken JSON allows nothing.
#[test]
fn broken_json_allows_nothing() {
    let stage = Stage::new(CALLER);
    let broken = r#"echo '{"hookSpecificOutput": {"permissionDecision": "allow"'"#;
    settings(&stage, &json!({"hooks": everywhere(&command(broken))}));
    let ran = run(stage.cairn().args(["-p", "call", "--verbose"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Called.\n"), "{ran:?}");
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
            // What the hook says is what was said last.
            "Stop" => assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Well.\n"), "{event} {ran:?}"),
            _ => assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Called.\n"), "{event} {ran:?}"),
        }
        assert_eq!(
            stage.project().join("made").exists(),
            !["PreToolUse", "UserPromptSubmit"].contains(&event),
            "{event}"
        );
    }
}

/// HOOK-2: in a terminal one that exits with 2 at every moment is told of where it prevents something, and the session goes
/// on, moment by moment and with all of them at once.
#[test]
fn in_a_terminal_one_that_says_no_to_everything_leaves_a_session() {
    let stage = Stage::new(CALLER);
    let no = command("echo never >&2; exit 2");
    let allowed = json!({"allow": ["Bash"]});
    settings(&stage, &json!({"permissions": allowed}));
    let mut terminal = open(&stage);
    // A ConfigChange hook would keep the others out.
    let moments: Vec<&str> = EVENTS.into_iter().filter(|event| *event != "ConfigChange").collect();
    for (at, event) in moments.into_iter().enumerate() {
        settings(&stage, &json!({"hooks": {event: [no]}, "permissions": allowed}));
        say(&mut terminal, &format!("turn {at}"), &["Well.", "never"]);
    }
    settings(&stage, &json!({"hooks": everywhere(&no), "permissions": allowed}));
    say(&mut terminal, "now all of them", &["never"]);
    say(&mut terminal, "and again", &["never"]);
    terminal.leave();
}

const TWICE: &str = r#"
    [[rule]]
    when = { user = "call", tool = "Bash", result = "first" }
    call = [{ tool = "Bash", input = { command = "touch again; echo second" } }]
    [[rule]]
    when = { user = "call", tool = "Bash" }
    say = "Called."
    [[rule]]
    when = { user = "call" }
    call = [{ tool = "Bash", input = { command = "touch made; echo first" } }]
    [[rule]]
    say = "Well."
"#;

/// HOOK-1, CONF-2: a hook that edits the settings file changes what counts from the next request on, and not more.
#[test]
fn a_hook_that_edits_the_settings() {
    let stage = Stage::new(TWICE);
    let file = stage.config().join("settings.json");
    let removes = format!("echo '{{}}' > {}; touch hooked", file.display());
    settings(&stage, &json!({"hooks": {"PreToolUse": [command(&removes)]}}));
    let ran = call(&stage);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Called.\n"), "{ran:?}");
    assert!(ran.stderr.contains("the settings have changed"), "{ran:?}");
    assert!(stage.project().join("again").exists());

    // One that adds a rule for itself is heard; a project's would have to be trusted first.
    let adds = format!("echo '{{\"permissions\": {{\"deny\": [\"Bash(touch:*)\"]}}}}' > {}", file.display());
    settings(&stage, &json!({"hooks": {"PostToolUse": [command(&adds)]}}));
    std::fs::remove_file(stage.project().join("again")).unwrap();
    call(&stage);
    assert!(!stage.project().join("again").exists(), "the deny rule counts");

    // In a terminal, with a file that is none halfway.
    let breaks = format!("printf '{{\"hooks\": ' > {}; touch hooked", file.display());
    settings(&stage, &json!({"hooks": {"PreToolUse": [command(&breaks)]}, "permissions": {"allow": ["Bash"]}}));
    let mut terminal = open(&stage);
    terminal.say("call");
    terminal.until("a question", |screen| screen.contains("not JSON") && screen.contains("yes, once"));
    assert!(stage.project().join("hooked").exists());
    terminal.keys("\x1b");
    terminal.until("a prompt", |screen| !screen.is_working() && screen.has_prompt());
    settings(&stage, &json!({}));
    say(&mut terminal, "hello", &["Well."]);
    terminal.leave();
}

/// HOOK-2, LOOP-4: Esc ends a turn whose hook hangs, a command or a server; what the hook would have said later counts for
/// nothing.
#[test]
fn a_turn_is_cancelled_while_a_hook_runs() {
    let stage = Stage::new(CALLER);
    let waiting = stage.project().join("waiting");
    let sleeps = format!("sleep {}", seconds(1006));
    let late = format!("touch waiting; {sleeps}; touch late; echo no >&2; exit 2");
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let http = json!({"hooks": [{"type": "http", "url": format!("http://{}/", server.local_addr().unwrap())}]});
    let (cancelled, is_cancelled) = std::sync::mpsc::channel::<()>();
    let marker = waiting.clone();
    let answers = std::thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]).unwrap();
        std::fs::write(marker, "").unwrap();
        is_cancelled.recv().unwrap();
        let answer = r#"{"decision": "block", "reason": "too late"}"#;
        let _ = write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{answer}", answer.len());
    });
    settings(&stage, &json!({}));
    let mut terminal = open(&stage);
    for hook in [command(&late), http] {
        settings(&stage, &json!({"hooks": {"PreToolUse": [hook]}, "permissions": {"allow": ["Bash"]}}));
        terminal.say("call");
        appears(&waiting);
        let ends = |screen: &Screen| screen.rows.iter().filter(|row| row.trim() == "stopped").count();
        let before = ends(&terminal.screen());
        terminal.keys("\x1b");
        terminal.until("the end", |screen| ends(screen) > before && !screen.is_working() && screen.has_prompt());
        assert!(!runs(&sleeps) && !stage.project().join("late").exists());
        assert!(!stage.project().join("made").exists());
        std::fs::remove_file(&waiting).unwrap();
        settings(&stage, &json!({}));
        say(&mut terminal, "hello", &["Well."]);
    }
    cancelled.send(()).unwrap();
    answers.join().unwrap();
    say(&mut terminal, "once more", &["Well."]);
    assert!(!stage.simulator.requests().pop().unwrap().to_string().contains("too late"));
    terminal.leave();
}

/// HOOK-2: a hook that blocks by `TOOL_INPUT` cannot be passed by an input that is too long for a variable, whether the
/// variable stands in its command, in its arguments or in a script. One that reads standard input sees all of it, and what
/// runs afterwards finds a mark in the variable.
#[test]
fn a_padded_call_does_not_get_past_a_hook() {
    let padded = format!("touch made # {}", "x".repeat(110_000)); // it can still be run
    let script = CALLER.replace("touch made; echo said", &padded);
    let by_variable = r#"echo "$TOOL_INPUT" | grep -q touch && exit 2; exit 0"#;
    let cases = [
        json!({"type": "command", "command": by_variable}),
        json!({"type": "command", "command": "sh", "args": ["-c", by_variable]}),
        json!({"type": "command", "command": "./check.sh"}),
        json!({"type": "command", "command": "sh \"$CLAUDE_PROJECT_DIR\"/check.sh"}),
        json!({"type": "command", "command": "grep -q touch && exit 2; exit 0"}),
    ];
    for hook in cases {
        let stage = Stage::new(&script);
        stage.write("check.sh", &format!("#!/bin/sh\n{by_variable}\n"));
        let program = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(stage.project().join("check.sh"), program).unwrap();
        settings(&stage, &json!({"hooks": {"PreToolUse": [{"hooks": [hook]}]}}));
        run(stage.cairn().args(["-p", "call", "--allowedTools", "Bash"]));
        assert!(!stage.project().join("made").exists(), "{hook}");
    }

    let stage = Stage::new(&script);
    let (unread, told) = ("cat > /dev/null", r#"printf %s "$TOOL_INPUT" > told"#);
    settings(&stage, &json!({"hooks": {"PreToolUse": [command(unread)], "PostToolUse": [command(told)]}}));
    run(stage.cairn().args(["-p", "call", "--allowedTools", "Bash"]));
    assert!(stage.project().join("made").exists(), "a hook that does not read the variable is not in the way");
    let told = std::fs::read_to_string(stage.project().join("told")).unwrap();
    assert!(told.contains("read standard input") && serde_json::from_str::<Value>(&told).is_err(), "{told}");
}
