//! The start: a stored key, what was found, and the window's title.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use simulator::Fault;

use crate::stage::{Stage, run};
use crate::terminal::{ENTER, ESC, SIZES, Terminal};

const HELLO: &str = "[[rule]]\nsay = 'Hello.'";

/// TERM-17: a key that was typed once serves every later session; it is not shown, and nobody else reads it.
#[test]
fn a_key_is_stored_and_used() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(HELLO);
        let without = || {
            let mut command = stage.cairn();
            command.env_remove("ANTHROPIC_API_KEY").env("CAIRN_NO_LOCAL_SERVER", "1");
            command
        };
        let ran = run(without().args(["-p", "hi"]));
        assert!(ran.code == Some(3) && ran.stderr.contains("cairn login stores an Anthropic key"), "{ran:?}");
        assert_eq!(ran.stderr.lines().skip_while(|line| !line.starts_with("hint:")).count(), 3, "{ran:?}");
        let mut terminal = Terminal::open(without().arg("login").env("TERM", "xterm"), columns, lines);
        terminal.comes("the question", |screen| screen.contains("not shown"));
        terminal.keys(&format!("sk-ant-the-secret{ENTER}"));
        assert_eq!(terminal.ended(), 0);
        assert!(!String::from_utf8_lossy(&terminal.written).contains("secret"));
        let file = stage.config().join("cairn/anthropic-key");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "sk-ant-the-secret\n");
        assert_eq!(run(without().args(["-p", "hi"])).stdout, "Hello.\n");
        let ran = run(without().args(["login"]).stdin(Stdio::null()));
        assert!(ran.code != Some(0) && ran.stderr.contains("nothing was changed"), "{ran:?}");
        assert_eq!(run(without().args(["login", "--remove"])).code, Some(0));
        assert!(!file.exists());
    }
}

/// TERM-17: what was found for the model stands in the first line.
#[test]
fn the_first_line_says_what_was_found() {
    let stage = Stage::new(HELLO);
    stage.write("CLAUDE.md", "Colours have names.\n");
    let about = ["--type", "feedback", "--description", "Tabs", "--body", "Indent with tabs."];
    run(stage.cairn().args(["memory", "add", "Tabs"]).args(about));
    for (columns, lines) in SIZES {
        let mut terminal = Terminal::open(stage.cairn().env("TERM", "xterm"), columns, lines);
        let screen = terminal.until("a prompt", |screen| screen.has_prompt());
        let top = screen.rows[..3].join(" ").replace("   ", " ");
        assert!(top.contains("1 instruction file · 1 memory"), "{}", screen.text());
    }
}

/// TERM-17: the window's title says whether something is under way, and is given back at the end.
#[test]
fn the_title_says_what_goes_on() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(HELLO);
        let mut terminal = Terminal::open(stage.cairn().env("TERM", "xterm"), columns, lines);
        terminal.until("a prompt", |screen| screen.has_prompt());
        stage.simulator.push_fault(Fault { stall: true, ..Fault::default() }).unwrap();
        terminal.say("hi");
        terminal.shows("waiting for the model");
        terminal.keys(ESC);
        terminal.rests("stopped");
        terminal.keys("\u{4}");
        assert_eq!(terminal.ended(), 0);
        let written = String::from_utf8_lossy(&terminal.written).into_owned();
        let titles: Vec<&str> =
            written.split("\x1b]2;").skip(1).map(|rest| rest.split('\x07').next().unwrap()).collect();
        assert_eq!(titles, ["cairn · project", "● cairn · project", "cairn · project"]);
        assert!(
            written.find("\x1b[22;2t") < written.find("\x1b]2;")
                && written.rfind("\x1b[23;2t") > written.rfind("\x1b]2;")
        );
    }
}
