//! What an agent that is sent out is given: how hard it tries, and how much it may use.

use engine::subagent::{SubagentOutcome, SubagentPhase};
use mail::MessageOrigin;
use mail::mailbox::Message;
use serde_json::{Value, json};
use settings::Budget;
use settings::agent_definitions::{DefinitionSource, DefinitionSources, Registry};

use crate::children::agents;
use crate::stage::{Stage, say};

/// A parent that sends out whom the user names, who calls once and answers.
const ONE: &str = r#"
    [[rule]]
    name = "the agent is done"
    when = { user = "(^|\\n)Find the colour", tool = "Glob" }
    say = "Green."
    [[rule]]
    name = "the agent works"
    when = { user = "(^|\\n)Find the colour" }
    call = [{ tool = "Glob", input = { pattern = "*" } }]
    [[rule]]
    when = { tool = "Agent", result = "(?s)(?P<what>.+)" }
    say = "{{ what }}"
    [[rule]]
    name = "a fork"
    when = { user = "^go, fork" }
    call = [{ tool = "Agent", input = { description = "look", prompt = "Find the colour." } }]
    [[rule]]
    when = { user = "^go, (?P<kind>\\w+)" }
    call = [{ tool = "Agent", input = { description = "look", prompt = "Find the colour.", subagent_type = "{{ kind }}" } }]
"#;

/// The requests of an agent, by what only it is told.
fn of_agent(stage: &Stage) -> Vec<Value> {
    let requests = stage.simulator.requests().into_iter();
    requests.filter(|request| request["system"].to_string().contains("You look.")).collect()
}

/// AGENT-1: `effort` is sent for that agent and for nobody else, as far as its model knows it.
#[tokio::test]
async fn effort_is_sent_for_that_agent_alone() {
    for (more, sent) in [
        (json!({"effort": "xhigh"}), json!("xhigh")),
        (json!({"effort": "xhigh", "model": "claude-sonnet-4-6"}), json!("high")),
        (json!({"effort": "xhigh", "model": "claude-haiku-4-5"}), Value::Null),
        (json!({}), Value::Null),
    ] {
        let mut definition = json!({"description": "d", "prompt": "You look."});
        definition.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut stage = Stage::new(ONE).await;
        stage.agents = agents(json!({ "looker": definition }));
        let turn = say(&mut stage.agent(None), "go, looker").await;
        assert!(turn.text.contains("Green."), "{}", turn.text);
        assert_eq!(of_agent(&stage).len(), 2);
        for request in stage.simulator.requests() {
            let is_its = request["system"].to_string().contains("You look.");
            let expected = if is_its { &sent } else { &Value::Null };
            assert_eq!(&request["output_config"]["effort"], expected, "{definition}");
        }
    }
}

/// AGENT-1, FORK-2: what the session is told of effort holds for it, for its forks, whose requests begin with the same bytes,
/// and for agents whose definition says nothing else, as far as the model of each knows it.
#[tokio::test]
async fn a_sessions_effort_holds_for_all_that_say_no_other() {
    let agent = |more: Value| {
        let mut definition = json!({"description": "d", "prompt": "You look."});
        definition.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        definition
    };
    let kinds = [
        ("plain", json!({}), json!("medium")),
        ("hard", json!({"effort": "max"}), json!("max")),
        ("small", json!({"model": "claude-haiku-4-5"}), Value::Null),
    ];
    for (kind, more, sent) in kinds {
        let mut stage = Stage::new(ONE).await;
        (stage.agents, stage.settings) = (agents(json!({ kind: agent(more) })), json!({"effortLevel": "medium"}));
        say(&mut stage.agent(None), &format!("go, {kind}")).await;
        assert_eq!(of_agent(&stage).len(), 2, "{kind}");
        for request in stage.simulator.requests() {
            let is_its = request["system"].to_string().contains("You look.");
            let expected = if is_its { &sent } else { &json!("medium") };
            assert_eq!(&request["output_config"]["effort"], expected, "{kind}");
        }
    }
    let mut stage = Stage::new(ONE).await;
    (stage.agents, stage.settings) = (agents(json!({})), json!({"effortLevel": "low"}));
    say(&mut stage.agent(None), "go, fork").await;
    let requests = stage.simulator.requests();
    let is_fork = |request: &&Value| request["messages"].to_string().contains("Find the colour.");
    assert!(requests.iter().filter(is_fork).count() >= 2, "{requests:?}");
    // Where the cache is asked for moves on with the conversation.
    let unmarked = |part: &Value| part.to_string().replace(r#","cache_control":{"type":"ephemeral"}"#, "");
    for request in &requests {
        assert_eq!(request["output_config"], json!({"effort": "low"}));
        for part in ["model", "tools", "system", "max_tokens"] {
            assert_eq!(unmarked(&request[part]), unmarked(&requests[0][part]), "{part}");
        }
    }
}

/// AGENT-1: what is no effort is named with its line, and the agent is left out; what programs say in numbers, and modes
/// there are not here, leave the agent there.
#[test]
fn bad_values_are_named_with_their_line() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, keys: &str| {
        std::fs::write(folder.path().join(name), format!("---\nname: {}\ndescription: b\n{keys}\n---\nx", &name[..1]))
    };
    write("a.md", "effort: huge").unwrap();
    write("b.md", "effort: low").unwrap();
    write("c.md", "model: opus\npermissionMode: dontAsk").unwrap();
    write("d.md", "budget: none").unwrap();
    std::fs::write(folder.path().join("f.md"), "---\ndescription: b\nname: fork\n---\nx").unwrap();
    let folders = vec![(DefinitionSource::User, folder.path().to_owned())];
    let programs = json!({"e": {"description": "d", "prompt": "p", "effort": 40}});
    let flag = programs.as_object().cloned();
    let registry = Registry::load(&DefinitionSources { folders, flag, ..DefinitionSources::default() });
    let told: Vec<String> = registry.troubles().iter().map(|one| format!("{}: {}", one.line, one.what)).collect();
    assert_eq!(
        told,
        [
            "4: effort must be one of low, medium, high, xhigh, max, not \"huge\"",
            "5: there is no mode dontAsk; it works in the mode default",
            "4: budget must be a number of at least 1, not \"none\"",
            "3: the name fork is reserved for forks of the conversation; choose another",
            "1: effort 40 is ignored; it must be a word such as high",
        ]
    );
    let there = ["a", "b", "c", "d", "e"].map(|name| registry.find(name).is_some());
    assert_eq!(there, [false, true, true, false, true]);
}

/// AGENT-1: tools that do not exist and models that are no names are warned of with their line; tools of Claude Code and of
/// servers are said to be not here yet, and nothing is said of what is here. All of these agents stay.
#[test]
fn tools_and_models_that_are_none_are_named_with_their_line() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, keys: &str| {
        std::fs::write(folder.path().join(name), format!("---\nname: {}\n{keys}\ndescription: b\n---\nx", &name[..1]))
    };
    write("a.md", "tools: [Read, Nope]").unwrap();
    write("b.md", "model: 7\ntools: Bash(read-only), Agent(a, b), Task, Grep, AskUserQuestion, SendMessage, History")
        .unwrap();
    write("c.md", "model: \"\"\ntools: LSP, WebSearch, mcp__github__search, KillShell").unwrap();
    write("d.md", "color: red\ndisallowedTools:\n  - Wrte\n  - bash\n  - Bash(rm:*)\n  - WebFetch\n  - Write").unwrap();
    write("e.md", "model: inherit\ntools: \"*\"").unwrap();
    let programs = json!({"f": {"description": "d", "prompt": "p", "model": null, "tools": ["Reed"]},
        "g": {"description": "d", "prompt": "p", "model": 7}});
    let (folders, flag) = (vec![(DefinitionSource::User, folder.path().to_owned())], programs.as_object().cloned());
    let registry = Registry::load(&DefinitionSources { folders, flag, ..DefinitionSources::default() });
    let told: Vec<String> =
        registry.troubles().iter().map(|one| format!("{:?} {}: {}", one.weight, one.line, one.what)).collect();
    assert_eq!(
        told,
        [
            "Warning 3: tools names \"Nope\", but there is no such tool",
            "Warning 3: model 7 is not a name such as sonnet; it uses the model of the agent that starts it",
            "Warning 3: model is empty; it uses the model of the agent that starts it",
            "Note 4: tools names LSP, which Cairn does not have yet",
            "Note 4: tools names KillShell, which Cairn does not have; TaskStop does the same",
            "Warning 4: disallowedTools names \"Wrte\", but there is no such tool",
            "Warning 4: disallowedTools names \"bash\", but there is no such tool; did you mean Bash?",
            "Warning 4: disallowedTools can only remove whole tools, so Bash(rm:*) has no effect",
            "Warning 1: tools names \"Reed\", but there is no such tool",
            "Warning 1: model 7 is not a name such as sonnet; it uses the model of the agent that starts it",
        ]
    );
    let models = ["a", "b", "c", "d", "e", "f", "g"].map(|name| registry.find(name).unwrap().model.clone());
    assert_eq!(models, [const { None }; 7]);
}

/// MSG-2: an agent that goes on talks to the model it was sent out with.
#[tokio::test]
async fn an_agent_that_goes_on_has_the_model_it_had() {
    let script = r#"
        [[rule]]
        when = { system = "You look." }
        say = "Green."
        [[rule]]
        when = { tool = "Agent" }
        say = "Sent."
        [[rule]]
        when = { user = "^go" }
        call = [{ tool = "Agent", input = { description = "look", prompt = "Find it.", subagent_type = "looker", name = "one", model = "opus" } }]
    "#;
    let mut stage = Stage::new(script).await;
    stage.agents = agents(json!({"looker": {"description": "d", "prompt": "You look.", "model": "haiku"}}));
    let mut agent = stage.agent(None);
    say(&mut agent, "go").await;
    let children = agent.agents().unwrap().clone();
    let message = Message::new("m-1", "team-lead", "And now?", jiff::Timestamp::UNIX_EPOCH);
    children.write_to("one", &message, MessageOrigin::Parent).unwrap();
    children.find("one").unwrap().ended().await;
    let models: Vec<Value> = of_agent(&stage).iter().map(|request| request["model"].clone()).collect();
    assert_eq!(models, ["claude-opus-5", "claude-opus-5"]);
}

/// HOOK-1, AGENT-1: hooks are told how hard the model of that agent tries, where its definition says so.
#[tokio::test]
async fn hooks_are_told_of_effort() {
    let mut stage = Stage::new(ONE).await;
    stage.agents = agents(json!({"looker": {"description": "d", "prompt": "You look.", "effort": "max"}}));
    let hook = json!([{"hooks": [{"type": "command", "command": "cat >> told.jsonl; echo >> told.jsonl"}]}]);
    stage.settings = json!({"hooks": {"PreToolUse": hook}});
    say(&mut stage.agent(None), "go, looker").await;
    let told = std::fs::read_to_string(stage.project().join("told.jsonl")).unwrap();
    let told: Vec<Value> =
        told.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect();
    let effort: Vec<(&Value, &Value)> = told.iter().map(|one| (&one["tool_name"], &one["effort"])).collect();
    let level = json!({"level": "max"});
    assert_eq!(effort, [(&json!("Agent"), &Value::Null), (&json!("Glob"), &level)]);
}

/// AGENT-2: an agent stops after the round in which its budget is spent, and its parent reads so: by its definition, by the
/// settings, whichever is less; a fork has what the settings say.
#[tokio::test]
async fn an_agent_stops_when_its_budget_is_spent() {
    for (kind, own, settings, spent) in [
        ("looker", Some(10), None, Some(10)),
        ("looker", None, Some(20), Some(20)),
        ("looker", Some(10), Some(20), Some(10)),
        ("looker", Some(20), Some(10), Some(10)),
        ("fork", None, Some(20), Some(20)),
        ("looker", Some(1_000_000), Some(1_000_000), None),
    ] {
        let mut stage = Stage::new(ONE).await;
        stage.agents = agents(json!({"looker": {"description": "d", "prompt": "You look.", "budget": own}}));
        let mut agent = stage.agent(None);
        agent.ledger().set_budget(Budget { agent_tokens: settings, ..Budget::default() });
        let turn = say(&mut agent, &format!("go, {kind}")).await;
        let subagent = agent.agents().unwrap().list()[0].clone();
        let SubagentPhase::Ended(ended) = subagent.phase() else { panic!("it is out") };
        let Some(spent) = spent else {
            assert_eq!(ended.how, SubagentOutcome::Done, "{}", turn.text);
            continue;
        };
        let why = format!("its budget of {spent} tokens is spent");
        assert_eq!(ended.how, SubagentOutcome::Failed(why.clone()));
        assert!(turn.text.contains(&format!("The agent {kind} did not finish: {why}.")), "{}", turn.text);
        assert_eq!((subagent.progress().requests, subagent.progress().calls), (1, 1), "what it had called has run");
        let text = std::fs::read_to_string(&subagent.file).unwrap();
        assert_eq!(text.matches("\"tool_result\"").count(), 1 + usize::from(kind == "fork"), "{text}");
    }
}

/// AGENT-2: what an agent sends out itself counts against its budget, however deep, and has no more than it.
#[tokio::test]
async fn a_budget_holds_for_whom_an_agent_sends_out() {
    let script = r#"
        [[rule]]
        name = "the last of them never ends"
        when = { user = "^Level 3" }
        call = [{ tool = "Glob", input = { pattern = "{{ messages|length }}" } }]
        [[rule]]
        when = { user = "^Level 2", missing = "agent-report" }
        call = [{ tool = "Agent", input = { description = "d", prompt = "Level 3", subagent_type = "worker" } }]
        [[rule]]
        when = { user = "^Level 1", missing = "agent-report" }
        call = [{ tool = "Agent", input = { description = "d", prompt = "Level 2", subagent_type = "worker" } }]
        [[rule]]
        when = { user = "^Level" }
        say = "It should have stopped."
        [[rule]]
        when = { tool = "Agent", result = "(?s)(?P<what>.+)" }
        say = "{{ what }}"
        [[rule]]
        when = { user = "^go" }
        call = [{ tool = "Agent", input = { description = "d", prompt = "Level 1", subagent_type = "worker" } }]
    "#;
    let mut stage = Stage::new(script).await;
    stage.agents = agents(json!({"worker": {"description": "d", "prompt": "You look."}}));
    let mut agent = stage.agent(None);
    agent.ledger().set_budget(Budget { agent_tokens: Some(20_000), ..Budget::default() });
    let turn = say(&mut agent, "go").await;
    assert!(
        turn.text.contains("The agent worker did not finish: its budget of 20000 tokens is spent."),
        "{}",
        turn.text
    );
    assert!(!turn.text.contains("It should have stopped."), "{}", turn.text);
    let all: u64 = of_agent(&stage).len() as u64;
    assert!(all > 3, "the last one has worked: {all}");
}
