//! A real small model behind a real llama.cpp server, in both protocols.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::{installed, root};
use crate::stage::{Ran, bare, run};

/// Where llama.cpp's own server listens unless told otherwise, and where we look for one.
const USUAL_PORT: u16 = 8080;
/// Our tools alone are 3,800 tokens; the model was trained on so many.
const WINDOW: u64 = 8_192;
/// A short system prompt: the model reads slowly.
const ASK: [&str; 4] = ["--model", "smollm2", "--system-prompt", "Be brief."];

/// A running server, ended when dropped.
struct Server(Child);

impl Server {
    /// None when it is not installed, or when another server has the port.
    fn start() -> Option<Self> {
        let python = installed("target/python-llama/bin/python")?;
        if std::net::TcpListener::bind(("127.0.0.1", USUAL_PORT)).is_err() {
            eprintln!("left out: port {USUAL_PORT} is taken");
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
    let ran = run(bare(home.path(), &home.path().join("config")).args(["session", "list", "--json"]));
    let list: Value = serde_json::from_str(&ran.stdout).unwrap();
    let id = list[0]["id"].as_str().unwrap();
    let stats = run(bare(home.path(), &home.path().join("config")).args(["session", "stats", "--json", id])).stdout;
    let stats: Value = serde_json::from_str(&stats).unwrap();
    assert!(stats["contextTokens"].as_u64() > Some(1_000) && stats["outputTokens"].as_u64() > Some(0), "{stats}");
}

/// A real model answers, in one test because the machine is busy with it: through the Messages API, through chat
/// completions, found by itself when nothing is set, and in a session of plain lines.
#[test]
fn a_small_model_answers_in_both_protocols() {
    let Some(_server) = Server::start() else { return };
    let url = format!("http://127.0.0.1:{USUAL_PORT}");
    let home = tempfile::tempdir().unwrap();

    let messages = [("ANTHROPIC_BASE_URL", url.as_str()), ("ANTHROPIC_API_KEY", "sk-none-needed")];
    answered(&run(cairn(&home).envs(messages).args(["-p", "Say hello."])), &home);

    let chat = [("OPENAI_BASE_URL", format!("{url}/v1"))];
    answered(&run(cairn(&home).envs(chat).args(["-p", "Say hello."])), &home);

    let found = run(cairn(&home).args(["-p", "Say hello."]));
    assert!(found.stderr.contains("talking to smollm2"), "{found:?}");
    answered(&found, &home);

    let mut session = cairn(&home);
    session.arg("--plain").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut session = session.spawn().unwrap();
    session.stdin.take().unwrap().write_all(b"Say hello.\n").unwrap();
    let output = session.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let ran = Ran { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) };
    answered(&ran, &home);
}
