//! Windows that change their size: no garbage, one prompt.

use insta::assert_snapshot;
use simulator::Fault;

use crate::stage::Stage;
use crate::terminal::{ESC, Reflow, Screen, Terminal};

const TALKER: &str = r#"
    [[rule]]
    when = { user = "list" }
    say = "- a first point that is rather long, longer than a narrow window\n- a second\n\nAnd a sentence after it."
    [[rule]]
    say = "Here is one sentence of a reply that goes on and on, so that it takes more than one row in most windows."
"#;

fn one_prompt(screen: &Screen) {
    assert!(screen.has_prompt(), "{}", screen.text());
    assert_eq!(screen.count("context left"), 1, "{}", screen.text());
}

#[test]
fn while_idle_the_prompt_follows_the_window() {
    for reflow in [Reflow::Yes, Reflow::No] {
        let stage = Stage::new(TALKER);
        let mut terminal = Terminal::start(&stage);
        terminal.say("list them");
        terminal.rests("And a sentence");
        terminal.types("some words that I am about to say to it");
        for (columns, lines) in [(60, 24), (30, 24), (20, 12), (40, 30), (100, 30), (80, 24)] {
            terminal.resize(columns, lines, reflow);
            let fits = |screen: &Screen| {
                screen.has_prompt()
                    && screen.typed().split_whitespace().collect::<String>() == "somewordsthatIamabouttosaytoit"
            };
            one_prompt(&terminal.until("the prompt at its new place", fits));
        }
        if reflow == Reflow::Yes {
            assert_snapshot!(terminal.everything());
        }
    }
}

#[test]
fn while_a_reply_streams_it_goes_on_below() {
    for reflow in [Reflow::Yes, Reflow::No] {
        let stage = Stage::new(TALKER);
        stage.simulator.push_fault(Fault { stall: true, cut_after: Some(7), ..Fault::default() }).unwrap();
        let mut terminal = Terminal::start(&stage);
        terminal.say("go");
        terminal.shows("row in most");
        for columns in [40, 20, 60] {
            terminal.resize(columns, 24, reflow);
            let settled = |screen: &Screen| screen.has_prompt() && screen.is_working();
            let screen = terminal.until("one prompt", settled);
            assert_eq!(screen.count("Here is one"), 1, "{}", screen.text());
        }
        terminal.keys(ESC);
        let screen = terminal.rests("stopped");
        one_prompt(&screen);
        if reflow == Reflow::Yes {
            assert_snapshot!(terminal.everything());
        }
    }
}

#[test]
fn a_very_narrow_window_is_of_use() {
    let stage = Stage::new(TALKER);
    let mut terminal = Terminal::open(stage.cairn().env("TERM", "xterm"), 20, 16);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal.keys("list them please, all of them\r");
    terminal.rests("after it.");
    assert_snapshot!(terminal.everything());
    terminal.keys("/");
    terminal.shows("› /");
    assert_snapshot!("narrow_menu", terminal.everything());
}

#[test]
fn a_window_of_few_lines_keeps_the_prompt_in_sight() {
    let stage = Stage::new(TALKER);
    let mut terminal = Terminal::open(stage.cairn().env("TERM", "xterm"), 80, 5);
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal.keys("/");
    let screen = terminal.until("the menu", |screen| screen.contains("the commands and keys"));
    assert!(screen.rows.iter().any(|row| row.starts_with("› /")), "{}", screen.text());
}

#[test]
fn a_terminal_without_a_size_gets_the_usual_one() {
    let stage = Stage::new(TALKER);
    let mut terminal = Terminal::open_unsized(stage.cairn().env("TERM", "xterm"));
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal.say("list them");
    terminal.rests("a first point that is rather long, longer than a narrow window");
}
