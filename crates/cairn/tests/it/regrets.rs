//! What was cleared too early, as people see it: in the event log, in the statistics and on the screen.

use serde_json::{Value, json};

use crate::hooks::settings;
use crate::stage::{Stage, run};
use crate::terminal::{ENTER, Terminal};

/// A model that reads six files and tells of them at length, chats, and later needs the first file again.
fn script() -> String {
    let calls: Vec<String> = (0..6)
        .map(|file| format!(r#"{{ tool = "Read", input = {{ file_path = "{{{{ project }}}}/{file}.txt" }} }}"#))
        .collect();
    format!(
        r#"
        [[rule]]
        when = {{ user = "^read", tool = "Read" }}
        say = "{}"
        [[rule]]
        when = {{ user = "^read" }}
        call = [{}]
        [[rule]]
        when = {{ user = "^again", tool = "Read" }}
        say = "There it is."
        [[rule]]
        when = {{ user = "^again" }}
        call = [{{ tool = "Read", input = {{ file_path = "{{{{ project }}}}/0.txt" }} }}]
        [[rule]]
        say = "I see."
    "#,
        "All of them are about the same thing, and I tell it in my own words. ".repeat(40),
        calls.join(", ")
    )
}

/// A project of six files.
fn stage() -> Stage {
    let stage = Stage::new(&script());
    for file in 0..6 {
        stage.write(&format!("{file}.txt"), &format!("line of file {file}\n").repeat(900));
    }
    clear_when(&stage, "pays");
    stage
}

/// Sets when old results are cleared.
fn clear_when(stage: &Stage, when: &str) {
    let file = stage.config().join("events.jsonl");
    settings(stage, &json!({"eventLog": file, "permissions": {"allow": ["Read"]}, "clearWhen": when}));
}

/// Lets the model read the files, and talks until what was read has been carried for long enough to be cleared.
fn read_and_chat(stage: &Stage) {
    run(stage.cairn().args(["-p", "read them"]));
    for turn in 0..14 {
        run(stage.cairn().args(["-p", &format!("word {turn}"), "--continue"]));
    }
}

/// MICRO-9: a file that was cleared and is read again is a regret: it stands with its price in the event log and in the
/// statistics, beside what clearing saved.
#[test]
fn a_regret_is_counted_priced_and_shown() {
    let stage = stage();
    read_and_chat(&stage);
    run(stage.cairn().args(["-p", "again, the first", "--continue"]));
    let requests = stage.simulator.requests();
    let last = requests.last().unwrap()["messages"].to_string();
    assert!(!last.contains("line of file 3"), "the others are cleared: {last}");
    assert!(last.contains("line of file 0"), "the first is back");

    let text = std::fs::read_to_string(stage.config().join("events.jsonl")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let regretted: Vec<&Value> = lines.iter().filter(|line| line["event"] == "regretted").collect();
    assert_eq!(regretted.len(), 1, "{text}");
    assert_eq!(regretted[0]["regrets"], 1);
    assert!(
        regretted[0]["regrets_usd"].as_f64() > Some(0.0) && regretted[0]["saved_usd"].as_f64() > Some(0.0),
        "{text}"
    );

    let shown = run(stage.cairn().arg("stats"));
    assert!(shown.stdout.contains("regrets    1 cleared result needed again: $0.0"), "{}", shown.stdout);
    let told: Value = serde_json::from_str(&run(stage.cairn().args(["stats", "--json"])).stdout).unwrap();
    let clear = told["layers"].as_array().unwrap().iter().find(|layer| layer["layer"] == "clear").unwrap();
    assert_eq!((&clear["regrets"], &clear["times"]), (&json!(1), &json!(1)), "{clear}");
    assert!(clear["regretsUsd"].as_f64() > Some(0.0) && clear["savedUsd"].as_f64() > Some(0.0), "{clear}");
}

/// MICRO-9: `/context` shows regrets beside the saving.
#[test]
fn a_regret_is_shown_with_the_window() {
    let stage = stage();
    read_and_chat(&stage);
    let mut terminal = Terminal::start_with(&stage, &["--continue"]);
    terminal.say("again, the first");
    terminal.rests("There it is.");
    terminal.keys(&format!("/context{ENTER}"));
    let screen = terminal.rests("1 cleared result was needed again: $0.0");
    assert!(screen.contains("clearing saved $0."), "{}", screen.text());
}

/// MICRO-8, CONF-2: `clearWhen` counts from the next request on, in a session that is under way.
#[test]
fn when_to_clear_is_changed_while_a_session_runs() {
    let stage = stage();
    clear_when(&stage, "never");
    read_and_chat(&stage);
    let mut terminal = Terminal::start_with(&stage, &["--continue"]);
    let says = |terminal: &mut Terminal, word: &str| -> String {
        let sent = || stage.last_said()["messages"].to_string();
        terminal.say(word);
        terminal.until("an answer", |screen| sent().contains(&format!("\"{word}\"")) && !screen.is_working());
        sent()
    };
    for (when, is_in_view) in [("never", true), ("window", true), ("pays", false)] {
        clear_when(&stage, when);
        let sent = says(&mut terminal, when);
        assert_eq!(sent.contains("line of file 3"), is_in_view, "{when}: {sent}");
    }
}
