//! A turn while it lasts: the end of what a command prints, the time, a row for each agent, a retry, and the way to the
//! background.

use std::path::{Path, PathBuf};
use std::process::Command;

use simulator::Fault;

use crate::stage::Stage;
use crate::terminal::{ENTER, ESC, SIZES, Terminal, ctrl};

const WORKER: &str = r#"
    [[rule]]
    name = "moved"
    when = { user = "run", visible = "runs on as bash_1" }
    say = "It runs on."
    [[rule]]
    name = "done"
    when = { user = "run", visible = "released" }
    say = "All done."
    [[rule]]
    name = "run"
    when = { user = "run" }
    call = [{ tool = "Bash", input = { command = "seq -f 'test %g ok' 9; printf '\\033[33mlast test\\033[0m\\n'; cat gate", description = "Runs the tests" } }]
    [[rule]]
    name = "inside"
    when = { user = "^Wait for (?P<gate>\\w+)", missing = "released" }
    call = [{ tool = "Bash", input = { command = "cat {{ gate }}" } }]
    [[rule]]
    name = "end"
    when = { user = "^Wait for" }
    say = "It came."
    [[rule]]
    name = "team"
    when = { user = "^send", tool = "Agent" }
    say = "Both came."
    [[rule]]
    name = "send"
    when = { user = "^send" }
    call = [
        { tool = "Agent", input = { description = "watch one", prompt = "Wait for gate", subagent_type = "general-purpose" } },
        { tool = "Agent", input = { description = "watch two", prompt = "Wait for other", subagent_type = "Explore" } },
    ]
    [[rule]]
    say = "Hello."
"#;

fn open(stage: &Stage, columns: u16, lines: u16) -> Terminal {
    let mut command = stage.cairn();
    command.args(["--permission-mode", "bypassPermissions"]).env("TERM", "xterm");
    let mut terminal = Terminal::open(&command, columns, lines);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal
}

fn gate(stage: &Stage, name: &str) -> PathBuf {
    let gate = stage.project().join(name);
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    gate
}

fn release(gate: &Path) {
    use std::io::Write;
    std::fs::File::options().write(true).open(gate).unwrap().write_all(b"released\n").unwrap();
}

/// TERM-5: the end of what a command prints is seen while it runs, with the time it takes; it is gone when the command is.
#[test]
fn the_end_of_the_output_is_seen_while_a_command_runs() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(WORKER);
        let gate = gate(&stage, "gate");
        let mut terminal = open(&stage, columns, lines);
        terminal.say("run them");
        let screen = terminal.until("the end of it", |screen| screen.contains("    last test"));
        assert!(screen.contains("    test 9 ok") && !screen.contains("test 7 ok"), "{}", screen.text());
        terminal.until("the time", |screen| screen.contains(" s · "));
        release(&gate);
        let screen = terminal.rests("All done.");
        assert!(screen.contains("… 7 more lines (Ctrl-O)"), "{}", screen.text());
    }
}

/// TERM-5: Ctrl-B moves a command to the background, where it runs on; what it printed is there to be read.
#[test]
fn a_running_command_goes_to_the_background() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(WORKER);
        let gate = gate(&stage, "gate");
        let mut terminal = open(&stage, columns, lines);
        terminal.say("run them");
        // Where there is no room for it, the key works all the same.
        terminal.shows(if columns == 80 { "Ctrl-B: background" } else { "last test" });
        terminal.keys(&ctrl('b'));
        let screen = terminal.rests("It runs on.");
        assert!(screen.contains("1 in the background"), "{}", screen.text());
        terminal.keys(&format!("/tasks bash_1{ENTER}"));
        terminal.until("what it printed", |screen| screen.contains("  test 1 ok") && screen.contains("  last test"));
        release(&gate);
        terminal.until("its end", |screen| !screen.contains("1 in the background"));
        terminal.keys(&format!("/tasks{ENTER}"));
        terminal.until("its state", |screen| screen.contains("bash_1  done"));
    }
}

/// TERM-5: agents at work in front have a row each, and Ctrl-B moves them too.
#[test]
fn each_agent_has_a_row() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(WORKER);
        let (one, other) = (gate(&stage, "gate"), gate(&stage, "other"));
        let mut terminal = open(&stage, columns, lines);
        terminal.say("send two");
        let screen = terminal.until("two rows", |screen| {
            screen.contains("general-purpose: Bash") && screen.contains("Explore: Bash") && screen.contains("2 agents")
        });
        let rows: Vec<_> = screen.rows.iter().filter(|row| row.contains(": Bash")).collect();
        assert!(rows.len() == 2 && rows.iter().all(|row| row.contains(" s")), "{}", screen.text());
        release(&one);
        terminal.until("one", |screen| !screen.contains("general-purpose: Bash") && screen.contains("Explore: Bash"));
        release(&other);
        terminal.rests("Both came.");
    }
}

/// TERM-6: failed attempts are one row that counts down, and nothing of them stays.
#[test]
fn retries_are_one_row() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(WORKER);
        let busy = Fault { status: Some(529), times: Some(2), retry_after: Some(1), ..Fault::default() };
        stage.simulator.push_fault(busy).unwrap();
        let mut terminal = open(&stage, columns, lines);
        terminal.say("hello");
        let screen = terminal.shows("attempt 1 failed");
        assert_eq!(screen.count("attempt"), 1);
        assert!(screen.contains("again in 1 s"), "{}", screen.text());
        terminal.rests("Hello.");
        assert!(!terminal.everything().contains("attempt"), "{}", terminal.everything());
        stage.simulator.push_fault(Fault { status: Some(529), retry_after: Some(30), ..Fault::default() }).unwrap();
        terminal.say("hello again");
        terminal.until("a long wait", |screen| screen.contains("again in 30 s") || screen.contains("again in 29 s"));
        terminal.keys(ESC);
        terminal.rests("stopped");
    }
}
