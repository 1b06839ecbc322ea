//! A real small model behind a real llama.cpp server, in both protocols.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::{installed, root};
use crate::skipped::skipped_on_this_machine;
use crate::stage::{Ran, bare, run};
use crate::terminal::Terminal;

/// Where llama.cpp's own server listens unless told otherwise, and where we look for one.
const USUAL_PORT: u16 = 8080;
/// Our tools alone are 3,800 tokens; the model was trained on so many.
const WINDOW: u64 = 8_192;
/// How long a turn may take where the machine is small.
const PATIENCE: Duration = Duration::from_secs(300);
/// A short system prompt: the model reads slowly.
const ASK: [&str; 4] = ["--model", "smollm2", "--system-prompt", "Be brief."];

/// A running server, ended when dropped.
struct Server(Child);

impl Server {
    /// None when it is not installed, or when another server has the port.
    fn start() -> Option<Self> {
        let python = installed("target/python-llama/bin/python")?;
        if std::net::TcpListener::bind(("127.0.0.1", USUAL_PORT)).is_err() {
            skipped_on_this_machine(&format!("port {USUAL_PORT} is taken"));
            return None;
        }
        let mut command = Command::new(python);
        command.arg(root().join("crates/provider/tests/llama.py")).args([USUAL_PORT.to_string(), WINDOW.to_string()]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = lines.map_while(Result::ok).any(|line| line == "ready");
        let server = Self(child);
        assert!(ready, "the server ended; run it by hand to see why: crates/provider/tests/llama.py");
        Some(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn cairn(home: &TempDir) -> Command {
    let mut command = bare(home.path(), &home.path().join("config"));
    command.env("NO_PROXY", "127.0.0.1").args(ASK);
    command
}

/// An answer, and figures in the log.
fn answered(ran: &Ran, home: &TempDir) {
    assert!(ran.code == Some(0) && !ran.stdout.trim().is_empty(), "{ran:?}");
    has_figures(home);
}

/// The sessions so far, newest first.
fn sessions(home: &TempDir) -> Vec<Value> {
    let ran = run(bare(home.path(), &home.path().join("config")).args(["session", "list", "--json"]));
    serde_json::from_str(&ran.stdout).unwrap()
}

/// The newest session knows what its reply took.
fn has_figures(home: &TempDir) {
    let list = sessions(home);
    let id = list[0]["id"].as_str().unwrap();
    let stats = run(bare(home.path(), &home.path().join("config")).args(["session", "stats", "--json", id])).stdout;
    let stats: Value = serde_json::from_str(&stats).unwrap();
    assert!(stats["contextTokens"].as_u64() > Some(1_000) && stats["outputTokens"].as_u64() > Some(0), "{stats}");
}

/// A real model answers, in one test because the machine is busy with it: through the Messages API, through chat
/// completions, found by itself when nothing is set, and in a terminal in both protocols.
#[test]
fn a_small_model_answers_in_both_protocols() {
    let Some(_server) = Server::start() else { return };
    let url = format!("http://127.0.0.1:{USUAL_PORT}");
    let home = tempfile::tempdir().unwrap();

    let messages = [("ANTHROPIC_BASE_URL", url.as_str()), ("ANTHROPIC_API_KEY", "sk-none-needed")];
    answered(&run(cairn(&home).envs(messages).args(["-p", "Say hello."])), &home);

    let chat = [("OPENAI_BASE_URL", format!("{url}/v1"))];
    answered(&run(cairn(&home).envs(chat.clone()).args(["-p", "Say hello."])), &home);

    let found = run(cairn(&home).args(["-p", "Say hello."]));
    assert!(found.stderr.contains("talking to smollm2"), "{found:?}");
    answered(&found, &home);

    // A session in a terminal, in either protocol; with few tools, which a small model can read in less time.
    says_hello_in_a_terminal(cairn(&home).envs(messages), &home);
    says_hello_in_a_terminal(cairn(&home).envs(chat), &home);
}

/// One turn with keys and a screen.
fn says_hello_in_a_terminal(command: &mut Command, home: &TempDir) {
    let before = sessions(home).len();
    let command = command.args(["--tools", "Read"]).env("TERM", "xterm-256color");
    let command = command.env("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "60"); // it may never come to an end by itself
    let mut terminal = Terminal::open(command, 80, 24).patient(PATIENCE);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal.say("Say hello.");
    terminal.until("work", |screen| screen.is_working());
    terminal.until("its end", |screen| !screen.is_working() && screen.has_prompt());
    // Words, printed for good between what was said and the prompt.
    let shown = terminal.everything();
    let answer = shown.split('›').nth(1).unwrap().strip_prefix(" Say hello.").unwrap();
    assert!(!answer.trim().is_empty(), "{shown}");
    terminal.leave();
    assert_eq!(sessions(home).len(), before + 1);
    has_figures(home);
}
