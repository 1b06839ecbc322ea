use transcript::commit::{Act, Commit};
use transcript::line::Body;

use crate::stage::{Stage, say, window};
use crate::worker;

/// MICRO-4: with the setting on, requests ask the provider to clear old results by itself; what the reply says was
/// cleared is a commit of its own, and the view is as it was.
#[tokio::test]
async fn what_the_provider_clears_is_written_down() {
    let mut stage = Stage::new(&worker::script(24)).await;
    worker::equip(&stage.project(), 9_000);
    stage.layers.window = window(100_000);
    stage.layers.api_edits = true;
    stage.layers.clear = false;
    let mut agent = stage.agent(None);
    say(&mut agent, "Do all the steps.").await;
    let request = stage.simulator.requests().pop().unwrap();
    assert_eq!(request["context_management"]["edits"][0]["type"], "clear_tool_uses_20250919");
    assert_eq!(stage.simulator.report().totals.refused, 0);
    let commits: Vec<(u64, u64)> = agent
        .session()
        .log()
        .lines()
        .iter()
        .filter_map(|line| match &line.body {
            Body::Commit(Commit { act: Act::ServerEdit { cleared_results }, reason }) => {
                Some((*cleared_results, reason.freed.unwrap()))
            }
            _ => None,
        })
        .collect();
    assert!(!commits.is_empty() && commits.iter().all(|(results, tokens)| *results > 0 && *tokens > 0), "{commits:?}");
    assert!(!request["messages"].to_string().contains("Old tool result content cleared"));
}

/// CACHE-4: where the provider says why its cache did not hold, that stands beside our own finding.
#[tokio::test]
async fn the_providers_own_diagnosis_is_kept() {
    let mut stage = Stage::new(&worker::script(16)).await;
    worker::equip(&stage.project(), 9_000);
    stage.layers.window = window(64_000);
    stage.layers.cache_diagnosis = true;
    let mut agent = stage.agent(None);
    say(&mut agent, "Do all the steps.").await;
    let request = stage.simulator.requests().pop().unwrap();
    assert!(request["diagnostics"]["previous_message_id"].as_str().unwrap().starts_with("msg_"));
    assert_eq!(stage.simulator.report().totals.refused, 0);
    let log = std::fs::read_to_string(agent.session().path()).unwrap();
    assert!(log.contains("clear (the provider says: messages_changed)"), "{log:.0}");
}
