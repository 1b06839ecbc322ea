//! The prompt: typing, editing, history, completion, pasting.

use insta::assert_snapshot;

use crate::stage::Stage;
use crate::terminal::{ALT_ENTER, DOWN, ENTER, ESC, LEFT, RIGHT, TAB, Terminal, UP, ctrl};

const HELLO: &str = "[[rule]]\nsay = 'Hello.'";

/// The text of the newest message of the user that the model saw.
fn last_said(stage: &Stage) -> String {
    let request = stage.simulator.requests().pop().unwrap();
    let messages = request["messages"].as_array().unwrap();
    let last = messages.iter().rev().find(|message| message["role"] == "user").unwrap();
    last["content"].as_array().unwrap().last().unwrap()["text"].as_str().unwrap().to_owned()
}

#[test]
fn the_first_prompt_says_where_one_is() {
    let stage = Stage::new(HELLO);
    let mut terminal = Terminal::start(&stage);
    terminal.rests("help");
    assert_snapshot!(terminal.everything());
    terminal.leave();
    assert_eq!(stage.session_files().len(), 0, "a session in which nothing was said leaves no file");
}

#[test]
fn a_line_is_edited_with_the_keys_fingers_know() {
    let stage = Stage::new(HELLO);
    let mut terminal = Terminal::start(&stage);
    terminal.types("one two three");
    terminal.keys(&format!("{}zero ", ctrl('a')));
    terminal.holds("zero one two three");
    terminal.keys(&format!("{}{}", ctrl('e'), ctrl('w')));
    terminal.holds("zero one two");
    terminal.keys(&format!("{}!", ctrl('y')));
    terminal.holds("zero one two three!");
    terminal.keys(&format!("{LEFT}{LEFT}E{RIGHT}\x7f"));
    terminal.holds("zero one two threE!");
    terminal.keys(&ctrl('u'));
    terminal.until("the cursor at the start", |screen| screen.cursor.1 == 2 && screen.typed() == "!");
    terminal.keys(&ctrl('y'));
    terminal.holds("zero one two threE!");
    terminal.keys(ENTER);
    terminal.rests("Hello.");
    assert_eq!(last_said(&stage), "zero one two threE!");
}

#[test]
fn several_lines_are_written_and_sent_as_one_message() {
    let stage = Stage::new(HELLO);
    let mut terminal = Terminal::start(&stage);
    terminal.types("first");
    terminal.keys(&format!("{ALT_ENTER}second\\{ENTER}third{}fourth", ctrl('j')));
    terminal.holds("first\nsecond\nthird\nfourth");
    terminal.keys(&format!("{UP}{UP}{UP} line"));
    terminal.holds("first line\nsecond\nthird\nfourth");
    assert_snapshot!(terminal.everything());
    terminal.keys(ENTER);
    terminal.rests("Hello.");
    assert_snapshot!("several_lines_sent", terminal.everything());
    assert_eq!(last_said(&stage), "first line\nsecond\nthird\nfourth");
}

#[test]
fn history_comes_back_in_this_session_and_the_next() {
    let stage = Stage::new(HELLO);
    let mut terminal = Terminal::start(&stage);
    for line in ["cargo test", "what is this", "cargo doc"] {
        terminal.say(line);
        terminal.until("the answer", |screen| screen.typed().is_empty() && !screen.is_working());
    }
    terminal.types("draft");
    terminal.keys(UP);
    terminal.holds("cargo doc");
    terminal.keys(&format!("{UP}{UP}"));
    terminal.holds("cargo test");
    terminal.keys(&format!("{DOWN}{DOWN}{DOWN}"));
    terminal.holds("draft");
    terminal.keys(&ctrl('c'));
    terminal.holds("");
    terminal.leave();

    let mut terminal = Terminal::start(&stage);
    terminal.keys(UP);
    terminal.holds("cargo doc");
    terminal.keys(&format!("{}cargo", ctrl('u')));
    terminal.holds("cargo");
    terminal.keys(&ctrl('r'));
    terminal.holds("cargo doc");
    terminal.keys(&ctrl('r'));
    terminal.holds("cargo test");
    terminal.keys(&ctrl('r'));
    terminal.shows("nothing older");
}

#[test]
fn commands_files_and_arguments_are_completed() {
    let stage = Stage::new(HELLO);
    std::fs::create_dir(stage.project().join("src")).unwrap();
    stage.write("src/main.rs", "");
    stage.write("setup.md", "");
    let mut terminal = Terminal::start(&stage);
    terminal.keys("/re");
    terminal.until("the menu", |screen| screen.contains("› /re") && screen.contains("continue another"));
    assert_snapshot!("menu_of_commands", terminal.everything());
    terminal.keys(&format!("{DOWN}{TAB}"));
    terminal.holds("/rewind");
    terminal.keys(&format!("{}/permissions pl{TAB}", ctrl('u')));
    terminal.holds("/permissions plan");
    terminal.keys(&format!("{}look at @s", ctrl('u')));
    terminal.until("the menu", |screen| screen.contains("› look at @s") && screen.contains("@setup.md"));
    assert_snapshot!("menu_of_files", terminal.everything());
    terminal.keys(&format!("{DOWN}{TAB}"));
    terminal.shows("@src/main.rs");
    terminal.keys(TAB);
    terminal.holds("look at @src/main.rs");
    terminal.keys(&format!("{}/h", ctrl('u')));
    terminal.shows("the commands and keys");
    terminal.keys(ESC);
    terminal.until("no menu", |screen| !screen.contains("the commands and keys"));
}

#[test]
fn wide_characters_are_typed_and_wrapped_whole() {
    let stage = Stage::new("[[rule]]\nsay = '石の上に石を積み、後から来る人に道を示す。🙂 It works.'");
    let mut terminal = Terminal::open(stage.cairn().env("TERM", "xterm"), 30, 20);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal.keys("石の上に石を積む人がいる🙂 and more");
    terminal.shows("more");
    assert_snapshot!(terminal.everything());
    terminal.keys(&format!("{}\x7f", LEFT.repeat(9)));
    terminal.until("one less", |screen| !screen.contains("🙂"));
    terminal.keys(ENTER);
    terminal.rests("It works");
    assert_snapshot!("wide_characters_said", terminal.everything());
    assert_eq!(last_said(&stage), "石の上に石を積む人がいる and more");
}

#[test]
fn pasted_lines_are_one_message_and_wait_for_enter() {
    let stage = Stage::new(HELLO);
    let mut terminal = Terminal::start(&stage);
    terminal.paste("fn main() {\n\tprintln!();\n}");
    terminal.shows("println");
    assert_eq!(stage.simulator.requests().len(), 0);
    terminal.keys(ENTER);
    terminal.rests("Hello.");
    assert_eq!(last_said(&stage), "fn main() {\n\tprintln!();\n}");
}

#[test]
fn a_long_paste_is_seen_in_part_and_sent_whole() {
    let stage = Stage::new(HELLO);
    let mut terminal = Terminal::start(&stage);
    let lines: Vec<String> = (1..=500).map(|n| format!("line {n} of what was pasted")).collect();
    terminal.paste(&lines.join("\n"));
    terminal.shows("line 500");
    assert_snapshot!("a_long_paste", terminal.everything());
    terminal.keys(ENTER);
    terminal.rests("Hello.");
    assert_snapshot!("a_long_paste_sent", terminal.everything());
    assert_eq!(last_said(&stage), lines.join("\n"));
}
