//! What the user takes out of the window by hand: what stays, what it is called, and what it saved.

use context::CompactionReach;
use engine::Agent;
use session::rewind::RewindExtent;
use session::savings;
use session::stats::Stats;
use tokio_util::sync::CancellationToken;
use transcript::Id;
use transcript::commit::Act;
use transcript::line::Body;
use transcript::price::Prices;

use crate::stage::{Stage, say};

const LISTENER: &str = r#"
    [[rule]]
    when = { visible = "about to leave the window" }
    say = "<summary>Stones were counted.</summary>"
    [[rule]]
    when = { user = "read", missing = "granite" }
    call = [{ tool = "Read", input = { file_path = "{{ project }}/stones.txt" } }]
    [[rule]]
    say = "I listen."
"#;

/// A session with instructions, in which two long messages were said; and its stage.
async fn spoken() -> (Stage, Agent) {
    let stage = Stage::new(LISTENER).await;
    std::fs::write(stage.project().join("CLAUDE.md"), "Count in dozens.\n").unwrap();
    std::fs::write(stage.project().join("stones.txt"), "granite\n").unwrap();
    let mut agent = stage.knowing_agent(None, false).await;
    for name in ["first", "second"] {
        say(&mut agent, &format!("{name}: {}", "one stone and another ".repeat(1_000))).await;
    }
    (stage, agent)
}

/// The user's messages, newest first.
fn messages(agent: &Agent) -> Vec<Id> {
    agent.session().points().into_iter().map(|point| point.line).collect()
}

fn figures(agent: &Agent) -> Stats {
    Stats::of(agent.session().log(), &Prices::default())
}

/// SNIP-1: instructions are not what was said. They stay, and with them the beginning of the cached prefix.
#[tokio::test]
async fn dropping_what_was_said_keeps_the_instructions() {
    let (stage, mut agent) = spoken().await;
    let messages = messages(&agent);
    assert_eq!(agent.session_mut().snip_before(&messages[1]).unwrap(), 0, "nothing was said before the first");
    assert_eq!(agent.session_mut().snip_before(&messages[0]).unwrap(), 2);
    say(&mut agent, "third").await;
    let sent = stage.simulator.requests().pop().unwrap()["messages"].to_string();
    assert!(sent.contains("Count in dozens.") && sent.contains("[2 messages were dropped here"), "{sent}");
    assert!(!sent.contains("first: one") && sent.contains("second: one"), "{sent}");
}

/// CACHE-4, CACHE-5: whoever makes a commit, the break that follows is explained by it and names it.
#[tokio::test]
async fn a_break_belongs_to_the_commit_the_user_made() {
    for way in ["snip", "rewind"] {
        let (_stage, mut agent) = spoken().await;
        let messages = messages(&agent);
        if way == "rewind" {
            agent.session_mut().rewind(&messages[1], RewindExtent::Conversation).unwrap();
        } else {
            agent.session_mut().snip_before(&messages[0]).unwrap();
        }
        let commit = agent.session().newest_commit();
        say(&mut agent, "third").await;
        let breaks = figures(&agent).breaks;
        let last = breaks.last().unwrap();
        assert!(last.declared, "{breaks:?}");
        assert_eq!((last.cause.as_str(), &last.commit), (way, &commit));
    }
}

/// NOTES-8, CACHE-5: a compaction saved what it took out, not what it left.
#[tokio::test]
async fn a_compaction_saves_what_it_takes_out() {
    let (_stage, mut agent) = spoken().await;
    let before = agent.session().log().view().tally().count();
    agent.compact(None, CompactionReach::Everything, &CancellationToken::new()).await.unwrap().unwrap();
    let left = agent.session().log().view().tally().count();
    let freed = |agent: &Agent| {
        let savings = savings::of(agent.session().log(), &Prices::default());
        savings.iter().find(|one| one.layer == "compact").unwrap().freed_tokens
    };
    assert_eq!(freed(&agent), before - left, "as counted, while nothing was sent yet");
    say(&mut agent, "third").await;
    let now = figures(&agent).context_tokens;
    assert!(freed(&agent) > before - now && freed(&agent) < before - left + 500, "{} of {before}", freed(&agent));
}

/// LOG-12: the newest decision is the compaction, not the files that it brought back.
#[tokio::test]
async fn undoing_the_newest_decision_undoes_a_compaction_whole() {
    let (_stage, mut agent) = spoken().await;
    say(&mut agent, "read the stones").await;
    let before = agent.session().log().view().messages();
    agent.compact(None, CompactionReach::Everything, &CancellationToken::new()).await.unwrap().unwrap();
    let acts: Vec<&str> = agent
        .session()
        .log()
        .lines()
        .iter()
        .filter_map(|line| match &line.body {
            Body::Commit(commit) => Some(commit.act.name()),
            _ => None,
        })
        .collect();
    assert_eq!(acts, ["compact", "restore"]);
    let newest = agent.session().newest_commit().unwrap();
    let is_compaction = |line: &&transcript::line::Line| match &line.body {
        Body::Commit(commit) => matches!(commit.act, Act::Compact { .. }),
        _ => false,
    };
    let compaction = agent.session().log().lines().iter().find(is_compaction).unwrap().id.clone();
    assert_eq!(Some(&newest), compaction.as_ref());
    let window = agent.layers().window;
    agent.session_mut().undo(&newest, &window).unwrap();
    let after = agent.session().log().view().messages();
    assert_eq!(after[..before.len() - 1], before[..before.len() - 1]);
    let undo = agent.session().newest_commit().unwrap();
    agent.session_mut().undo(&undo, &window).unwrap();
    assert!(agent.session().log().view().counts(&newest), "undoing the undo does it again");
}

/// COLLAPSE-1, COLLAPSE-3, COLLAPSE-4: switched on, spans give way to summaries and nothing is compacted by itself;
/// instructions stay; `/context` and `stats` show them; what is collapsed can be brought back, and History shows it.
#[tokio::test]
async fn where_it_is_asked_for_spans_give_way_to_summaries() {
    let mut stage = Stage::new(LISTENER).await;
    stage.layers.window = crate::stage::window(40_000);
    (stage.layers.collapse, stage.layers.clear) = (true, false);
    std::fs::write(stage.project().join("CLAUDE.md"), "Count in dozens.\n").unwrap();
    let mut agent = stage.knowing_agent(None, false).await;
    for n in 0..12 {
        say(&mut agent, &format!("message {n}: {}", "one stone and another ".repeat(500))).await;
    }
    let acts: Vec<&str> = agent
        .session()
        .log()
        .lines()
        .iter()
        .filter_map(|line| match &line.body {
            Body::Commit(commit) => Some(commit.act.name()),
            _ => None,
        })
        .collect();
    assert!(!acts.is_empty() && acts.iter().all(|act| *act == "collapse"), "{acts:?}");
    let sent = stage.simulator.requests().pop().unwrap()["messages"].to_string();
    for part in ["Count in dozens.", "Stones were counted.", "message 11: one"] {
        assert!(sent.contains(part), "{part} is not in {sent}");
    }
    let window_usage = agent.window_usage();
    assert!(window_usage.parts.iter().any(|part| part.name == "collapsed"), "{window_usage:?}");
    let savings = savings::of(agent.session().log(), &Prices::default());
    assert!(savings.iter().any(|saving| saving.layer == "collapse" && saving.freed_tokens > 10_000), "{savings:?}");
    let (lines, _) = session::record::lines(agent.session().path()).unwrap();
    let replayed = session::replay::replay(lines, &stage.layers, session::replay::SUMMARY_TOKENS);
    assert_eq!((replayed.differs_from, replayed.broken), (None, Vec::new()), "played again, it does the same");
    let before = agent.session().log().view().tally().count();
    let commit = agent.session().newest_cover().unwrap();
    agent.session_mut().undo(&commit, &crate::stage::window(200_000)).unwrap();
    assert!(agent.session().log().view().tally().count() > before + 2_000, "the span is back");
}

/// COLLAPSE-2, REACT-1: where the provider refuses a request, what is staged goes first, and the request is sent again.
#[tokio::test]
async fn what_is_staged_goes_when_the_provider_refuses() {
    let refusing = format!(
        "[[fault]]\nwhen = {{ user = \"and now\" }}\nstatus = 400\nmessage = \"prompt is too long: 45000 tokens > 40000 maximum\"\ntimes = 1\n{LISTENER}"
    );
    let mut stage = Stage::new(&refusing).await;
    stage.layers.window = crate::stage::window(40_000);
    (stage.layers.collapse, stage.layers.clear) = (true, false);
    let mut agent = stage.agent(None);
    let (window, mut n) = (stage.layers.window, 0);
    let count = |agent: &Agent| agent.session().log().view().tally().count();
    // The next message passes nine tenths of what is full.
    while count(&agent) + 1_000 < window.blocking() * 90 / 95 {
        n += 1;
        say(&mut agent, &format!("message {n}: {}", "one stone and another ".repeat(200))).await;
    }
    let turn = say(&mut agent, &format!("and now {}", "one stone and another ".repeat(200))).await;
    assert_eq!(turn.text, "I listen.");
    let acts: Vec<(&str, Option<&str>)> = agent
        .session()
        .log()
        .lines()
        .iter()
        .filter_map(|line| match &line.body {
            Body::Commit(commit) => Some((commit.act.name(), commit.reason.why.as_deref())),
            _ => None,
        })
        .collect();
    assert_eq!(acts, [("collapse", Some("the provider refused the request as too long"))]);
}

/// SNIP-1, SNIP-4, COMPACT-13: switched on, the oldest messages are dropped instead of summarised; the model finds the
/// marker, the log still has everything, and `stats` shows the layer.
#[tokio::test]
async fn where_it_is_asked_for_the_oldest_messages_are_dropped() {
    let mut stage = Stage::new(LISTENER).await;
    stage.layers.window = crate::stage::window(40_000);
    (stage.layers.snip, stage.layers.notes) = (true, false);
    std::fs::write(stage.project().join("CLAUDE.md"), "Count in dozens.\n").unwrap();
    let mut agent = stage.knowing_agent(None, false).await;
    for n in 0..12 {
        say(&mut agent, &format!("message {n}: {}", "one stone and another ".repeat(500))).await;
    }
    let sent = stage.simulator.requests().pop().unwrap()["messages"].to_string();
    assert!(sent.contains("messages were dropped here to make room") && sent.contains("Count in dozens."), "{sent}");
    assert!(!sent.contains("message 0: one") && sent.contains("message 11: one"));
    assert_eq!(agent.session().points().len(), 12, "the log still has everything");
    let savings = savings::of(agent.session().log(), &Prices::default());
    let layers: Vec<_> = savings.iter().map(|saving| saving.layer).collect();
    assert!(layers.contains(&"snip") && !layers.contains(&"compact"), "{layers:?}");
}
