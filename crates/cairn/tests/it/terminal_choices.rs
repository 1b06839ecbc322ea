//! What a user chooses of the screen: its colours, the keys of vim; a memory by `#`, a picture from the clipboard, links, and
//! what is offered at the first start.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;

use crate::stage::{Stage, piped, run};
use crate::terminal::{ENTER, ESC, SIZES, Terminal, ctrl};

const HELLO: &str = "[[rule]]\nsay = 'Hello.'";

fn open(command: &mut Command, (columns, lines): (u16, u16)) -> Terminal {
    let mut terminal = Terminal::open(command.env("TERM", "xterm-256color"), columns, lines);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal
}

fn written(terminal: &Terminal) -> String {
    String::from_utf8_lossy(&terminal.written).into_owned()
}

fn set(stage: &Stage, key: &str, value: &str) {
    let ran = run(stage.cairn().args(["config", "set", "--user", key, value]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

fn said(stage: &Stage) -> Value {
    stage.last_said()["messages"].as_array().unwrap().last().unwrap()["content"].clone()
}

/// TERM-18: with the keys of vim by a setting, Esc leaves insert mode, letters are commands, and Esc then stops or rewinds as
/// ever; the mode is seen without colours. `/vim` changes it for the program's time.
#[test]
fn vim_keys_by_a_setting() {
    for size in SIZES {
        let stage = Stage::new(HELLO);
        set(&stage, "editorMode", "vim");
        let mut terminal = open(stage.cairn().env("NO_COLOR", "1"), size);
        terminal.until("insert mode", |screen| screen.rows.iter().any(|row| row.starts_with("INSERT · ")));
        terminal.types("one two three");
        terminal.keys(ESC);
        terminal.until("normal mode", |screen| screen.rows.iter().any(|row| row.starts_with("NORMAL · ")));
        terminal.keys("bdw0cwfour");
        terminal.until("the words", |screen| screen.typed() == "four two" && screen.contains("INSERT"));
        terminal.keys(ESC);
        terminal.until("normal mode", |screen| screen.contains("NORMAL · "));
        terminal.keys("u");
        terminal.until("undone", |screen| screen.typed() != "four two");
        terminal.keys("ccone");
        terminal.holds("one");
        terminal.keys(ESC);
        terminal.until("normal mode", |screen| screen.contains("NORMAL · "));
        terminal.keys("ofive");
        terminal.holds("one\nfive");
        terminal.keys(ESC);
        terminal.until("normal mode", |screen| screen.contains("NORMAL · "));
        terminal.keys(ENTER);
        terminal.rests("Hello.");
        assert!(said(&stage).to_string().contains("\"one\\nfive\""), "{}", said(&stage));
        terminal.keys(ESC);
        terminal.until("normal mode", |screen| screen.contains("NORMAL · "));
        terminal.keys(ESC);
        terminal.shows("Esc again rewinds");
        terminal.keys(&format!("i/vim{ENTER}"));
        terminal
            .until("the usual keys", |screen| screen.contains("keys of the prompt") && !screen.contains("INSERT · "));
        terminal.keys(ESC);
        terminal.shows("Esc again rewinds");
    }
}

/// TERM-19: on a light background no colour is pale: by the setting, by what the terminal says of itself, or by `/theme`.
#[test]
fn a_light_background_has_its_own_colours() {
    let script = "[[rule]]\nsay = '''Some `code`.\n\n```rust\nlet x = 1;\n```'''";
    let (pale, dark) = ("\x1b[33mcode", "\x1b[38;5;94mcode");
    for size in SIZES {
        for (setting, says, is_light) in [("light", "15;0", true), ("auto", "0;15", true), ("dark", "0;15", false)] {
            let stage = Stage::new(script);
            set(&stage, "theme", setting);
            let mut terminal = open(stage.cairn().env("COLORFGBG", says), size);
            terminal.say("go");
            terminal.rests("let x = 1;");
            let all = written(&terminal);
            assert!(all.contains(dark) == is_light && all.contains(pale) != is_light, "{setting} {says}: {all:?}");
            assert_eq!(all.contains("\x1b[2m"), !is_light, "dim text is too pale on white: {all:?}");
        }
        let stage = Stage::new(script);
        let mut terminal = open(&mut stage.cairn(), size);
        terminal.keys(&format!("/theme light{ENTER}"));
        terminal.shows("the theme is light");
        terminal.say("go");
        terminal.rests("let x = 1;");
        assert!(written(&terminal).contains(dark) && !written(&terminal).contains(pale));
        let stage = Stage::new(script);
        set(&stage, "theme", "light");
        let mut terminal = open(stage.cairn().env("NO_COLOR", "1"), size);
        terminal.say("go");
        terminal.rests("let x = 1;");
        assert!(!written(&terminal).contains("\x1b[38"), "NO_COLOR is stronger");
    }
}

/// TERM-20: `# fact` saves a memory of the project, says so before it is sent, and asks no model; more lines are a message.
#[test]
fn a_hash_saves_a_memory() {
    for size in SIZES {
        let stage = Stage::new(HELLO);
        let mut terminal = open(&mut stage.cairn(), size);
        terminal.types("# tabs, not blanks");
        terminal.shows("saves a memory · ");
        terminal.keys(ENTER);
        terminal.until("it is saved", |screen| screen.contains("memory saved:") && screen.typed().is_empty());
        assert_eq!(stage.simulator.requests().len(), 0);
        let list = run(stage.cairn().args(["memory", "list"]));
        assert!(list.stdout.contains("tabs, not blanks"), "{list:?}");
        terminal.paste("# Heading\ntext");
        terminal.holds("# Heading\ntext");
        terminal.keys(ENTER);
        terminal.rests("Hello.");
        assert!(said(&stage).to_string().contains("# Heading\\ntext"));
        terminal.say("#12 fails");
        terminal.until("the answer", |screen| screen.count("Hello.") == 2 && !screen.is_working());
        let log = run(stage.cairn().args(["memory", "log"]));
        assert!(log.stdout.contains("tabs-not-blanks.md"), "it can be undone: {log:?}");
    }
    let stage = Stage::new(HELLO);
    let text = piped(&stage, &[], "# tabs in plain lines\n");
    assert!(text.contains("memory saved:"), "{text}");
}

/// TERM-21: Ctrl-V puts the clipboard's picture into the prompt as a placeholder, and the model gets the picture.
#[test]
fn a_picture_is_pasted_from_the_clipboard() {
    const PICTURE: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    for size in SIZES {
        let stage = Stage::new(HELLO);
        let programs = stage.project().join("programs");
        std::fs::create_dir(&programs).unwrap();
        let program = |text: &str| {
            let path = programs.join("wl-paste");
            std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let mut terminal = open(stage.cairn().env("WAYLAND_DISPLAY", "wayland-0").env("PATH", path), size);
        program("echo words");
        terminal.keys(&ctrl('v'));
        terminal.shows("there is no picture in the clipboard");
        program(&format!("echo {PICTURE} | base64 -d"));
        terminal.types("what is ");
        terminal.keys(&ctrl('v'));
        terminal.holds("what is [Picture #1]");
        terminal.keys(&format!("?{ENTER}"));
        terminal.until("the answer", |screen| screen.contains("Hello.") && !screen.is_working());
        assert!(terminal.everything().contains("what is [Picture #1]?"), "{}", terminal.everything());
        let sent = stage.last_said()["messages"].to_string();
        assert!(sent.contains("\"type\":\"image\"") && sent.contains(PICTURE), "{sent}");
    }
}

/// TERM-22: an address in a reply can be opened from every row that it takes, where colours are on; a table keeps its columns,
/// its pipes and their sides, and the levels of headings differ.
#[test]
fn links_tables_and_headings() {
    const LONG: &str = "https://example.org/a/long/path/that/takes/more/than/one/row/of/it";
    let script = format!(
        "[[rule]]\nsay = '''# Title\n\n## Below\n\nSee [the page](https://example.org/page) and {LONG}.\n\n\
         | Name | Cost |\n|:-----|-----:|\n| a \\| b | 1.50 |\n| `x | y` | 10 |\n'''"
    );
    for size in SIZES {
        for colours in [true, false] {
            let stage = Stage::new(&script);
            let mut command = stage.cairn();
            if !colours {
                command.env("NO_COLOR", "1");
            }
            let mut terminal = open(&mut command, size);
            terminal.say("go");
            terminal.until("the end", |screen| screen.contains("x | y") && !screen.is_working());
            let all = terminal.everything();
            for row in ["Title\n━━━━━\n", "Below\n─────\n", "Name   Cost\n", "a | b  1.50\n", "x | y    10\n"]
            {
                assert!(all.contains(row), "{row:?}: {all}");
            }
            let links = written(&terminal).matches(&format!("\x1b]8;;{LONG}\x1b\\")).count();
            assert_eq!(links > 0, colours);
            assert!(!colours || size.0 == 80 || links >= 2, "each row leads there: {links}");
        }
    }
    let stage = Stage::new(&script);
    let mut terminal = Terminal::open(stage.cairn().env("TERM", "dumb"), 80, 24);
    terminal.comes("a prompt", |screen| screen.contains(">"));
    terminal.keys(&format!("go{ENTER}"));
    terminal.comes("the reply", |screen| screen.contains("1.50"));
    assert!(!written(&terminal).contains('\x1b'), "{:?}", written(&terminal));
}

/// TERM-17: until something was typed in a project, its first screen says what to try; then no more.
#[test]
fn the_first_screen_says_what_to_try() {
    for size in SIZES {
        let stage = Stage::new(HELLO);
        let mut terminal = open(&mut stage.cairn(), size);
        let screen = terminal.screen();
        assert!(screen.contains("Try: explain this project") && screen.contains("context left"), "{}", screen.text());
        assert!(screen.rows.iter().any(|row| row.contains("#\u{a0}saves")), "{}", screen.text());
        terminal.say("hi");
        terminal.rests("Hello.");
        terminal.leave();
        let terminal = open(&mut stage.cairn(), size);
        assert!(!terminal.screen().contains("Try: "), "{}", terminal.screen().text());
    }
}
