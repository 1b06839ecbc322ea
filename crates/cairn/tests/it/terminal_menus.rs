//! Menus and lists: fuzzy, scrolled, counted, taken with Enter, and seen without colours and in small windows.

use crate::stage::{Stage, run};
use crate::terminal::{DOWN, ENTER, ESC, SIZES, Screen, TAB, Terminal, UP};

const HELLO: &str = "[[rule]]\nsay = 'Hello.'";

/// Windows that menus have to fit, and what a menu looks like without colours.
const WINDOWS: [(u16, u16, &str); 3] = [(80, 24, "xterm"), (40, 15, "xterm"), (40, 15, "none")];

fn open(stage: &Stage, columns: u16, lines: u16, colours: &str) -> Terminal {
    let mut command = stage.cairn();
    command.env("TERM", "xterm");
    if colours == "none" {
        command.env("NO_COLOR", "1");
    }
    let mut terminal = Terminal::open(&command, columns, lines);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal
}

fn chosen(screen: &Screen) -> Vec<&str> {
    let marked = screen.rows.iter().filter_map(|row| row.strip_prefix("› /"));
    marked.map(|row| row.split(' ').next().unwrap()).filter(|name| !name.is_empty()).collect()
}

/// TERM-3: all commands can be reached with the arrows, in any window, and the status line stays.
#[test]
fn the_menu_of_commands_scrolls_to_the_last_one() {
    for (columns, lines, colours) in WINDOWS {
        let stage = Stage::new(HELLO);
        let mut terminal = open(&stage, columns, lines, colours);
        terminal.keys("/");
        let screen = terminal.until("the menu", |screen| screen.contains(" · ↑ ↓"));
        assert_eq!(chosen(&screen), ["help"], "{}", screen.text());
        assert!(screen.contains("  1 of "), "{}", screen.text());
        assert!(screen.contains("context left"), "the status line: {}", screen.text());
        terminal.keys(UP);
        let screen = terminal.until("the last", |screen| chosen(screen) == ["exit"]);
        assert!(screen.contains("context left"), "{}", screen.text());
        terminal.keys(DOWN);
        terminal.until("the first", |screen| chosen(screen) == ["help"]);
        terminal.keys(ESC);
        terminal.until("no menu", |screen| !screen.contains("↑ ↓"));
    }
}

/// TERM-3: letters in order are enough, Enter runs what is chosen and Tab completes it.
#[test]
fn commands_are_matched_fuzzily_and_enter_runs_them() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(HELLO);
        let mut terminal = open(&stage, columns, lines, "xterm");
        terminal.keys("/prm");
        terminal.until("the menu", |screen| chosen(screen) == ["prm", "permissions"]);
        terminal.keys(TAB);
        terminal.until("what it can be", |screen| screen.contains("  acceptEdits"));
        terminal.keys(ENTER);
        let screen = terminal.until("the rules", |screen| screen.contains("deny   nothing"));
        assert!(screen.contains("› /permissions"), "no mode was taken: {}", screen.text());
        terminal.keys("/stat");
        terminal.until("the menu", |screen| chosen(screen).contains(&"status"));
        terminal.keys(ENTER);
        terminal.until("what it says", |screen| screen.contains("window  ") && screen.contains("replies"));
        assert_eq!(stage.simulator.requests().len(), 0);
    }
}

/// TERM-3: a skill of the user's stands among the commands.
#[test]
fn skills_stand_in_the_menu() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(HELLO);
        std::fs::create_dir_all(stage.config().join("commands")).unwrap();
        std::fs::write(stage.config().join("commands/greet.md"), "---\ndescription: Says hello\n---\nSay hello.")
            .unwrap();
        let mut terminal = open(&stage, columns, lines, "xterm");
        terminal.keys("/gre");
        terminal.until("the menu", |screen| screen.contains("› /greet") && screen.contains("Says hello"));
        terminal.keys(&format!("{ENTER}{ENTER}"));
        terminal.rests("Hello.");
    }
}

/// TERM-3: Enter takes the file that is chosen and sends nothing; a second one sends.
#[test]
fn enter_takes_a_file_and_sends_nothing() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(HELLO);
        stage.write("setup.md", "Set it up.\n");
        let mut terminal = open(&stage, columns, lines, "xterm");
        terminal.keys("look at @s");
        terminal.until("the menu", |screen| screen.contains("› @setup.md"));
        terminal.keys(ENTER);
        terminal.holds("look at @setup.md");
        assert_eq!(stage.simulator.requests().len(), 0);
        terminal.keys(ENTER);
        terminal.rests("Hello.");
    }
}

/// TERM-3: a list of sessions fits a small window, counts, and finds by letters.
#[test]
fn lists_fit_and_are_searched_fuzzily() {
    let stage = Stage::new(HELLO);
    for n in 1..=12 {
        assert_eq!(run(stage.cairn().args(["-p", &format!("the topic number {n}")])).code, Some(0));
    }
    for (columns, lines, colours) in WINDOWS {
        let mut terminal = open(&stage, columns, lines, colours);
        terminal.keys(&format!("/resume{ENTER}"));
        let screen = terminal.until("the list", |screen| screen.contains("Continue which session?"));
        if lines == 15 {
            assert!(screen.contains("  1 of 12 · ↑ ↓"), "{}", screen.text());
        }
        assert!(screen.contains("context left") && screen.contains("› the topic number"), "{}", screen.text());
        terminal.keys("tpc7");
        terminal.until("the one", |screen| screen.contains("› the topic number 7") && screen.count("topic") == 1);
        terminal.keys(ESC);
        terminal.until("the prompt", |screen| screen.has_prompt());
    }
}
