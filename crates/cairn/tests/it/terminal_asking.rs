//! Permission questions: what is shown, the three answers, and what comes of them.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::terminal::{DOWN, ENTER, ESC, Terminal, UP, ctrl};

const WORKER: &str = r#"
    [[rule]]
    name = "denied"
    when = { result = "said no, and why: (?P<why>.+)" }
    say = "I see: {{ why }}"
    [[rule]]
    name = "edit"
    when = { user = "edit", visible = "three", missing = "Edited" }
    call = [{ tool = "Edit", input = { file_path = "{{ project }}/list.txt", old_string = "two", new_string = "2\ntwo and a half" } }]
    [[rule]]
    name = "read"
    when = { user = "edit", missing = "three" }
    call = [{ tool = "Read", input = { file_path = "{{ project }}/list.txt" } }]
    [[rule]]
    name = "create"
    when = { user = "create", missing = "Created|said no" }
    call = [{ tool = "Write", input = { file_path = "{{ project }}/new.txt", content = "fn main() {\n    one();\n}\n" } }]
    [[rule]]
    name = "run"
    when = { user = "run", missing = "tool_result|touch" }
    call = [{ tool = "Bash", input = { command = "touch made" } }]
    [[rule]]
    name = "three"
    when = { user = "several", missing = "Created" }
    call = [
        { tool = "Write", input = { file_path = "{{ project }}/a.txt", content = "a" } },
        { tool = "Write", input = { file_path = "{{ project }}/b.txt", content = "b" } },
        { tool = "Bash", input = { command = "echo c > c.txt && cat c.txt" } },
    ]
    [[rule]]
    say = "Finished."
"#;

fn settings(stage: &Stage) -> Value {
    let path = stage.project().join(".claude/settings.local.json");
    std::fs::read_to_string(path).map_or(Value::Null, |text| serde_json::from_str(&text).unwrap())
}

/// TOOL-2: an edit is shown as what it changes, and happens once it is allowed.
#[test]
fn an_edit_is_shown_as_a_diff() {
    let stage = Stage::new(WORKER);
    stage.write("list.txt", "one\ntwo\nthree\nfour\nfive\nsix\n");
    let mut terminal = Terminal::start(&stage);
    terminal.say("edit it");
    terminal.shows("yes, once");
    assert_snapshot!(terminal.everything());
    terminal.keys("y");
    terminal.rests("Finished.");
    let text = std::fs::read_to_string(stage.project().join("list.txt")).unwrap();
    assert_eq!(text, "one\n2\ntwo and a half\nthree\nfour\nfive\nsix\n");
    assert_eq!(settings(&stage), Value::Null, "once is once");
}

/// TOOL-2: an edit over several lines of a file with CRLF is shown as what it changes, and an edit that cannot be made says
/// so.
#[test]
fn an_edit_of_a_file_with_crlf_is_shown_as_a_diff() {
    let stage = Stage::new(
        r#"
        [[rule]]
        when = { missing = "three" }
        call = [{ tool = "Read", input = { file_path = "{{ project }}/list.txt" } }]
        [[rule]]
        when = { missing = "Edited" }
        call = [{ tool = "Edit", input = { file_path = "{{ project }}/list.txt", old_string = "two\nthree", new_string = "2\n3" } }]
        [[rule]]
        when = { missing = "was not found" }
        call = [{ tool = "Edit", input = { file_path = "{{ project }}/list.txt", old_string = "nine", new_string = "9" } }]
        [[rule]]
        say = "Finished."
    "#,
    );
    stage.write("list.txt", "one\r\ntwo\r\nthree\r\nfour\r\n");
    let mut terminal = Terminal::start(&stage);
    terminal.say("edit it");
    terminal.shows("yes, once");
    let all = terminal.everything();
    for row in ["- two", "- three", "+ 2", "+ 3"] {
        assert!(all.lines().any(|line| line.ends_with(row)), "{row}: {all}");
    }
    terminal.keys("y");
    terminal.shows("This edit would fail: old_string was not found.");
    terminal.keys("y");
    terminal.rests("Finished.");
    assert_eq!(std::fs::read_to_string(stage.project().join("list.txt")).unwrap(), "one\r\n2\r\n3\r\nfour\r\n");
}

#[test]
fn a_new_file_is_shown_whole() {
    let stage = Stage::new(WORKER);
    let mut terminal = Terminal::start(&stage);
    terminal.say("create it");
    terminal.shows("yes, once");
    assert_snapshot!(terminal.everything());
    terminal.keys(ENTER);
    terminal.rests("Finished.");
    assert!(stage.project().join("new.txt").exists());
}

#[test]
fn a_change_longer_than_the_window_can_be_read_whole() {
    let lines: String = (1..=60).map(|n| format!("line {n}\\n")).collect();
    let script = format!(
        "[[rule]]\ntimes = 1\ncall = [{{ tool = 'Write', input = {{ file_path = '{{{{ project }}}}/long.txt', content = \"{lines}\" }} }}]\n[[rule]]\nsay = 'Done.'"
    );
    let stage = Stage::new(&script);
    let mut terminal = Terminal::start(&stage);
    terminal.say("go");
    terminal.shows("yes, once");
    let all = terminal.everything();
    assert!((1..=60).all(|n| all.contains(&format!("+ line {n}\n"))), "{all}");
}

/// TOOL-2: a rule for always is written to the local settings, and holds for the next call.
#[test]
fn always_is_written_down_and_honoured() {
    let stage = Stage::new(WORKER);
    let mut terminal = Terminal::start(&stage);
    terminal.say("run it");
    terminal.shows("yes, once");
    assert_snapshot!(terminal.everything());
    terminal.keys(&format!("{DOWN}{ENTER}"));
    terminal.rests("Finished.");
    assert_snapshot!("always", terminal.everything());
    let rules = settings(&stage)["permissions"]["allow"].clone();
    assert!(rules.is_array() && rules != json!([]), "{rules}");
    terminal.keys(&format!("/permissions{ENTER}"));
    terminal.rests("allow");
    terminal.leave();
    // Another session knows it as well.
    std::fs::remove_file(stage.project().join("made")).unwrap();
    let mut terminal = Terminal::start(&stage);
    terminal.say("run it");
    terminal.rests("Finished.");
    assert!(stage.project().join("made").exists());
}

/// TOOL-2: the reason of a no reaches the model.
#[test]
fn no_goes_to_the_model_with_its_reason() {
    let stage = Stage::new(WORKER);
    let mut terminal = Terminal::start(&stage);
    terminal.say("create it");
    terminal.shows("yes, once");
    terminal.keys("n");
    terminal.shows("no, because:");
    terminal.keys("not in thus\x7f\x7fis folder");
    terminal.shows("not in this folder");
    assert_snapshot!("a_reason", terminal.everything());
    terminal.keys(ENTER);
    terminal.rests("I see: not in this folder");
    assert_snapshot!("denied", terminal.everything());
    assert!(!stage.project().join("new.txt").exists());
}

#[test]
fn esc_denies_and_stops_the_turn() {
    let stage = Stage::new(WORKER);
    let mut terminal = Terminal::start(&stage);
    for stop in [ESC.to_owned(), ctrl('c')] {
        terminal.say("create it");
        terminal.shows("yes, once");
        terminal.keys("3");
        terminal.shows("no, because:");
        terminal.keys(ESC); // back to the answers
        terminal.shows("yes, once");
        terminal.keys(&stop);
        terminal.rests("stopped");
        terminal.say("hello");
        terminal.rests("Finished.");
        terminal.keys(&format!("/clear{ENTER}"));
        terminal.rests("a new session");
    }
    assert!(!stage.project().join("new.txt").exists());
    assert_eq!(stage.simulator.report().totals.refused, 0);
}

#[test]
fn several_questions_come_one_after_the_other() {
    let stage = Stage::new(WORKER);
    let mut terminal = Terminal::start(&stage);
    terminal.say("several things");
    terminal.shows("create a.txt");
    terminal.keys("y");
    terminal.shows("create b.txt");
    terminal.keys("n");
    terminal.shows("no, because:");
    terminal.keys(ENTER);
    let screen = terminal.shows("echo c > c.txt && cat c.txt");
    assert!(screen.contains("2 no, and say why") && !screen.contains("always"), "{}", screen.text());
    terminal.keys("1");
    terminal.rests("Finished.");
    assert_snapshot!(terminal.everything());
    let exists = |name: &str| stage.project().join(name).exists();
    assert_eq!((exists("a.txt"), exists("b.txt"), exists("c.txt")), (true, false, true));
}

/// Letters go to the message that is being typed, whatever they would answer; an arrow key goes to the question.
#[test]
fn what_is_being_typed_does_not_answer_a_question() {
    let stage = Stage::new(WORKER);
    stage.simulator.push_fault(simulator::Fault { delay_ms: 500, ..Default::default() }).unwrap();
    let mut terminal = Terminal::start(&stage);
    terminal.say("create it");
    terminal.types("maybe");
    terminal.shows("you were typing");
    terminal.keys("yay 1 2");
    terminal.holds("maybeyay 1 2");
    assert!(!stage.project().join("new.txt").exists());
    terminal.keys(DOWN);
    terminal.shows("› 1 yes, once");
    terminal.keys("y");
    terminal.rests("Finished.");
    terminal.holds("maybeyay 1 2");
    assert_eq!(settings(&stage), Value::Null, "nothing was allowed for always");
}

/// Also where the question came first, or the message before it was just sent.
#[test]
fn a_message_can_be_typed_and_queued_while_a_question_is_open() {
    let stage = Stage::new(WORKER);
    let mut terminal = Terminal::start(&stage);
    terminal.say("create it");
    terminal.shows("yes, once");
    terminal.keys("please add a title");
    terminal.holds("please add a title");
    terminal.keys(ENTER);
    terminal.shows("queued: please add a title");
    terminal.keys("and");
    terminal.holds("and");
    terminal.paste(" a pasted yes");
    terminal.holds("and a pasted yes");
    terminal.keys(UP);
    terminal.shows("› 1 yes, once");
    assert!(!stage.project().join("new.txt").exists());
    terminal.keys("y");
    terminal.rests("Finished.");
    let sent = stage.simulator.requests().pop().unwrap()["messages"].to_string();
    assert!(sent.contains("please add a title"), "{sent}");
    assert_eq!(settings(&stage), Value::Null);
}
