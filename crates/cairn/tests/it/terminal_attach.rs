//! `@` in the prompt: any file of the project is found by a few letters, and what a message names goes with it.

use serde_json::Value;

use crate::stage::{Stage, piped, run};
use crate::terminal::{DOWN, ENTER, ESC, SIZES, TAB, Terminal};

const HELLO: &str = "[[rule]]\nsay = 'Hello.'";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";

fn stage() -> Stage {
    let stage = Stage::new(HELLO);
    let folder = stage.project().join("src/deep/nested");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("configuration_parser.rs"), "fn parse() {}\n").unwrap();
    std::fs::create_dir_all(stage.project().join("target/debug")).unwrap();
    std::fs::write(stage.project().join("target/debug/config.out"), "").unwrap();
    stage.write(".gitignore", "target/\n");
    stage.write("notes.md", "one\ntwo\n");
    stage
}

fn open(stage: &Stage, columns: u16, lines: u16) -> Terminal {
    let mut terminal = Terminal::open(stage.cairn().env("TERM", "xterm"), columns, lines);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal
}

/// The user's newest message as it was sent.
fn sent(stage: &Stage) -> Value {
    stage.last_said()["messages"].as_array().unwrap().last().unwrap()["content"].clone()
}

/// TERM-4: a file is found wherever it lies, what git ignores is not, and its text goes with the message, as is said.
#[test]
fn a_file_is_found_by_letters_and_its_text_is_attached() {
    for (columns, lines) in SIZES {
        let stage = stage();
        let mut terminal = open(&stage, columns, lines);
        terminal.keys("explain @conf");
        let screen = terminal.until("the menu", |screen| screen.contains("› @src/deep/nested/configuration"));
        assert!(!screen.contains("config.out"), "{}", screen.text());
        terminal.keys(ENTER);
        terminal.until("the file", |screen| screen.typed().replace('\n', "").ends_with("configuration_parser.rs"));
        terminal.keys(ENTER);
        let screen = terminal.rests("Hello.");
        let rows = screen.rows.join("").replace("  ", "");
        assert!(rows.contains("attached src/deep/nested/configuration_parser.rs (1 line)"), "{}", screen.text());
        let sent = sent(&stage).to_string();
        assert!(sent.contains("fn parse() {}") && sent.contains("names /"), "{sent}");
    }
}

/// TERM-4: Tab takes the first file, also when it was not found yet; Esc closes the menu for good.
#[test]
fn tab_waits_for_what_is_looked_for() {
    let stage = stage();
    let mut terminal = open(&stage, 80, 24);
    terminal.keys(&format!("see @cnfpars{TAB}"));
    terminal.holds("see @src/deep/nested/configuration_parser.rs");
    terminal.keys("and @no");
    terminal.until("the menu", |screen| screen.contains("› @notes.md"));
    terminal.keys(ESC);
    terminal.until("no menu", |screen| !screen.contains("@notes.md"));
    terminal.keys(ENTER);
    terminal.rests("Hello.");
    assert!(sent(&stage).to_string().contains("and @no\""));
}

/// TERM-4: a part of a file, a name that is no file, and a file that was attached can be edited without reading it again.
#[test]
fn a_part_is_attached_and_a_file_that_was_attached_was_read() {
    let script = r#"
        [[rule]]
        when = { user = "edit", missing = "Edited" }
        call = [{ tool = "Edit", input = { file_path = "{{ project }}/notes.md", old_string = "two", new_string = "2" } }]
        [[rule]]
        say = "Hello."
    "#;
    let stage = Stage::new(script);
    stage.write("notes.md", "one\ntwo\n");
    let args = ["--permission-mode", "acceptEdits"];
    let text = piped(&stage, &args, "line @notes.md#L2 for @nobody\nedit @notes.md\n");
    assert!(text.contains("> attached notes.md (1 line)"), "{text}");
    assert!(text.contains("attached notes.md (2 lines)") && text.contains("Edit done: +1 −1"), "{text}");
    assert_eq!(std::fs::read_to_string(stage.project().join("notes.md")).unwrap(), "one\n2\n");
}

/// TRUST-5: a file or a picture from outside is asked about; what is refused is not sent, and that is said.
#[test]
fn what_lies_outside_is_asked_about() {
    for (columns, lines) in SIZES {
        let stage = stage();
        let outside = stage.config().parent().unwrap().join("outside");
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::write(outside.join("mine.png"), PNG).unwrap();
        std::fs::write(outside.join("secret.txt"), "the secret\n").unwrap();
        let mut terminal = open(&stage, columns, lines);
        terminal.paste(&format!("what is '{}/mine.png'", outside.display()));
        terminal.keys(ENTER);
        terminal.shows("yes, once");
        terminal.keys("y");
        let screen = terminal.rests("Hello.");
        assert!(screen.rows.join("").contains("attached "), "{}", screen.text());
        assert!(sent(&stage).to_string().contains("image/png"), "{}", sent(&stage));
        terminal.paste(&format!("and @{}/secret.txt", outside.display()));
        terminal.keys(ENTER);
        terminal.shows("yes, once");
        terminal.keys(&format!("n{ENTER}"));
        terminal.until("the end", |screen| screen.contains("not attached:") && !screen.is_working());
        let sent = sent(&stage).to_string();
        assert!(sent.contains("secret.txt") && !sent.contains("the secret"), "{sent}");
    }
}

/// TERM-4: folders outside are completed one by one, from `~` as well.
#[test]
fn files_outside_are_completed_by_folder() {
    let stage = stage();
    let home = stage.config().parent().unwrap().to_owned();
    std::fs::create_dir_all(home.join("papers")).unwrap();
    std::fs::write(home.join("papers/plan b.md"), "b\n").unwrap();
    let mut terminal = open(&stage, 80, 24);
    terminal.keys("see @~/pap");
    terminal.until("the folder", |screen| screen.contains("› @~/papers/"));
    terminal.keys(ENTER);
    terminal.until("what it holds", |screen| screen.contains("› @\"~/papers/plan b.md\""));
    terminal.keys(&format!("{DOWN}{ENTER}"));
    terminal.holds("see @\"~/papers/plan b.md\"");
}

/// TRUST-5: without anybody to ask, what lies outside is left out; what the prompt names of the project goes along.
#[test]
fn headless_attaches_what_may_be_read() {
    let stage = stage();
    let outside = stage.config().parent().unwrap().join("secret.txt");
    std::fs::write(&outside, "the secret\n").unwrap();
    let ran = run(stage.cairn().args(["-p", &format!("see @notes.md and @{}", outside.display())]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hello.\n"), "{}", ran.stderr);
    let sent = sent(&stage).to_string();
    assert!(sent.contains("two") && !sent.contains("the secret"), "{sent}");
}
