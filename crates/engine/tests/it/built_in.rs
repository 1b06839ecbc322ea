//! The agents that are part of the program and know it: a guide to it, and a set-up of the status line.

use engine::agents::take_role;
use serde_json::{Value, json};
use settings::BasePaths;
use settings::agent_definitions::{DefinitionSources, Registry};
use tools::permission::Mode;

use crate::children::agents;
use crate::stage::{Stage, say};

/// A parent that asks the guide, which searches and reads the pages it is told of.
const ASKS: &str = r#"
    [[rule]]
    name = "the guide has read"
    when = { user = "^How is", tool = "Read", result = "(?s)(?P<what>.+)" }
    say = "The page says: {{ what }}"
    [[rule]]
    name = "the guide has found"
    when = { system = "documentation is in `(?P<docs>[^`]+)`", tool = "Grep", result = "(?P<page>\\w+\\.md):(?P<line>\\d+)" }
    call = [{ tool = "Read", input = { file_path = "{{ docs }}/{{ page }}" } }]
    [[rule]]
    name = "the guide searches"
    when = { system = "documentation is in `(?P<docs>[^`]+)`", user = "^How is (?P<word>\\S+) set" }
    call = [{ tool = "Grep", input = { pattern = "{{ word }}", path = "{{ docs }}", output_mode = "content" } }]
    [[rule]]
    when = { user = "^ask", tool = "Agent", result = "(?s)(?P<what>.+)" }
    say = "{{ what }}"
    [[rule]]
    when = { user = "^ask about (?P<word>\\S+)" }
    call = [{ tool = "Agent", input = { description = "ask", prompt = "How is {{ word }} set?", subagent_type = "cairn-guide" } }]
"#;

/// The requests of an agent, by a word of its prompt.
fn of_agent(stage: &Stage, word: &str) -> Vec<Value> {
    stage.simulator.requests().into_iter().filter(|request| request["system"].to_string().contains(word)).collect()
}

/// AGENT-1: the guide finds in the program's own documentation how a hook is set, what a setting and a
/// variable do, without a question and without a network; nobody else is told where that is, and it changes nothing.
#[tokio::test]
async fn the_guide_answers_from_the_documentation() {
    for (word, found) in [
        ("SubagentStop", "SubagentStop"),
        ("budget.tokensPerAgent", "tokens that an agent"),
        ("CLAUDE_CONFIG_DIR", "CLAUDE_CONFIG_DIR"),
    ] {
        let mut stage = Stage::new(ASKS).await;
        stage.agents = agents(json!({}));
        stage.mode = Mode::Default.into();
        let turn = say(&mut stage.agent(None), &format!("ask about {word}")).await;
        let said = turn.text.split("The page says: ").nth(1).unwrap_or_else(|| panic!("{word}: {}", turn.text));
        assert!(said.contains(found), "{word}: {said}");
        let asked = of_agent(&stage, "documentation is in");
        assert_eq!(asked.len(), 3, "{word}");
        assert!(!asked[0]["system"].to_string().contains("{{"), "{}", asked[0]["system"]);
        let offered: Vec<&str> =
            asked[0]["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
        assert!(["Read", "Grep", "Glob"].iter().all(|tool| offered.contains(tool)), "{offered:?}");
        assert!(!["Write", "Edit", "Bash", "Agent"].iter().any(|tool| offered.contains(tool)), "{offered:?}");
        let others = stage.simulator.requests().into_iter().filter(|request| !asked.contains(request));
        assert!(others.map(|request| request["system"].to_string()).all(|system| !system.contains("/docs")));
    }
}

/// AGENT-1: a teammate that is the guide has the documentation as well, beside its own session.
#[tokio::test]
async fn a_teammate_can_be_the_guide() {
    let stage = Stage::new(ASKS).await;
    let guide = Registry::load(&DefinitionSources::default()).find("cairn-guide").cloned().unwrap();
    let (project, session) = (stage.project(), stage.home().path().join("projects/x/session.jsonl"));
    stage.agent_with(None, |parts| {
        take_role(parts, &guide, &BasePaths { directory: &project, home: None }, &session).unwrap();
        let told = parts.prompt.system.clone().unwrap();
        let docs = session.with_extension("").join("docs");
        assert!(told.contains(&format!("`{}`", docs.display())) && !told.contains("{{"), "{told}");
        assert!(std::fs::read_to_string(docs.join("settings.md")).unwrap().contains("statusLine"));
    });
}

/// AGENT-1: the set-up of the status line is told where the user's settings are, and writes there what was agreed to.
#[tokio::test]
async fn the_status_line_is_set_up_in_the_users_settings() {
    let script = r#"
        [[rule]]
        when = { user = "^Show the branch", tool = "Write" }
        say = "Done."
        [[rule]]
        when = { system = "settings, `(?P<settings>[^`]+)`", user = "^Show the branch" }
        call = [{ tool = "Write", input = { file_path = "{{ settings }}", content = "{\"statusLine\": {\"type\": \"command\", \"command\": \"git branch\"}}" } }]
        [[rule]]
        when = { tool = "Agent", result = "(?s)(?P<what>.+)" }
        say = "{{ what }}"
        [[rule]]
        when = { user = "^go" }
        call = [{ tool = "Agent", input = { description = "line", prompt = "Show the branch.", subagent_type = "statusline-setup" } }]
    "#;
    for (mode, written) in [(Mode::Default, false), (Mode::BypassPermissions, true)] {
        let mut stage = Stage::new(script).await;
        stage.agents = agents(json!({}));
        stage.mode = mode.into();
        let turn = say(&mut stage.agent(None), "go").await;
        let settings = stage.home().path().join("settings.json");
        assert_eq!(settings.exists(), written, "nobody has agreed: {}", turn.text);
        let told = of_agent(&stage, "own status line").remove(0)["system"].to_string();
        assert!(told.contains(&settings.display().to_string()) && !told.contains("{{"), "{told}");
        if written {
            let read: Value = serde_json::from_slice(&std::fs::read(&settings).unwrap()).unwrap();
            assert_eq!(read["statusLine"]["command"], "git branch");
        }
    }
}
