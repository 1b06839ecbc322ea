//! Other sessions and earlier messages.

use insta::assert_snapshot;

use crate::stage::{Stage, run};
use crate::terminal::{DOWN, ENTER, ESC, Screen, Terminal};

const AUTHOR: &str = r#"
    [[rule]]
    name = "create"
    when = { user = "create", missing = "Created" }
    call = [{ tool = "Write", input = { file_path = "{{ project }}/new.txt", content = "new\n" } }]
    [[rule]]
    name = "read"
    when = { user = "edit", missing = "before" }
    call = [{ tool = "Read", input = { file_path = "{{ project }}/old.txt" } }]
    [[rule]]
    name = "edit"
    when = { user = "edit", missing = "Edited" }
    call = [{ tool = "Edit", input = { file_path = "{{ project }}/old.txt", old_string = "before", new_string = "after" } }]
    [[rule]]
    name = "remember"
    when = { visible = "my name is (?P<name>\\w+)" }
    say = "You are {{ name }}."
    [[rule]]
    say = "Done."
"#;

fn files(stage: &Stage) -> (String, Option<String>) {
    let read = |name: &str| std::fs::read_to_string(stage.project().join(name)).ok();
    (read("old.txt").unwrap(), read("new.txt"))
}

/// A session that has created a file and edited another.
fn worked() -> (Stage, Terminal) {
    let stage = Stage::new(AUTHOR);
    stage.write("old.txt", "before\n");
    let mut terminal = Terminal::start_with(&stage, &["--permission-mode", "acceptEdits"]);
    terminal.say("create it");
    terminal.rests("Done.");
    terminal.say("edit it");
    terminal.until("the second answer", |screen| screen.count("Done.") == 2 && !screen.is_working());
    assert_eq!(files(&stage), ("after\n".to_owned(), Some("new\n".to_owned())));
    (stage, terminal)
}

/// Opens the list of messages, takes the `message`th from below and the `scope`th way to go back.
fn go_back(terminal: &mut Terminal, message: usize, scope: usize) -> Screen {
    terminal.keys(&format!("/rewind{ENTER}"));
    terminal.shows("before which message");
    terminal.keys(&format!("{}{ENTER}", DOWN.repeat(message)));
    terminal.shows("What goes back?");
    terminal.keys(&format!("{}{ENTER}", DOWN.repeat(scope)));
    terminal.rests("back to before")
}

/// LOG-14: conversation and files go back to a message, and forward again.
#[test]
fn both_go_back_and_forward_again() {
    let (stage, mut terminal) = worked();
    terminal.keys(&format!("/rewind{ENTER}"));
    terminal.shows("before which message");
    assert_snapshot!("list_of_messages", terminal.everything());
    terminal.keys(ENTER);
    terminal.shows("What goes back?");
    assert_snapshot!("list_of_ways", terminal.everything());
    terminal.keys(ESC);
    terminal.until("it is closed", |screen| !screen.contains("What goes back?"));

    let screen = go_back(&mut terminal, 1, 0);
    assert_eq!(screen.typed(), "create it", "what was said there can be said anew");
    assert_eq!(files(&stage), ("before\n".to_owned(), None));
    terminal.keys(&format!("\x15/undo{ENTER}"));
    terminal.rests("forward again:");
    assert_snapshot!("undone", terminal.everything());
    assert_eq!(files(&stage), ("after\n".to_owned(), Some("new\n".to_owned())));
    terminal.say("and now");
    terminal.until("the answer", |screen| screen.count("Done.") >= 2 && !screen.is_working());
    let sent = stage.simulator.requests().pop().unwrap().to_string();
    assert!(sent.contains("create it") && sent.contains("edit it"));
    assert_eq!(stage.simulator.report().totals.refused, 0);
}

/// LOG-14: only the conversation goes back.
#[test]
fn the_conversation_goes_back_alone() {
    let (stage, mut terminal) = worked();
    go_back(&mut terminal, 0, 1);
    assert_snapshot!(terminal.everything());
    assert_eq!(files(&stage), ("after\n".to_owned(), Some("new\n".to_owned())));
    terminal.keys(&format!("\x15hello{ENTER}"));
    let answered = |screen: &Screen| screen.contains("› hello") && screen.typed().is_empty() && !screen.is_working();
    terminal.until("the answer", answered);
    let sent = stage.simulator.requests().pop().unwrap().to_string();
    assert!(sent.contains("create it") && !sent.contains("edit it"));
}

/// LOG-14: only the files go back, and that can be undone too.
#[test]
fn files_go_back_alone_and_forward_again() {
    let (stage, mut terminal) = worked();
    go_back(&mut terminal, 1, 2);
    assert_snapshot!(terminal.everything());
    assert_eq!(files(&stage), ("before\n".to_owned(), None));
    terminal.keys(&format!("/undo{ENTER}"));
    terminal.rests("forward again: 2 files");
    assert_eq!(files(&stage), ("after\n".to_owned(), Some("new\n".to_owned())));
    terminal.keys(&format!("/undo{ENTER}"));
    terminal.shows("nothing to undo");
}

/// LOG-14: what was taken back in one session can be undone in a later one.
#[test]
fn going_back_is_undone_in_a_later_session() {
    let (stage, mut terminal) = worked();
    go_back(&mut terminal, 1, 0);
    terminal.keys(&format!("\x15/exit{ENTER}"));
    assert_eq!(terminal.ended(), 0);
    let mut terminal = Terminal::start_with(&stage, &["--continue"]);
    terminal.keys(&format!("/undo{ENTER}"));
    terminal.rests("forward again: the conversation and 2 files");
    assert_eq!(files(&stage), ("after\n".to_owned(), Some("new\n".to_owned())));
}

#[test]
fn nothing_said_is_nothing_to_go_back_to() {
    let stage = Stage::new(AUTHOR);
    let mut terminal = Terminal::start(&stage);
    terminal.keys(&format!("/rewind{ENTER}"));
    terminal.shows("nothing was said yet");
    terminal.keys(&format!("/resume{ENTER}"));
    terminal.shows("there is no other session");
}

#[test]
fn another_session_is_found_by_searching_and_gone_on_with() {
    let stage = Stage::new(AUTHOR);
    for n in 0..12 {
        run(stage.cairn().args(["-p", &format!("question number {n}")]));
    }
    run(stage.cairn().args(["-p", "my name is Ada"]));
    let mut terminal = Terminal::start(&stage);
    terminal.keys(&format!("/resume{ENTER}"));
    terminal.shows(" of ");
    terminal.keys("number 7");
    terminal.until("one", |screen| screen.count("question number") == 1);
    terminal.keys(&format!("{}name is", "\x7f".repeat(8)));
    terminal.until("the one", |screen| screen.contains("search: name is") && screen.contains("Ada"));
    assert_snapshot!(terminal.everything());
    terminal.keys(ENTER);
    terminal.rests("You are Ada.");
    assert_snapshot!("resumed", terminal.everything());
    terminal.say("who am I?");
    terminal.until("the answer", |screen| screen.count("You are Ada.") == 2 && !screen.is_working());
    assert_eq!(stage.session_files().len(), 13, "no file was made on the way");
    assert_eq!(stage.simulator.report().totals.breaks, 0);
}

#[test]
fn a_session_that_is_not_there_leaves_one_where_one_is() {
    let stage = Stage::new(AUTHOR);
    let mut terminal = Terminal::start(&stage);
    terminal.say("my name is Ada");
    terminal.rests("You are Ada.");
    terminal.keys(&format!("/resume nonsense{ENTER}"));
    terminal.rests("nonsense");
    terminal.say("who am I?");
    terminal.until("the answer", |screen| screen.count("You are Ada.") == 2 && !screen.is_working());
    assert_eq!(stage.session_files().len(), 1);
}
