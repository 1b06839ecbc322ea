//! Old results that go at the start of a user's turn, beside what else happens in a session.

use serde_json::json;

use crate::children::agents;
use crate::stage::{Stage, say};

/// A parent that reads six files, later sends out an agent that reads one of them, and tells what that said.
fn script() -> String {
    let call =
        |file: usize| format!(r#"{{ tool = "Read", input = {{ file_path = "{{{{ project }}}}/{file}.txt" }} }}"#);
    format!(
        r#"
        [[rule]]
        when = {{ user = "^look closely", tool = "Read" }}
        say = "The file is about quartz."
        [[rule]]
        when = {{ user = "^look closely" }}
        call = [{}]
        [[rule]]
        when = {{ user = "^read", tool = "Read" }}
        say = "{}"
        [[rule]]
        when = {{ user = "^read" }}
        call = [{}]
        [[rule]]
        when = {{ user = "^send", tool = "Agent" }}
        say = "It is back."
        [[rule]]
        when = {{ user = "^send" }}
        call = [{{ tool = "Agent", input = {{ description = "look", prompt = "look closely", subagent_type = "general-purpose" }} }}]
        [[rule]]
        say = "I see."
    "#,
        call(3),
        "All of them are about the same thing, and I tell it in my own words. ".repeat(40),
        (0..6).map(call).collect::<Vec<_>>().join(", ")
    )
}

/// MICRO-8, AGENT-2: what was cleared early for the parent is whole for its subagent, which reads it anew; what the subagent
/// reports stays in the parent's view, and what it reads is no regret of the parent's.
#[tokio::test]
async fn early_clearing_leaves_subagents_and_their_reports_alone() {
    let mut stage = Stage::new(&script()).await;
    stage.agents = agents(json!({}));
    for file in 0..6 {
        let text = format!("line of file {file}\n").repeat(900);
        std::fs::write(stage.project().join(format!("{file}.txt")), text).unwrap();
    }
    let mut agent = stage.agent(None);
    say(&mut agent, "read them").await;
    // What was read stays for ten rounds.
    for round in 0..12 {
        say(&mut agent, &format!("word {round}")).await;
    }
    say(&mut agent, "send somebody").await;
    let requests = stage.simulator.requests();
    let text = |at: usize| requests[at]["messages"].to_string();
    let parent = text(requests.len() - 1);
    assert!(!parent.contains("line of file 3"), "it is cleared: {parent}");
    assert!(parent.contains("The file is about quartz."), "the report is in view: {parent}");
    let child = text(requests.len() - 2);
    assert!(child.contains("look closely") && child.contains("line of file 3"), "the subagent has it whole: {child}");
    assert_eq!(agent.session().state().clearing.regrets, 0);
    for words in ["seven", "eight", "nine", "ten", "eleven"] {
        say(&mut agent, words).await;
    }
    let last = stage.simulator.requests().pop().unwrap()["messages"].to_string();
    assert!(last.contains("The file is about quartz."), "it stays: {last}");
}
