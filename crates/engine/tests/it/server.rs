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

/// MICRO-3, MICRO-6, CACHE-4: with a provider that can, old results are dropped from its cache: the bytes before the edit
/// stay, nothing is written again, and what is read shrinks; `/context` and `stats` show it, and after five minutes all of it
/// is one clearing.
#[tokio::test]
async fn the_provider_drops_results_from_its_cache() {
    let options = simulator::Options { cache_edits: true, ..simulator::Options::default() };
    let mut stage = Stage::with(&worker::script(40), options).await;
    worker::equip(&stage.project(), 3_000);
    (stage.layers.window, stage.layers.cache_edits, stage.layers.notes) = (window(200_000), true, false);
    let mut agent = stage.agent(None);
    say(&mut agent, "Do all the steps.").await;
    assert_eq!(worker::done(&stage.project()).len(), 40);
    let report = stage.simulator.report();
    assert_eq!(report.totals.refused, 0, "{report:?}");
    let mut edits = 0;
    for (before, line) in report.requests.iter().zip(&report.requests[1..]) {
        assert!(line.input.written() < 2_000, "nothing is written again: {line:?}");
        edits += usize::from(line.input.read + 5_000 < before.input.read + before.input.written());
    }
    assert_eq!(edits, 2, "of 40 results, 16 and again 16 are dropped");
    let body = stage.simulator.requests().pop().unwrap()["messages"].to_string();
    assert_eq!(body.matches("\"type\":\"cache_edits\"").count(), 2);
    let window_usage = agent.window_usage();
    let dropped = window_usage.parts.iter().find(|part| part.name == "results the provider dropped").unwrap();
    assert_eq!((dropped.count, dropped.tokens), (32, 0));
    let savings = session::savings::of(agent.session().log(), &transcript::price::Prices::default());
    assert!(savings.iter().any(|saving| saving.layer == "cache-edit" && saving.freed_tokens > 20_000), "{savings:?}");
    let breaks = stage
        .events
        .lock()
        .unwrap()
        .iter()
        .filter(|event| matches!(event, engine::Event::CacheBroke(broke) if !broke.is_declared()))
        .count();
    assert_eq!(breaks, 0);
    stage.wait(400);
    say(&mut agent, "And now?").await;
    assert_eq!(stage.simulator.report().totals.refused, 0);
    let body = stage.simulator.requests().pop().unwrap()["messages"].to_string();
    assert_eq!((body.matches("cache_edits").count(), body.matches("Old tool result content cleared").count()), (0, 32));
    let (lines, _) = session::record::lines(agent.session().path()).unwrap();
    let replayed = session::replay::replay(lines, &stage.layers, session::replay::SUMMARY_TOKENS);
    assert_eq!((replayed.differs_from, replayed.broken), (None, Vec::new()));
}

/// COMPACT-1, COMPACT-11, LOG-3: where it is asked for, the provider compacts by itself and pauses; its summary stands in the
/// view in our own frame, with what the user said and the ids of the rest, as a commit that can be taken back; what it cost
/// is written down, and nothing is lost to the model.
#[tokio::test]
async fn the_provider_compacts_by_itself() {
    let mut stage = Stage::new(&format!("[model]\nwindow = 100000\n{}", worker::script(40))).await;
    worker::equip(&stage.project(), 10_000);
    (stage.layers.window, stage.layers.api_compact) = (window(100_000), true);
    (stage.layers.clear, stage.layers.notes) = (false, false);
    let mut agent = stage.agent(None);
    let turn = say(&mut agent, "Do all the steps.").await;
    assert!(turn.text.contains("All 40 steps are done."), "{turn:?}");
    assert_eq!(worker::done(&stage.project()), (1..=40).collect::<Vec<_>>());
    let report = stage.simulator.report();
    assert_eq!(report.totals.refused, 0);
    let summaries: Vec<_> = report.requests.iter().filter(|line| line.rule.as_deref() == Some("summary")).collect();
    assert_eq!(summaries.len(), 1, "the conversation's own request became one: {summaries:?}");
    assert!(summaries[0].input.read * 10 > summaries[0].input.total() * 9);
    let sent = stage.simulator.requests();
    let asked = &sent[0]["context_management"]["edits"][0];
    assert_eq!((&asked["type"], &asked["trigger"]["value"]), (&"compact_20260112".into(), &67_000.into()));
    let last = sent.last().unwrap()["messages"].to_string();
    for part in ["FACT step 1: v1-7919", "Do all the steps.", "What is covered, by id"] {
        assert!(last.contains(part), "{part} is not in {last}");
    }
    assert!(!last.contains("\"compaction\""), "it is in the log, and is not sent back");
    let log = agent.session().log();
    let commits = log.lines().iter().filter_map(|line| match &line.body {
        Body::Commit(commit) => Some((commit.act.name(), commit.reason.why.clone().unwrap_or_default())),
        _ => None,
    });
    assert_eq!(commits.collect::<Vec<_>>(), [("compact", "the provider compacted by itself".to_owned())]);
    let forks = session::savings::of_forks(log.lines());
    assert!(forks.iter().any(|(agent, _, usage)| agent == "compact" && usage.context() > 60_000), "{forks:?}");
    let (lines, _) = session::record::lines(agent.session().path()).unwrap();
    let replayed = session::replay::replay(lines, &stage.layers, session::replay::SUMMARY_TOKENS);
    assert_eq!((replayed.differs_from, replayed.broken), (None, Vec::new()));
    let before = log.view().tally().count();
    let commit = agent.session().newest_cover().unwrap();
    agent.session_mut().undo(&commit, &window(400_000)).unwrap();
    assert!(agent.session().log().view().tally().count() > before + 30_000);
}
