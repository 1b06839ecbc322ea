//! However the program is ended, the turn, the commands it runs and the program end, and the session goes on later.
//!
//! A command holds a pipe by its name: when the test reads to its end, nobody is left who runs.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};

use crate::stage::{Stage, run};
use crate::terminal::Terminal;

const WORKER: &str = r#"
    [[rule]]
    when = { user = "again" }
    say = "Back."
    [[rule]]
    when = { user = "go" }
    say = "I begin."
    call = [{ tool = "Bash", input = { command = "exec 9>alive; echo started >&9; sleep 1000; true" } }]
"#;

const ALLOWED: [&str; 2] = ["--allowedTools", "Bash"];

/// A stage, and the reading end of what its command holds.
fn stage() -> (Stage, std::thread::JoinHandle<BufReader<File>>) {
    let stage = Stage::new(WORKER);
    let pipe = stage.project().join("alive");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Opening waits for the command to do so too.
    let opened = std::thread::spawn(move || BufReader::new(File::open(pipe).unwrap()));
    (stage, opened)
}

/// Waits until the command runs.
fn runs(opened: std::thread::JoinHandle<BufReader<File>>) -> BufReader<File> {
    let mut alive = opened.join().unwrap();
    let mut line = String::new();
    alive.read_line(&mut line).unwrap();
    assert_eq!(line, "started\n");
    alive
}

/// Nobody who could write is left, and the session can be gone on with.
fn is_over(stage: &Stage, mut alive: BufReader<File>) {
    alive.read_to_end(&mut Vec::new()).unwrap();
    let ran = run(stage.cairn().args(["-p", "again", "--continue"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Back.\n"), "{}", ran.stderr);
    assert_eq!(stage.simulator.report().totals.refused, 0);
}

fn signal(name: &str, process: u32) {
    assert!(Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status().unwrap().success());
}

fn headless(stage: &Stage, format: &str) -> Child {
    let mut command = stage.cairn();
    command.args(["-p", "go", "--output-format", format]).args(ALLOWED);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Lines of which the input stays open.
fn lines(stage: &Stage) -> Child {
    let mut command = stage.cairn();
    command.arg("--plain").args(ALLOWED).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    child
}

const SIGNALS: [(&str, i32); 3] = [("TERM", 143), ("HUP", 129), ("INT", 130)];

#[test]
fn a_signal_ends_a_headless_turn_and_its_commands() {
    for (name, code) in SIGNALS {
        let (stage, opened) = stage();
        let child = headless(&stage, "stream-json");
        let alive = runs(opened);
        signal(name, child.id());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{name}");
        let result = String::from_utf8(output.stdout).unwrap().lines().last().unwrap().to_owned();
        let result: serde_json::Value = serde_json::from_str(&result).unwrap();
        assert_eq!((result["type"].as_str(), result["is_error"].as_bool()), (Some("result"), Some(true)), "{result}");
        is_over(&stage, alive);
    }
}

/// Whether something was printed before, or nothing is until the end.
#[test]
fn a_closed_stdout_ends_a_headless_turn_and_its_commands() {
    for format in ["stream-json", "json", "text"] {
        let (stage, opened) = stage();
        let mut child = headless(&stage, format);
        let alive = runs(opened);
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(141), "{format}");
        is_over(&stage, alive);
    }
}

#[test]
fn a_signal_or_a_closed_stdout_ends_plain_lines() {
    for (name, code) in [("TERM", 143), ("HUP", 129)] {
        let (stage, opened) = stage();
        let mut child = lines(&stage);
        let alive = runs(opened);
        signal(name, child.id());
        assert_eq!(child.wait().unwrap().code(), Some(code), "{name}");
        is_over(&stage, alive);
    }
    let (stage, opened) = stage();
    let mut child = lines(&stage);
    let alive = runs(opened);
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(141));
    is_over(&stage, alive);
}

#[test]
fn a_signal_ends_the_screen_and_leaves_the_terminal_as_it_was() {
    for (name, code) in SIGNALS {
        let (stage, opened) = stage();
        let mut terminal = Terminal::start_with(&stage, &ALLOWED);
        terminal.say("go");
        let alive = runs(opened);
        signal(name, terminal.process());
        assert_eq!(terminal.ended(), code as u32, "{name}");
        assert!(terminal.is_cooked(), "{name}");
        is_over(&stage, alive);
    }
}

/// The window is closed while a command runs: the program hears of it, and there is nothing left to draw on.
#[test]
fn a_closed_window_ends_the_turn_and_its_commands() {
    let (stage, opened) = stage();
    let pair = native_pty_system().openpty(PtySize::default()).unwrap();
    let cairn = stage.cairn();
    let mut builder = CommandBuilder::new(cairn.get_program());
    builder.args(ALLOWED);
    builder.env_clear();
    cairn.get_envs().for_each(|(name, value)| builder.env(name, value.unwrap_or_default()));
    builder.env("TERM", "xterm");
    builder.cwd(stage.project());
    let mut child = pair.slave.spawn_command(builder).unwrap();
    drop(pair.slave);
    let (mut reader, mut keys) = (pair.master.try_clone_reader().unwrap(), pair.master.take_writer().unwrap());
    let mut shown = Vec::new();
    while !String::from_utf8_lossy(&shown).contains("context left") {
        let mut piece = [0; 4096];
        let count = reader.read(&mut piece).unwrap();
        shown.extend_from_slice(&piece[..count]);
    }
    keys.write_all(b"go\r").unwrap();
    let alive = runs(opened);
    drop((reader, keys, pair.master));
    assert_eq!(child.wait().unwrap().exit_code(), 129);
    is_over(&stage, alive);
}

/// Under `nohup` a closed terminal is no reason to end.
#[test]
fn a_signal_that_was_ignored_stays_ignored() {
    let (stage, opened) = stage();
    let cairn = stage.cairn();
    let mut command = Command::new("bash");
    command.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(cairn.get_program());
    command.args(["-p", "go"]).args(ALLOWED).current_dir(stage.project()).stdin(Stdio::null());
    command.env_clear().envs(cairn.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let alive = runs(opened);
    signal("HUP", child.id());
    signal("TERM", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(143));
    is_over(&stage, alive);
}
