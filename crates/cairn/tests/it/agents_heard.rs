//! Agents in the background, however the session goes on or ends: each is heard, or told lost, once.

use std::fs::File;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::hooks::{command, settings};
use crate::stage::{Stage, run};
use crate::teammates::{lead, until};
use crate::terminal::{Terminal, ctrl};

const ALL: [&str; 2] = ["--permission-mode", "bypassPermissions"];

/// An agent that waits for a pipe, sent out in the background by the session, or by an agent of it.
const WAITS: &str = r#"
    [[rule]]
    when = { user = "^Dig", tool = "Bash" }
    say = "It is green."
    [[rule]]
    when = { user = "^Dig" }
    call = [{ tool = "Bash", input = { command = "read line < {{ project }}/pipe" } }]
    [[rule]]
    when = { visible = "<task-notification>(?s).*It is green" }
    say = "Green, then."
    [[rule]]
    when = { user = "^(go|Lead)", tool = "Agent", result = "in the background" }
    say = "I wait."
    [[rule]]
    when = { user = "^below", tool = "Agent", result = "(?s)(?P<what>.+)" }
    say = "It said: {{ what }}"
    [[rule]]
    when = { user = "^(go|Lead)" }
    call = [{ tool = "Agent", input = { description = "dig", prompt = "Dig.", subagent_type = "general-purpose", run_in_background = true } }]
    [[rule]]
    when = { user = "^below" }
    call = [{ tool = "Agent", input = { description = "lead", prompt = "Lead.", subagent_type = "general-purpose" } }]
"#;

/// A hook that lets the agent end once the model has said that it waits, and goes on only when that agent has ended.
const UNTIL_ENDED: &str = r#"case "$(cat)" in *"I wait."*) echo go > pipe; until grep -q task_notification out.jsonl; do sleep 0.02; done;; esac"#;

fn pipe(stage: &Stage) {
    assert!(Command::new("mkfifo").arg(stage.project().join("pipe")).status().unwrap().success());
}

/// Runs to the end with its lines in a file of the project, and gives the last one.
fn result(stage: &Stage, said: &str) -> Value {
    let out = File::create(stage.project().join("out.jsonl")).unwrap();
    let mut command = stage.cairn();
    command.args(["-p", said, "--output-format", "stream-json"]).args(ALL).stdout(out);
    assert_eq!(command.status().unwrap().code(), Some(0));
    let lines = std::fs::read_to_string(stage.project().join("out.jsonl")).unwrap();
    serde_json::from_str(lines.lines().last().unwrap()).unwrap()
}

/// AGENT-5: an agent that ends while a hook looks at the answer is heard before the run ends, also by an agent.
#[test]
fn an_agent_that_ends_while_a_hook_runs_is_heard() {
    for (said, heard) in [("go", "Green, then."), ("below", "Green, then.")] {
        let stage = Stage::new(WAITS);
        pipe(&stage);
        settings(&stage, &json!({"hooks": {"Stop": [command(UNTIL_ENDED)], "SubagentStop": [command(UNTIL_ENDED)]}}));
        let result = result(&stage, said);
        assert!(result["result"].as_str().unwrap().contains(heard), "{said}: {result}");
    }
}

/// Starts a run, and signals it once it has said that it waits. Gives the code, and the lines that it printed.
fn signalled(mut run: Command, signal: &str) -> (Option<i32>, Vec<Value>) {
    use std::io::{BufRead, BufReader};
    let mut child = run.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if line["type"] == "assistant" && line.to_string().contains("I wait.") {
            let kill = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status();
            assert!(kill.unwrap().success());
        }
        lines.push(line);
    }
    (child.wait().unwrap().code(), lines)
}

const SIGNALS: [(&str, i32); 3] = [("TERM", 143), ("HUP", 129), ("INT", 130)];

/// AGENT-5, LOOP-1: a signal that comes while a run waits for an agent is no success.
#[test]
fn a_signal_while_agents_are_waited_for_is_told_as_one() {
    for (signal, expected) in SIGNALS {
        let stage = Stage::new(WAITS);
        pipe(&stage);
        let mut run = stage.cairn();
        run.args(["-p", "go", "--output-format", "stream-json"]).args(ALL);
        let (code, lines) = signalled(run, signal);
        let result = lines.iter().find(|line| line["type"] == "result").unwrap();
        assert_eq!((code, &result["subtype"]), (Some(expected), &json!("error_during_execution")), "{result}");
        assert_eq!(result["is_error"], true, "{result}");
    }
}

/// A lead that starts a scout; the scout waits for a pipe.
const SCOUT: &str = r#"
    [[rule]]
    when = { system = "You are scout" }
    call = [{ tool = "Bash", input = { command = "read line < {{ project }}/pipe" } }]
    [[rule]]
    when = { user = "^again" }
    say = "Hello."
    [[rule]]
    when = { missing = "works in a process" }
    call = [{ tool = "Agent", input = { description = "look", prompt = "Which colour?", name = "scout", team_name = "us" } }]
    [[rule]]
    say = "I wait."
"#;

/// AGENT-5, LOOP-1: the same while it waits for a teammate, and the session that goes on says that the teammate is gone.
#[test]
fn a_signal_while_teammates_are_waited_for_is_told_as_one() {
    for (signal, expected) in SIGNALS {
        let stage = Stage::new(SCOUT);
        pipe(&stage);
        let mut first = lead(&stage, &["-p", "go", "--output-format", "stream-json"]);
        first.args(ALL);
        let (code, lines) = signalled(first, signal);
        let result = lines.iter().find(|line| line["type"] == "result").unwrap();
        assert_eq!((code, &result["subtype"]), (Some(expected), &json!("error_during_execution")), "{result}");
        let again = run(&mut lead(&stage, &["-p", "again", "--continue"]));
        let told = "teammates ended when this session was last closed: scout";
        assert!(again.stderr.contains(told), "{signal}: {again:?}");
        let sent = stage.simulator.requests().pop().unwrap()["messages"].to_string();
        assert!(sent.contains("Your teammates scout"), "{sent}");
    }
}

/// An agent of each kind that works in the background for ever, and one that a call waits for.
const LOST: &str = r#"
    [[rule]]
    when = { user = "(?m)^again" }
    say = "Hello."
    [[rule]]
    when = { user = "^Dig" }
    call = [{ tool = "Bash", input = { command = "read line < {{ project }}/pipe" } }]
    [[rule]]
    when = { user = "^Look", tool = "Read" }
    say = "I looked."
    [[rule]]
    when = { user = "^Look" }
    call = [{ tool = "Read", input = { file_path = "{{ project }}/list.txt" } }]
    [[rule]]
    when = { visible = "<task-notification>(?s).*I looked" }
    say = "I wait."
    [[rule]]
    when = { user = "^go", tool = "Agent" }
    say = "Soon."
    [[rule]]
    when = { user = "^go" }
    call = [
        { tool = "Agent", input = { description = "dig here", prompt = "Dig.", subagent_type = "general-purpose", run_in_background = true } },
        { tool = "Agent", input = { description = "look there", prompt = "Look.", subagent_type = "general-purpose", run_in_background = true } },
    ]
"#;

/// What a session cost, by its file.
fn cost(stage: &Stage) -> f64 {
    let session = stage.session_files().remove(0);
    let id = session.file_stem().unwrap().to_str().unwrap().to_owned();
    let stats: Value = serde_json::from_str(&run(stage.cairn().args(["stats", &id, "--json"])).stdout).unwrap();
    stats["sessions"][0]["costUsd"].as_f64().unwrap()
}

/// What all requests cost, by the ledger.
fn billed(stage: &Stage) -> f64 {
    let stats: Value = serde_json::from_str(&run(stage.cairn().args(["stats", "--json"])).stdout).unwrap();
    stats["today"]["usd"].as_f64().unwrap()
}

/// Goes on with a session and gives what the user was told, and what the model was sent.
fn goes_on(stage: &Stage) -> (String, String) {
    let ran = run(stage.cairn().args(["-p", "again", "--continue"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hello.\n"), "{ran:?}");
    assert_eq!(stage.simulator.report().totals.refused, 0);
    (ran.stderr, stage.simulator.requests().pop().unwrap()["messages"].to_string())
}

/// AGENT-5: after a kill the session that goes on tells the model and the user, once, which agents are lost, and only those;
/// what they used is in its cost.
#[test]
fn after_a_kill_lost_agents_are_told_and_paid_for() {
    let stage = Stage::new(LOST);
    pipe(&stage);
    stage.write("list.txt", "one\n");
    let mut first = stage.cairn();
    first.args(["-p", "go", "--output-format", "stream-json"]).args(ALL);
    let (code, _) = signalled(first, "KILL");
    assert_eq!(code, None);
    let (told, sent) = goes_on(&stage);
    assert!(told.contains("the agent dig here (general-purpose, "), "{told}");
    assert!(!told.contains("look there"), "{told}");
    assert_eq!(sent.matches("<status>lost</status>").count(), 1, "{sent}");
    let (told, sent) = goes_on(&stage);
    assert!(!told.contains("dig here"), "it is told once: {told}");
    assert_eq!(sent.matches("<status>lost</status>").count(), 1, "{sent}");
    assert!((cost(&stage) - billed(&stage)).abs() < 1e-9, "{} and {}", cost(&stage), billed(&stage));
}

/// AGENT-5: a session that is left while agents work says in its log that they were stopped, and what they used.
#[test]
fn agents_that_end_with_the_session_are_told_when_it_goes_on() {
    let stage = Stage::new(LOST);
    pipe(&stage);
    stage.write("list.txt", "one\n");
    let mut first = stage.cairn();
    first.args(["-p", "go", "--output-format", "stream-json"]).args(ALL);
    let (code, _) = signalled(first, "TERM");
    assert_eq!(code, Some(143));
    let (told, sent) = goes_on(&stage);
    assert!(!told.contains("dig here"), "it was told when it was stopped: {told}");
    assert_eq!(sent.matches("<status>stopped</status>").count(), 1, "{sent}");
    assert!((cost(&stage) - billed(&stage)).abs() < 1e-9, "{} and {}", cost(&stage), billed(&stage));
}

/// AGENT-5: who leaves a terminal while an agent works is told that it was stopped, and so is the model when it goes on.
#[test]
fn leaving_a_terminal_tells_of_agents_that_end_with_it() {
    let stage = Stage::new(LOST);
    pipe(&stage);
    stage.write("list.txt", "one\n");
    let mut command = stage.cairn();
    let mut terminal = Terminal::open(command.env("TERM", "xterm-256color").args(ALL), 120, 24);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal.say("go");
    terminal.rests("I wait.");
    terminal.keys(&ctrl('d'));
    assert_eq!(terminal.ended(), 0);
    let left = terminal.everything();
    assert!(left.contains("agents were stopped with the session: dig here"), "{left}");
    let (_, sent) = goes_on(&stage);
    assert_eq!(sent.matches("<status>stopped</status>").count(), 1, "{sent}");
    assert!((cost(&stage) - billed(&stage)).abs() < 1e-9, "{} and {}", cost(&stage), billed(&stage));
}

/// An agent that writes to whoever sent it, who is busy, and then waits.
const WRITES: &str = r#"
    [[rule]]
    when = { user = "(?m)^again" }
    say = "Hello."
    [[rule]]
    when = { user = "^Tell", tool = "SendMessage", result = "^Sent" }
    call = [{ tool = "Bash", input = { command = "touch {{ project }}/sent; read line < {{ project }}/pipe" } }]
    [[rule]]
    when = { user = "^Tell" }
    call = [{ tool = "SendMessage", input = { to = "team-lead", message = "The first is red." } }]
    [[rule]]
    when = { user = "^go", tool = "Agent" }
    call = [{ tool = "Bash", input = { command = "read line < {{ project }}/pipe" } }]
    [[rule]]
    call = [{ tool = "Agent", input = { description = "tell", prompt = "Tell.", subagent_type = "general-purpose", run_in_background = true } }]
"#;

/// MSG-1: a message of an agent that was acknowledged outlives a kill, and is heard once.
#[test]
fn a_message_that_was_acknowledged_outlives_a_kill() {
    let stage = Stage::new(WRITES);
    pipe(&stage);
    let mut child = stage.cairn().args(["-p", "go"]).args(ALL).stdout(Stdio::null()).spawn().unwrap();
    until("the message is acknowledged", || stage.project().join("sent").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    for _ in 0..2 {
        let (_, sent) = goes_on(&stage);
        assert_eq!(sent.matches("The first is red.").count(), 1, "{sent}");
    }
}
