//! Commands that set the session up otherwise, hand the model a task, or a reply to the clipboard.

use crate::stage::Stage;
use crate::terminal::{DOWN, ENTER, SIZES, Terminal, ctrl};

const HELLO: &str = "[[rule]]\nthink = 'First I weigh what was said.'\nsay = 'Hello.'";

fn open(stage: &Stage, columns: u16, lines: u16) -> Terminal {
    let mut terminal = Terminal::open(stage.cairn().env("TERM", "xterm"), columns, lines);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal
}

/// TERM-15: the model is chosen from a list, and a name that cannot be one is refused before it fails.
#[test]
fn the_model_is_chosen_from_a_list() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(HELLO);
        let mut terminal = open(&stage, columns, lines);
        terminal.keys(&format!("/model{ENTER}"));
        let screen = terminal.until("the list", |screen| screen.contains("› opus") && screen.contains("  haiku"));
        assert!(screen.contains("claude-sonnet-5"), "{}", screen.text());
        terminal.keys(&format!("{DOWN}{DOWN}{ENTER}"));
        terminal.shows("the model is claude-haiku-4-5");
        terminal.keys(&format!("/model gpt-nonsense{ENTER}"));
        terminal.shows("there is no model \"gpt-");
        terminal.say("hi");
        terminal.rests("Hello.");
        assert_eq!(stage.last_said()["model"], "claude-haiku-4-5");
    }
}

/// TERM-15: thinking is switched on by a key or a command, and what was thought can be read.
#[test]
fn thinking_is_switched_on_and_read() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(HELLO);
        let mut terminal = open(&stage, columns, lines);
        terminal.keys("\x1bt");
        terminal.shows("thinking is on");
        terminal.say("hi");
        terminal.rests("Hello.");
        assert_eq!(stage.last_said()["thinking"]["type"], "enabled", "{}", stage.last_said());
        terminal.keys(&ctrl('o'));
        terminal.until("the thought", |screen| {
            screen.contains("thought:") && screen.contains("First I weigh what was said.")
        });
        terminal.keys("q");
        terminal.keys(&format!("/think off{ENTER}"));
        terminal.shows("thinking is off");
        terminal.say("hi again");
        terminal.until("the answer", |screen| screen.count("Hello.") == 2 && !screen.is_working());
        assert!(stage.last_said()["thinking"]["type"] != "enabled", "{}", stage.last_said());
    }
}

/// TERM-15: effort and directories change for this session, and what is no level or directory is said.
#[test]
fn effort_and_directories_are_changed() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(HELLO);
        let beside = stage.config().parent().unwrap().join("beside");
        std::fs::create_dir_all(&beside).unwrap();
        let mut terminal = open(&stage, columns, lines);
        terminal.keys(&format!("/effort low{ENTER}"));
        terminal.shows("the effort is low");
        terminal.keys(&format!("/effort most{ENTER}"));
        terminal.shows("levels of effort: low, ");
        terminal.keys(&format!("/add-dir ../beside{ENTER}"));
        terminal.shows("is a working directory now");
        terminal.keys(&format!("/add-dir ../nothing{ENTER}"));
        terminal.shows("is not a directory");
        terminal.say("hi");
        terminal.rests("Hello.");
        let sent = stage.last_said().to_string();
        assert!(sent.contains("\"effort\":\"low\"") && sent.contains("beside"), "{sent}");
    }
}

/// TERM-15: `/init` and `/review` are tasks for the model; `/copy` hands its reply to the terminal.
#[test]
fn tasks_for_the_model_and_the_clipboard() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(HELLO);
        let mut terminal = open(&stage, columns, lines);
        terminal.keys(&format!("/copy{ENTER}"));
        terminal.shows("there is no reply to copy yet");
        terminal.keys(&format!("/init{ENTER}"));
        terminal.rests("Hello.");
        assert!(stage.last_said()["messages"].to_string().contains("write an `AGENTS.md`"));
        terminal.keys(&format!("/review the last commit{ENTER}"));
        terminal.until("the answer", |screen| {
            screen.contains("/review the last") && !screen.is_working() && screen.has_prompt()
        });
        terminal.keys(&format!("/copy{ENTER}"));
        terminal.shows("6 characters copied");
        let written = String::from_utf8_lossy(&terminal.written).into_owned();
        assert!(written.contains("\x1b]52;c;SGVsbG8u\x07"), "{written:?}");
    }
}

/// TERM-15: `/config` names the settings that count with their place, `/doctor` what the session stands on.
#[test]
fn settings_and_the_ground_are_shown() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(HELLO);
        std::fs::create_dir_all(stage.config()).unwrap();
        std::fs::write(stage.config().join("settings.json"), r#"{"autoCompact": true, "notASetting": 1}"#).unwrap();
        let mut terminal = open(&stage, columns, lines);
        terminal.keys(&format!("/config{ENTER}"));
        let screen = terminal.until("the settings", |screen| screen.contains("autoCompact") && screen.contains("true"));
        assert!(screen.rows.join("").replace(' ', "").contains("settings.json:1"), "{}", screen.text());
        terminal.keys(&format!("/doctor{ENTER}"));
        let screen = terminal.until("the ground", |screen| screen.contains("programs") && screen.contains("bash"));
        let all = terminal.everything();
        assert!(
            all.contains(&format!("{columns}×{lines}, colours")) && all.contains("no git repository"),
            "{}",
            screen.text()
        );
    }
}
