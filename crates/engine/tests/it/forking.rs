use std::sync::Arc;
use std::time::Duration;

use engine::fork::{Fork, ForkError, ToolPolicy};
use provider::anthropic::{Anthropic, Auth, Config};
use tokio_util::sync::CancellationToken;
use transcript::Block;

use crate::stage::{Stage, say};
use crate::worker;

const SIDE: &str = r#"
    [[rule]]
    name = "side"
    when = { visible = "Aside (?P<n>\\d)" }
    say = "answer {{ n }}"
"#;

pub fn fork(stage: &Stage, parent: transcript::Request, words: &str) -> Fork {
    let model = Anthropic::new(Config::new(stage.simulator.url(), Auth::ApiKey("k".into()))).unwrap();
    Fork {
        kind: "aside",
        model: Arc::new(model),
        parent,
        directive: Block::text(words),
        tools: ToolPolicy::Deny,
        rounds: 1,
        patience: Duration::from_secs(30),
        most_output: None,
        budget: None,
        ledger: Arc::new(engine::Ledger::in_memory(engine::World::real())),
        cancel: CancellationToken::new(),
    }
}

/// FORK-1, FORK-2, CACHE-3: four forks at once begin with the parent's bytes and read its cache; each says its own.
#[tokio::test]
async fn four_forks_at_once_read_the_parents_cache() {
    let stage = Stage::new(&format!("{SIDE}\n{}", worker::script(10))).await;
    worker::equip(&stage.project(), 6_000);
    let mut agent = stage.agent(None);
    say(&mut agent, "Do all the steps.").await;
    let rounds = stage.simulator.requests().len();
    let parent = agent.request().unwrap();
    let answers = futures_util::future::join_all(
        (1..=4).map(|n| fork(&stage, parent.clone(), &format!("Aside {n}: how far is it?")).run()),
    );
    let mut texts: Vec<String> = answers.await.into_iter().map(|answer| answer.unwrap().text).collect();
    texts.sort();
    assert_eq!(texts, ["answer 1", "answer 2", "answer 3", "answer 4"]);
    let main = serde_json::to_string(&stage.simulator.requests()[rounds - 1]["tools"]).unwrap();
    for request in &stage.simulator.requests()[rounds..] {
        assert_eq!(serde_json::to_string(&request["tools"]).unwrap(), main);
        assert_eq!(request["max_tokens"], stage.simulator.requests()[0]["max_tokens"]);
    }
    for line in &stage.simulator.report().requests[rounds..] {
        assert!(line.input.read * 100 >= line.input.total() * 95, "{line:?}");
    }
}

/// FORK-1: a fork is stopped with its parent, and ends when its time is over.
#[tokio::test]
async fn a_fork_ends_with_its_parent_or_its_time() {
    let stage = Stage::new("[[fault]]\nstall = true\ntimes = 9\n").await;
    let mut agent = stage.agent(None);
    let parent = {
        let session = agent.session_mut();
        let said = transcript::line::Source::Said;
        session.append(transcript::line::Body::User { blocks: vec![Block::text("hi")], source: said }).unwrap();
        agent.request().unwrap()
    };
    let mut late = fork(&stage, parent.clone(), "x");
    late.patience = Duration::from_millis(50);
    assert_eq!(late.run().await.unwrap_err().0, ForkError::Late(Duration::from_millis(50)));
    let cancel = CancellationToken::new();
    let mut stopped = fork(&stage, parent, "x");
    stopped.cancel = cancel.child_token();
    cancel.cancel();
    assert_eq!(stopped.run().await.unwrap_err().0, ForkError::Cancelled);
}
