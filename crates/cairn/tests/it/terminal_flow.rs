//! Nothing in the way: choosing a session at the start, commands during a turn, lines that begin like paths, and a mode that
//! cannot be missed.

use simulator::Fault;

use crate::stage::{Stage, piped, run};
use crate::terminal::{ENTER, ESC, SIZES, Terminal};

const HELLO: &str = "[[rule]]\nsay = 'Hello.'";

fn open(stage: &Stage, columns: u16, lines: u16, args: &[&str]) -> Terminal {
    let mut terminal = Terminal::open(stage.cairn().args(args).env("TERM", "xterm"), columns, lines);
    terminal.until("a prompt", |screen| screen.has_prompt() || screen.contains("Esc closes"));
    terminal
}

fn said(stage: &Stage) -> String {
    stage.last_said()["messages"].to_string()
}

/// TERM-11: `--resume` without an id opens the list of sessions; Esc leaves a new one.
#[test]
fn resume_without_an_id_lets_one_choose() {
    let stage = Stage::new(HELLO);
    for topic in ["apples", "pears"] {
        assert_eq!(run(stage.cairn().args(["-p", &format!("about {topic}")])).code, Some(0));
    }
    for (columns, lines) in SIZES {
        let mut terminal = open(&stage, columns, lines, &["--resume"]);
        terminal.until("the list", |screen| screen.contains("about pears") && screen.contains("about apples"));
        terminal.keys("apples");
        terminal.until("the one", |screen| screen.contains("› about apples") && !screen.contains("pears"));
        terminal.keys(ENTER);
        terminal.rests("› about apples");
        terminal.say("more");
        terminal.until("the answer", |screen| {
            let all = stage.simulator.requests();
            let is_it = |request: &serde_json::Value| {
                let text = request["messages"].to_string();
                text.contains("about apples") && text.contains("\"more\"")
            };
            all.iter().any(is_it) && !screen.is_working() && screen.has_prompt()
        });
        drop(terminal);
    }
    let mut terminal = open(&stage, 80, 24, &["--resume"]);
    terminal.shows("Continue which session?");
    terminal.keys(ESC);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal.say("something new");
    terminal.rests("Hello.");
    assert!(!said(&stage).contains("about "), "{}", said(&stage));
    drop(terminal);
    let text = piped(&stage, &["--resume"], "1\n/status\n");
    assert!(text.contains("Continue which session?") && text.contains("› "), "{text}");
    let ran = run(stage.cairn().args(["-p", "--resume", "--", "hi"]));
    assert!(ran.code != Some(0) && ran.stderr.contains("needs an id"), "{ran:?}");
}

/// TERM-11: what is above the part that is shown is counted, and the part begins with the user's words.
#[test]
fn resuming_says_how_much_is_above() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(HELLO);
        let mut terminal = open(&stage, columns, lines, &[]);
        for n in 1..=9 {
            terminal.say(&format!("message {n}"));
            terminal.until("the answer", |screen| {
                screen.contains(&format!("› message {n}")) && !screen.is_working() && screen.has_prompt()
            });
        }
        terminal.leave();
        let mut terminal = open(&stage, columns, 40, &["--continue"]);
        let screen = terminal.rests("› message 9");
        let above =
            screen.rows.iter().find_map(|row| row.split(" earlier messages above: cairn session").next()?.parse().ok());
        let above: usize = above.unwrap_or_else(|| panic!("{}", screen.text()));
        assert!(screen.contains(&format!("› message {}", above + 1)), "{}", screen.text());
        assert!(!screen.contains(&format!("› message {above}")), "{}", screen.text());
    }
}

/// TERM-12: what only reads runs during a turn, other commands wait for its end, and nothing typed is lost.
#[test]
fn commands_run_or_wait_during_a_turn() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(HELLO);
        let mut terminal = open(&stage, columns, lines, &[]);
        stage.simulator.push_fault(Fault { stall: true, ..Fault::default() }).unwrap();
        terminal.say("hi");
        terminal.shows("waiting for the model");
        terminal.keys(&format!("/status{ENTER}"));
        terminal.until("the status", |screen| screen.contains("replies") && screen.contains("window"));
        terminal.keys(&format!("/context{ENTER}"));
        terminal.shows("queued: /context");
        terminal.keys(ESC);
        terminal.until("it runs", |screen| screen.contains("layers that are off") && !screen.contains("queued"));
    }
}

/// TERM-12: a list that waited for the end of the turn opens when nothing is being typed, and takes no key of that line.
#[test]
fn a_list_that_waited_takes_no_keys_of_a_line() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(HELLO);
        let mut terminal = open(&stage, columns, lines, &[]);
        stage.simulator.push_fault(Fault { stall: true, ..Fault::default() }).unwrap();
        terminal.say("hi");
        terminal.shows("waiting for the model");
        terminal.keys(&format!("/model{ENTER}"));
        terminal.shows("queued: /model");
        terminal.keys("half a");
        terminal.until("the request", |screen| screen.contains("half a") && !stage.simulator.requests().is_empty());
        terminal.keys(ESC);
        terminal.until("the end of the turn", |screen| !screen.is_working() && screen.contains("queued: /model"));
        terminal.keys(&format!(" line{ENTER}"));
        terminal.shows("queued: half a line");
        terminal.until("the list", |screen| screen.contains("Enter chooses"));
        terminal.keys(ESC);
        terminal.rests("Hello.");
        assert!(said(&stage).contains("half a line"));
    }
}

/// TERM-12: a line that begins like a path is a message.
#[test]
fn a_path_is_no_command() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(HELLO);
        let mut terminal = open(&stage, columns, lines, &[]);
        terminal.keys("/usr/bin/env is broken");
        terminal.shows("is broken");
        terminal.keys(ENTER);
        terminal.rests("Hello.");
        assert!(said(&stage).contains("/usr/bin/env is broken"));
        terminal.keys("/tmp is full");
        terminal.shows("is full");
        terminal.keys(ENTER);
        terminal.until("the answer", |screen| screen.count("Hello.") == 2 && !screen.is_working());
        terminal.keys(&format!("/nonsense{ENTER}"));
        terminal.shows("there is no /nonsense");
    }
}

/// TERM-13: the mode stands first, with a colour of its own, and in which nothing is asked there is a warning.
#[test]
fn the_mode_cannot_be_missed() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(HELLO);
        let mut terminal = open(&stage, columns, lines, &["--permission-mode", "bypassPermissions"]);
        let screen = terminal.shows("bypassPermissions");
        assert!(screen.contains("warning: bypassPermissions"), "{}", screen.text());
        assert!(screen.rows.iter().any(|row| row.starts_with("bypassPermissions · ")), "{}", screen.text());
        let written = String::from_utf8_lossy(&terminal.written).into_owned();
        assert!(written.contains("\x1b[1;31mbypassPermissions"), "{written:?}");
        terminal.keys("\x1b[Z");
        terminal.until("the usual mode", |screen| screen.contains("default: "));
        for (name, colour) in [("acceptEdits", 33), ("plan", 36)] {
            terminal.keys("\x1b[Z");
            terminal.shows(&format!("{name}: "));
            terminal.keys("x\x7f");
            terminal.until("the line", |screen| screen.rows.iter().any(|row| row.starts_with(&format!("{name} · "))));
            let written = String::from_utf8_lossy(&terminal.written).into_owned();
            assert!(written.contains(&format!("\x1b[1;{colour}m{name}")), "{written:?}");
        }
    }
    let stage = Stage::new(HELLO);
    let ran = piped(&stage, &["--permission-mode", "bypassPermissions"], "/mode\n");
    assert!(ran.contains("the mode is bypassPermissions"), "{ran}");
    let mut command = stage.cairn();
    command.args(["--permission-mode", "plan"]).env("TERM", "xterm").env("NO_COLOR", "1");
    let mut terminal = Terminal::open(&command, 40, 15);
    terminal.until("the mode", |screen| screen.rows.iter().any(|row| row.starts_with("plan · ")));
}

/// TERM-6: without a terminal a retry is told as well.
#[test]
fn headless_says_what_it_waits_for() {
    let stage = Stage::new(HELLO);
    stage.simulator.push_fault(Fault { status: Some(529), retry_after: Some(1), ..Fault::default() }).unwrap();
    let ran = run(stage.cairn().args(["-p", "hi"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hello.\n"));
    assert!(ran.stderr.contains("attempt 1 failed (") && ran.stderr.contains("again in 1.0 s"), "{}", ran.stderr);
}
