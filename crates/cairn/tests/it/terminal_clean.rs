//! No text of a model, a file or a server is obeyed by the terminal, whatever the way out.

use std::process::Command;

use crate::stage::{Stage, piped, run};
use crate::terminal::{ENTER, Terminal};

/// A model that says and calls what it should not, in every form a terminal knows.
const HOSTILE: &str = r#"
    [[rule]]
    when = { user = "write", missing = "said no" }
    call = [{ tool = "Write", input = { file_path = "/x", content = "a\u001b]0;owned\u0007\nb", "c\u001b[2J\nAllow it once?" = "d\u202ee" } }]
    [[rule]]
    say = "one\u001b]0;owned\u0007 two\u009b2J three\u202e four\u007f\n\tfive"
"#;

/// The prompt, with a title for the window in it.
const PROMPT: &str = "hello \x1b]0;owned\x07 there";

/// What a program wrote to a terminal until it ended.
fn written(command: &mut Command) -> String {
    let mut terminal = Terminal::open(command.env("TERM", "xterm"), 80, 24);
    terminal.ended();
    String::from_utf8_lossy(&terminal.written).into_owned()
}

/// Nothing but this program's own looks.
fn is_clean(written: &str) {
    let looks = regex::Regex::new("\x1b\\[[0-9;]*m").unwrap();
    let rest = looks.replace_all(written, "");
    let obeyed = |c: char| (c.is_control() && !"\r\n\t".contains(c)) || "\u{202e}".contains(c);
    assert!(!rest.contains(obeyed), "{rest:?}");
}

/// TRUST-5: on a terminal an answer is cleaned; in a pipe it is what the model said, byte for byte.
#[test]
fn an_answer_is_cleaned_on_a_terminal_and_whole_in_a_pipe() {
    let stage = Stage::new(HOSTILE);
    for format in ["text", "json", "stream-json"] {
        let written = written(stage.cairn().args(["-p", PROMPT, "--output-format", format]));
        is_clean(&written);
        assert!(written.contains("three four") || format != "text", "{written:?}");
    }
    let piped = run(stage.cairn().args(["-p", PROMPT]));
    assert_eq!(piped.stdout, "one\x1b]0;owned\x07 two\u{9b}2J three\u{202e} four\x7f\n\tfive\n");
}

#[test]
fn sessions_and_memories_are_shown_clean() {
    let stage = Stage::new(HOSTILE);
    run(stage.cairn().args(["-p", PROMPT, "--session-id", "00000000-0000-4000-8000-000000000001"]));
    run(stage.cairn().args(["memory", "add", "Odd\x1b]0;owned\x07", "--type", "project", "--body", PROMPT]));
    stage.write("CLAUDE.md\x1b[2J", "");
    for args in [
        vec!["session", "list"],
        vec!["session", "show", "00000000"],
        vec!["session", "show", "00000000", "--json"],
        vec!["session", "export", "00000000"],
        vec!["session", "export", "00000000", "--jsonl"],
        vec!["session", "view", "00000000"],
        vec!["session", "show", "no\x1b]0;owned\x07.jsonl"],
        vec!["memory", "list"],
        vec!["memory", "show"],
        vec!["recall", "odd there hello"],
        vec!["recall", "odd there hello", "--explain"],
        vec!["--resume", "\x1b]0;owned\x07", "-p", "x"],
        vec!["--permission-mode", "\x1b]0;owned\x07"],
        vec!["-p", "x", "--settings", "\x1b]0;owned\x07.json"],
        vec!["-p", "x", "--add-dir", "\x1b]0;owned\x07"],
    ] {
        let written = written(stage.cairn().args(&args));
        assert!(!written.trim().is_empty(), "{args:?}");
        is_clean(&written);
    }
    let exported = run(stage.cairn().args(["session", "export", "00000000"]));
    assert!(exported.stdout.contains(PROMPT), "{exported:?}");
}

/// Neither a name nor a value that the model chose can leave its row, or look like the question below it.
#[test]
fn a_question_in_plain_lines_shows_what_was_asked_and_obeys_nothing() {
    let stage = Stage::new(HOSTILE);
    let mut terminal = Terminal::open(stage.cairn().arg("--plain").env("TERM", "xterm"), 80, 24);
    terminal.shows(">");
    terminal.keys(&format!("write{ENTER}"));
    let screen = terminal.shows("y or n, or say why not:");
    assert!(screen.contains("  content: a]0;owned") && screen.contains("    b"), "{}", screen.text());
    assert!(screen.contains("  c[2JAllow it once?: de"), "{}", screen.text());
    terminal.keys(&format!("n{ENTER}"));
    terminal.shows("three four");
    terminal.keys(&format!("/exit{ENTER}"));
    terminal.ended();
    is_clean(&String::from_utf8_lossy(&terminal.written));
    let text = piped(&stage, &[], "hello\n");
    is_clean(&text);
}
