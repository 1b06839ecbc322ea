//! The prompt: typing, editing, history, completion, pasting.

use insta::assert_snapshot;

use crate::stage::Stage;
use crate::terminal::{ALT_ENTER, DOWN, ENTER, ESC, LEFT, RIGHT, SIZES, TAB, Terminal, UP, ctrl};

const HELLO: &str = "[[rule]]\nsay = 'Hello.'";

/// The text of the newest message of the user that the model saw.
fn last_said(stage: &Stage) -> String {
    let request = stage.simulator.requests().pop().unwrap();
    let messages = request["messages"].as_array().unwrap();
    let last = messages.iter().rev().find(|message| message["role"] == "user").unwrap();
    last["content"].as_array().unwrap().last().unwrap()["text"].as_str().unwrap().to_owned()
}

fn open(stage: &Stage, columns: u16, lines: u16) -> Terminal {
    let mut terminal = Terminal::open(stage.cairn().env("TERM", "xterm"), columns, lines);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal
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
    for (columns, lines) in SIZES {
        let stage = Stage::new(HELLO);
        let mut terminal = Terminal::start_in(&stage, &[], columns, lines);
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

        let mut terminal = Terminal::start_in(&stage, &[], columns, lines);
        terminal.keys(UP);
        terminal.holds("cargo doc");
        terminal.keys(&format!("{}cargo", ctrl('u')));
        terminal.holds("cargo");
        terminal.keys(&ctrl('r'));
        terminal.until("the newest", |screen| screen.contains("search: cargo") && screen.contains("› cargo doc"));
        terminal.keys(&ctrl('r'));
        terminal.shows("› cargo test");
        terminal.keys(" doc");
        terminal.until("the one", |screen| screen.contains("› cargo doc") && !screen.contains("cargo test"));
        terminal.keys(ENTER);
        terminal.holds("cargo doc");
        terminal.keys(&ctrl('r'));
        terminal.shows("search: cargo doc");
        terminal.keys(ESC);
        terminal.holds("cargo doc");
    }
}

#[test]
fn commands_files_and_arguments_are_completed() {
    let stage = Stage::new(HELLO);
    std::fs::create_dir(stage.project().join("src")).unwrap();
    stage.write("src/main.rs", "");
    stage.write("setup.md", "");
    let mut terminal = Terminal::start(&stage);
    terminal.keys("/re");
    terminal.until("the menu", |screen| screen.contains("continue another") && !screen.contains("/clear"));
    assert_snapshot!("menu_of_commands", terminal.everything());
    terminal.keys(&format!("{DOWN}{TAB}"));
    terminal.holds("/rewind");
    terminal.keys(&format!("{}/permissions pl{TAB}", ctrl('u')));
    terminal.holds("/permissions plan");
    terminal.keys(&format!("{}look at @s", ctrl('u')));
    terminal.until("the menu", |screen| screen.contains("› @src/") && screen.contains("@setup.md"));
    assert_snapshot!("menu_of_files", terminal.everything());
    terminal.keys(TAB);
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

/// TERM-7: a long paste is a placeholder in the prompt, on the screen and in the history; what is sent is the text.
#[test]
fn a_long_paste_is_a_placeholder_and_sent_whole() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(HELLO);
        let mut terminal = open(&stage, columns, lines);
        let pasted = (1..=2_000).map(|n| format!("line {n} of what was pasted")).collect::<Vec<_>>().join("\n");
        terminal.types("look: ");
        terminal.paste(&pasted);
        terminal.holds("look: [Pasted text #1, 2000 lines]");
        terminal.keys(" what is it?");
        terminal.until("all of it", |screen| screen.typed().replace('\n', " ").ends_with("lines] what is it?"));
        terminal.keys(ENTER);
        let screen = terminal.rests("Hello.");
        assert!(screen.rows.join(" ").contains("what is it?") && !screen.contains("line 1 of"), "{}", screen.text());
        assert_eq!(last_said(&stage), format!("look: {pasted} what is it?"));
        terminal.keys(UP);
        terminal.until("it comes back", |screen| screen.typed().starts_with("look: [Pasted text #1, 2000 lines]"));
        terminal.keys(ENTER);
        terminal.until("the second", |_| stage.simulator.requests().len() == 2);
        terminal.until("the answer", |screen| !screen.is_working() && screen.has_prompt());
        assert_eq!(last_said(&stage), format!("look: {pasted} what is it?"), "also from the history");
    }
}

/// TERM-7: a placeholder is one character to the cursor; Tab shows the text, to be edited.
#[test]
fn a_placeholder_is_removed_whole_or_opened() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(HELLO);
        let mut terminal = open(&stage, columns, lines);
        let pasted = (1..=12).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
        terminal.paste(&pasted);
        terminal.holds("[Pasted text #1, 12 lines]");
        terminal.keys("\x7f");
        terminal.holds("");
        terminal.paste(&pasted);
        terminal.holds("[Pasted text #1, 12 lines]");
        terminal.keys(&format!("{LEFT}a {RIGHT} z{LEFT}{LEFT}"));
        terminal.holds("a [Pasted text #1, 12 lines] z");
        terminal.keys(TAB);
        terminal.until("the text", |screen| screen.contains("line 12 z") && screen.contains("line 11"));
        terminal.keys("!");
        terminal.shows("line 12! z");
        terminal.keys(ENTER);
        terminal.rests("Hello.");
        assert_eq!(last_said(&stage), format!("a {pasted}! z"));
    }
}

/// TERM-8: Shift-Enter is asked for with the keyboard protocol of Kitty, and taken back at the end.
#[test]
fn shift_enter_is_a_new_line_where_the_terminal_tells_it() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(HELLO);
        let mut terminal = open(&stage, columns, lines);
        let written = String::from_utf8_lossy(&terminal.written).into_owned();
        assert!(written.contains("\x1b[>1u"), "{written:?}");
        terminal.keys("one\x1b[13;2utwo");
        terminal.holds("one\ntwo");
        terminal.keys("\x1b[13u");
        terminal.rests("Hello.");
        assert_eq!(last_said(&stage), "one\ntwo");
        terminal.keys("\x1b[100;5u");
        assert_eq!(terminal.ended(), 0);
        let written = String::from_utf8_lossy(&terminal.written).into_owned();
        assert!(written.rfind("\x1b[<u") > written.rfind("\x1b[>1u"), "it is taken back");
    }
}

/// TERM-9: Up and Down move by the rows that are seen, which break at words.
#[test]
fn the_cursor_moves_by_rows_as_they_are_seen() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(HELLO);
        let mut terminal = open(&stage, columns, lines);
        terminal.say("before");
        terminal.rests("Hello.");
        let words = "these are quite a few words that need".split(' ').cycle().take(usize::from(columns) / 4);
        terminal.keys(&words.collect::<Vec<_>>().join(" "));
        terminal.keys(" and end here");
        let screen = terminal.shows("end here");
        let first = screen.rows.iter().find(|row| row.starts_with("› these")).unwrap().clone();
        let next = screen.rows.iter().rev().find(|row| row.starts_with("  ")).unwrap();
        assert!(first.chars().count() < columns.into() && !next.starts_with("   "), "{}", screen.text());
        assert!("these are quite a few words that need".split(' ').any(|word| first.ends_with(&format!(" {word}"))));
        terminal.keys(&format!("{UP}X"));
        terminal.until("in the first row", |screen| {
            screen.rows.iter().any(|row| row.starts_with("› these") && row.contains('X'))
        });
        terminal.keys(UP);
        terminal.until("what was sent before", |screen| screen.typed() == "before");
        terminal.keys(DOWN);
        terminal.until("the draft", |screen| screen.typed().starts_with("these are") && screen.typed().contains('X'));
    }
}

/// TERM-9: typing is undone, word by word as it was typed; what was cleared comes back.
#[test]
fn typing_is_undone() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(HELLO);
        let mut terminal = open(&stage, columns, lines);
        terminal.types("first words");
        terminal.keys(&format!("{LEFT}{RIGHT} and more"));
        terminal.holds("first words and more");
        terminal.keys("\x1f");
        terminal.holds("first words");
        terminal.keys("\x1f");
        terminal.holds("");
        terminal.types("thought");
        terminal.keys(&ctrl('u'));
        terminal.holds("");
        terminal.keys("\x1f");
        terminal.holds("thought");
    }
}

/// TERM-10: Esc Esc goes back in the conversation, and clears what is written; `?` shows the keys, Ctrl-T hides the tasks,
/// Ctrl-L clears the window.
#[test]
fn single_keys_do_what_fingers_expect() {
    for (columns, lines) in SIZES {
        let stage = Stage::new(HELLO);
        let mut terminal = open(&stage, columns, lines);
        terminal.say("hello you");
        terminal.rests("Hello.");
        terminal.keys(ESC);
        terminal.shows("Esc again rewinds");
        terminal.keys(ESC);
        terminal.shows("Go back to before which message?");
        terminal.keys(ESC);
        terminal.until("the prompt", |screen| screen.has_prompt());
        terminal.types("something");
        terminal.keys(ESC);
        terminal.shows("Esc again clears the prompt");
        terminal.keys(ESC);
        terminal.holds("");
        terminal.keys("?");
        terminal.comes("the keys", |screen| screen.contains("q closes") && screen.contains("Enter"));
        terminal.keys("q");
        terminal.until("the prompt", |screen| screen.has_prompt());
        terminal.types("is it?");
        terminal.keys(&ctrl('l'));
        let screen =
            terminal.until("a clear window", |screen| !screen.contains("Hello.") && screen.contains("› is it?"));
        assert!(screen.rows[0].is_empty() || screen.rows[0].starts_with('›'), "{}", screen.text());
    }
}
