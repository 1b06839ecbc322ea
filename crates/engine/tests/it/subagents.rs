//! Agents in the background: what their parent does meanwhile, who is asked for them, and how they end.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use engine::Event;
use engine::agents::{Subagents, SubagentsAtEnd};
use engine::event::SubagentNews;
use engine::subagent::{SubagentOutcome, SubagentPhase};
use futures_util::future::{BoxFuture, pending};
use serde_json::{Value, json};
use settings::permission::{Approver, PermissionAnswer, Question};
use tokio_util::sync::CancellationToken;
use tools::permission::Mode;

use crate::children::{agents, registry};
use crate::stage::{Stage, say};

/// A parent that sends an agent to the background and goes on.
const BACKGROUND: &str = r#"
    [[rule]]
    name = "the parent is told"
    when = { user = "(?s)^<task-notification>.*<status>(?P<how>\\w+)</status>.*id=\"\\w+\">\\n(?P<what>[^<]*)\\n</agent" }
    say = "It {{ how }}: {{ what }}"
    [[rule]]
    name = "the agent is done"
    when = { user = "^Find the colour", result = "(?s)(?P<what>.+)" }
    say = "Then: {{ what }}"
    [[rule]]
    name = "the agent works"
    when = { user = "^Find the colour" }
    call = [{ tool = "Write", input = { file_path = "{{ project }}/colour.txt", content = "green" } }]
    [[rule]]
    name = "the parent goes on"
    when = { tool = "Agent", result = "(?s)(?P<what>.+)" }
    say = "Meanwhile: {{ what }}"
    [[rule]]
    when = { user = "^go on, (?P<kind>\\w+)" }
    call = [{ tool = "Agent", input = { description = "look", prompt = "Find the colour.", subagent_type = "{{ kind }}" } }]
    [[rule]]
    when = { user = "^go" }
    call = [{ tool = "Agent", input = { description = "look", prompt = "Find the colour.", subagent_type = "worker", run_in_background = true } }]
"#;

fn worker() -> Value {
    json!({"worker": {"description": "d", "prompt": "p"}, "quiet": {"description": "d", "prompt": "p", "background": true}})
}

/// AGENT-2: a background agent returns an id at once; its report comes later as a notification. Where nobody would be told
/// later, the turn waits for it.
#[tokio::test]
async fn an_agent_in_the_background_reports_later() {
    let mut stage = Stage::new(BACKGROUND).await;
    stage.agents = agents(worker());
    let mut agent = stage.agent(None);
    let turn = say(&mut agent, "go").await;
    assert!(turn.text.starts_with("It completed: Then: "), "{}", turn.text);
    assert_eq!(turn.rounds, 3, "sent out, gone on, told");
    let log = std::fs::read_to_string(agent.session().path()).unwrap();
    assert!(log.contains("works in the background as") && log.contains(r#""kind":"side","agent":"worker""#), "{log}");

    // With somebody there, the turn ends; what comes later begins one of its own. The agent waits until then.
    let works = r#"{ tool = "Write", input = { file_path = "{{ project }}/colour.txt", content = "green" } }"#;
    let waits = BACKGROUND.replace(works, r#"{ tool = "Bash", input = { command = "cat colour" } }"#);
    let mut stage = Stage::new(&waits).await;
    let colour = stage.project().join("colour");
    assert!(Command::new("mkfifo").arg(&colour).status().unwrap().success());
    stage.agents = Some(Subagents::new(registry(worker()), SubagentsAtEnd::LeavesThem));
    let mut agent = stage.agent(None);
    let turn = say(&mut agent, "go on, quiet").await;
    assert!(turn.text.starts_with("Meanwhile: The agent works in the background"), "{}", turn.text);
    let children = agent.agents().unwrap().clone();
    tokio::fs::write(colour, "green").await.unwrap();
    assert_eq!(children.list()[0].ended().await.how, SubagentOutcome::Done);
    assert!(children.has_news());
    let turn = agent.turn(Vec::new(), &CancellationToken::new()).await;
    assert!(turn.text.starts_with("It completed: Then: green"), "{}", turn.text);
    assert!(!children.has_news());
}

/// AGENT-2: one that takes too long goes on in the background by itself.
#[tokio::test]
async fn who_takes_too_long_goes_on_in_the_background() {
    let mut stage = Stage::new(BACKGROUND).await;
    stage.agents = Some(Subagents::patient(registry(worker()), SubagentsAtEnd::WaitsForThem, Duration::ZERO));
    let mut agent = stage.agent(None);
    let turn = say(&mut agent, "go on, worker").await;
    assert!(turn.text.starts_with("It completed: "), "{}", turn.text);
    let events = stage.events.lock().unwrap();
    assert!(events.iter().any(|event| matches!(event, Event::Agent { news: SubagentNews::Backgrounded, .. })));
}

/// A person who never answers by himself.
struct Away;

impl Approver for Away {
    fn ask(&self, _: Question) -> BoxFuture<'_, PermissionAnswer> {
        Box::pin(pending())
    }
}

/// AGENT-2: in the background an agent waits with its question alone, until somebody takes it; with nobody to ask it is
/// denied.
#[tokio::test]
async fn a_question_in_the_background_waits_alone() {
    let mut stage = Stage::new(BACKGROUND).await;
    stage.agents = Some(Subagents::new(registry(worker()), SubagentsAtEnd::LeavesThem));
    stage.mode = Mode::Default.into();
    stage.approver = Arc::new(Away);
    let (asks, mut asked) = tokio::sync::mpsc::unbounded_channel();
    stage.heard = Arc::new(move |event| {
        if matches!(event, Event::Agent { news: SubagentNews::Asks, .. }) {
            let _ = asks.send(());
        }
    });
    let mut agent = stage.agent(None);
    let turn = say(&mut agent, "go").await;
    assert!(turn.text.starts_with("Meanwhile: "), "its parent does not wait: {}", turn.text);
    asked.recv().await.unwrap();
    let subagent = agent.agents().unwrap().list()[0].clone();
    assert_eq!(subagent.waits_for().as_deref(), Some("Write"));
    let (question, reply) = subagent.take_question().unwrap();
    assert!(question.why.starts_with("the agent worker asks: "), "{}", question.why);
    reply.send(PermissionAnswer::Allow).unwrap();
    assert_eq!(subagent.ended().await.how, SubagentOutcome::Done);
    assert!(stage.project().join("colour.txt").exists());

    let mut stage = Stage::new(BACKGROUND).await;
    stage.agents = agents(worker());
    stage.mode = Mode::Default.into();
    let turn = say(&mut stage.agent(None), "go").await;
    assert!(turn.text.contains("nobody is there to give it"), "{}", turn.text);
    assert!(!stage.project().join("colour.txt").exists());
}

const WAITS: &str = r#"
    [[rule]]
    when = { user = "^Wait" }
    call = [{ tool = "Bash", input = { command = "sleep 600" } }]
    [[rule]]
    name = "the parent looks"
    when = { tool = "Agent", result = "background as (?P<id>\\w+)\\." }
    call = [{ tool = "TaskOutput", input = { task_id = "{{ id }}" } }]
    [[rule]]
    name = "the parent stops it"
    when = { tool = "TaskOutput", result = "(?P<id>\\w+) is working" }
    call = [{ tool = "TaskStop", input = { task_id = "{{ id }}" } }]
    [[rule]]
    when = { tool = "TaskStop", result = "(?s)(?P<what>.+)" }
    say = "Said: {{ what }}"
    [[rule]]
    when = { user = "^<task-notification>" }
    say = "Told."
    [[rule]]
    when = { user = "^go" }
    call = [{ tool = "Agent", input = { description = "wait", prompt = "Wait.", subagent_type = "worker", run_in_background = true } }]
"#;

/// AGENT-2: TaskOutput and TaskStop know agents as they know commands; who stops the parent stops all of them.
#[tokio::test]
async fn an_agent_in_the_background_is_looked_at_and_stopped() {
    let mut stage = Stage::new(WAITS).await;
    stage.agents = Some(Subagents::new(registry(worker()), SubagentsAtEnd::LeavesThem));
    let mut agent = stage.agent(None);
    let turn = say(&mut agent, "go").await;
    let subagent = agent.agents().unwrap().list()[0].clone();
    // Its end may be told in the same turn.
    assert!(turn.text == format!("Said: Stopped {}: wait", subagent.id) || turn.text == "Told.", "{}", turn.text);
    assert!(matches!(subagent.phase(), SubagentPhase::Ended(ended) if ended.how == SubagentOutcome::Stopped));

    let mut stage = Stage::new(
        &WAITS.replace("the parent looks\"\n    when", "x\"\n    when").replace("background as", "nothing like"),
    )
    .await;
    stage.agents = agents(worker());
    let cancel = CancellationToken::new();
    let stops = cancel.clone();
    stage.heard = Arc::new(move |event| {
        if let Event::Agent { news: SubagentNews::Does(event), .. } = event
            && matches!(**event, Event::ToolStarted { .. })
        {
            stops.cancel();
        }
    });
    let mut agent = stage.agent(None);
    agent.turn(vec![transcript::Block::text("go")], &cancel).await;
    let subagent = agent.agents().unwrap().list()[0].clone();
    assert_eq!(subagent.ended().await.how, SubagentOutcome::Stopped, "the parent's cancel reaches it");
}

/// AGENT-2: no more than 20 are out at the same time; a budget ends a child.
#[tokio::test]
async fn count_and_budget_have_limits() {
    let call = r#"{ tool = "Agent", input = { description = "wait", prompt = "Wait.", subagent_type = "worker", run_in_background = true } },"#;
    let script = format!(
        r#"
        [[rule]]
        when = {{ user = "^Wait" }}
        call = [{{ tool = "Bash", input = {{ command = "sleep 600" }} }}]
        [[rule]]
        when = {{ tool = "Agent" }}
        say = "Sent."
        [[rule]]
        when = {{ user = "^go" }}
        call = [{}]
        "#,
        call.repeat(21)
    );
    let mut stage = Stage::new(&script).await;
    stage.agents = Some(Subagents::new(registry(worker()), SubagentsAtEnd::LeavesThem));
    let mut agent = stage.agent(None);
    say(&mut agent, "go").await;
    let log = std::fs::read_to_string(agent.session().path()).unwrap();
    assert_eq!(log.matches("works in the background as").count(), 20);
    assert_eq!(log.matches("20 agents are running, which is the limit").count(), 1);
    agent.close().await;

    let mut stage = Stage::new(BACKGROUND).await;
    stage.agents = agents(json!({"worker": {"description": "d", "prompt": "p", "budget": 10}}));
    let mut agent = stage.agent(None);
    say(&mut agent, "go on, worker").await;
    let SubagentPhase::Ended(ended) = agent.agents().unwrap().list()[0].phase() else { panic!("it is out") };
    assert_eq!(ended.how, SubagentOutcome::Failed("its budget of 10 tokens is spent".into()));
}

/// HOOK-1: hooks hear when an agent begins and when it has answered; what they add reaches the agent, and one may send it
/// on. Its calls are told with its id and type.
#[tokio::test]
async fn hooks_hear_of_agents() {
    let script = r#"
        [[rule]]
        when = { user = "^Find the colour", visible = "it is not green enough" }
        say = "Very green."
        [[rule]]
        when = { user = "^Find the colour", visible = "mind the light" }
        say = "Green."
        [[rule]]
        when = { user = "not green enough" }
        say = "Very green."
        [[rule]]
        when = { tool = "Agent", result = "(?s)(?P<what>.+)" }
        say = "{{ what }}"
        [[rule]]
        when = { user = "^go" }
        call = [{ tool = "Agent", input = { description = "look", prompt = "Find the colour.", subagent_type = "Explore" } }]
    "#;
    let mut stage = Stage::new(script).await;
    stage.agents = agents(json!({}));
    let start = r#"cat > start.json; echo '{"hookSpecificOutput":{"hookEventName":"SubagentStart","additionalContext":"mind the light"}}'"#;
    let stop = r#"if [ -e stop.json ]; then cat > again.json; else cat > stop.json; echo 'it is not green enough' >&2; exit 2; fi"#;
    let hook = |command: &str| json!([{"matcher": "Explore", "hooks": [{"type": "command", "command": command}]}]);
    stage.settings = json!({"hooks": {"SubagentStart": hook(start), "SubagentStop": hook(stop)}});
    let mut agent = stage.agent(None);
    let turn = say(&mut agent, "go").await;
    assert!(turn.text.contains("Very green."), "{}", turn.text);
    let read =
        |name: &str| -> Value { serde_json::from_slice(&std::fs::read(stage.project().join(name)).unwrap()).unwrap() };
    let subagent = agent.agents().unwrap().list()[0].clone();
    let started = read("start.json");
    assert_eq!((&started["agent_type"], &started["agent_id"]), (&json!("Explore"), &json!(subagent.id)));
    assert_eq!(started["transcript_path"], json!(agent.session().path()));
    let stopped = read("stop.json");
    assert_eq!(stopped["agent_transcript_path"], json!(subagent.file));
    assert_eq!((&stopped["last_assistant_message"], &stopped["stop_hook_active"]), (&json!("Green."), &json!(false)));
    assert_eq!(read("again.json")["stop_hook_active"], true);
}

/// AGENT-2: two agents change one file: the second is told that it is not as it saw it, and nothing is lost.
#[tokio::test]
async fn the_second_to_change_a_file_is_told() {
    let script = r#"
        [[rule]]
        name = "the child edits"
        when = { user = "^Change it", tool = "Read" }
        call = [{ tool = "Edit", input = { file_path = "{{ project }}/list.txt", old_string = "two", new_string = "2" } }]
        [[rule]]
        when = { user = "^Change it", tool = "Edit" }
        say = "Changed."
        [[rule]]
        when = { user = "^Change it" }
        call = [{ tool = "Read", input = { file_path = "{{ project }}/list.txt" } }]
        [[rule]]
        name = "the parent edits what it read before"
        when = { user = "^go", tool = "Agent" }
        call = [{ tool = "Edit", input = { file_path = "{{ project }}/list.txt", old_string = "one", new_string = "1" } }]
        [[rule]]
        when = { user = "^go", tool = "Edit", result = "(?s)(?P<what>.+)" }
        say = "Then: {{ what }}"
        [[rule]]
        when = { user = "^go", tool = "Read" }
        call = [{ tool = "Agent", input = { description = "d", prompt = "Change it.", subagent_type = "worker" } }]
        [[rule]]
        when = { user = "^go" }
        call = [{ tool = "Read", input = { file_path = "{{ project }}/list.txt" } }]
    "#;
    let mut stage = Stage::new(script).await;
    stage.agents = agents(worker());
    std::fs::write(stage.project().join("list.txt"), "one\ntwo\n").unwrap();
    let turn = say(&mut stage.agent(None), "go").await;
    assert!(turn.text.contains("changed"), "{}", turn.text);
    assert_eq!(std::fs::read_to_string(stage.project().join("list.txt")).unwrap(), "one\n2\n");
}

/// AGENT-2: two agents of one reply change one file at the same time: the second is told, reads again, and what both did is
/// there.
#[tokio::test]
async fn of_two_agents_that_change_one_file_the_second_is_told() {
    let script = r#"
        [[rule]]
        name = "the first: waits until the other has read"
        when = { user = "^Change one", tool = "Read" }
        call = [{ tool = "Bash", input = { command = "until test -e read; do sleep 0.01; done" } }]
        [[rule]]
        name = "the first: changes it"
        when = { user = "^Change one", tool = "Bash", missing = "changed_it" }
        call = [{ tool = "Edit", input = { file_path = "{{ project }}/list.txt", old_string = "one", new_string = "1" } }]
        [[rule]]
        name = "the first: lets the other go on"
        when = { user = "^Change one", tool = "Edit" }
        call = [{ tool = "Bash", input = { command = "touch changed_it" } }]
        [[rule]]
        when = { user = "^Change one", tool = "Bash" }
        say = "One is changed."
        [[rule]]
        name = "the second: is told"
        when = { user = "^Change two", tool = "Edit", result = "changed|modified" }
        call = [{ tool = "Read", input = { file_path = "{{ project }}/list.txt" } }]
        [[rule]]
        name = "the second: has changed it"
        when = { user = "^Change two", tool = "Edit" }
        say = "Two is changed."
        [[rule]]
        name = "the second: has read it again"
        when = { user = "^Change two", tool = "Read", visible = "until test" }
        call = [{ tool = "Edit", input = { file_path = "{{ project }}/list.txt", old_string = "two", new_string = "2" } }]
        [[rule]]
        name = "the second: has read it, and waits until it is changed"
        when = { user = "^Change two", tool = "Read" }
        call = [{ tool = "Bash", input = { command = "touch read; until test -e changed_it; do sleep 0.01; done" } }]
        [[rule]]
        name = "the second: changes what it has read"
        when = { user = "^Change two", tool = "Bash" }
        call = [{ tool = "Edit", input = { file_path = "{{ project }}/list.txt", old_string = "two", new_string = "2" } }]
        [[rule]]
        when = { user = "^Change" }
        call = [{ tool = "Read", input = { file_path = "{{ project }}/list.txt" } }]
        [[rule]]
        when = { tool = "Agent" }
        say = "Both are changed."
        [[rule]]
        when = { user = "^go" }
        call = [
            { tool = "Agent", input = { description = "d", prompt = "Change one.", subagent_type = "worker" } },
            { tool = "Agent", input = { description = "d", prompt = "Change two.", subagent_type = "worker" } },
        ]
    "#;
    let mut stage = Stage::new(script).await;
    stage.agents = agents(worker());
    std::fs::write(stage.project().join("list.txt"), "one\ntwo\n").unwrap();
    let mut agent = stage.agent(None);
    assert_eq!(say(&mut agent, "go").await.text, "Both are changed.");
    assert_eq!(std::fs::read_to_string(stage.project().join("list.txt")).unwrap(), "1\n2\n");
    let second = agent.agents().unwrap().list()[1].clone();
    let text = std::fs::read_to_string(&second.file).unwrap();
    assert_eq!(text.matches("\"is_error\":true").count(), 1, "{text}");
}

/// AGENT-2: who is sent out by an agent may no more than that agent, whatever its definition says.
#[tokio::test]
async fn a_grandchild_may_no_more_than_its_parent() {
    let script = r#"
        [[rule]]
        when = { user = "^Deeper", result = "(?s)(?P<what>.+)" }
        say = "Then: {{ what }}"
        [[rule]]
        when = { user = "^Deeper" }
        call = [{ tool = "Bash", input = { command = "touch made" } }]
        [[rule]]
        when = { tool = "Agent", result = "(?s)(?P<what>.+)" }
        say = "{{ what }}"
        [[rule]]
        when = { user = "^Send" }
        call = [{ tool = "Agent", input = { description = "d", prompt = "Deeper.", subagent_type = "worker" } }]
        [[rule]]
        when = { user = "^go" }
        call = [{ tool = "Agent", input = { description = "d", prompt = "Send.", subagent_type = "narrow" } }]
    "#;
    let mut stage = Stage::new(script).await;
    let narrow = json!({"description": "d", "prompt": "p", "tools": "Agent, Bash(read-only)"});
    stage.agents = agents(json!({"narrow": narrow, "worker": {"description": "d", "prompt": "p"}}));
    let turn = say(&mut stage.agent(None), "go").await;
    assert!(turn.text.contains("may use Bash only for"), "{}", turn.text);
    assert!(!stage.project().join("made").exists());
}

/// AGENT-4: what an agent in the background does is said in a few words, with no tools, once for each thing that has changed;
/// an answer that is no label keeps the old one, and nothing waits for it.
#[tokio::test]
async fn an_agent_in_the_background_gets_a_label_where_something_has_changed() {
    let script = r#"
        [[rule]]
        name = "label"
        when = { user = "In three to five words", visible = "second" }
        say = "I am not going to answer this question in a few words, since there is a lot to be said about it."
        [[rule]]
        name = "label"
        when = { user = "In three to five words" }
        say = "Reading the list of colours again"
        [[rule]]
        when = { user = "^Watch it", visible = "second" }
        call = [{ tool = "Bash", input = { command = "echo third; until [ -e {{ project }}/end ]; do sleep 0.01; done" } }]
        times = 1
        [[rule]]
        when = { user = "^Watch it", visible = "third" }
        say = "Done."
        [[rule]]
        when = { user = "^Watch it", visible = "first" }
        call = [{ tool = "Bash", input = { command = "echo second; until [ -e {{ project }}/more ]; do sleep 0.01; done" } }]
        [[rule]]
        when = { user = "^Watch it" }
        call = [{ tool = "Bash", input = { command = "echo first" } }]
        [[rule]]
        when = { user = "^go", missing = "in the background as" }
        call = [{ tool = "Agent", input = { description = "watch", prompt = "Watch it.", subagent_type = "general-purpose", run_in_background = true } }]
        [[rule]]
        say = "Well."
    "#;
    let mut stage = Stage::new(script).await;
    stage.agents = Some(Subagents::new(registry(json!({})), SubagentsAtEnd::LeavesThem));
    let (labels, mut labelled) = tokio::sync::mpsc::unbounded_channel();
    stage.heard = std::sync::Arc::new(move |event| {
        if let Event::Agent { subagent, news: SubagentNews::Labelled } = event {
            let _ = labels.send(subagent.progress().label);
        }
    });
    let mut agent =
        stage.agent_with(None, |parts| parts.contacts.label_interval = Some(std::time::Duration::from_millis(5)));
    say(&mut agent, "go").await;
    let subagent = agent.agents().unwrap().list()[0].clone();
    assert_eq!(labelled.recv().await.unwrap().as_deref(), Some("Reading the list of colours"), "five words of six");
    std::fs::write(stage.project().join("more"), "").unwrap();
    let asked = |stage: &Stage| {
        let requests = stage.simulator.requests();
        requests.iter().filter(|request| request["messages"].to_string().contains("In three to five words")).count()
    };
    while asked(&stage) < 2 {
        tokio::task::yield_now().await;
    }
    std::fs::write(stage.project().join("end"), "").unwrap();
    subagent.ended().await;
    assert_eq!(
        subagent.progress().label.as_deref(),
        Some("Reading the list of colours"),
        "what is no label changes none"
    );
    let requests = stage.simulator.requests();
    let is_label = |request: &&Value| request["messages"].to_string().contains("In three to five words");
    let mut lengths: Vec<usize> =
        requests.iter().filter(is_label).map(|request| request["messages"].as_array().unwrap().len()).collect();
    let all = lengths.len();
    lengths.dedup();
    assert_eq!(lengths.len(), all, "nothing is asked where nothing has changed");
}

/// AGENT-2: an agent that cannot be written down is not sent out, and nobody waits for it.
#[tokio::test]
async fn nobody_waits_for_an_agent_that_could_not_be_written_down() {
    let mut stage = Stage::new(
        r#"
        [[rule]]
        when = { tool = "Agent" }
        say = "It did not work."
        [[rule]]
        when = { user = "^go" }
        call = [{ tool = "Agent", input = { description = "look", prompt = "Look.", subagent_type = "worker", run_in_background = true } }]
    "#,
    )
    .await;
    stage.agents = agents(worker());
    let mut agent = stage.agent(None);
    let own = agent.session().path().with_extension("");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("subagents"), "no folder").unwrap();
    let turn = tokio::time::timeout(Duration::from_secs(20), say(&mut agent, "go")).await.expect("it ends");
    assert_eq!(turn.text, "It did not work.");
    assert_eq!(agent.agents().unwrap().in_background(), 0);
    tokio::time::timeout(Duration::from_secs(20), agent.close()).await.expect("it can be left");
}
