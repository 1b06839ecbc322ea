//! Agents that are sent out: what they see, what they may do, and what comes back.

use std::sync::{Arc, Mutex};

use engine::Event;
use engine::agents::{MemoryPlaces, Subagents, SubagentsAtEnd};
use engine::event::SubagentNews;
use futures_util::future::{BoxFuture, ready};
use serde_json::{Value, json};
use settings::agent_definitions::{DefinitionSources, Registry};
use settings::permission::{Approver, CallQuestion, PermissionAnswer, Question};
use tokio_util::sync::CancellationToken;
use tools::permission::Mode;
use transcript::Block;

use crate::stage::{Stage, call, say};

/// Agents from an object by name, and the built-in ones.
pub fn agents(more: Value) -> Option<Arc<Subagents>> {
    Some(Subagents::new(registry(more), SubagentsAtEnd::WaitsForThem))
}

/// The agents of an object by name, and the built-in ones.
pub fn registry(more: Value) -> Arc<Registry> {
    let Value::Object(more) = more else { panic!("an object") };
    let registry = Registry::load(&DefinitionSources { flag: Some(more), ..DefinitionSources::default() });
    assert_eq!(registry.troubles(), []);
    Arc::new(registry)
}

/// A parent that sends one agent out, which does what `child` says.
fn script(kind: &str, child: &str) -> String {
    format!(
        r#"
        [[rule]]
        name = "the parent answers"
        when = {{ tool = "Agent", result = "(?s)(?P<what>.+)" }}
        say = "It said: {{{{ what }}}}"
        [[rule]]
        name = "the parent sends it out"
        when = {{ user = "^go" }}
        call = [{{ tool = "Agent", input = {{ description = "look", prompt = "Find the colour.", subagent_type = "{kind}" }} }}]
        {child}
        "#
    )
}

const LOOKS: &str = r#"
    [[rule]]
    when = { user = "Find the colour", missing = "tool_result|green" }
    call = [{ tool = "Read", input = { file_path = "{{ project }}/colour.txt" } }]
    [[rule]]
    when = { user = "Find the colour" }
    say = "The colour is green."
"#;

/// AGENT-2: an agent begins with its own words and the order, works with tools, and its last words return as data; what it
/// said lies beside its parent's session, and what it used is accounted to it.
#[tokio::test]
async fn an_agent_is_sent_out_and_reports() {
    let mut stage = Stage::new(&script("Explore", LOOKS)).await;
    stage.agents = agents(json!({}));
    std::fs::write(stage.project().join("colour.txt"), "green").unwrap();
    let mut agent = stage.agent(None);
    let turn = say(&mut agent, "go, nobody else need know of the secret plan").await;
    let id = agent.agents().unwrap().list()[0].id.clone();
    let report = format!("<agent-report from=\"Explore\" id=\"{id}\">\nThe colour is green.\n</agent-report>");
    assert_eq!(turn.text, format!("It said: {report}"));
    let requests = stage.simulator.requests();
    let child = requests.iter().find(|request| {
        request["messages"].to_string().contains("Find the colour.") && !request.to_string().contains("secret plan")
    });
    let child = child.expect("the child knows nothing of what its parent was told");
    assert!(child["system"].to_string().contains("You change nothing"), "{}", child["system"]);
    let offered: Vec<&str> =
        child["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(
        offered.contains(&"Read") && !["Agent", "Edit", "Write"].iter().any(|tool| offered.contains(tool)),
        "{offered:?}"
    );
    let folder = agent.session().path().with_extension("").join("subagents");
    let mut names: Vec<String> =
        std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let [transcript, meta] = &names[..] else { panic!("{names:?}") };
    assert!(transcript.starts_with("agent-") && meta.ends_with(".meta.json"), "{names:?}");
    let meta: Value = serde_json::from_slice(&std::fs::read(folder.join(meta)).unwrap()).unwrap();
    assert_eq!(meta["agentType"], "Explore");
    let text = std::fs::read_to_string(folder.join(transcript)).unwrap();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!((&first["isSidechain"], &first["sessionId"]), (&json!(true), &json!(agent.session().id())));
    let record = session::record::read(&folder.join(transcript)).unwrap();
    assert!(
        record.log.lines().iter().filter(|line| !line.sidechain && line.in_chain()).count() >= 4,
        "it can be shown and gone on with"
    );
    let log = std::fs::read_to_string(agent.session().path()).unwrap();
    assert!(log.contains(r#""kind":"side","agent":"Explore""#), "{log}");
    assert!(stage.events.lock().unwrap().iter().any(|event| calls(event, "Explore", "Read")));
}

/// Whether an agent of a type calls a tool.
fn calls(event: &Event, kind: &str, called: &str) -> bool {
    let Event::Agent { subagent, news: SubagentNews::Does(event) } = event else { return false };
    subagent.kind == kind && matches!(&**event, Event::ToolStarted { tool, .. } if tool == called)
}

/// Says yes, and remembers what it was asked.
struct Yes(Mutex<Vec<CallQuestion>>);

impl Approver for Yes {
    fn ask(&self, question: Question) -> BoxFuture<'_, PermissionAnswer> {
        self.0.lock().unwrap().push(call(question));
        Box::pin(ready(PermissionAnswer::Allow))
    }
}

/// AGENT-2: what a child has to ask about reaches whoever is asked for its parent, under its name, whatever its
/// definition says of its mode.
#[tokio::test]
async fn a_child_asks_as_its_parent_would_have_to() {
    let writes = r#"
        [[rule]]
        when = { user = "Find the colour", missing = "new.txt" }
        call = [{ tool = "Write", input = { file_path = "{{ project }}/new.txt", content = "y" } }]
        [[rule]]
        when = { user = "Find the colour" }
        say = "Written."
    "#;
    let mut stage = Stage::new(&script("bold", writes)).await;
    let bold = json!({"description": "d", "prompt": "p", "permissionMode": "bypassPermissions"});
    stage.agents = agents(json!({"bold": bold}));
    stage.mode = Mode::Default.into();
    let yes = Arc::new(Yes(Mutex::default()));
    stage.approver = yes.clone();
    let turn = say(&mut stage.agent(None), "go").await;
    let asked = yes.0.lock().unwrap();
    assert_eq!(asked.len(), 1, "sending it out is not asked about, its edit is: {}", turn.text);
    assert!(asked[0].tool == "Write" && asked[0].why.starts_with("the agent bold asks: "), "{}", asked[0].why);
    assert!(stage.project().join("new.txt").exists());
}

/// AGENT-1: `Bash(read-only)` and patterns leave of a tool what they say, though nobody else would ask.
#[tokio::test]
async fn a_definition_takes_away_what_its_parent_may() {
    let tries = |command: &str| {
        format!(
            r#"
            [[rule]]
            when = {{ user = "Find the colour", result = "(?s)(?P<what>.+)" }}
            say = "Then: {{{{ what }}}}"
            [[rule]]
            when = {{ user = "Find the colour" }}
            call = [{{ tool = "Bash", input = {{ command = "{command}" }} }}]
        "#
        )
    };
    for (tools, command, may) in [
        ("Bash(read-only)", "touch made", false),
        ("Bash(read-only)", "ls", true),
        ("Bash(touch made), Read", "touch made", true),
        ("Bash(touch made), Read", "touch made other", false),
        ("Bash", "touch made other", true),
    ] {
        let mut stage = Stage::new(&script("narrow", &tries(command))).await;
        stage.agents = agents(json!({"narrow": {"description": "d", "prompt": "p", "tools": tools}}));
        let turn = say(&mut stage.agent(None), "go").await;
        let refused = turn.text.contains("This agent may use Bash only for");
        assert_eq!(refused, !may, "{tools}: {command}: {}", turn.text);
        assert_eq!(stage.project().join("made").exists(), may && command.contains("made"), "{tools}: {command}");
    }
}

/// AGENT-2: agents send out agents three deep and no deeper; an unknown one is answered with those there are; one that
/// never ends is stopped by its cap.
#[tokio::test]
async fn depth_names_and_rounds_have_limits() {
    let deeper = r#"
        [[rule]]
        when = { user = "Find the colour", offered = "Agent" }
        call = [{ tool = "Agent", input = { description = "d", prompt = "Find the colour.", subagent_type = "general-purpose" } }]
        [[rule]]
        when = { user = "Find the colour" }
        say = "No deeper."
    "#;
    let mut stage = Stage::new(&script("general-purpose", deeper)).await;
    stage.agents = agents(json!({}));
    let turn = say(&mut stage.agent(None), "go").await;
    assert_eq!(turn.text.matches("agent-report from").count(), 3, "{}", turn.text);
    assert!(turn.text.contains("No deeper."), "{}", turn.text);

    let mut stage = Stage::new(&script("painter", "")).await;
    stage.agents = agents(json!({}));
    let turn = say(&mut stage.agent(None), "go").await;
    assert!(
        turn.text.contains("There are: Explore, Plan, cairn-guide, general-purpose, statusline-setup."),
        "{}",
        turn.text
    );

    let endless = r#"
        [[rule]]
        when = { user = "Find the colour" }
        call = [{ tool = "Glob", input = { pattern = "{{ messages|length }}" } }]
    "#;
    let mut stage = Stage::new(&script("endless", endless)).await;
    stage.agents = agents(json!({"endless": {"description": "d", "prompt": "p", "maxTurns": 4}}));
    let turn = say(&mut stage.agent(None), "go").await;
    assert!(
        turn.text.contains("The agent endless did not finish: it has made as many requests as it may."),
        "{}",
        turn.text
    );
    assert_eq!(stage.simulator.requests().len(), 2 + 4);
}

/// AGENT-2: the parent's cancel reaches its children.
#[tokio::test]
async fn who_stops_the_parent_stops_its_children() {
    let waits = r#"
        [[rule]]
        when = { user = "Find the colour" }
        call = [{ tool = "Bash", input = { command = "sleep 600" } }]
    "#;
    let mut stage = Stage::new(&script("general-purpose", waits)).await;
    stage.agents = agents(json!({}));
    let cancel = CancellationToken::new();
    let stops = cancel.clone();
    stage.heard = Arc::new(move |event| {
        if calls(event, "general-purpose", "Bash") {
            stops.cancel();
        }
    });
    let turn = stage.agent(None).turn(vec![Block::text("go")], &cancel).await;
    assert!(matches!(turn.end, engine::run::TurnEnd::Cancelled), "{:?}", turn.end);
}

/// AGENT-2: what agents add to every request is small.
#[test]
fn what_agents_add_to_a_request_is_small() {
    use tools::Tool;
    let children = agents(json!({})).unwrap();
    let tool = engine::agents::StartAgent::of(children.clone()).definition();
    let post = mail::Messenger::new(session::World::real(), mail::Mail::default(), None);
    let writes = engine::send_message::SendPlainly(post).definition();
    let json = |tool| serde_json::to_string(tool).unwrap();
    let text = format!("{}{}{}", json(&tool), json(&writes), children.listing());
    let tokens = text.len() / 4;
    assert!(tokens <= 800, "{tokens}");
}

/// AGENT-1: a session that began without agents goes on without while its cache holds, and has them once that is gone.
#[tokio::test]
async fn a_session_gets_agents_when_it_costs_no_cache() {
    let mut stage = Stage::new("[[rule]]\nsay = 'Yes.'").await;
    let mut agent = stage.agent(None);
    say(&mut agent, "hello").await;
    let id = agent.session().id().to_owned();
    drop(agent);
    stage.agents = agents(json!({}));
    for (idle, has_them) in [(10, false), (600, true)] {
        stage.wait(idle);
        say(&mut stage.agent(Some(&id)), "go on").await;
        let request = stage.simulator.requests().pop().unwrap();
        assert_eq!(request["tools"].to_string().contains("\"Agent\""), has_them, "after {idle} s");
    }
}

/// AGENT-3: a type keeps memories where its scope says, is told of them, and may write there without a question, and
/// nowhere else.
#[tokio::test]
async fn an_agent_keeps_memories_of_its_own() {
    for (scope, told) in [("user", "in all projects"), ("project", "everybody who works"), ("local", "not shared")] {
        let writes = r#"
            [[rule]]
            when = { user = "Find the colour", visible = "it is kept" }
            say = "Done."
            [[rule]]
            when = { user = "Find the colour" }
            call = [
              { tool = "Write", input = { file_path = "{{ project }}/../of-NAME/art-painter/hue.md", content = "it is kept" } },
              { tool = "Write", input = { file_path = "{{ project }}/../elsewhere/hue.md", content = "it is kept" } },
            ]
        "#;
        let mut stage = Stage::new(&script("art:painter", &writes.replace("NAME", scope))).await;
        stage.mode = Mode::Default.into();
        let root = stage.project().parent().unwrap().to_owned();
        let painter = json!({"art:painter": {"description": "paints", "prompt": "You paint.", "tools": ["Grep"], "memory": scope}});
        let place = |scope: &str| root.join(format!("of-{scope}"));
        let places = MemoryPlaces { user: place("user"), project: place("project"), local: place("local") };
        stage.agents = agents(painter).map(|children| children.with_memory(places));
        let own = place(scope).join("art-painter");
        std::fs::create_dir_all(&own).unwrap();
        let index = "- [More](more.md): a line\n".repeat(250) + "- [Hue](hue.md): an older hue\n";
        std::fs::write(own.join("MEMORY.md"), index).unwrap();
        say(&mut stage.agent(None), "go").await;
        let child = stage.simulator.requests().into_iter().find(|request| request.to_string().contains("You paint."));
        let system = child.unwrap()["system"].to_string();
        assert!(system.contains("an older hue") && system.contains(told) && system.contains("art-painter"), "{system}");
        // AGENT-3, MEM-2, MEM-4: it has the rules and the limits that the project's memory has.
        for rule in ["**user**", "**feedback**", "**project**", "**reference**", "What is not saved", "Memories drift."]
        {
            assert!(system.contains(rule), "{rule}: {system}");
        }
        assert_eq!(system.matches("- [More](more.md): a line").count(), 199, "{system}");
        assert!(system.contains("[MEMORY.md has 251 lines: the newest 200 are shown and 51 are left out"), "{system}");
        assert!(!root.join("elsewhere").exists());
        assert!(own.join("hue.md").exists(), "{scope}");
    }
}

/// AGENT-2: an agent is told the project's instructions as its parent is; those that only look go without, and a fork has
/// them already.
#[tokio::test]
async fn agents_that_change_things_are_told_the_instructions() {
    for (kind, told) in [("general-purpose", true), ("painter", true), ("Explore", false), ("Plan", false)] {
        let mut stage = Stage::new(&script(kind, LOOKS)).await;
        stage.agents = agents(json!({"painter": {"description": "paints", "prompt": "You paint."}}));
        std::fs::write(stage.project().join("CLAUDE.md"), "Tabs are forbidden here.").unwrap();
        std::fs::write(stage.project().join("colour.txt"), "green").unwrap();
        let mut agent = stage.knowing_agent(None, false).await;
        say(&mut agent, "go").await;
        let requests = stage.simulator.requests();
        let child = requests.iter().map(|request| request["messages"][0].to_string());
        let child = child.into_iter().find(|first| first.contains("Find the colour.")).unwrap();
        assert_eq!(child.contains("Tabs are forbidden here."), told, "{kind}: {child}");
    }
}

/// AGENT-2: an agent that touches a folder is told the instructions there, as its parent would be, once, and after a resume
/// not again; in a worktree those of the folder that it is a copy of. It is told where it works as its parent is.
#[tokio::test]
async fn an_agent_is_told_the_instructions_of_folders_it_touches() {
    let script = r#"
        [[rule]]
        name = "the agent is done"
        when = { user = "(^|\\n)Find the colour|agent-message", visible = ["it is deep green", "twice"] }
        say = "Green."
        [[rule]]
        name = "the agent reads again"
        when = { user = "(^|\\n)Find the colour|agent-message", visible = "it is deep green", system = "Working directory: (?P<here>\\S+)" }
        call = [{ tool = "Bash", input = { command = "echo twice" } }, { tool = "Read", input = { file_path = "WHERE/deep/more.txt" } }]
        [[rule]]
        name = "the agent reads"
        when = { user = "(^|\\n)Find the colour", system = "Working directory: (?P<here>\\S+)" }
        call = [{ tool = "Read", input = { file_path = "WHERE/deep/colour.txt" } }]
        [[rule]]
        when = { user = "^go", tool = "Agent" }
        say = "Back."
        [[rule]]
        when = { user = "^go, fork" }
        call = [{ tool = "Agent", input = { description = "look", prompt = "Find the colour." } }]
        [[rule]]
        when = { user = "^go, (?P<kind>\\S+) in a worktree" }
        call = [{ tool = "Agent", input = { description = "look", prompt = "Find the colour.", subagent_type = "{{ kind }}", isolation = "worktree" } }]
        [[rule]]
        when = { user = "^go, (?P<kind>\\S+)" }
        call = [{ tool = "Agent", input = { description = "look", prompt = "Find the colour.", subagent_type = "{{ kind }}" } }]
    "#;
    for (words, told) in [
        ("go, general-purpose", true),
        ("go, fork", true),
        ("go, general-purpose in a worktree", true),
        ("go, Explore", false),
    ] {
        let here = if words.contains("worktree") { "{{ here }}" } else { "{{ project }}" };
        let mut stage = Stage::new(&script.replace("WHERE", here)).await;
        stage.agents = agents(json!({}));
        let project = stage.project();
        std::fs::create_dir(project.join("deep")).unwrap();
        std::fs::write(project.join("CLAUDE.md"), "Tabs are forbidden here.").unwrap();
        std::fs::write(project.join("deep/CLAUDE.md"), "Spaces are forbidden there.").unwrap();
        std::fs::write(project.join("deep/colour.txt"), "it is deep green").unwrap();
        std::fs::write(project.join("deep/more.txt"), "more").unwrap();
        crate::worktrees::commit(&project);
        let mut agent = stage.knowing_agent(None, false).await;
        say(&mut agent, words).await;
        let subagent = agent.agents().unwrap().list()[0].clone();
        let text = std::fs::read_to_string(&subagent.file).unwrap();
        assert!(text.contains("it is deep green") && text.contains("twice"), "{words}: {text}");
        assert_eq!(text.matches("Spaces are forbidden there.").count(), usize::from(told), "{words}: {text}");
        let root = usize::from(told && words != "go, fork");
        assert_eq!(text.matches("Tabs are forbidden here.").count(), root, "{words}: {text}");
        let parents = std::fs::read_to_string(agent.session().path()).unwrap();
        assert!(!parents.contains("Spaces are forbidden there."), "{words}: it is the agent's alone");
        let requests = stage.simulator.requests();
        let mine = requests.iter().rfind(|request| request.to_string().contains("it is deep green")).unwrap();
        let system = mine["system"].to_string();
        for fact in ["- Working directory: ", "- Git: branch ", "- System: ", "- Date at the start", "- Model: "] {
            assert!(system.contains(fact), "{words}: {fact}: {system}");
        }
    }
}

/// RECALL-7, AGENT-2: who is named with `@agent-` is pointed at, by its whole name and once; nobody else is.
#[tokio::test]
async fn whom_the_user_names_the_model_is_told() {
    let mut stage = Stage::new("[[rule]]\nsay = \"Well.\"").await;
    stage.agents = agents(
        json!({"paint": {"description": "a", "prompt": "b"}, "paint-walls": {"description": "a", "prompt": "b"}}),
    );
    let mut agent = stage.agent(None);
    say(&mut agent, "Let @agent-paint-walls do it, and mail me@agent-smith.example.").await;
    let last = stage.simulator.requests().pop().unwrap()["messages"].to_string();
    assert_eq!(last.matches("The user wants the agent").count(), 1, "{last}");
    assert!(last.contains("The user wants the agent paint-walls for this"), "{last}");
}

/// RECALL-7, AGENT-2: a name ends where it ends for recall too: a colon is part of it, and a mention inside a word is none.
#[tokio::test]
async fn an_agent_of_a_plugin_is_named_whole() {
    let mut stage = Stage::new("[[rule]]\nsay = \"Well.\"").await;
    let one = json!({"description": "a", "prompt": "b"});
    stage.agents = agents(json!({"paint": one, "paint:walls": one, "scout": one}));
    let mut agent = stage.agent(None);
    say(&mut agent, "Let @agent-paint:walls do it: not x@agent-scout.").await;
    let last = stage.simulator.requests().pop().unwrap()["messages"].to_string();
    assert_eq!(last.matches("The user wants the agent").count(), 1, "{last}");
    assert!(last.contains("The user wants the agent paint:walls for this"), "{last}");
}

/// AGENT-2: `Task` and `Agent` are one name: in rules, and in the matchers of hooks.
#[tokio::test]
async fn the_older_name_of_the_tool_means_the_same() {
    let hook = json!({"type": "command", "command": "echo 'nobody goes out' >&2; exit 2"});
    for settings in [
        json!({"hooks": {"PreToolUse": [{"matcher": "Task", "hooks": [hook]}]}}),
        json!({"hooks": {"PreToolUse": [{"matcher": "^Task$", "hooks": [hook]}]}}),
    ] {
        let mut stage = Stage::new(&script("Explore", LOOKS)).await;
        (stage.agents, stage.settings) = (agents(json!({})), settings.clone());
        let mut agent = stage.agent(None);
        say(&mut agent, "go").await;
        assert!(agent.agents().unwrap().list().is_empty(), "{settings}");
    }
    let mut stage = Stage::new("[[rule]]\nsay = \"Yes.\"").await;
    (stage.agents, stage.settings) = (agents(json!({})), json!({"permissions": {"deny": ["Task"]}}));
    say(&mut stage.agent(None), "hello").await;
    let offered = stage.simulator.requests().pop().unwrap()["tools"].to_string();
    assert!(offered.contains(r#""name":"Read""#) && !offered.contains(r#""name":"Agent""#), "{offered}");
}

/// AGENT-1: a rule and a definition can name agents: `Agent(Explore)` denies that one, `tools: Agent(a, b)` leaves these.
#[tokio::test]
async fn agents_are_named_in_rules_and_definitions() {
    for (deny, goes) in
        [("Agent(Explore)", false), ("Task(Explore)", false), ("Agent(Plan)", true), ("Agent(fork)", true)]
    {
        let mut stage = Stage::new(&script("Explore", LOOKS)).await;
        (stage.agents, stage.settings) = (agents(json!({})), json!({"permissions": {"deny": [deny]}}));
        std::fs::write(stage.project().join("colour.txt"), "green").unwrap();
        let turn = say(&mut stage.agent(None), "go").await;
        assert_eq!(turn.text.contains("The colour is green."), goes, "{deny}: {}", turn.text);
        assert_eq!(turn.text.contains(&format!("`{deny}`")), !goes, "{deny}: {}", turn.text);
    }
    let sends = r#"
        [[rule]]
        when = { user = "^Deeper" }
        say = "I am deeper."
        [[rule]]
        when = { user = "Find the colour", tool = "Agent", result = "(?s)(?P<what>.+)" }
        say = "Then: {{ what }}"
        [[rule]]
        when = { user = "Find the colour" }
        call = [{ tool = "Agent", input = { description = "d", prompt = "Deeper.", subagent_type = "KIND" } }]
    "#;
    for (kind, may) in [("one", true), ("two", true), ("three", false), ("Explore", false)] {
        let mut stage = Stage::new(&script("boss", &sends.replace("KIND", kind))).await;
        let worker = json!({"description": "d", "prompt": "p"});
        let boss = json!({"description": "d", "prompt": "p", "tools": "Agent(one, two), Read"});
        stage.agents = agents(json!({"boss": boss, "one": worker, "two": worker, "three": worker}));
        let turn = say(&mut stage.agent(None), "go").await;
        assert_eq!(turn.text.contains("I am deeper."), may, "{kind}: {}", turn.text);
        assert_eq!(turn.text.contains("may use Agent only for Agent(one), Agent(two)"), !may, "{kind}: {}", turn.text);
    }
}
