//! A turn as it is seen: the reply, the calls, stopping it, and what is said meanwhile.

use std::fs::File;
use std::process::Command;

use insta::assert_snapshot;
use simulator::Fault;

use crate::stage::{Stage, run};
use crate::terminal::{ENTER, ESC, Terminal, UP, ctrl};

const READER: &str = r##"
    [[rule]]
    name = "find"
    when = { result = "alpha" }
    call = [{ tool = "Glob", input = { pattern = "*.txt" } }]
    [[rule]]
    name = "tell"
    when = { result = "note.txt" }
    say = """# Found

It says **alpha**, as `note.txt` has it ([see](https://example.org)):

- one
- two, with a line that is longer than the window is wide and so has to be wrapped

| file | what it says |
|------|--------------|
| note.txt | alpha |

```rust
fn main() {}
```
"""
    [[rule]]
    name = "read"
    when = { user = "look" }
    say = "I look at it."
    call = [{ tool = "Read", input = { file_path = "{{ project }}/note.txt" } }]
    [[rule]]
    name = "again"
    when = { user = "again" }
    say = "Here I am."
    [[rule]]
    say = "A reply of several words, so that it comes in pieces and can be stopped in the middle of them all."
"##;

/// A model that runs a command which waits at a pipe, so that a test decides when it goes on.
const WAITER: &str = r#"
    [[rule]]
    name = "done"
    when = { visible = "released" }
    say = "All done."
    [[rule]]
    name = "wait"
    when = { user = "wait" }
    call = [{ tool = "Bash", input = { command = "cat gate" } }]
    [[rule]]
    say = "Yes."
"#;

fn gate(stage: &Stage) -> std::path::PathBuf {
    let gate = stage.project().join("gate");
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    gate
}

fn open(gate: &std::path::Path) {
    use std::io::Write;
    File::options().write(true).open(gate).unwrap().write_all(b"released\n").unwrap();
}

fn said(stage: &Stage, request: usize) -> Vec<String> {
    let requests = stage.simulator.requests();
    let mut texts = Vec::new();
    for message in requests[request]["messages"].as_array().unwrap() {
        for block in message["content"].as_array().unwrap() {
            let text = block["text"].as_str().unwrap_or_default();
            if message["role"] == "user" && block["type"] == "text" && !text.starts_with("<system-reminder>") {
                texts.push(text.to_owned());
            }
        }
    }
    texts
}

#[test]
fn a_reply_is_rendered_and_calls_take_a_line_each() {
    let stage = Stage::new(READER);
    stage.write("note.txt", "alpha\n");
    let mut terminal = Terminal::start(&stage);
    terminal.say("look at the note");
    terminal.rests("fn main");
    assert_snapshot!(terminal.everything());
    terminal.keys(&ctrl('o'));
    terminal.comes("the calls", |screen| screen.contains("q closes"));
    let screen = terminal.screen().text().replace(&stage.project().display().to_string(), "<project>");
    assert_snapshot!("a_call_expanded", screen);
}

#[test]
fn a_long_call_stays_on_one_line() {
    let long = "echo ".to_owned() + &"word ".repeat(60);
    let script = format!(
        "[[rule]]\nwhen = {{ missing = 'word word\\n' }}\ntimes = 1\ncall = [{{ tool = 'Bash', input = {{ command = '{long}' }} }}]\n[[rule]]\nsay = 'Done.'"
    );
    let stage = Stage::new(&script);
    let mut terminal = Terminal::start_with(&stage, &["--allowedTools", "Bash"]);
    terminal.say("go");
    terminal.rests("Done.");
    assert_snapshot!(terminal.everything());
}

#[test]
fn thinking_is_shown_while_it_lasts() {
    let stage =
        Stage::new("[[rule]]\nthink = \"First of all I look, and then I weigh what I have found.\"\nsay = 'Ready.'");
    stage.simulator.push_fault(Fault { stall: true, cut_after: Some(4), ..Fault::default() }).unwrap();
    let mut command = stage.cairn();
    command.env("TERM", "xterm").env("MAX_THINKING_TOKENS", "2000");
    let mut terminal = Terminal::open(&command, 80, 24);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal.say("go");
    terminal.shows("thinking");
    terminal.shows("First of all I look");
    terminal.keys(ESC);
    terminal.rests("stopped");
    terminal.say("go on");
    let screen = terminal.rests("Ready.");
    assert!(!screen.contains("First of all I look"), "{}", screen.text());
}

/// LOG-7: a turn that was stopped leaves a session that can be gone on with.
#[test]
fn esc_stops_a_reply_and_the_session_goes_on() {
    let stage = Stage::new(READER);
    stage.simulator.push_fault(Fault { stall: true, cut_after: Some(5), ..Fault::default() }).unwrap();
    let mut terminal = Terminal::start(&stage);
    terminal.say("tell me");
    terminal.shows("comes in pi"); // the last that comes before it stalls
    terminal.keys(ESC);
    terminal.rests("stopped");
    assert_snapshot!(terminal.everything());
    terminal.say("again please");
    terminal.rests("Here I am.");
    let report = stage.simulator.report();
    assert_eq!((report.totals.refused, report.totals.breaks), (0, 0));
    let second = &stage.simulator.requests()[1]["messages"];
    assert_eq!(second[1]["role"], "assistant");
    assert!(second[1]["content"][0]["text"].as_str().unwrap().starts_with("A reply of several"), "{second}");
    assert!(said(&stage, 1).iter().any(|text| text.contains("interrupted")));
    terminal.leave();
    let ran = run(stage.cairn().args(["-p", "again", "--continue"]));
    assert_eq!(ran.stdout, "Here I am.\n");
}

#[test]
fn ctrl_c_stops_a_turn_and_twice_leaves() {
    let stage = Stage::new(READER);
    for _ in 0..2 {
        stage.simulator.push_fault(Fault { stall: true, ..Fault::default() }).unwrap();
    }
    let mut terminal = Terminal::start(&stage);
    assert!(!terminal.is_cooked() && terminal.emulated().bracketed_paste());
    terminal.say("tell me");
    terminal.shows("waiting for the model");
    terminal.keys(&ctrl('c'));
    terminal.rests("stopped");
    terminal.keys(&ctrl('c'));
    terminal.shows("Ctrl-C again leaves");
    terminal.say("tell me again"); // any other key takes it back
    terminal.shows("waiting for the model");
    terminal.keys(&ctrl('c'));
    terminal.until("the end of the turn", |screen| screen.count("stopped") == 2 && !screen.is_working());
    terminal.keys(&ctrl('c'));
    terminal.shows("Ctrl-C again leaves");
    terminal.keys(&ctrl('c'));
    assert_eq!(terminal.ended(), 0);
    let screen = terminal.screen();
    assert!(screen.contains("continue with: cairn --resume"), "{}", screen.text());
    assert!(!screen.contains("context left"), "the status line is gone");
    assert!(terminal.is_cooked(), "raw mode is off");
    assert!(!terminal.emulated().hide_cursor() && !terminal.emulated().bracketed_paste());
    let ended = String::from_utf8_lossy(&terminal.written).into_owned();
    assert!(ended.rfind("\x1b[?2004l") > ended.rfind("\x1b[?2004h"));
    assert_eq!(stage.simulator.report().totals.refused, 0);
}

#[test]
fn leaving_in_the_middle_of_a_turn_keeps_what_was_said() {
    let stage = Stage::new(READER);
    stage.simulator.push_fault(Fault { stall: true, cut_after: Some(5), ..Fault::default() }).unwrap();
    let mut terminal = Terminal::start(&stage);
    terminal.say("tell me");
    terminal.shows("A reply of several");
    terminal.keys(&ctrl('d'));
    assert_eq!(terminal.ended(), 0);
    assert!(terminal.is_cooked());
    let log = std::fs::read_to_string(&stage.session_files()[0]).unwrap();
    assert!(log.contains("tell me") && log.contains("A reply of several"), "{log}");
}

#[test]
fn a_signal_restores_the_terminal() {
    let stage = Stage::new(READER);
    let mut terminal = Terminal::start(&stage);
    Command::new("kill").arg(terminal.process().to_string()).status().unwrap();
    assert_eq!(terminal.ended(), 143);
    assert!(terminal.is_cooked() && !terminal.emulated().bracketed_paste());
}

#[test]
fn what_is_said_meanwhile_is_queued_and_joins_the_next_round() {
    let stage = Stage::new(WAITER);
    let gate = gate(&stage);
    let mut terminal = Terminal::start_with(&stage, &["--allowedTools", "Bash"]);
    terminal.say("wait for it");
    terminal.shows("Bash cat gate");
    terminal.say("first thing");
    terminal.shows("queued: first thing");
    terminal.say("second thing");
    terminal.shows("queued: second thing");
    assert_snapshot!(terminal.everything());
    terminal.keys(UP);
    terminal.until("it is back", |screen| screen.typed() == "second thing" && !screen.contains("queued: second"));
    terminal.keys(&ctrl('u'));
    terminal.holds("");
    open(&gate);
    terminal.rests("All done.");
    assert_snapshot!("queued_joined", terminal.everything());
    assert_eq!(stage.simulator.requests().len(), 2);
    assert_eq!(said(&stage, 1), ["wait for it", "first thing"]);
    assert_eq!(stage.simulator.report().totals.refused, 0);
}

#[test]
fn what_comes_at_the_very_end_begins_the_next_turn() {
    let stage = Stage::new(WAITER);
    stage.simulator.push_fault(Fault { delay_ms: 1_000, ..Fault::default() }).unwrap();
    let mut terminal = Terminal::start(&stage);
    terminal.say("hello");
    // The request is under way: what comes now is too late for it.
    terminal.until("the first request", |_| !stage.simulator.requests().is_empty());
    terminal.say("and this");
    terminal.say("and that");
    terminal.until("both answers", |screen| screen.count("Yes.") == 2 && !screen.is_working());
    let last = stage.simulator.requests().len() - 1;
    assert_eq!(said(&stage, last), ["hello", "and this", "and that"]);
}

#[test]
fn what_was_queued_returns_to_the_prompt_when_the_turn_is_stopped() {
    let stage = Stage::new(READER);
    stage.simulator.push_fault(Fault { stall: true, ..Fault::default() }).unwrap();
    let mut terminal = Terminal::start(&stage);
    terminal.say("tell me");
    // The request is under way: what comes now is too late for it.
    terminal.until("the request", |_| !stage.simulator.requests().is_empty());
    terminal.say("one");
    terminal.shows("queued: one");
    terminal.say("two");
    terminal.shows("queued: two");
    terminal.types("three");
    terminal.keys(ESC);
    terminal.holds("one\ntwo\nthree");
    assert!(!terminal.screen().contains("queued"));
}

#[test]
fn background_work_stands_in_the_status_line_and_ends_with_the_session() {
    let stage = Stage::new(
        "[[rule]]\ntimes = 1\ncall = [{ tool = 'Bash', input = { command = 'echo $$ > pid; cat gate', run_in_background = true } }]\n[[rule]]\nsay = 'Started.'",
    );
    let gate = gate(&stage);
    let mut terminal = Terminal::start_with(&stage, &["--allowedTools", "Bash"]);
    terminal.say("go");
    terminal.rests("Started.");
    terminal.shows("1 in the background");
    // Opening waits until the command has come to the gate.
    let _held = File::options().write(true).open(&gate).unwrap();
    let process = std::fs::read_to_string(stage.project().join("pid")).unwrap();
    terminal.leave();
    assert!(!std::path::Path::new("/proc").join(process.trim()).exists(), "nothing is left running");
}

#[test]
fn trouble_is_said_and_the_session_goes_on() {
    let stage = Stage::new(READER);
    stage.simulator.push_fault(Fault { message: Some("no such thing".into()), ..Fault::status(400) }).unwrap();
    let mut terminal = Terminal::start(&stage);
    terminal.say("tell me");
    terminal.rests("no such thing");
    terminal.say("again");
    terminal.rests("Here I am.");
}

/// LOG-1: the same conversation is the same log, whoever it was held with.
#[test]
fn the_log_is_the_same_interactive_and_headless() {
    let conversation = |interactive: bool| {
        let stage = Stage::new(READER);
        stage.write("note.txt", "alpha\n");
        // Tools that only a person can answer are offered to one alone.
        let tools = ["--tools", "Read,Write,Edit,Bash,Grep,Glob"];
        if interactive {
            // What is learnt at the end would stand in it, too.
            let alike = [&tools[..], &["--settings", r#"{"extract": false}"#]].concat();
            let mut terminal = Terminal::start_with(&stage, &alike);
            terminal.say("look at the note");
            terminal.rests("fn main");
            terminal.say("again");
            terminal.rests("Here I am.");
            terminal.leave();
        } else {
            run(stage.cairn().args(["-p", "look at the note"]).args(tools));
            run(stage.cairn().args(["-p", "again", "--continue"]).args(tools));
        }
        let log = std::fs::read_to_string(&stage.session_files()[0]).unwrap();
        let root = stage.project().parent().unwrap().display().to_string();
        let slug = stage.project().display().to_string().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        normal(&log.replace(&root, "<root>").replace(&slug, "<slug>"))
    };
    let (interactive, headless) = (conversation(true), conversation(false));
    for (one, other) in interactive.lines().zip(headless.lines()) {
        let at = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
        assert!(
            one == other,
            "they differ here: {:.200} and here: {:.200}",
            one[at..].to_owned(),
            other[at..].to_owned()
        );
    }
    assert_eq!(interactive.lines().count(), headless.lines().count());
}

/// A log without what differs from run to run: ids, times, and counts, since the folder's name is part of the prompt.
fn normal(log: &str) -> String {
    let mut ids: Vec<String> = Vec::new();
    let patterns = [
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        r"\d{4}-\d{2}-\d{2}T[0-9:.]+Z",
        r"(msg|toolu|req)_[A-Za-z0-9]+",
        r#""modified":[^,}]+"#,
    ];
    let counts = regex::Regex::new(r#"_tokens":\d+"#).unwrap();
    let mut text = counts.replace_all(log, "_tokens\":0").into_owned();
    for pattern in patterns {
        text = regex::Regex::new(pattern)
            .unwrap()
            .replace_all(&text, |found: &regex::Captures<'_>| {
                let id = found[0].to_owned();
                let is_time = id.starts_with(|c: char| c.is_ascii_digit()) && id.ends_with('Z');
                if is_time {
                    return "<time>".to_owned();
                }
                if !ids.contains(&id) {
                    ids.push(id.clone());
                }
                format!("<{}>", ids.iter().position(|known| *known == id).unwrap())
            })
            .into_owned();
    }
    text
}

#[test]
fn the_first_prompt_may_stand_on_the_command_line() {
    let stage = Stage::new(READER);
    let mut terminal = Terminal::open(stage.cairn().arg("say it again").env("TERM", "xterm"), 80, 24);
    terminal.rests("Here I am.");
    terminal.keys(&format!("/exit{ENTER}"));
    assert_eq!(terminal.ended(), 0);
}
