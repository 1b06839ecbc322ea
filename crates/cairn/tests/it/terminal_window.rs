//! The window: what fills it, and making room in it by hand.

use insta::assert_snapshot;
use simulator::{Fault, When};

use crate::stage::{Stage, piped};
use crate::teammates::until;
use crate::terminal::{DOWN, ENTER, ESC, Terminal, ctrl};
use crate::terminal_screen::figures;

/// A model that tells a colour, knows those it can see, and summarises what it was told.
const TALKER: &str = r#"
    [[rule]]
    name = "summary"
    when = { visible = "about to leave the window" }
    say = "<analysis>Colours.</analysis><summary>1. Request: colours were asked for.</summary>"
    [[rule]]
    name = "both"
    when = { user = "which", visible = ["is red", "is blue"] }
    say = "Red and blue."
    [[rule]]
    name = "late"
    when = { user = "which", visible = "is blue" }
    say = "Only blue."
    [[rule]]
    name = "early"
    when = { user = "which", visible = "is red" }
    say = "Only red."
    [[rule]]
    name = "none"
    when = { user = "which" }
    say = "I see neither."
    [[rule]]
    name = "first"
    when = { user = "a colour" }
    say = "One is red."
    [[rule]]
    name = "second"
    when = { user = "another" }
    say = "One is blue."
"#;

/// A session in which two colours were told.
fn talked() -> (Stage, Terminal) {
    let stage = Stage::new(TALKER);
    let mut terminal = Terminal::start(&stage);
    terminal.say("tell me a colour");
    terminal.rests("One is red.");
    terminal.say("and another");
    terminal.rests("One is blue.");
    (stage, terminal)
}

/// The last request that was sent.
fn sent(stage: &Stage) -> String {
    stage.simulator.requests().pop().unwrap()["messages"].to_string()
}

/// What the summariser holds on to until it is let go.
fn stalled() -> Fault {
    let when = When { visible: vec!["about to leave the window".into()], ..When::default() };
    Fault { when, stall: true, ..Fault::default() }
}

/// TOK-6: what fills the window, against the size at which compaction is due, and what is left.
#[test]
fn context_shows_what_fills_the_window() {
    let (_stage, mut terminal) = talked();
    terminal.keys(&format!("/context{ENTER}"));
    let screen = terminal.rests("room");
    assert!(screen.contains("of 1,000,000 tokens, compaction is due at 967,000 (99 % left)"), "{}", screen.text());
    assert_snapshot!(figures(&terminal.everything()));
}

/// COMPACT-9: `/compact` with a wish. The wish reaches who summarises, the summary and the user's words stand for what
/// was said, and what was on the screen stays there.
#[test]
fn a_conversation_is_compacted_as_the_user_wishes() {
    let (stage, mut terminal) = talked();
    terminal.keys(&format!("/compact keep the shades{ENTER}"));
    terminal.rests("compacted:");
    assert!(sent(&stage).contains("keep the shades"));
    assert_snapshot!(figures(&terminal.everything()));
    terminal.say("which do you see?");
    terminal.rests("I see neither.");
    let sent = sent(&stage);
    assert!(sent.contains("colours were asked for") && sent.contains("tell me a colour"), "{sent}");
    assert_eq!(stage.simulator.report().totals.refused, 0);
}

#[test]
fn nothing_is_compacted_where_nothing_was_said() {
    let stage = Stage::new(TALKER);
    let mut terminal = Terminal::start(&stage);
    for command in ["compact", "compact from", "snip"] {
        terminal.keys(&format!("/{command}{ENTER}"));
        terminal.rests(if command == "compact" { "there is nothing to compact" } else { "nothing was said yet" });
    }
    terminal.say("tell me a colour");
    terminal.rests("One is red.");
    terminal.keys(&format!("/compact{ENTER}"));
    terminal.rests("compacted: a summary");
    let requests = stage.simulator.requests().len();
    terminal.keys(&format!("/compact{ENTER}"));
    terminal.until("a second no", |screen| {
        let after = screen.rows.iter().skip_while(|row| !row.contains("compacted: a summary"));
        !screen.is_working() && after.filter(|row| row.contains("there is nothing to compact")).count() == 1
    });
    assert_eq!(stage.simulator.requests().len(), requests, "a summary is not summarised again for nothing");
}

#[test]
fn making_room_waits_for_the_end_of_the_turn() {
    let stage = Stage::new(TALKER);
    stage.simulator.push_fault(Fault { stall: true, ..Fault::default() }).unwrap();
    let mut terminal = Terminal::start(&stage);
    terminal.say("tell me a colour");
    terminal.shows("waiting for the model");
    for command in ["compact", "snip", "context"] {
        terminal.keys(&format!("/{command}{ENTER}"));
        terminal.shows(&format!("queued: /{command}"));
    }
    until("the request arrives", || stage.simulator.requests().len() == 1);
    terminal.keys(ESC);
    terminal.until("the first has begun", |screen| !screen.contains("queued: /compact"));
    assert!(terminal.everything().contains("stopped"));
}

/// COMPACT-8, COMPACT-9: a compaction can be stopped; the session is as it was, and goes on.
#[test]
fn a_compaction_is_stopped_and_nothing_is_lost() {
    for key in [ESC.to_owned(), ctrl('c')] {
        let (stage, mut terminal) = talked();
        stage.simulator.push_fault(stalled()).unwrap();
        terminal.keys(&format!("/compact{ENTER}"));
        terminal.shows("compacting");
        terminal.keys("which do");
        terminal.holds("which do");
        terminal.keys(&key);
        terminal.rests("stopped");
        assert!(!terminal.screen().contains("failed"), "{}", terminal.screen().text());
        terminal.holds("which do");
        terminal.keys(&format!(" you see?{ENTER}"));
        terminal.rests("Red and blue.");
        let log = std::fs::read_to_string(stage.session_files().remove(0)).unwrap();
        assert!(!log.contains("compact_boundary") && !log.contains("compaction-failed"), "{log}");
        assert_eq!(stage.simulator.report().totals.breaks, 0);
    }
}

/// COMPACT-9: what is said while a compaction runs is said after it.
#[test]
fn what_is_said_during_a_compaction_comes_after_it() {
    let (stage, mut terminal) = talked();
    let slow = Fault { slow_ms_per_event: 30, stall: false, ..stalled() };
    stage.simulator.push_fault(slow).unwrap();
    terminal.keys(&format!("/compact{ENTER}"));
    terminal.shows("compacting");
    terminal.say("which do you see?");
    terminal.rests("I see neither.");
    assert!(sent(&stage).contains("colours were asked for"));
}

/// COMPACT-9: from a message on: what precedes it stays as it was sent, and in the cache.
#[test]
fn a_conversation_is_compacted_from_a_message_on() {
    let (stage, mut terminal) = talked();
    terminal.keys(&format!("/compact from{ENTER}"));
    terminal.shows("Summarise from which message on?");
    assert_snapshot!("list_of_messages", figures(&terminal.everything()));
    terminal.keys(ENTER);
    terminal.rests("compacted:");
    terminal.say("which do you see?");
    terminal.rests("Only red.");
    assert_eq!(stage.simulator.report().totals.breaks, 0, "what precedes it is read from the cache");
}

/// COMPACT-9: up to a message: what follows it stays.
#[test]
fn a_conversation_is_compacted_up_to_a_message() {
    let (stage, mut terminal) = talked();
    terminal.keys(&format!("/compact up-to{ENTER}"));
    terminal.shows("Summarise everything before which message?");
    terminal.keys(ENTER);
    terminal.rests("compacted:");
    terminal.say("which do you see?");
    terminal.rests("Only blue.");
    assert!(sent(&stage).contains("colours were asked for"));
}

/// SNIP-1: by hand. SNIP-4: what was dropped is still on the screen. CACHE-5: the break it makes is known by its name.
#[test]
fn what_precedes_a_message_is_dropped() {
    let (stage, mut terminal) = talked();
    terminal.keys(&format!("/snip{ENTER}"));
    terminal.shows("Drop everything before which message?");
    terminal.keys(&format!("{DOWN}{ENTER}"));
    terminal.shows("there is nothing to drop: the newest reply and all after it stay");
    terminal.keys(&format!("/snip{ENTER}"));
    terminal.shows("Drop everything before which message?");
    terminal.keys(ENTER);
    terminal.rests("dropped from the window");
    assert_snapshot!(figures(&terminal.everything()));
    terminal.say("which do you see?");
    terminal.rests("Only blue.");
    assert!(sent(&stage).contains("were dropped here as the user wished"));
    terminal.keys(&format!("/undo{ENTER}"));
    terminal.rests("back in the window");
    terminal.say("which do you see now?");
    terminal.rests("Red and blue.");
    terminal.keys(&format!("/undo{ENTER}"));
    terminal.shows("nothing to undo");
}

/// CACHE-5: `/cost` tells the re-write factor, the hit ratio, what broke the cache, what was asked beside the
/// conversation, and money.
#[test]
fn cost_tells_what_broke_the_cache_and_what_summaries_cost() {
    let stage = Stage::new(TALKER);
    stage.write("CLAUDE.md", "Colours have names.\n");
    let mut terminal = Terminal::start(&stage);
    terminal.paste(&format!("{} tell me a colour", "of all that there are ".repeat(800)));
    terminal.shows("[Pasted text #1");
    terminal.keys(ENTER);
    terminal.rests("One is red.");
    terminal.keys(&format!("/compact{ENTER}"));
    terminal.rests("compacted: a summary");
    terminal.say("which do you see?");
    terminal.rests("neither.");
    terminal.keys(&format!("/cost{ENTER}"));
    let screen = terminal.rests("budget");
    for text in [
        "re-write factor",
        "% read",
        " than without it",
        "breaks      compact, 1×",
        "tokens not read",
        "background  $",
        ": compact $",
        "today       $",
        "of $2.00 a day for background work",
    ] {
        assert!(screen.contains(text), "{text} in {}", screen.text());
    }
}

/// COMPACT-9, SNIP-1, TOK-6: the same in plain lines, with numbered lists.
#[test]
fn plain_lines_make_room_too() {
    let stage = Stage::new(TALKER);
    let text = piped(
        &stage,
        &[],
        "/snip\ntell me a colour\nand another\n/context\n/snip\n1\nwhich do you see?\n/undo\nwhich?\n/compact from\n\n\
         /compact up-to\n3\nwhich are left?\n/compact be brief\nwhich now?\n/cost\n",
    );
    let rows: Vec<&str> = text.lines().map(|row| row.trim_start_matches("> ")).collect();
    for row in [
        "nothing was said yet",
        "Drop everything before which message?",
        "2 messages dropped from the window; /undo brings them back",
        "Only blue.",
        "Red and blue.",
        "Summarise from which message on?",
        "4. tell me a colour",
        "nothing was chosen",
        "Summarise everything before which message?",
        "I see neither.",
    ] {
        assert!(rows.iter().any(|shown| shown.trim_end().ends_with(row)), "{row} in {text}");
    }
    for part in [
        "compaction is due at 967,000 (99 % left)",
        "what you said",
        "compacting ",
        "compacted: a summary",
        "background",
    ] {
        assert!(rows.iter().any(|shown| shown.contains(part)), "{part} in {text}");
    }
    assert!(!text.contains('\x1b'), "{text}");
    assert_eq!(stage.simulator.report().totals.refused, 0);
}

/// COMPACT-9: in plain lines too, Ctrl-C stops a compaction and leaves the session as it was.
#[test]
fn plain_lines_stop_a_compaction_with_ctrl_c() {
    let stage = Stage::new(TALKER);
    let mut terminal = Terminal::open(stage.cairn().env("TERM", "dumb"), 80, 24);
    terminal.shows(">");
    terminal.keys(&format!("tell me a colour{ENTER}"));
    terminal.shows("One is red.");
    stage.simulator.push_fault(stalled()).unwrap();
    terminal.keys(&format!("/compact{ENTER}"));
    terminal.shows("compacting");
    terminal.keys(&ctrl('c'));
    terminal.shows("stopped");
    terminal.keys(&format!("which do you see?{ENTER}"));
    terminal.shows("Only red.");
    terminal.keys(&format!("/exit{ENTER}"));
    assert_eq!(terminal.ended(), 0);
}
