//! Agents as users and programs meet them: where they come from, what is told of them, and what a kill leaves.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::stage::{Stage, run};
use crate::stream::Talk;
use crate::terminal::Terminal;

/// A parent that sends out whoever is named, and an agent that reads a file and says what it is.
pub const SENDER: &str = r#"
    [[rule]]
    when = { user = "^Find the colour", tool = "Read" }
    say = "It is green."
    [[rule]]
    when = { user = "^Find the colour" }
    call = [{ tool = "Read", input = { file_path = "{{ project }}/colour.txt" } }]
    [[rule]]
    when = { tool = "Agent", result = "(?s)(?P<what>.+)" }
    say = "It said: {{ what }}"
    [[rule]]
    when = { user = "send (?P<who>[a-zA-Z-]+)" }
    call = [{ tool = "Agent", input = { description = "look at it", prompt = "Find the colour.", subagent_type = "{{ who }}" } }]
    [[rule]]
    say = "Hello."
"#;

const PAINTER: &str = "---\nname: painter\ndescription: Paints walls.\nmodel: opus\n---\nYou paint.";

/// AGENT-2, MSG-1: what agents and writing to them add to every request is at most 800 tokens, as the simulator counts.
#[test]
fn what_agents_add_to_every_request_is_small() {
    let stage = Stage::new("[[rule]]\nsay = 'Hello.'");
    let tokens = |flags: &[&str]| {
        assert_eq!(run(stage.cairn().args(["-p", "hi"]).args(flags)).code, Some(0));
        stage.simulator.report().requests.pop().unwrap().input.total()
    };
    let (with, without) = (tokens(&[]), tokens(&["--disallowedTools", "Agent"]));
    assert!(with > without && with - without <= 800, "{with} and {without}");
}

/// AGENT-1: `agents show` prints what a definition says, also of the program's own agents.
#[test]
fn an_agent_is_shown_with_all_it_says() {
    let stage = Stage::new("[[rule]]\nsay = 'Hello.'");
    let mine = "---\nname: painter\ndescription: Paints walls.\nmodel: opus\neffort: xhigh\nbudget: 50000\nmaxTurns: 9\n\
                memory: local\nisolation: worktree\nbackground: true\npermissionMode: plan\ncolor: pink\n---\nYou paint.";
    std::fs::create_dir_all(stage.config().join("agents")).unwrap();
    std::fs::write(stage.config().join("agents/painter.md"), mine).unwrap();
    let shown = run(stage.cairn().args(["agents", "show", "painter"])).stdout;
    for line in [
        "model: opus",
        "effort: xhigh",
        "maxTurns: 9",
        "budget: 50000 tokens",
        "permissionMode: plan",
        "memory: local",
        "isolation: worktree",
        "background: true",
        "color: pink",
    ] {
        assert!(shown.lines().any(|one| one == line), "{line}: {shown}");
    }
    let guide = run(stage.cairn().args(["agents", "show", "cairn-guide"])).stdout;
    assert!(guide.contains("tools: Read, Grep, Glob") && !guide.contains("effort:"), "{guide}");
}

/// TRUST-2, AGENT-1: a project's definition is asked about with what it adds, the yes is kept, and until then it goes without.
#[test]
fn a_projects_agents_are_asked_about_and_only_narrow_until_then() {
    let stage = Stage::new(SENDER);
    std::fs::create_dir_all(stage.project().join(".claude/agents")).unwrap();
    stage.write(".claude/agents/painter.md", PAINTER);
    stage.write("colour.txt", "green");
    let ran = run(stage.cairn().args(["-p", "send painter"]));
    assert!(ran.stdout.contains("It is green."), "{ran:?}");
    assert!(ran.stderr.contains("painter.md:1: painter does not get this until you trust it: model opus"), "{ran:?}");
    let models =
        || -> Vec<Value> { stage.simulator.requests().iter().map(|request| request["model"].clone()).collect() };
    assert!(!models().contains(&json!("claude-opus-5")), "{:?}", models());

    let ran = run(stage.cairn().args(["-p", "send painter", "--trust"]));
    assert!(
        ran.stderr.contains("--trust gives this directory's files: agent painter: Paints walls. (model opus)"),
        "{ran:?}"
    );
    assert!(models().contains(&json!("claude-opus-5")), "{:?}", models());

    let mut terminal = Terminal::open(stage.cairn().env("TERM", "xterm-256color"), 100, 24);
    terminal.skip_to("Trust them with this?", |_| {});
    let asked = terminal.screen().text();
    for part in ["define agents", "painter: Paints walls. (model opus)", ".claude/agents/painter.md:1"] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    terminal.keys("t\r");
    terminal.until("a prompt", |screen| screen.has_prompt());
    terminal.leave();
    let listed = run(stage.cairn().args(["agents", "list"])).stdout;
    assert!(listed.contains("painter  project\n"), "{listed}");
    stage.write(".claude/agents/painter.md", &PAINTER.replace("You paint.", "You do anything."));
    let listed = run(stage.cairn().args(["agents", "list"])).stdout;
    assert!(listed.contains("painter  project, not trusted\n"), "what is new is asked about again: {listed}");
}

/// AGENT-1, TRUST-1: how hard the model tries is said by the settings, by a flag, which is stronger, and by what is managed,
/// which is stronger still; a model that cannot be asked is not.
#[test]
fn effort_is_said_by_settings_and_by_a_flag() {
    let stage = Stage::new("[[rule]]\nsay = 'Hello.'");
    let managed = stage.project().with_file_name("managed");
    for folder in [&managed, &stage.config()] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let sent = |flags: &[&str]| {
        let ran = run(stage.cairn().env("CAIRN_MANAGED_DIR", &managed).args(["-p", "hi"]).args(flags));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        (stage.simulator.requests().pop().unwrap()["output_config"]["effort"].clone(), ran.stderr)
    };
    assert_eq!(sent(&[]).0, Value::Null);
    assert_eq!(sent(&["--effort", "xhigh"]).0, "xhigh");
    std::fs::write(stage.config().join("settings.json"), r#"{"effortLevel": "low"}"#).unwrap();
    assert_eq!(sent(&[]).0, "low");
    assert_eq!(sent(&["--effort", "max"]).0, "max");
    assert_eq!(sent(&["--effort", "max", "--model", "claude-haiku-4-5"]).0, Value::Null);
    std::fs::write(managed.join("managed-settings.json"), r#"{"effortLevel": "medium"}"#).unwrap();
    let (effort, told) = sent(&["--effort", "max"]);
    assert_eq!(effort, "medium");
    assert!(told.contains("the effort is set by managed settings; the flag is ignored"), "{told}");
    assert_eq!(run(stage.cairn().args(["-p", "hi", "--effort", "huge"])).code, Some(2));
}

/// AGENT-1, AGENT-2: an agent that a rule denies is listed as such, and the model is told of the others alone.
#[test]
fn an_agent_that_is_denied_is_listed_as_such_and_not_told_of() {
    let stage = Stage::new(SENDER);
    std::fs::create_dir_all(stage.config()).unwrap();
    std::fs::write(stage.config().join("settings.json"), r#"{"permissions": {"deny": ["Agent(Explore)"]}}"#).unwrap();
    let listed = run(stage.cairn().args(["agents", "list"])).stdout;
    assert!(listed.contains("Explore  built-in, denied\n") && listed.contains("Plan  built-in\n"), "{listed}");
    let listed: Value = serde_json::from_str(&run(stage.cairn().args(["agents", "list", "--json"])).stdout).unwrap();
    let denied = listed.as_array().unwrap().iter().filter(|one| one["denied"] == true);
    assert_eq!(denied.map(|one| &one["name"]).collect::<Vec<_>>(), ["Explore"]);
    assert_eq!(run(stage.cairn().args(["-p", "hi", "--disallowedTools", "Task(Plan)"])).code, Some(0));
    let told = stage.simulator.requests()[0]["messages"].to_string();
    assert!(told.contains("- general-purpose: "), "{told}");
    assert!(!told.contains("- Explore: ") && !told.contains("- Plan: "), "{told}");
}

/// AGENT-1: `agents check` tells what is wrong and what waits, and fails for the first alone.
#[test]
fn what_waits_is_no_failure() {
    let stage = Stage::new(SENDER);
    std::fs::create_dir_all(stage.config().join("agents")).unwrap();
    let file = stage.config().join("agents/one.md");
    std::fs::write(&file, "---\nname: one\ndescription: a\ntools: WebSearch\n---\nx").unwrap();
    let ran = run(stage.cairn().args(["agents", "check"]));
    assert_eq!(
        (ran.code, ran.stdout.contains("one.md:4: tools names WebSearch, which Cairn does not have yet")),
        (Some(0), true),
        "{ran:?}"
    );
    std::fs::write(&file, "---\nname: one\ndescription: a\nmemory: everywhere\n---\nx").unwrap();
    let ran = run(stage.cairn().args(["agents", "check"]));
    assert_eq!(
        (ran.code, ran.stdout.contains("one.md:4: memory must be one of user, project, local")),
        (Some(1), true),
        "{ran:?}"
    );
}

/// AGENT-1, AGENT-4: a program defines agents in its greeting, as the SDKs send it, and is told of what they do: a line when
/// one begins, at each call, and when it has ended, with what it used.
#[test]
fn a_program_defines_agents_and_hears_of_them() {
    let stage = Stage::new(SENDER);
    stage.write("colour.txt", "green");
    let mut talk = Talk::start(&stage);
    let painter =
        json!({"description": "Paints walls.", "prompt": "You paint.", "tools": ["Read"], "model": "inherit"});
    let request = json!({"subtype": "initialize", "hooks": null, "agents": {"painter": painter}});
    talk.send(&json!({"type": "control_request", "request_id": "r1", "request": request}));
    let answer = talk.until("control_response");
    let agents = answer["response"]["response"]["agents"].as_array().unwrap();
    assert!(agents.contains(&json!({"name": "painter", "description": "Paints walls."})), "{answer}");
    talk.say("send painter");
    let (lines, code) = talk.end();
    assert_eq!(code, Some(0));
    let of = |subtype: &str| {
        lines.iter().find(|line| line["subtype"] == subtype).unwrap_or_else(|| panic!("{subtype}: {lines:?}"))
    };
    let init = of("init");
    assert!(init["agents"].as_array().unwrap().contains(&json!("painter")), "{init}");
    assert!(init["tools"].as_array().unwrap().contains(&json!("Task")), "{init}");
    let started = of("task_started");
    assert_eq!((&started["description"], &started["subagent_type"]), (&json!("look at it"), &json!("painter")));
    assert_eq!((&started["task_type"], &started["is_backgrounded"]), (&json!("local_agent"), &json!(false)));
    let progress = of("task_progress");
    assert_eq!((&progress["task_id"], &progress["last_tool_name"]), (&started["task_id"], &json!("Read")));
    let notification = of("task_notification");
    assert_eq!((&notification["task_id"], &notification["status"]), (&started["task_id"], &json!("completed")));
    assert_eq!(notification["usage"]["tool_uses"], 1);
    assert!(notification["usage"]["duration_ms"].as_u64() > Some(0), "{notification}");
    assert!(Path::new(notification["output_file"].as_str().unwrap()).exists());
    let call = started["tool_use_id"].as_str().unwrap();
    let inside = lines.iter().filter(|line| line["parent_tool_use_id"] == call).count();
    assert_eq!(inside, 3, "two replies and a result of its own");
    for line in &lines {
        assert!(
            line["type"] == "control_response" || line["uuid"].is_string() && line["session_id"].is_string(),
            "{line}"
        );
    }
}

/// AGENT-2: beside the result that tells of an agent stands what Claude Code looks for to open it, in the session and for
/// programs; beside no other result. The model reads nothing of it.
#[test]
fn a_result_of_an_agent_says_which_one_it_was() {
    let script = r#"
        [[rule]]
        when = { user = "^Look", tool = "Bash" }
        say = "It is quartz."
        [[rule]]
        when = { user = "^Look" }
        call = [{ tool = "Bash", input = { command = "echo quartz" } }]
        [[rule]]
        when = { user = "task-notification" }
        say = "It came back."
        [[rule]]
        when = { tool = "Agent" }
        say = "Sent."
        [[rule]]
        when = { user = "^go$" }
        call = [{ tool = "Agent", input = { description = "a stone", prompt = "Look at it.", subagent_type = "general-purpose", run_in_background = BEHIND } }]
    "#;
    for (behind, status) in [("false", "completed"), ("true", "async_launched")] {
        let stage = Stage::new(&script.replace("BEHIND", behind));
        let ran = run(stage.cairn().args(["-p", "go", "--output-format", "stream-json", "--verbose"]));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let all =
            |text: &str| text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>();
        let parse = |text: &str| all(text).into_iter().filter(|line| line["type"] == "user").collect::<Vec<_>>();
        let file = stage.session_files().remove(0);
        let written = parse(&std::fs::read_to_string(&file).unwrap());
        let about: Vec<&Value> = written.iter().filter_map(|line| line.get("toolUseResult")).collect();
        let [about] = about[..] else { panic!("{written:?}") };
        let told = parse(&ran.stdout);
        let told: Vec<&Value> = told.iter().filter_map(|line| line.get("tool_use_result")).collect();
        assert_eq!(told, [about], "programs are told the same");

        let agent = session::subagent_files::past(&file).remove(0);
        assert_eq!((&about["status"], &about["agentId"]), (&json!(status), &json!(agent.id)));
        assert_eq!((&about["prompt"], &about["agentType"]), (&json!("Look at it."), &json!("general-purpose")));
        if status == "completed" {
            let result = written.iter().find(|line| line.get("toolUseResult").is_some()).unwrap();
            assert_eq!(about["content"], result["message"]["content"][0]["content"]);
            assert!(about["content"].to_string().contains("It is quartz."), "{about}");
            assert_eq!(
                (&about["totalToolUseCount"], about["usage"]["output_tokens"].as_u64() > Some(0)),
                (&json!(1), true)
            );
        } else {
            assert_eq!((&about["isAsync"], &about["description"]), (&json!(true), &json!("a stone")));
            assert_eq!(about["outputFile"], json!(agent.file));
        }
        let inside = parse(&std::fs::read_to_string(&agent.file).unwrap());
        assert!(inside.iter().all(|line| line.get("toolUseResult").is_none()), "{inside:?}");
        for file in [&file, &agent.file] {
            let lines = all(&std::fs::read_to_string(file).unwrap());
            let attached: Vec<&Value> = lines.iter().filter(|line| line["type"] == "attachment").collect();
            assert!(
                !attached.is_empty() && attached.iter().all(|line| line["attachment"]["type"] == "cairn"),
                "{lines:?}"
            );
        }
        let sent: String = stage.simulator.requests().iter().map(|request| request["messages"].to_string()).collect();
        assert!(!sent.contains("totalToolUseCount") && !sent.contains("async_launched"), "{sent}");
    }
}

/// AGENT-2: a session shows whom it sent out, and what each said and did.
#[test]
fn a_session_shows_whom_it_sent_out() {
    let stage = Stage::new(SENDER);
    stage.write("colour.txt", "green");
    run(stage.cairn().args(["-p", "send Explore"]));
    let session = stage.session_files().remove(0);
    let shown = run(stage.cairn().args(["session", "show"]).arg(&session)).stdout;
    let line = shown.lines().find(|line| line.contains("Explore: look at it")).unwrap_or_else(|| panic!("{shown}"));
    let id = line.split_whitespace().next().unwrap();
    let of_it = run(stage.cairn().args(["session", "show"]).arg(&session).args(["--agent", &id[..4]]));
    assert!(of_it.stdout.contains("Find the colour.") && of_it.stdout.contains("It is green."), "{of_it:?}");
    assert!(!of_it.stdout.contains("send Explore"), "{of_it:?}");
    let of_nobody = run(stage.cairn().args(["session", "show"]).arg(&session).args(["--agent", "nobody"]));
    assert!(of_nobody.code == Some(1) && of_nobody.stderr.contains(id), "{of_nobody:?}");
    let listed = run(stage.cairn().args(["session", "list"])).stdout;
    assert_eq!(listed.lines().count(), 1, "what an agent said is no session: {listed}");
    let stats = run(stage.cairn().args(["session", "stats"]).arg(&session)).stdout;
    assert!(stats.contains("Explore"), "{stats}");
    // A copy has them too, in files of its own.
    run(stage.cairn().args(["-p", "hello", "--continue", "--fork-session"]));
    let copy = stage.session_files().into_iter().find(|file| *file != session).unwrap();
    let of_it = run(stage.cairn().args(["session", "show"]).arg(&copy).args(["--agent", &id[..4]]));
    assert!(of_it.stdout.contains("It is green."), "{of_it:?}");
    assert!(copy.with_extension("").join("subagents").is_dir());
}

pub fn git(directory: &Path, arguments: &[&str]) -> String {
    let ran = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b"])
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    String::from_utf8(ran.stdout).unwrap()
}

/// AGENT-2: a session that is killed while its agents work leaves no process behind; the next one names their worktrees and
/// takes the unchanged away; every transcript loads.
#[test]
fn a_killed_session_leaves_no_agent_and_no_half_worktree() {
    let script = r#"
        [[rule]]
        when = { user = "^Work", missing = "tool_result" }
        call = [{ tool = "Bash", input = { command = "echo $$ > {{ project }}/../pid-$RANDOM; exec sleep 987654" } }]
        [[rule]]
        when = { user = "^go" }
        call = [
            { tool = "Agent", input = { description = "one", prompt = "Work.", subagent_type = "general-purpose", isolation = "worktree" } },
            { tool = "Agent", input = { description = "two", prompt = "Work.", subagent_type = "general-purpose", isolation = "worktree" } },
            { tool = "Agent", input = { description = "three", prompt = "Work.", subagent_type = "general-purpose" } },
        ]
        [[rule]]
        say = "Hello."
    "#;
    let stage = Stage::new(script);
    let project = stage.project();
    stage.write("list.txt", "one\n");
    for arguments in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "one"]] {
        git(&project, arguments);
    }
    let arguments =
        ["-p", "go", "--permission-mode", "bypassPermissions", "--output-format", "stream-json", "--verbose"];
    let mut child = stage.cairn().args(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let pids = || -> Vec<String> {
        let beside = std::fs::read_dir(project.parent().unwrap()).unwrap().flatten();
        let files = beside.filter(|entry| entry.file_name().to_string_lossy().starts_with("pid-"));
        files
            .map(|entry| std::fs::read_to_string(entry.path()).unwrap().trim().to_owned())
            .filter(|pid| !pid.is_empty())
            .collect()
    };
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let calls = lines.by_ref().filter(|line| line.as_ref().unwrap().contains("task_progress")).take(3).count();
    assert_eq!(calls, 3);
    while pids().len() < 3 {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    for pid in pids() {
        // The guard ends them as soon as it sees that nobody is there.
        while std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains("987654")) {
            std::thread::yield_now();
        }
    }
    assert_eq!(git(&project, &["branch", "--list", "agent-*"]).lines().count(), 2);
    let ran = run(stage.cairn().args(["-p", "hello"]));
    let named =
        ran.stderr.lines().filter(|line| line.contains("left the worktree") && line.contains("it was removed")).count();
    assert_eq!(named, 2, "{ran:?}");
    assert_eq!(git(&project, &["branch", "--list", "agent-*"]), "");
    assert_eq!(git(&project, &["worktree", "list"]).lines().count(), 1);
    let killed =
        stage.session_files().into_iter().find(|file| file.with_extension("").join("subagents").exists()).unwrap();
    let transcripts = std::fs::read_dir(killed.with_extension("").join("subagents")).unwrap().flatten();
    let transcripts: Vec<_> =
        transcripts.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|it| it == "jsonl")).collect();
    assert_eq!(transcripts.len(), 3);
    for transcript in transcripts.iter().chain([&killed]) {
        let shown = run(stage.cairn().args(["session", "show"]).arg(transcript));
        assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), ""), "{shown:?}");
    }
    let id = killed.file_stem().unwrap().to_str().unwrap();
    let resumed = run(stage.cairn().args(["-p", "hello", "--resume", id]));
    assert_eq!((resumed.code, resumed.stdout.as_str()), (Some(0), "Hello.\n"), "{resumed:?}");
}

/// AGENT-1: an agent that a definition may send out is to be one that there is, from whatever source; `*` and a fork are known.
#[test]
fn an_agent_that_a_definition_names_has_to_be_there() {
    let stage = Stage::new(SENDER);
    let folder = stage.config().join("agents");
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, tools: &str| {
        let text = format!("---\nname: {name}\ndescription: a\ntools: {tools}\n---\nx");
        std::fs::write(folder.join(format!("{name}.md")), text).unwrap();
    };
    write("boss", "Read, Agent(worker, explore, fork), Task(Pl*)");
    let ran = run(stage.cairn().args(["agents", "check"]));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stdout.contains("boss.md:4: tools names the agent \"worker\", but there is no such agent\n"),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("no such agent; did you mean Explore?"), "{ran:?}");
    assert_eq!(ran.stdout.lines().count(), 2, "{ran:?}");
    write("boss", "Read, Agent(worker, Explore)");
    write("worker", "Read");
    let ran = run(stage.cairn().args(["agents", "check"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
    std::fs::remove_file(folder.join("worker.md")).unwrap();
    let defined = r#"{"worker": {"description": "d", "prompt": "p"}}"#;
    let told = run(stage.cairn().args(["-p", "hi", "--agents", defined])).stderr;
    assert!(!told.contains("no such agent"), "{told}");
    let told = run(stage.cairn().args(["-p", "hi"])).stderr;
    assert!(told.contains("tools names the agent \"worker\""), "{told}");
}
