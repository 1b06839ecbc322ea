//! Definitions of agents: where they come from, which of a name wins, what a stranger's is worth, and their hooks.

use std::path::Path;

use serde_json::{Value, json};
use settings::agent_definitions::{DefinitionSource, DefinitionSources, DefinitionStatus, Registry};
use settings::trust::{Trust, TrustPlace};
use settings::{BasePaths, Files, Flag, LoadedSettings, Settings};
use tools::permission::Mode;

use crate::children::agents;
use crate::stage::{Stage, say};

/// A folder of definitions.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// The same, where the user has let the project's definitions in.
fn trusting(sources: DefinitionSources) -> DefinitionSources {
    let project = tempfile::tempdir().unwrap();
    let place = TrustPlace { config_home: project.path(), claude_json: None, directory: project.path(), home: None };
    let mut trust = Trust::read(place);
    let claims = settings::agent_definitions::claims(&sources, trust.site());
    assert!(trust.admit(&claims));
    DefinitionSources { trust: Some(trust), ..sources }
}

/// AGENT-1: of one name the strongest source wins; a bad file is named with its line and left out, the rest counts.
#[test]
fn the_strongest_definition_wins_and_a_bad_one_is_named() {
    let mine = "---\nname: painter\ndescription: mine\n---\nYou paint.";
    let user = folder(&[
        ("painter.md", mine),
        ("plain.md", "You paint."),
        ("turns.md", "---\nname: a\ndescription: b\nmaxTurns: many\n---\nx"),
        ("odd.md", "---\nname: odd\ndescription: b\ncolour: red\n---\nx"),
    ]);
    let theirs = "---\nname: painter\ndescription: theirs\npermissionMode: bypassPermissions\nhooks:\n  Stop: []\nmemory:\n  scope: local\ntools: Read, Bash(git log:*, git diff:*)\n---\nYou paint badly.";
    let project = folder(&[("painter.md", theirs)]);
    let folders =
        vec![(DefinitionSource::User, user.path().into()), (DefinitionSource::Project, project.path().into())];
    let sources = DefinitionSources { folders, ..DefinitionSources::default() };
    let stranger = Registry::load(&sources);
    let told: Vec<String> = stranger.troubles().iter().map(|one| one.what.clone()).collect();
    assert_eq!(
        told.last().unwrap(),
        "painter does not get this until you trust it: mode bypassPermissions, memory local"
    );
    let painter = stranger.find("painter").unwrap();
    assert_eq!(
        (painter.description.as_str(), painter.source),
        ("mine", DefinitionSource::User),
        "a stranger's replaces nobody"
    );
    let alone = vec![(DefinitionSource::Project, project.path().into())];
    let alone = Registry::load(&DefinitionSources { folders: alone, ..DefinitionSources::default() });
    let painter = alone.find("painter").unwrap();
    assert_eq!((painter.mode, &painter.hooks, painter.memory), (None, &None, None), "and adds nothing");
    let registry = Registry::load(&trusting(sources));
    let painter = registry.find("painter").unwrap();
    assert_eq!((painter.description.as_str(), painter.source), ("theirs", DefinitionSource::Project));
    assert_eq!(painter.listing(), "painter: theirs (Tools: Read, Bash(git log:*, git diff:*))");
    assert_eq!(painter.memory, Some(settings::agent_definitions::AgentMemoryScope::Local));
    let replaced = registry.all().iter().find(|one| one.agent.description == "mine").unwrap();
    assert_eq!(replaced.replaced_by, Some(DefinitionSource::Project));
    let troubles: Vec<String> =
        registry.troubles().iter().map(|one| one.to_string().rsplit_once('/').unwrap().1.to_owned()).collect();
    assert_eq!(
        troubles,
        [
            "odd.md:4: colour is not a key of an agent",
            "plain.md:1: it does not begin with `---` and the keys name and description; this agent is left out",
            "turns.md:4: maxTurns must be a number of at least 1, not \"many\"; this agent is left out",
        ]
    );
    assert!(registry.find("odd").is_some());
    assert_eq!(registry.find("painter").unwrap().mode, Some(Mode::BypassPermissions));
}

/// A file of an agent, which says whose it is.
fn file(name: &str, whose: &str) -> String {
    format!("---\nname: {name}\ndescription: {whose}\n---\nYou are of {whose}.")
}

/// AGENT-1: built-in < user < project < flag < policy, and of each source settings < files; those that are replaced are still
/// told of.
#[test]
fn definitions_come_from_settings_files_flags_and_policy() {
    let root = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let agents = |whose: &str| {
        let agent = json!({"description": whose, "prompt": "x"});
        json!({"agents": {"Explore": agent, "a": agent, "b": agent, "c": agent, "d": agent}}).to_string()
    };
    write("user/settings.json", &agents("user settings"));
    write("user/agents/a.md", &file("a", "user file"));
    write("project/.claude/settings.json", &agents("project settings").replace("\"a\":", "\"other\":"));
    write("project/.claude/agents/b.md", &file("b", "project file"));
    write(
        "managed/managed-settings.json",
        &json!({"agents": {"d": {"description": "policy settings", "prompt": "x"}}}).to_string(),
    );
    let mut files = Files::usual(&root.path().join("user"), &root.path().join("project"));
    files.managed = vec![root.path().join("managed")];
    files.flag = Some(Flag::Text(json!({"agents": {"c": {"description": "--settings", "prompt": "x"}}}).to_string()));
    let settings = |trusted: bool| {
        let ground = BasePaths { directory: root.path(), home: None };
        let settings = Settings::of(&LoadedSettings::read(&files), &ground, &|_| trusted);
        assert!(settings.findings.is_empty(), "{:?}", settings.findings);
        settings.agents
    };
    let folder = |source, path: &str| (source, root.path().join(path));
    let sources = DefinitionSources {
        settings: settings(true),
        folders: vec![
            folder(DefinitionSource::User, "user/agents"),
            folder(DefinitionSource::Project, "project/.claude/agents"),
        ],
        plugins: Vec::new(),
        flag: json!({"d": {"description": "flag", "prompt": "x"}, "e": {"description": "flag", "prompt": "x"}})
            .as_object()
            .cloned(),
        trust: None,
    };
    let wins = |registry: &Registry, name: &str| registry.find(name).unwrap().description.clone();
    let registry = Registry::load(&trusting(sources.clone()));
    let all = ["Explore", "a", "b", "c", "d", "e", "other"].map(|name| wins(&registry, name));
    assert_eq!(
        all,
        ["project settings", "user file", "project file", "--settings", "policy settings", "flag", "project settings"]
    );
    assert_eq!(registry.all().iter().filter(|one| one.agent.name == "d").count(), 2);
    let stranger = Registry::load(&DefinitionSources { settings: settings(false), ..sources });
    let all = ["Explore", "a", "b", "c", "d"].map(|name| wins(&stranger, name));
    assert_eq!(all, ["user settings", "user file", "user settings", "--settings", "policy settings"]);
    assert!(stranger.find("other").is_none(), "what untrusted settings say does not count at all");
    let more = json!({"a": {"description": "a program", "prompt": "x"}, "bad": {"description": "no prompt"}});
    let driven = stranger.with(more.as_object().unwrap());
    assert_eq!((wins(&driven, "a").as_str(), wins(&driven, "d").as_str()), ("a program", "policy settings"));
    let told = driven.troubles().last().unwrap().to_string();
    assert_eq!(told, "initialize.agents:1: it has no prompt; this agent is left out");
}

/// TRUST-2, AGENT-1: a yes is to what was shown: another text is another claim, which names what the definition adds.
#[test]
fn a_changed_definition_is_asked_about_anew() {
    let hook = "hooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n          command: ./check.sh\n";
    let text = format!("---\nname: checker\ndescription: Checks.\nmodel: opus\n{hook}---\nYou check.");
    let project = folder(&[("checker.md", &text)]);
    let sources = DefinitionSources {
        folders: vec![(DefinitionSource::Project, project.path().into())],
        ..DefinitionSources::default()
    };
    let trusted = trusting(sources.clone());
    let site = trusted.trust.as_ref().unwrap().site().clone();
    let claims = settings::agent_definitions::claims(&sources, &site);
    assert_eq!(claims[0].what, "checker: Checks. (hook PreToolUse: ./check.sh, model opus)");
    assert_eq!(Registry::load(&trusted).find("checker").unwrap().standing, DefinitionStatus::Whole);
    std::fs::write(project.path().join("checker.md"), text.replace("You check.", "You do as you like.")).unwrap();
    let checker = Registry::load(&trusted).find("checker").unwrap().clone();
    assert_eq!((checker.standing, checker.model, checker.hooks), (DefinitionStatus::Narrowed, None, None));
}

/// AGENT-1: what there is not yet is kept and named, and is nothing wrong; hooks that cannot be understood are.
#[test]
fn what_waits_is_told_apart_from_what_is_wrong() {
    let waits = "---\nname: waits\ndescription: b\nskills: pdf\nmcpServers:\n  old:\n    type: sse\n    url: x\n---\nx";
    let wrong =
        "---\nname: wrong\ndescription: b\nhooks:\n  PreToolUze: []\n  Stop: [{hooks: [{type: command}]}]\n---\nx";
    let user = folder(&[("waits.md", waits), ("wrong.md", wrong)]);
    let registry = Registry::load(&DefinitionSources {
        folders: vec![(DefinitionSource::User, user.path().into())],
        ..DefinitionSources::default()
    });
    let told: Vec<String> =
        registry.troubles().iter().map(|one| format!("{:?} {} {}", one.weight, one.line, one.what)).collect();
    assert_eq!(
        told,
        [
            "Warning 5 the agent waits: MCP server \"old\": the transport \"sse\" is not supported; most servers that have it also speak \"http\" at another path",
            "Warning 4 there is no hook event PreToolUze",
            "Warning 4 a Stop hook: a hook of the type command needs `command`; this one does not run",
        ]
    );
    assert_eq!(registry.find("waits").unwrap().skills, ["pdf"]);
}

/// An agent that runs a command and says what came of it, and a parent that runs the same one after.
const RUNS: &str = r#"
    [[rule]]
    when = { user = "^Run it", visible = "say it louder" }
    say = "IT RAN."
    [[rule]]
    when = { user = "say it louder" }
    say = "IT RAN."
    [[rule]]
    when = { user = "^Run it", tool = "Bash", result = "(?s)(?P<what>.+)" }
    say = "child: {{ what }}"
    [[rule]]
    when = { user = "^Run it" }
    call = [{ tool = "Bash", input = { command = "echo ran" } }]
    [[rule]]
    when = { user = "^go", tool = "Bash", result = "(?s)(?P<what>.+)" }
    say = "parent: {{ what }}"
    [[rule]]
    when = { user = "^go", tool = "Agent" }
    call = [{ tool = "Bash", input = { command = "echo ran" } }]
    [[rule]]
    when = { user = "^go" }
    call = [{ tool = "Agent", input = { description = "run", prompt = "Run it.", subagent_type = "runner" } }]
"#;

fn runner(hooks: &Value) -> Value {
    json!({"runner": {"description": "runs", "prompt": "You run.", "hooks": hooks}})
}

fn report(project: &Path, stage: &Stage) -> String {
    let requests = stage.simulator.requests();
    assert!(project.is_dir());
    requests.iter().map(|request| request["messages"].to_string()).find(|text| text.contains("agent-report")).unwrap()
}

/// AGENT-1, HOOK-1: hooks of a definition run for its agent through the same gate, and not for its parent; its `Stop` is the
/// agent's end.
#[tokio::test]
async fn hooks_of_a_definition_run_for_its_agent_alone() {
    let deny = r#"cat > /dev/null; echo 'not while I look' >&2; exit 2"#;
    let stop = r#"cat > stop.json; if [ ! -e once ]; then touch once; echo 'say it louder' >&2; exit 2; fi"#;
    let hook = |command: &str| json!([{"hooks": [{"type": "command", "command": command}]}]);
    let mut stage = Stage::new(RUNS).await;
    stage.agents = agents(runner(&json!({"PreToolUse": hook(deny), "Stop": hook(stop)})));
    let mut agent = stage.agent(None);
    let turn = say(&mut agent, "go").await;
    assert!(turn.text.starts_with("parent: ran"), "the parent's calls are its own: {}", turn.text);
    let child = stage.simulator.requests().iter().any(|request| {
        request["messages"].to_string().contains("not while I look")
            && request["messages"].to_string().contains("Run it")
    });
    assert!(child, "the child's call was denied");
    assert!(report(&stage.project(), &stage).contains("IT RAN."), "its end was sent on");
    let stop: Value = serde_json::from_slice(&std::fs::read(stage.project().join("stop.json")).unwrap()).unwrap();
    assert_eq!((&stop["hook_event_name"], &stop["agent_type"]), (&json!("SubagentStop"), &json!("runner")));
}

/// AGENT-1: where an organisation lets only its own hooks run, those of a definition do not.
#[tokio::test]
async fn hooks_of_a_definition_keep_to_what_is_managed() {
    let deny = json!({"PreToolUse": [{"hooks": [{"type": "command", "command": "exit 2"}]}]});
    let mut stage = Stage::new(RUNS).await;
    stage.agents = agents(runner(&deny));
    stage.settings = json!({"disableAllHooks": true});
    let mut agent = stage.agent(None);
    say(&mut agent, "go").await;
    assert!(report(&stage.project(), &stage).contains("child: ran"));
    assert_eq!(stage.mode.get(), Mode::BypassPermissions);
}
