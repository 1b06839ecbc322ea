use std::sync::Arc;
use std::time::Duration;

use learning::fork::{Fork, ForkError, ToolPolicy};
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
        ledger: Arc::new(learning::ledger::Ledger::in_memory(session::World::real())),
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
    let mut texts: Vec<String> = answers.await.into_iter().map(|answer| answer.0.unwrap().text).collect();
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
        let said = transcript::line::TextSource::Direct;
        session.append(transcript::line::Body::User { blocks: vec![Block::text("hi")], source: said }).unwrap();
        agent.request().unwrap()
    };
    let mut late = fork(&stage, parent.clone(), "x");
    late.patience = Duration::from_millis(50);
    assert_eq!(late.run().await.0.unwrap_err(), ForkError::Late(Duration::from_millis(50)));
    let cancel = CancellationToken::new();
    let mut stopped = fork(&stage, parent, "x");
    stopped.cancel = cancel.child_token();
    cancel.cancel();
    assert_eq!(stopped.run().await.0.unwrap_err(), ForkError::Cancelled);
}

/// A model that begins to answer, and is then stopped.
struct Stopped(CancellationToken);

impl provider::Model for Stopped {
    fn stream(&self, _: transcript::Request) -> futures_util::stream::BoxStream<'static, provider::Event> {
        let usage = transcript::Usage { cache_read_input_tokens: 900, input_tokens: 30, ..Default::default() };
        let begun = [
            provider::Event::Started { id: "m".into(), model: "m".into(), usage },
            provider::Event::Text("stones and more".into()),
        ];
        let cancel = self.0.clone();
        let stops = futures_util::stream::once(async move {
            cancel.cancel();
            std::future::pending().await
        });
        Box::pin(futures_util::StreamExt::chain(futures_util::stream::iter(begun), stops))
    }

    fn count_tokens(
        &self,
        _: transcript::Request,
    ) -> futures_util::future::BoxFuture<'static, Result<u64, provider::Error>> {
        Box::pin(async { Ok(930) })
    }
}

/// FORK-1, TOK-7: what a fork used that is stopped in the middle of its reply is told, and stands in the ledger.
#[tokio::test]
async fn a_fork_that_is_stopped_in_its_reply_is_paid_for() {
    let stage = Stage::new("").await;
    let mut agent = stage.agent(None);
    let said = transcript::line::TextSource::Direct;
    let words = transcript::line::Body::User { blocks: vec![Block::text("hi")], source: said };
    agent.session_mut().append(words).unwrap();
    let mut stopped = fork(&stage, agent.request().unwrap(), "x");
    let (ledger, model) = (stopped.ledger.clone(), stopped.parent.prologue.model.clone());
    stopped.model = Arc::new(Stopped(stopped.cancel.clone()));
    let (outcome, used) = stopped.run().await;
    let error = outcome.unwrap_err();
    assert_eq!((error, used.context(), used.output_tokens), (ForkError::Cancelled, 930, 3));
    assert_eq!(ledger.spent()[&model], used);
}

/// FORK-3: four forks of one reply with calls begin with the same bytes, the placeholders for its calls included: the first
/// writes them to the cache, and the other three read them.
#[tokio::test]
async fn forks_of_one_reply_share_their_beginning() {
    let script = r#"
        [[rule]]
        name = "side"
        when = { visible = "Aside (?P<n>\\d)" }
        say = "answer {{ n }}"
        [[rule]]
        call = [{ tool = "Bash", input = { command = "echo one" } }, { tool = "Bash", input = { command = "echo two" } }]
    "#;
    let stage = Stage::new(script).await;
    let mut agent = stage.agent(None);
    let said = transcript::line::TextSource::Direct;
    let words = Block::text("stone ".repeat(4_000));
    agent.session_mut().append(transcript::line::Body::User { blocks: vec![words], source: said }).unwrap();
    let model = Anthropic::new(Config::new(stage.simulator.url(), Auth::ApiKey("k".into()))).unwrap();
    let parent = agent.request().unwrap();
    let mut asked = parent.clone();
    let mut events = provider::Model::stream(&model, parent);
    while let Some(event) = futures_util::StreamExt::next(&mut events).await {
        if let provider::Event::Done(reply) = event {
            asked.messages.push(transcript::Message { role: transcript::Role::Assistant, blocks: reply.blocks });
        }
    }
    let branch = learning::fork::branched(asked);
    let ends = |request: &transcript::Request| request.messages.last().unwrap().blocks.len();
    assert_eq!(ends(&branch), 2, "a placeholder for each call");
    for n in 1..=4 {
        let mut fork = fork(&stage, branch.clone(), &format!("Aside {n}: go on."));
        fork.tools = ToolPolicy::Tools { tools: Vec::new(), scope: agent.scope().clone(), judge: Arc::new(allow) };
        assert_eq!(fork.run().await.0.unwrap().text, format!("answer {n}"));
    }
    let requests = &stage.simulator.requests()[1..];
    let beginning = |request: &serde_json::Value| {
        let mut messages = request["messages"].as_array().unwrap().clone();
        let last = messages.last_mut().unwrap()["content"].as_array_mut().unwrap();
        assert!(last.pop().unwrap()["text"].as_str().unwrap().starts_with("Aside"));
        serde_json::to_string(&messages).unwrap()
    };
    assert!(requests.iter().all(|request| beginning(request) == beginning(&requests[0])), "only the directive differs");
    let lines = &stage.simulator.report().requests[1..];
    assert!(lines[0].input.written() > 100, "one write: {:?}", lines[0]);
    for line in &lines[1..] {
        assert!(line.input.read > lines[0].input.read + 80, "three reads: {line:?}");
        assert!(line.input.written() < 40, "only its own words: {line:?}");
    }
}

fn allow(_: &dyn tools::Tool, _: &serde_json::Value, _: &tools::Scope) -> Result<(), String> {
    Ok(())
}

/// FORK-1, CACHE-2: a fork of several rounds runs real tools as its judge lets it, those that only look side by side; it
/// marks its own tail and reads its own rounds from the cache.
#[tokio::test]
async fn a_fork_of_several_rounds_reads_its_own_rounds_from_the_cache() {
    let script = r#"
        [[rule]]
        name = "told"
        when = { visible = "Aside", result = "granite" }
        say = "It is granite."
        [[rule]]
        name = "look"
        when = { visible = "Aside", result = "denied" }
        call = [{ tool = "Read", input = { file_path = "{{ project }}/stones.txt" } }, { tool = "Read", input = { file_path = "{{ project }}/more.txt" } }]
        [[rule]]
        name = "first"
        when = { visible = "Aside" }
        call = [{ tool = "Bash", input = { command = "touch made" } }, { tool = "Read", input = { file_path = "{{ project }}/more.txt" } }]
    "#;
    let stage = Stage::new(&format!("{script}\n{}", worker::script(6))).await;
    worker::equip(&stage.project(), 6_000);
    std::fs::write(stage.project().join("stones.txt"), "granite\n".repeat(400)).unwrap();
    std::fs::write(stage.project().join("more.txt"), "slate\n".repeat(900)).unwrap();
    let mut agent = stage.agent(None);
    say(&mut agent, "Do all the steps.").await;
    let rounds = stage.simulator.requests().len();
    let judge = |tool: &dyn tools::Tool, input: &serde_json::Value, _: &tools::Scope| match tool.access(input) {
        tools::Access::ReadOnly => Ok(()),
        _ => Err("denied: it may only look".to_owned()),
    };
    let mut aside = fork(&stage, agent.request().unwrap(), "Aside: what is it?");
    aside.tools = ToolPolicy::Tools { tools: tools::standard(), scope: agent.scope().clone(), judge: Arc::new(judge) };
    aside.rounds = 5;
    let forked = aside.run().await.0.unwrap();
    assert_eq!((forked.text.as_str(), forked.rounds), ("It is granite.", 3));
    assert!(!stage.project().join("made").exists());
    let lines = &stage.simulator.report().requests[rounds..];
    for (before, line) in lines.iter().zip(&lines[1..]) {
        let sent = before.input.read + before.input.written();
        assert_eq!(line.input.read, sent, "its own round before is read: {line:?}");
    }
    assert!(lines[0].input.read * 100 >= lines[0].input.total() * 90, "the parent's cache is read: {:?}", lines[0]);
}
