//! The session of plain lines, and what is left out where it is not wanted.

use simulator::Fault;

use crate::stage::{Stage, piped, run};
use crate::terminal::{ENTER, Terminal, ctrl};

const WORKER: &str = r#"
    [[rule]]
    name = "denied"
    when = { result = "said no, and why: (?P<why>.+)" }
    say = "I see: {{ why }}"
    [[rule]]
    name = "create"
    when = { user = "create", missing = "Created|said no" }
    call = [{ tool = "Write", input = { file_path = "{{ project }}/new.txt", content = "first\nsecond" } }]
    [[rule]]
    name = "shell"
    when = { visible = "from the shell" }
    say = "I saw it."
    [[rule]]
    say = "**Hello.**"
"#;

fn plain(stage: &Stage, args: &[&str]) -> Terminal {
    let mut terminal = Terminal::open(stage.cairn().args(args).env("TERM", "dumb"), 80, 24);
    terminal.shows(">");
    terminal
}

/// The program printed lines and nothing else.
fn only_lines(terminal: &Terminal) {
    assert!(!terminal.written.contains(&0x1b), "{}", String::from_utf8_lossy(&terminal.written));
}

/// Waits for the prompt: what is typed before it stands on its row.
fn prompts(terminal: &mut Terminal) {
    let last = |rows: &[String]| rows.iter().rev().find(|row| !row.trim().is_empty()).cloned();
    terminal.until("a prompt", |screen| last(&screen.rows).is_some_and(|row| row.trim_end() == ">"));
}

#[test]
fn a_dumb_terminal_gets_prompts_and_answers_in_lines() {
    let stage = Stage::new(WORKER);
    let mut terminal = plain(&stage, &[]);
    terminal.keys(&format!("hello{ENTER}"));
    terminal.until("the answer and a prompt", |screen| screen.contains("**Hello.**"));
    terminal.keys(&format!("/help{ENTER}"));
    terminal.shows("Ctrl-C stops a turn");
    prompts(&mut terminal);
    terminal.keys(&format!("!echo from the shell{ENTER}"));
    terminal.until("its output", |screen| screen.rows.iter().any(|row| row == "from the shell"));
    terminal.keys(&format!("seen?{ENTER}"));
    terminal.shows("I saw it.");
    terminal.keys(&format!("/exit{ENTER}"));
    assert_eq!(terminal.ended(), 0);
    only_lines(&terminal);
}

#[test]
fn plain_lines_ask_for_permission() {
    let stage = Stage::new(WORKER);
    let mut terminal = Terminal::open(stage.cairn().arg("--plain").env("TERM", "xterm"), 80, 24);
    terminal.shows(">");
    terminal.keys(&format!("create it{ENTER}"));
    terminal.shows("y or n, or say why not:");
    let screen = terminal.screen();
    assert!(screen.contains("Write wants to run, in") && screen.contains("    second"), "{}", screen.text());
    terminal.keys(&format!("not today{ENTER}"));
    terminal.until("a prompt", |screen| screen.contains("I see: not today") && screen.cursor.1 == 2);
    terminal.keys(&ctrl('c'));
    assert_eq!(terminal.ended(), 0);
    only_lines(&terminal);
    let mut terminal = plain(&stage, &[]);
    terminal.keys(&format!("create it{ENTER}"));
    terminal.shows("y or n, or say why not:");
    terminal.keys(&format!("y{ENTER}"));
    terminal.shows("Hello");
    assert!(stage.project().join("new.txt").exists());
    std::fs::remove_file(stage.project().join("new.txt")).unwrap();
    let text = piped(&stage, &[], "create it\ne\n/mode\n");
    assert!(text.contains("the mode is acceptEdits") && stage.project().join("new.txt").exists(), "{text}");
}

#[test]
fn plain_lines_are_stopped_with_ctrl_c() {
    let stage = Stage::new(WORKER);
    stage.simulator.push_fault(Fault { stall: true, cut_after: Some(4), ..Fault::default() }).unwrap();
    let mut terminal = plain(&stage, &[]);
    terminal.keys(&format!("hello{ENTER}"));
    terminal.shows("**Hel");
    terminal.keys(&ctrl('c'));
    terminal.shows("stopped");
    terminal.keys(&format!("hello again{ENTER}"));
    terminal.until("a prompt", |screen| screen.contains("**Hello.**") && screen.cursor.1 == 2);
    terminal.keys(&ctrl('c'));
    assert_eq!(terminal.ended(), 0);
}

#[test]
fn without_colours_there_are_none() {
    let stage = Stage::new(WORKER);
    let colours = regex::bytes::Regex::new("\x1b\\[[0-9;]*m").unwrap();
    for no_color in [false, true] {
        let mut command = stage.cairn();
        command.env("TERM", "xterm");
        if no_color {
            command.env("NO_COLOR", "1");
        }
        let mut terminal = Terminal::open(&command, 80, 24);
        terminal.until("a prompt", |screen| screen.has_prompt());
        terminal.say("hello");
        terminal.rests("Hello.");
        terminal.keys(&ctrl('d'));
        assert_eq!(terminal.ended(), 0);
        assert_eq!(colours.is_match(&terminal.written), !no_color);
    }
}

#[test]
fn commands_work_in_plain_lines() {
    let stage = Stage::new(WORKER);
    let text =
        piped(&stage, &[], "/help\n/nonsense\n/status\n/cost\n/permissions plan\n/model opus\n/expand\n/exit\nhello\n");
    for line in [
        "/rewind [N] [WHAT]   go back to before a message: conversation, files or both",
        "there is no /nonsense; /help lists the commands",
        "directory  ~/project",
        "the mode is plan",
        "the model is claude-opus",
        "nothing to expand",
    ] {
        assert!(text.lines().any(|row| row.trim_start_matches("> ").starts_with(line)), "{line} in {text}");
    }
    assert!(!text.contains("Ctrl-O\u{20}") && !text.contains('\x1b'), "{text}");
    assert_eq!(stage.simulator.requests().len(), 0, "it left before anything was said");
}

/// LOG-14: going back needs no screen: by numbers in the command, or by choosing from numbered lists.
#[test]
fn plain_lines_go_back_and_forward() {
    let stage = Stage::new(WORKER);
    let edits = ["--permission-mode", "acceptEdits"];
    let text = piped(&stage, &edits, "hello\ncreate it\n/rewind 1 files\n/expand\n/undo\n/rewind\n2\n2\n/rewind 7\n");
    for line in [
        "> back to before “create it”: 1 file; /undo undoes this",
        "Write new.txt +2",
        "> forward again: 1 file",
        "> Go back to before which message?",
        "1. create it  1 file changed since",
        "A number, or an empty line for none: What goes back?",
        "2. conversation  files stay as they are",
        "You had said: hello",
        "> nothing was said yet",
    ] {
        assert!(text.lines().any(|row| row == line), "{line} in {text}");
    }
    assert!(stage.project().join("new.txt").exists());
}

#[test]
fn plain_lines_choose_another_session_and_a_memory() {
    let stage = Stage::new(WORKER);
    let about = ["--type", "feedback", "--description", "Tabs", "--body", "Indent with *tabs*."];
    run(stage.cairn().args(["memory", "add", "Tabs"]).args(about));
    piped(&stage, &[], "hello\n");
    let text = piped(&stage, &[], "/resume\n1\n/clear\n/resume\nnone\n/memory\n1\n/memory Tabs\n");
    for line in
        ["Continue which session?", "a new session; the one before is in /resume", "1. Tabs  feedback, today  Tabs"]
    {
        assert!(text.lines().any(|row| row.trim_start_matches("> ") == line), "{line} in {text}");
    }
    assert!(text.contains("› hello") && text.contains("nothing was chosen"), "{text}");
    assert_eq!(text.matches("Indent with tabs.").count(), 2, "{text}");
}

#[test]
fn pipes_on_both_sides_are_lines_too() {
    let stage = Stage::new(WORKER);
    let text = piped(&stage, &[], "hello\n!echo from the shell\nseen?\n");
    assert_eq!(text, "> **Hello.**\n> from the shell\n> I saw it.\n> ");
}
