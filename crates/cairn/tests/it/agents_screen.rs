//! Agents on the screen: who runs in the background, looking, stopping, bringing to the front, and hearing of an end.

use crate::stage::Stage;
use crate::terminal::{Terminal, ctrl};

/// An agent in the background that waits for a file, and a command that counts.
const BACKGROUND: &str = r#"
    [[rule]]
    when = { user = "^Watch it", tool = "Bash" }
    say = "The file is there."
    [[rule]]
    when = { user = "^Watch it" }
    call = [{ tool = "Bash", input = { command = "touch {{ project }}/watched; until [ -e {{ project }}/there ]; do sleep 0.05; done; echo it is there" } }]
    [[rule]]
    when = { user = "(?s)task-notification.*The file is there" }
    say = "The agent says that the file is there."
    [[rule]]
    when = { user = "^send", tool = "Agent" }
    say = "It is out."
    [[rule]]
    when = { user = "^send" }
    call = [{ tool = "Agent", input = { description = "watch the file", prompt = "Watch it.", subagent_type = "general-purpose", run_in_background = true } }]
    [[rule]]
    when = { user = "^count", tool = "Bash" }
    say = "It counts."
    [[rule]]
    when = { user = "^count" }
    call = [{ tool = "Bash", input = { command = "echo first; until [ -e {{ project }}/more ]; do sleep 0.05; done; echo second; until [ -e {{ project }}/end ]; do sleep 0.05; done; echo third", run_in_background = true } }]
"#;

fn open(stage: &Stage) -> Terminal {
    Terminal::start_with(stage, &["--permission-mode", "bypassPermissions"])
}

/// AGENT-2: an agent in the background stands in `/tasks` and in the status line; its end begins a turn by itself, in which
/// the model reads the report.
#[test]
fn an_agent_in_the_background_is_listed_and_its_end_is_heard() {
    let stage = Stage::new(BACKGROUND);
    let mut terminal = open(&stage);
    terminal.say("send");
    terminal.rests("It is out.");
    terminal.keys("/tasks\r");
    let screen = terminal
        .until("the list", |screen| screen.contains("running") && screen.contains("general-purpose: watch the file"));
    let row = screen.rows.iter().find(|row| row.contains("general-purpose: watch")).unwrap().clone();
    let id = row.split_whitespace().next().unwrap().to_owned();
    while !stage.project().join("watched").exists() {
        std::thread::yield_now();
    }
    terminal.keys(&format!("/tasks {id}\r"));
    terminal.until("what it does", |screen| screen.contains("1 calls, 1 requests") && screen.contains("transcript"));
    stage.write("there", "");
    terminal.rests("The agent says that the file is there.");
    terminal.shows("general-purpose has ended: watch the file");
    terminal.keys(&format!("/tasks {id}\r"));
    terminal.until("what came of it", |screen| screen.contains("done") && screen.contains("<agent-report"));
    terminal.leave();
}

/// AGENT-2: one that runs is stopped by its id, and the conversation hears of it.
#[test]
fn an_agent_is_stopped_by_its_id() {
    let stage = Stage::new(BACKGROUND);
    let mut terminal = open(&stage);
    terminal.say("send");
    terminal.rests("It is out.");
    terminal.keys("/tasks\r");
    let screen = terminal.until("the list", |screen| screen.contains("general-purpose: watch the file"));
    let row = screen.rows.iter().find(|row| row.contains("general-purpose: watch")).unwrap().clone();
    let id = row.split_whitespace().next().unwrap().to_owned();
    terminal.keys(&format!("/tasks stop {id}\r"));
    terminal.shows("general-purpose has ended: watch the file");
    let heard = |stage: &Stage| {
        stage.simulator.requests().iter().any(|request| request.to_string().contains("<status>stopped</status>"))
    };
    while !heard(&stage) {
        std::thread::yield_now();
    }
    terminal.keys(&ctrl('c'));
}

/// AGENT-2: a command in front is followed: what it prints is shown as it comes, and its end is told.
#[test]
fn a_command_in_front_is_followed() {
    let stage = Stage::new(BACKGROUND);
    let mut terminal = open(&stage);
    terminal.say("count");
    terminal.rests("It counts.");
    terminal.keys("/tasks\r");
    let screen = terminal.until("the list", |screen| {
        screen.rows.iter().any(|row| row.contains("running") && row.contains("echo first"))
    });
    let row = screen.rows.iter().find(|row| row.contains("running") && row.contains("echo first")).unwrap().clone();
    let id = row.split_whitespace().next().unwrap().to_owned();
    terminal.keys(&format!("/tasks front {id}\r"));
    let is_row = |screen: &crate::terminal::Screen, text: &str| screen.rows.iter().any(|row| row.trim() == text);
    terminal.until("what was printed before", |screen| is_row(screen, "first"));
    stage.write("more", "");
    terminal.until("what is printed now", |screen| is_row(screen, "second"));
    stage.write("end", "");
    terminal.until("its end", |screen| is_row(screen, "third") && screen.contains(&format!("{id}: done")));
    terminal.leave();
}

/// AGENT-1: `/agents` names those there are, whose they are, and shows one whole.
#[test]
fn the_agents_there_are_can_be_looked_at() {
    let stage = Stage::new(BACKGROUND);
    let mut terminal = open(&stage);
    terminal.keys("/agents\r");
    terminal.until("the list", |screen| screen.contains("Explore") && screen.contains("(built-in)"));
    terminal.keys("/agents Plan\r");
    terminal.until("one of them", |screen| screen.contains("prompt"));
    terminal.leave();
}

/// AGENT-1: a session that has no agents says in `/agents` why, and when it has them.
#[test]
fn a_session_without_agents_says_why() {
    for (first, flags, why) in [
        (Some("--tools=Read"), &["--continue"][..], "this session began without agents"),
        (None, &["--disallowedTools", "Agent"], "a rule denies the tool Agent"),
        (None, &["--tools", "Read"], "no agents can be sent out here: the session was started bare"),
    ] {
        let stage = Stage::new("[[rule]]\nsay = 'Yes.'");
        if let Some(first) = first {
            assert!(stage.cairn().args(["-p", "hello", first]).output().unwrap().status.success());
        }
        let mut terminal = Terminal::start_with(&stage, flags);
        terminal.keys("/agents\r");
        terminal.shows(why);
        terminal.leave();
    }
}
