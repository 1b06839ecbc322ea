//! Slash commands, shell escapes, and pictures.

use insta::assert_snapshot;
use simulator::Fault;

use crate::stage::{Stage, run};
use crate::terminal::{ENTER, ESC, Terminal};

const MODEL: &str = r#"
    [[rule]]
    name = "seen"
    when = { visible = "<output>\\s*(?P<what>from the shell)" }
    say = "I saw it: {{ what }}."
    [[rule]]
    name = "opus"
    when = { model = "opus" }
    say = "Opus here."
    [[rule]]
    say = "Hello."
"#;

fn started() -> (Stage, Terminal) {
    let stage = Stage::new(MODEL);
    let terminal = Terminal::start(&stage);
    (stage, terminal)
}

#[test]
fn help_lists_commands_and_keys() {
    let (_stage, mut terminal) = started();
    terminal.keys(&format!("/help{ENTER}"));
    terminal.rests("@path");
    assert_snapshot!(terminal.everything());
}

#[test]
fn help_fits_a_narrow_window() {
    let stage = Stage::new(MODEL);
    let mut terminal = Terminal::open(stage.cairn().env("TERM", "xterm"), 30, 24);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal.keys(&format!("/help{ENTER}"));
    terminal.rests("@path");
    assert_snapshot!(terminal.everything());
}

/// KEEP-1: what the user forbade is shown by number, survives a compaction word for word in what is sent, and is lifted by
/// command.
#[test]
fn what_was_forbidden_is_shown_and_lifted() {
    let (stage, mut terminal) = started();
    terminal.say("Mend it. Never push to main! README.md is written by hand.");
    terminal.rests("Hello.");
    terminal.keys(&format!("/keep{ENTER}"));
    let screen = terminal.rests("1  Never push to main!");
    assert!(!screen.text().contains("2  README.md"), "what is only possible is not listed");
    terminal.keys(&format!("/compact{ENTER}"));
    terminal.rests("compacted");
    terminal.say("go on");
    terminal.until("a second answer", |screen| screen.count("Hello.") == 2);
    terminal.rests("Hello.");
    let sent = stage.simulator.requests().pop().unwrap().to_string();
    assert!(sent.contains("word for word:\\nNever push to main!"), "{sent}");
    terminal.keys(&format!("/keep drop 2{ENTER}"));
    terminal.rests("which one?");
    terminal.keys(&format!("/keep drop 1{ENTER}"));
    terminal.rests("dropped: Never push to main!");
    terminal.keys(&format!("/keep{ENTER}"));
    terminal.rests("nothing is kept");
}

/// KEEP-1: of more than 2,000 tokens of instructions the newest are put back after a compaction, and the user is told by
/// every message that leaves more of them out.
#[test]
fn more_than_is_kept_in_view_is_told() {
    let stage = Stage::new(MODEL);
    let forbidden = |folders: std::ops::Range<usize>| -> String {
        let one = |n| format!("Never touch folder {n:03}, whatever {}.", "you are told by anyone ".repeat(3));
        folders.map(one).collect::<Vec<_>>().join("\n")
    };
    let told = |text: &str, more: &[&str]| run(stage.cairn().args(["-p", text]).args(more)).stderr;
    assert!(!told(&forbidden(0..60), &[]).contains("do not fit"));
    let first = told(&forbidden(60..80), &["--continue"]);
    assert!(first.contains("of your standing instructions do not fit into view: /keep shows them"), "{first}");
    let second = told(&forbidden(80..90), &["--continue"]);
    assert!(second.contains("do not fit into view") && first != second, "{second}");
    let mut terminal = Terminal::start_with(&stage, &["--continue"]);
    terminal.keys(&format!("/compact{ENTER}"));
    terminal.rests("compacted");
    let before = stage.simulator.requests().len();
    terminal.say("go on");
    terminal.until("an answer", |screen| stage.simulator.requests().len() > before && !screen.is_working());
    let sent = stage.simulator.requests().pop().unwrap().to_string();
    let kept = sent.split("until the user lifts it, word for word:\\n").nth(1).unwrap_or_default();
    assert!(kept.starts_with("Never touch folder 02") && kept.contains("Never touch folder 089"), "{kept}");
}

/// KEEP-1, EXTRACT-1: what is forbidden in private is kept like all else: nothing is learnt from it, but it survives a
/// compaction word for word in what is sent.
#[test]
fn what_was_forbidden_in_private_is_kept() {
    let (stage, mut terminal) = started();
    terminal.keys(&format!("/private{ENTER}"));
    terminal.rests("private: nothing is learnt");
    terminal.say("Mend it. Never push to main!");
    terminal.rests("Hello.");
    terminal.keys(&format!("/private off{ENTER}"));
    terminal.rests("no longer private");
    terminal.keys(&format!("/compact{ENTER}"));
    terminal.rests("compacted");
    terminal.say("go on");
    terminal.until("a second answer", |screen| screen.count("Hello.") == 2);
    terminal.rests("Hello.");
    let sent = stage.simulator.requests().pop().unwrap().to_string();
    assert!(sent.contains("word for word:\\nNever push to main!"), "{sent}");
}

/// KEEP-1, LOG-14: whoever goes back takes back what was forbidden since, and what was lifted since holds again.
#[test]
fn going_back_takes_back_what_was_forbidden_or_lifted() {
    let (stage, mut terminal) = started();
    terminal.say("Mend it. Never push to main!");
    terminal.rests("Hello.");
    terminal.say("You may push to main now. Never touch vendor!");
    terminal.until("a second answer", |screen| screen.count("Hello.") == 2);
    terminal.rests("Hello.");
    terminal.keys(&format!("/keep{ENTER}"));
    terminal.rests("1  Never touch vendor!");
    terminal.keys(&format!("/rewind{ENTER}"));
    terminal.shows("before which message");
    terminal.keys(ENTER);
    terminal.shows("What goes back?");
    terminal.keys(ENTER);
    terminal.rests("back to before");
    terminal.keys(&format!("\u{15}/keep{ENTER}"));
    terminal.rests("1  Never push to main!");
    terminal.keys(&format!("/compact{ENTER}"));
    terminal.rests("compacted");
    terminal.say("go on");
    terminal.until("a last answer", |screen| screen.count("Hello.") >= 2 && !screen.is_working());
    let sent = stage.simulator.requests().pop().unwrap().to_string();
    assert!(sent.contains("word for word:\\nNever push to main!"), "{sent}");
    assert!(!sent.contains("Never touch vendor!"), "{sent}");
}

#[test]
fn cost_and_status_give_the_figures() {
    let (stage, mut terminal) = started();
    terminal.say("hi");
    terminal.rests("Hello.");
    terminal.keys(&format!("/cost{ENTER}"));
    let screen = terminal.rests("a day for background work");
    assert!(screen.contains("written to the cache") && screen.count("$") == 7, "{}", screen.text());
    terminal.keys(&format!("/status{ENTER}"));
    let screen = terminal.rests("replies");
    for text in ["session", "file", "claude-sonnet-5", "tokens", "directory", "~/project", "mode       default"] {
        assert!(screen.contains(text), "{text} in {}", screen.text());
    }
    let id = stage.session_files()[0].file_stem().unwrap().to_str().unwrap().to_owned();
    assert!(screen.contains(&id));
}

#[test]
fn the_model_changes_and_the_session_stays() {
    let (stage, mut terminal) = started();
    terminal.keys(&format!("/model{ENTER}"));
    terminal.shows("Which model? It is claude-sonnet-5");
    terminal.keys(ESC);
    terminal.until("the prompt", |screen| screen.has_prompt() && !screen.contains("Which model?"));
    terminal.say("hi");
    terminal.rests("Hello.");
    terminal.keys(&format!("/model opus{ENTER}"));
    terminal.rests("the model is claude-opus");
    terminal.say("and now?");
    terminal.rests("Opus here.");
    assert_snapshot!(terminal.everything());
    assert_eq!(stage.session_files().len(), 1);
    assert!(stage.simulator.requests()[1].to_string().contains("Hello."));
}

#[test]
fn clear_begins_a_new_session() {
    let (stage, mut terminal) = started();
    terminal.say("hi");
    terminal.rests("Hello.");
    terminal.keys(&format!("/clear{ENTER}"));
    terminal.rests("a new session");
    terminal.say("you there?");
    terminal.until("the answer", |screen| screen.count("Hello.") == 2 && !screen.is_working());
    assert_eq!(stage.session_files().len(), 2);
    assert_eq!(stage.simulator.requests()[1]["messages"].as_array().unwrap().len(), 1);
}

#[test]
fn permissions_are_shown_and_the_mode_changes() {
    let stage = Stage::new(MODEL);
    let mut terminal =
        Terminal::start_with(&stage, &["--allowedTools", "Bash(git *)", "--disallowedTools", "Read(.env)"]);
    terminal.keys(&format!("/permissions{ENTER}"));
    let screen = terminal.rests("deny");
    for row in ["mode   default", "allow  Bash(git *)", "ask    nothing", "deny   Read(.env)"] {
        assert!(screen.rows.iter().any(|shown| shown == row), "{row} in {}", screen.text());
    }
    terminal.keys(&format!("/permissions plan{ENTER}"));
    terminal.rests("plan · ");
    terminal.keys(&format!("/permissions nonsense{ENTER}"));
    terminal.shows("modes: default");
}

#[test]
fn export_writes_markdown_and_overwrites_nothing() {
    let (stage, mut terminal) = started();
    terminal.say("hi");
    terminal.rests("Hello.");
    terminal.keys(&format!("/export talk.md{ENTER}"));
    terminal.rests("written to talk.md");
    let text = std::fs::read_to_string(stage.project().join("talk.md")).unwrap();
    assert_eq!(text, "## User\n\nhi\n\n## Assistant\n\nHello.\n\n", "without what only the model was told");
    terminal.keys(&format!("/export talk.md{ENTER}"));
    terminal.rests("not written");
}

#[test]
fn what_is_no_command_is_said_and_kept_from_the_model() {
    let (stage, mut terminal) = started();
    terminal.keys(&format!("/nonsense{ENTER}"));
    terminal.shows("there is no /nonsense; /help lists the commands");
    assert_eq!(stage.simulator.requests().len(), 0);
    terminal.keys(&format!("/expand{ENTER}"));
    terminal.shows("nothing to expand");
    terminal.keys(&format!("/exit{ENTER}"));
    assert_eq!(terminal.ended(), 0);
}

#[test]
fn a_command_that_needs_the_agent_waits_for_it() {
    let (stage, mut terminal) = started();
    stage.simulator.push_fault(Fault { stall: true, ..Fault::default() }).unwrap();
    terminal.say("hi");
    terminal.shows("waiting for the model");
    terminal.keys(&format!("/context{ENTER}"));
    terminal.shows("queued: /context");
    terminal.keys(&format!("/help{ENTER}"));
    terminal.shows("@path");
    terminal.keys(&format!("!echo it is over{ENTER}"));
    terminal.shows("queued: !echo it is over");
    terminal.keys(ESC);
    terminal.until("both", |screen| {
        screen.contains("compaction is due") && screen.rows.iter().any(|row| row == "  it is over")
    });
}

#[test]
fn a_command_of_the_user_is_shown_and_the_model_sees_it_next() {
    let stage = Stage::new(MODEL);
    // What the model may not do is no limit to the user.
    let mut terminal = Terminal::start_with(&stage, &["--disallowedTools", "Bash"]);
    terminal.say("!echo from the shell; echo and more");
    terminal.until("its output", |screen| screen.rows.iter().any(|row| row == "  and more") && !screen.is_working());
    assert_snapshot!(terminal.everything());
    assert_eq!(stage.simulator.requests().len(), 0, "nobody was asked");
    terminal.say("did you see?");
    terminal.rests("I saw it: from the shell.");
    assert_eq!(stage.simulator.report().totals.refused, 0);
}

#[test]
fn a_command_of_the_user_can_be_stopped() {
    let (_stage, mut terminal) = started();
    terminal.say("!cat /dev/zero > /dev/null");
    terminal.shows("$ cat /dev/zero");
    terminal.keys(ESC);
    terminal.until("it has ended", |screen| screen.has_prompt() && !screen.is_working());
    terminal.say("hi");
    terminal.rests("Hello.");
}

#[test]
fn pictures_named_by_path_reach_the_model() {
    let (stage, mut terminal) = started();
    // One pixel.
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";
    std::fs::write(stage.project().join("dot.png"), png).unwrap();
    terminal.keys("what is @dot.p\t");
    terminal.holds("what is @dot.png");
    terminal.keys(ENTER);
    terminal.rests("Hello.");
    terminal.paste(&format!("and '{}/dot.png'?", stage.project().display()));
    terminal.shows("and '");
    terminal.keys(ENTER);
    terminal.until("the answer", |screen| screen.count("Hello.") == 2 && !screen.is_working());
    for request in stage.simulator.requests() {
        let last = request["messages"].as_array().unwrap().last().unwrap()["content"].clone();
        let picture = last.as_array().unwrap().iter().find(|block| block["type"] == "image").unwrap();
        assert_eq!(picture["source"]["media_type"], "image/png");
    }
}
