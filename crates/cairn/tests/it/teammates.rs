//! Teammates: processes that a session starts, writes to and hears from, and that end with it.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::stage::{Stage, run};
use crate::terminal::Terminal;

/// A lead that starts a scout, asks it one thing more when it reports, and then lets it go; a scout that answers.
pub const TEAM: &str = r#"
    [[rule]]
    name = "scout: asked again"
    when = { system = "You are scout", visible = "And the second", missing = "second is blue" }
    call = [{ tool = "SendMessage", input = { to = "team-lead", message = "The second is blue.", summary = "the second" } }]
    [[rule]]
    name = "scout: first"
    when = { system = "You are scout", missing = "first is red" }
    call = [{ tool = "SendMessage", input = { to = "team-lead", message = "The first is red." } }]
    [[rule]]
    name = "scout: idle"
    when = { system = "You are scout" }
    say = "Nothing more."
    [[rule]]
    name = "lead: over"
    when = { visible = "scout\">\nshuts down" }
    say = "The first is red and the second is blue."
    [[rule]]
    name = "lead: let go"
    when = { visible = "(?s)second is blue.*Nothing more", missing = "shutdown_request" }
    call = [{ tool = "SendMessage", input = { to = "scout", message = { type = "shutdown_request", reason = "done" } } }]
    [[rule]]
    name = "lead: more"
    when = { visible = "first is red", missing = "And the second" }
    call = [{ tool = "SendMessage", input = { to = "scout", message = "And the second?" } }]
    [[rule]]
    name = "lead: begin"
    when = { missing = "works in a process" }
    call = [{ tool = "Agent", input = { description = "look", prompt = "Which colour is the first?", name = "scout", team_name = "us" } }]
    [[rule]]
    name = "lead: wait"
    say = "I wait."
"#;

pub fn lead(stage: &Stage, args: &[&str]) -> std::process::Command {
    let mut command = stage.cairn();
    command.env("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "1").args(args);
    command
}

/// The processes that belong to a stage, by what they were called with.
pub fn processes(stage: &Stage) -> Vec<String> {
    let config = stage.config();
    let mark = format!("CLAUDE_CONFIG_DIR={}", config.display());
    let mut found = Vec::new();
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
        let has_mark = String::from_utf8_lossy(&environment).split('\0').any(|variable| variable == mark);
        // One that is ending has no environment any more, and its files are still open and locked.
        let has_files = || {
            let files = std::fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
            files.filter_map(|file| std::fs::read_link(file.path()).ok()).any(|file| file.starts_with(&config))
        };
        if has_mark || environment.is_empty() && has_files() {
            let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            found.push(String::from_utf8_lossy(&line).replace('\0', " "));
        }
    }
    found
}

/// Looks until it is so, for twenty seconds at most.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if is_so() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("not within twenty seconds: {what}");
}

/// AGENT-2, MSG-1, MSG-3: the model starts a teammate, hears from it, writes to it, and asks it to shut down; a lead without a
/// terminal waits for those who work. Nothing stays behind.
#[test]
fn a_lead_and_its_teammate_write_to_one_another() {
    let stage = Stage::new(TEAM);
    let ran = run(&mut lead(&stage, &["-p", "find out", "--output-format", "stream-json"]));
    let lines: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let result = lines.last().unwrap();
    assert_eq!(result["result"], "The first is red and the second is blue.", "{} {}", ran.stdout, ran.stderr);
    let heard: Vec<(&str, &str)> = lines
        .iter()
        .filter(|line| line["subtype"] == "message")
        .map(|line| (line["from"].as_str().unwrap(), line["text"].as_str().unwrap()))
        .collect();
    assert_eq!(heard[0], ("scout", "The first is red."), "{heard:?}");
    assert!(heard.contains(&("scout", "The second is blue.")), "{heard:?}");
    assert_eq!(heard.last(), Some(&("scout", "shuts down")), "{heard:?}");
    assert_eq!(stage.simulator.report().totals.refused, 0);
    assert!(processes(&stage).is_empty());
    assert_eq!(stage.session_files().len(), 2, "each has a session of its own");
    let own = result["session_id"].as_str().unwrap();
    let stats = run(stage.cairn().args(["stats", own, "--json"]));
    let stats: Value = serde_json::from_str(&stats.stdout).unwrap();
    let mates = &stats["sessions"][0]["teammates"];
    assert_eq!((mates.as_array().unwrap().len(), &mates[0]["name"]), (1, &json!("scout")), "{stats}");
    let theirs = run(stage.cairn().args(["stats", mates[0]["session"].as_str().unwrap(), "--json"]));
    let theirs: Value = serde_json::from_str(&theirs.stdout).unwrap();
    assert_eq!(mates[0]["costUsd"], theirs["sessions"][0]["costUsd"], "what its own session says");
    let told: Vec<&Value> = lines.iter().filter(|line| line["task_id"] == "scout").collect();
    let kinds: Vec<&str> = told.iter().filter_map(|line| line["subtype"].as_str()).collect();
    assert_eq!(kinds.first(), Some(&"task_started"), "{told:?}");
    let idle = told.iter().rfind(|line| line["status"] == "idle").unwrap();
    assert_eq!(idle["teammate_session_id"], mates[0]["session"]);
    assert!(idle["usage"]["total_tokens"].as_u64() > Some(1_000) && idle["usage"]["cost_usd"].as_f64() > Some(0.0));
    assert!(idle["usage"]["cost_usd"].as_f64() < mates[0]["costUsd"].as_f64(), "it has ended its work after that");
    assert!(mates[0]["tokens"].as_u64() > Some(1_000), "{stats}");
    let all = run(stage.cairn().arg("stats"));
    assert!(all.stdout.contains("teammate     scout $"), "{}", all.stdout);
    assert!(!stage.config().join("teams").read_dir().unwrap().any(|team| team.is_ok()), "the team is gone");
}

/// MSG-1: where there are no teammates their tools and words are not there.
#[test]
fn without_teammates_nothing_is_offered_for_them() {
    let stage = Stage::new("[[rule]]\nsay = \"Hello.\"");
    assert_eq!(run(stage.cairn().args(["-p", "hi"])).code, Some(0));
    let plain = stage.simulator.requests().remove(0);
    assert_eq!(run(&mut lead(&stage, &["-p", "hi"])).code, Some(0));
    let team = stage.simulator.requests().remove(1);
    let names = |request: &Value| -> Vec<String> {
        let tools = request["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    assert!(!names(&plain).contains(&"TaskList".to_owned()) && names(&team).contains(&"TaskList".to_owned()));
    let tool = |request: &Value, name: &str| {
        let tools = request["tools"].as_array().unwrap().iter();
        tools.clone().find(|tool| tool["name"] == name).cloned().unwrap()
    };
    assert_eq!(tool(&plain, "Agent"), tool(&team, "Agent"), "the definition of Agent stays as it is");
    let says = |request: &Value| tool(request, "SendMessage").to_string().contains("teammate");
    assert!(!says(&plain) && says(&team));
    // Counted with three bytes a token, which is on the safe side.
    let bytes = tool(&team, "Agent").to_string().len() + tool(&team, "SendMessage").to_string().len();
    assert!(bytes / 3 <= 800, "{bytes} bytes");
}

pub const STUCK: &str = r#"
    [[rule]]
    when = { system = "You are scout" }
    call = [{ tool = "Bash", input = { command = "trap '' TERM HUP; (setsid sleep 3000 &); touch scouting; sleep 3000; true" } }]
    [[rule]]
    when = { missing = "works in a process" }
    call = [{ tool = "Agent", input = { description = "look", prompt = "Look.", name = "scout", team_name = "us" } }]
    [[rule]]
    say = "I wait."
"#;

/// What stands before [`STUCK`] where the scout is written to again, by a lead that goes on.
pub const WOKEN: &str = r#"
    [[rule]]
    when = { system = "You are scout", visible = "Are you there" }
    say = "Here I am again."
    [[rule]]
    when = { visible = "Here I am again" }
    say = "It is there again."
    [[rule]]
    when = { user = "and now", missing = "Sent to scout" }
    call = [{ tool = "SendMessage", input = { to = "scout", message = "Are you there?" } }]
"#;

/// A lead that writes to a scout which has shut down.
const AGAIN: &str = r#"
    [[rule]]
    name = "scout: again"
    when = { system = "You are scout", visible = ["What was it", "colour is it"] }
    say = "It was red, as I said."
    [[rule]]
    name = "scout: first"
    when = { system = "You are scout" }
    say = "It is red."
    [[rule]]
    name = "lead: heard"
    when = { visible = "as I said" }
    say = "Heard again."
    [[rule]]
    name = "lead: again"
    when = { visible = "scout\">\nshuts down", missing = "What was it" }
    call = [{ tool = "SendMessage", input = { to = "scout", message = "What was it?" } }]
    [[rule]]
    name = "lead: let go"
    when = { visible = "It is red", missing = "Sent to scout" }
    call = [{ tool = "SendMessage", input = { to = "scout", message = { type = "shutdown_request" } } }]
    [[rule]]
    name = "lead: begin"
    when = { missing = "works in a process" }
    call = [{ tool = "Agent", input = { description = "look", prompt = "Which colour is it?", name = "scout", team_name = "us" } }]
    [[rule]]
    say = "I wait."
"#;

/// MSG-2: an agent that has ended and is written to goes on where its transcript ends.
#[test]
fn a_teammate_that_has_ended_goes_on_when_it_is_written_to() {
    let stage = Stage::new(AGAIN);
    let ran = run(&mut lead(&stage, &["-p", "go"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Heard again.\n"), "{}", ran.stderr);
    assert_eq!(stage.session_files().len(), 2, "it goes on in its own session");
    assert!(processes(&stage).is_empty());
}

/// AGENT-2: a lead that is killed leaves no teammate, and nothing that a teammate started. What it had written is there when it
/// goes on.
#[test]
fn a_killed_lead_leaves_no_teammate() {
    let stage = Stage::new(STUCK);
    let mut child = lead(&stage, &["-p", "go", "--allowedTools", "Bash"]).stdout(Stdio::null()).spawn().unwrap();
    until("the scout works", || stage.project().join("scouting").exists());
    assert!(processes(&stage).iter().any(|line| line.contains("--agent-name scout")), "{:?}", processes(&stage));
    child.kill().unwrap();
    child.wait().unwrap();
    until("all are gone", || processes(&stage).is_empty());
}

/// AGENT-2: `cairn agents start` is the lead of what it starts: its last words are printed, and killed it leaves nothing.
#[test]
fn a_teammate_is_started_from_the_command_line() {
    let stage =
        Stage::new("[[rule]]\nwhen = { system = \"You are scout\", visible = \"Look at\" }\nsay = \"It is red.\"");
    let ran = run(stage.cairn().args(["agents", "start", "scout", "Look at it."]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("scout is idle, and said last: It is red."), "{}", ran.stdout);
    assert!(processes(&stage).is_empty());
    let stage = Stage::new(STUCK);
    let args = ["agents", "start", "scout", "Look.", "--", "--allowedTools", "Bash"];
    let mut child = stage.cairn().args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the scout works", || stage.project().join("scouting").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    until("all are gone", || processes(&stage).is_empty());
}

const PLANNER: &str = r#"
    [[rule]]
    name = "scout: approved"
    when = { system = "You are scout", visible = "approves the plan", missing = "written" }
    call = [{ tool = "Write", input = { file_path = "{{ project }}/out.txt", content = "written" } }]
    [[rule]]
    name = "scout: done"
    when = { system = "You are scout", visible = "written" }
    say = "It is written."
    [[rule]]
    name = "scout: waits"
    when = { system = "You are scout", visible = "The plan is with the lead" }
    say = "I wait."
    [[rule]]
    name = "scout: tries"
    when = { system = "You are scout", missing = "early.txt" }
    call = [{ tool = "Write", input = { file_path = "{{ project }}/early.txt", content = "x" } }]
    [[rule]]
    name = "scout: plans"
    when = { system = "You are scout" }
    call = [{ tool = "ExitPlanMode", input = { plan = "1. write it" } }]
    [[rule]]
    name = "lead: approve"
    when = { visible = "(?s)has a plan.*\"request_id\": \"(?P<id>[^\"]+)\"", missing = "Sent to scout" }
    call = [{ tool = "SendMessage", input = { to = "scout", message = { type = "plan_approval_response", request_id = "{{ id }}", approve = true } } }]
    [[rule]]
    name = "lead: done"
    when = { visible = "It is written" }
    say = "Done."
    [[rule]]
    name = "lead: begin"
    when = { missing = "works in a process" }
    call = [{ tool = "Agent", input = { description = "plan", prompt = "Plan, then write.", name = "scout", team_name = "us", mode = "plan" } }]
    [[rule]]
    say = "I wait."
"#;

/// MSG-3: a teammate that has to plan changes nothing before the lead approves, and carries the plan out then.
#[test]
fn a_plan_waits_for_the_leads_word() {
    let stage = Stage::new(PLANNER);
    let ran = run(&mut lead(&stage, &["-p", "go", "--allowedTools", "Write", "Edit"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Done.\n"), "{}", ran.stderr);
    assert!(!stage.project().join("early.txt").exists(), "it only looks until then");
    assert_eq!(std::fs::read_to_string(stage.project().join("out.txt")).unwrap(), "written");
}

/// AGENT-2: the status line and `/tasks` show who is there and who works; the session can be written to also after it was
/// opened anew with another model.
#[test]
fn the_screen_shows_teammates() {
    let stage = Stage::new(
        r#"
        [[rule]]
        when = { system = "You are scout", missing = "looked" }
        call = [{ tool = "Bash", input = { command = "touch reading; cat pipe; echo looked" } }]
        [[rule]]
        when = { system = "You are scout" }
        say = "It is red."
        [[rule]]
        when = { visible = "is idle, and said last" }
        say = "The scout is done."
        [[rule]]
        when = { user = "go", missing = "works in a process" }
        call = [{ tool = "Agent", input = { description = "look", prompt = "Look.", name = "scout", team_name = "us" } }]
        [[rule]]
        say = "I wait."
        "#,
    );
    let pipe = stage.project().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut command = lead(&stage, &["--allowedTools", "Bash"]);
    let mut terminal = Terminal::open(command.env("TERM", "xterm-256color"), 120, 40);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal.say("go");
    terminal.until("one at work", |screen| screen.contains("1 teammate, 1 at work") && !screen.is_working());
    terminal.keys("/tasks\r");
    terminal.until("by name", |screen| screen.contains("scout  at work      teammate: Look."));
    until("it does something", || stage.project().join("reading").exists());
    terminal.keys("/tasks scout\r");
    terminal.until("what it does", |screen| {
        screen.contains("last call  Bash touch reading; cat pipe; echo looked") && screen.contains(", 1 reply, ")
    });
    // Opening waits for the scout's command to do so too.
    std::fs::write(&pipe, "").unwrap();
    terminal.until("what it said", |screen| screen.contains("The scout is done."));
    terminal.until("its rest", |screen| screen.contains("1 teammate, 0 at work") && !screen.is_working());
    terminal.keys("/cost\r");
    terminal.until("what it cost", |screen| screen.contains("teammate") && screen.contains("scout $"));
    terminal.keys("/model haiku\r");
    terminal.until("another model", |screen| screen.contains("claude-haiku-4-5 ·"));
    assert!(run(stage.cairn().args(["send", "--list"])).stdout.ends_with("  session\n"));
    terminal.leave();
    assert!(processes(&stage).is_empty());
}

/// MSG-1: a socket that nobody listens at is taken away by the next session.
#[test]
fn a_stale_socket_is_taken_away() {
    let stage = Stage::new("[[rule]]\nsay = \"Hello.\"");
    let terminal = Terminal::start(&stage);
    let sockets = stage.config().join("sockets");
    let stale = sockets.read_dir().unwrap().next().unwrap().unwrap().path();
    std::process::Command::new("kill").args(["-9", &terminal.process().to_string()]).status().unwrap();
    until("it is gone", || !run(stage.cairn().args(["send", "--list"])).stdout.contains("session"));
    assert!(stale.exists());
    assert_eq!(run(stage.cairn().args(["-p", "hi"])).code, Some(0));
    assert!(!stale.exists() && sockets.read_dir().unwrap().count() == 0);
}

/// MSG-1: a session that is stopped is still there, and holds up nobody, though the queue at its socket is full.
#[test]
fn a_stopped_session_holds_up_no_other() {
    let stage = Stage::new("[[rule]]\nsay = \"Hello.\"");
    let terminal = Terminal::start(&stage);
    let socket = stage.config().join("sockets").read_dir().unwrap().next().unwrap().unwrap().path();
    let signal = |name: &str| {
        std::process::Command::new("kill").args([name, &terminal.process().to_string()]).status().unwrap();
    };
    signal("-STOP");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let full = (0..100_000).any(|_| runtime.block_on(tokio::net::UnixStream::connect(&socket)).is_err());
    assert!(full, "its queue takes everybody");
    assert!(run(stage.cairn().args(["send", "--list"])).stdout.contains("session"));
    assert_eq!(run(stage.cairn().args(["-p", "hi"])).code, Some(0));
    assert!(socket.exists(), "and its socket stays");
    signal("-CONT");
    terminal.leave();
}

/// A scout that wants to run a command, and a lead that waits for it.
pub const ASKS: &str = r#"
    [[rule]]
    when = { system = "You are scout", result = "(?s)(?P<what>.+)", tool = "Bash" }
    say = "I heard: {{ what }}"
    [[rule]]
    when = { system = "You are scout" }
    call = [{ tool = "Bash", input = { command = "touch made.txt && echo it is made" } }]
    [[rule]]
    when = { visible = "said last: I heard: (?P<what>[^\\n]+)" }
    say = "The scout heard {{ what }}"
    [[rule]]
    when = { missing = "works in a process" }
    call = [{ tool = "Agent", input = { description = "make", prompt = "Make it.", name = "scout", team_name = "us" } }]
    [[rule]]
    say = "I wait."
"#;

/// AGENT-2: a teammate's question waits for the person at the lead, under its name, and the answer reaches it; shown in the
/// status line and in `/tasks`.
#[test]
fn a_teammates_question_reaches_the_person_at_the_lead() {
    for (key, made, said) in [("y", true, "The scout heard it is made"), ("n\r", false, "The scout heard")] {
        let stage = Stage::new(ASKS);
        let mut command = lead(&stage, &[]);
        let mut terminal = Terminal::open(command.env("TERM", "xterm-256color"), 120, 40);
        terminal.until("a prompt", |screen| screen.has_prompt());
        terminal.say("go");
        terminal.until("word of it", |screen| screen.contains("scout asks something") && !screen.is_working());
        assert!(!stage.project().join("made.txt").exists());
        terminal.until("the question", |screen| {
            screen.contains("the teammate scout asks") && screen.contains("touch made.txt")
        });
        terminal.keys(key);
        terminal.until("what came of it", |screen| screen.contains(said));
        assert_eq!(stage.project().join("made.txt").exists(), made);
        terminal.leave();
        assert!(processes(&stage).is_empty());
    }
}

/// AGENT-2: with nobody at the lead, what a teammate has to ask is denied, at once and with why; no model hears of the question.
#[test]
fn a_teammates_question_is_denied_where_nobody_is_there() {
    let stage = Stage::new(ASKS);
    let ran = run(&mut lead(&stage, &["-p", "go"]));
    assert!(ran.stdout.contains("nobody is there to give it"), "{} {}", ran.stdout, ran.stderr);
    assert!(!stage.project().join("made.txt").exists());
    assert!(!stage.simulator.requests().iter().any(|request| request.to_string().contains("permission_request")));
}

/// AGENT-2: a teammate of a type has its prompt, its model, and of the tools what the definition leaves, beside those of a team;
/// an unknown type is refused with those there are.
#[test]
fn a_teammate_of_a_type_is_what_its_definition_says() {
    let script = r#"
        [[rule]]
        when = { system = "You are scout" }
        say = "Reviewed."
        [[rule]]
        when = { visible = "said last: Reviewed" }
        say = "Done."
        [[rule]]
        when = { tool = "Agent", result = "There is no agent named .painter.. There are: .*reviewer" }
        call = [{ tool = "Agent", input = { description = "r", prompt = "Review.", name = "scout", team_name = "us", subagent_type = "reviewer" } }]
        [[rule]]
        when = { missing = "There is no agent|works in a process" }
        call = [{ tool = "Agent", input = { description = "r", prompt = "Paint.", name = "scout", team_name = "us", subagent_type = "painter" } }]
        [[rule]]
        say = "I wait."
    "#;
    let stage = Stage::new(script);
    let agents = json!({"reviewer": {
        "description": "Reviews.", "prompt": "You review with care.", "tools": ["Read", "Bash(git diff *)"],
        "model": "claude-haiku-4-5", "initialPrompt": "Begin with the tests.",
    }});
    let ran = run(&mut lead(&stage, &["-p", "go", "--model", "claude-sonnet-5", "--agents", &agents.to_string()]));
    assert_eq!(ran.stdout, "Done.\n", "{}", ran.stderr);
    let requests = stage.simulator.requests();
    let theirs = requests.iter().find(|request| request["system"].to_string().contains("You are scout")).unwrap();
    assert!(theirs["system"].to_string().contains("You review with care."), "{}", theirs["system"]);
    assert_eq!(theirs["model"], "claude-haiku-4-5");
    assert!(theirs["messages"].to_string().contains("Begin with the tests.\\n\\nReview."), "{}", theirs["messages"]);
    let names: Vec<&str> =
        theirs["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(["Read", "Bash", "SendMessage", "TaskUpdate"].iter().all(|name| names.contains(name)), "{names:?}");
    assert!(!["Edit", "Write", "Agent"].iter().any(|name| names.contains(name)), "{names:?}");
}

/// AGENT-2: a budget in the definition of a teammate ends its turn, and the lead is told.
#[test]
fn a_budget_ends_a_teammates_turn() {
    let script = r#"
        [[rule]]
        when = { system = "You are scout" }
        call = [{ tool = "Read", input = { file_path = "{{ project }}/x.txt" } }]
        [[rule]]
        when = { visible = "the token budget is spent" }
        say = "It has used up its budget."
        [[rule]]
        when = { missing = "works in a process" }
        call = [{ tool = "Agent", input = { description = "r", prompt = "Read on.", name = "scout", team_name = "us", subagent_type = "reader" } }]
        [[rule]]
        say = "I wait."
    "#;
    let stage = Stage::new(script);
    let agents = json!({"reader": {"description": "Reads.", "prompt": "You read.", "budget": 10}});
    let ran = run(&mut lead(&stage, &["-p", "go", "--agents", &agents.to_string()]));
    assert_eq!(ran.stdout, "It has used up its budget.\n", "{}", ran.stderr);
    let theirs = stage
        .simulator
        .requests()
        .into_iter()
        .filter(|request| request["system"].to_string().contains("You are scout"));
    assert_eq!(theirs.count(), 1, "no further request is made");
}
