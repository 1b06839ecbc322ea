//! Forks that the model sends out.

use engine::run::TurnEnd;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use transcript::Block;

use crate::children::agents;
use crate::stage::{Stage, say};

const FORKS: &str = r#"
    [[rule]]
    name = "a fork reports"
    when = { user = "^<fork>", tool = "Read", result = "(?P<what>stone-\\d)" }
    say = "It holds {{ what }}."
    [[rule]]
    name = "a fork that was refused a fork"
    when = { user = "^<fork>", tool = "Agent", result = "(?P<what>A fork cannot.+)" }
    say = "Refused: {{ what }}"
    [[rule]]
    name = "a fork that forks"
    when = { user = "(?s)^<fork>.*fork again" }
    call = [{ tool = "Agent", input = { description = "again", prompt = "Deeper." } }]
    [[rule]]
    name = "a fork looks"
    when = { user = "(?s)^<fork>.*Look at (?P<n>\\d)" }
    call = [{ tool = "Read", input = { file_path = "{{ project }}/{{ n }}.txt" } }]
    [[rule]]
    name = "the parent hears"
    when = { tool = "Agent", result = "(?s)(?P<what>.+)" }
    say = "Heard: {{ what }}"
    [[rule]]
    when = { user = "^once" }
    call = [{ tool = "Agent", input = { description = "once", prompt = "Now fork again." } }]
    [[rule]]
    when = { user = "^go" }
    call = [
        { tool = "Agent", input = { description = "one", prompt = "Look at 1" } },
        { tool = "Agent", input = { description = "two", prompt = "Look at 2", subagent_type = "fork" } },
        { tool = "Agent", input = { description = "three", prompt = "Look at 3" } },
        { tool = "Agent", input = { description = "four", prompt = "Look at 4" } },
    ]
"#;

/// FORK-3, FORK-4, AGENT-2: four forks of one reply begin with the same bytes: one writes them to the cache, three read them;
/// then each reads its own rounds. All work at the same time and report.
#[tokio::test]
async fn four_forks_of_one_reply_cost_one_write() {
    let mut stage = Stage::new(FORKS).await;
    stage.agents = agents(json!({}));
    for n in 1..=4 {
        std::fs::write(stage.project().join(format!("{n}.txt")), format!("stone-{n}\n").repeat(300)).unwrap();
    }
    let mut agent = stage.agent(None);
    let turn = say(&mut agent, &format!("go {}", "stone ".repeat(4_000))).await;
    for n in 1..=4 {
        assert!(turn.text.contains(&format!("It holds stone-{n}.")), "{}", turn.text);
    }
    let requests = stage.simulator.requests();
    let directive = |request: &Value| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        let text = last["content"].as_array().unwrap().last().unwrap()["text"].as_str().unwrap_or_default().to_owned();
        text.starts_with("<fork>")
    };
    let first: Vec<usize> = (0..requests.len()).filter(|at| directive(&requests[*at])).collect();
    assert_eq!(first.len(), 4, "each begins once");
    let beginning = |request: &Value| {
        let mut request = request.clone();
        let last = request["messages"].as_array_mut().unwrap().last_mut().unwrap();
        last["content"].as_array_mut().unwrap().pop();
        request.to_string()
    };
    for at in &first {
        assert_eq!(beginning(&requests[*at]), beginning(&requests[first[0]]), "only the directive differs");
    }
    let report = stage.simulator.report();
    let lines: Vec<_> = first.iter().map(|at| &report.requests[*at].input).collect();
    assert!(lines[0].written() > 200, "one writes: {:?}", lines[0]);
    for line in &lines[1..] {
        assert!(line.read > lines[0].read && line.written() < lines[0].written(), "three read: {line:?}");
        assert!(line.written() < 260, "and write their own words alone: {line:?}");
    }
    assert_eq!(report.totals.breaks, 0, "nothing of it breaks a cache");
}

/// AGENT-2: forks in the background are launched at once, though the first reply of them, for whose cache the others wait,
/// never begins; and a turn with such forks can be stopped.
#[tokio::test]
async fn forks_in_the_background_are_launched_at_once() {
    let script = r#"
        [[fault]]
        when = { user = "^<fork>" }
        stall = true
        times = 2
        [[rule]]
        when = { tool = "Agent" }
        say = "They are out."
        [[rule]]
        call = [
            { tool = "Agent", input = { description = "one", prompt = "Look.", run_in_background = true } },
            { tool = "Agent", input = { description = "two", prompt = "Look.", run_in_background = true } },
        ]
    "#;
    let mut stage = Stage::new(script).await;
    stage.agents = agents(json!({}));
    let (mut agent, cancel) = (stage.agent(None), CancellationToken::new());
    let children = agent.agents().unwrap().clone();
    let launched = async {
        while !stage
            .simulator
            .requests()
            .iter()
            .any(|request| request.to_string().matches("works in the background").count() > 1)
        {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        assert_eq!(children.list().iter().filter(|subagent| subagent.is_out()).count(), 2);
        cancel.cancel();
    };
    let (turn, ()) = tokio::join!(agent.turn(vec![Block::text("go")], &cancel), launched);
    assert!(matches!(turn.end, TurnEnd::Cancelled), "{turn:?}");
    agent.close().await;
}

/// FORK-4: a fork is offered what its parent is, and may not fork; the conversation itself says that it is one.
#[tokio::test]
async fn a_fork_in_a_fork_is_refused() {
    let mut stage = Stage::new(FORKS).await;
    stage.agents = agents(json!({}));
    let mut agent = stage.agent(None);
    let turn = say(&mut agent, "once").await;
    assert!(turn.text.contains("Refused: A fork cannot be forked again."), "{}", turn.text);
    let tools: Vec<Value> = stage.simulator.requests().iter().map(|request| request["tools"].clone()).collect();
    assert!(tools.iter().all(|one| *one == tools[0]), "its tools are its parent's");
    let file = agent.agents().unwrap().list()[0].file.clone();
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("<fork>") && !text.contains("\"text\":\"once\""), "its file holds what it said itself");
    assert!(session::record::read(&file).is_ok(), "and can be shown");
}
