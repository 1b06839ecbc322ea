//! Teammates that work in git worktrees of their own.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;

use crate::agents::git;
use crate::skipped::skipped_on_this_machine;
use crate::stage::{Stage, run};
use crate::teammates::{lead, processes, until};

/// A scout in a worktree: it writes a file when it is told to paint, and waits for ever when it is told to wait. Its lead
/// tells it what the user says, and then what it heard.
const PAINTED: &str = r#"
    [[rule]]
    name = "scout: again"
    when = { system = "You are scout", visible = "What is there", missing = "there is" }
    call = [{ tool = "Bash", input = { command = "echo there is $(cat wall.txt)" } }]
    [[rule]]
    name = "scout: tells"
    when = { system = "You are scout", result = "(?P<what>there is .*)" }
    say = "I see {{ what }}"
    [[rule]]
    name = "scout: paints"
    when = { system = "You are scout", user = "(?s).*Paint (?P<then>\\w+)", missing = "the list" }
    call = [{ tool = "Bash", input = { command = "cat list.txt; echo red > wall.txt; git add . ; git -c user.name=a -c user.email=a@b commit -qm painted; {% if then == 'forever' %}touch {{ project }}/../painted; exec sleep 987654{% endif %}" } }]
    [[rule]]
    name = "scout: done"
    when = { system = "You are scout" }
    say = "I am done."
    [[rule]]
    name = "lead: heard again"
    when = { visible = "said last: I see (?P<what>there is \\w+)" }
    say = "The scout saw {{ what }}."
    [[rule]]
    name = "lead: asks"
    when = { user = "ask", missing = "Sent to scout" }
    call = [{ tool = "SendMessage", input = { to = "scout", message = "What is there?" } }]
    [[rule]]
    name = "lead: heard"
    when = { visible = "(?s)said last: I am done.(?P<where>[^<]*)" }
    say = "The scout is done.{{ where }}"
    [[rule]]
    name = "lead: started?"
    when = { tool = "Agent", result = "(?s)(?P<what>.*(not started|denied|permission).*)" }
    say = "It said: {{ what }}"
    [[rule]]
    name = "lead: begin"
    when = { user = "(?P<what>Paint \\w+|Look)", missing = "works in a process" }
    call = [{ tool = "Agent", input = { description = "work", prompt = "{{ what }}.", name = "scout", team_name = "us", WANTED } }]
    [[rule]]
    say = "I wait."
"#;

const ISOLATED: &str = r#"isolation = "worktree""#;
/// The type of it says so.
const TYPED: &str = r#"subagent_type = "painter""#;

fn stage(wanted: &str) -> Stage {
    let stage = Stage::new(&PAINTED.replace("WANTED", wanted));
    let painter = "---\nname: painter\ndescription: Paints walls.\nisolation: worktree\n---\nYou paint.";
    std::fs::create_dir_all(stage.config().join("agents")).unwrap();
    std::fs::write(stage.config().join("agents/painter.md"), painter).unwrap();
    stage
}

fn repository(stage: &Stage) -> PathBuf {
    stage.write("list.txt", "the list\n");
    stage.write("CLAUDE.md", "Walls are painted with care.\n");
    for arguments in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "one"]] {
        git(&stage.project(), arguments);
    }
    stage.write("list.txt", "the list, as the lead changed it\n");
    stage.project()
}

/// The one worktree beside the project's own, with its branch.
fn worktree(project: &std::path::Path) -> Option<(PathBuf, String)> {
    let listed = git(project, &["worktree", "list", "--porcelain"]);
    let mut own = listed.split("\n\n").skip(1).filter(|text| !text.is_empty());
    let text = own.next()?;
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).unwrap().trim().to_owned();
    Some((value("worktree ").into(), value("branch refs/heads/")))
}

/// AGENT-2: a teammate that a call or its type isolates works in a git worktree on a branch of its own: the project stays as
/// it was, the lead is told where the changes are, the project's instructions and what it costs are as of any teammate.
#[test]
fn a_teammate_works_in_a_worktree_of_its_own() {
    for wanted in [ISOLATED, TYPED] {
        let stage = stage(wanted);
        let project = repository(&stage);
        let ran = run(&mut lead(&stage, &["-p", "Paint once", "--allowedTools", "Bash", "--output-format", "json"]));
        let result: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
        let (path, branch) = worktree(&project).unwrap_or_else(|| panic!("{ran:?}"));
        assert!(path.starts_with(stage.config()) && branch.starts_with("agent-scout-"), "{path:?} {branch}");
        let told = format!("Its changes are in the worktree {} on the branch {branch};", path.display());
        assert!(result["result"].as_str().unwrap().contains(&told), "{told}\n{result}");
        assert_eq!(std::fs::read_to_string(path.join("wall.txt")).unwrap(), "red\n");
        assert!(!project.join("wall.txt").exists());
        assert_eq!(git(&project, &["status", "--porcelain"]), " M list.txt\n");
        assert_eq!(git(&project, &["log", "--format=%s", &branch]), "painted\none\n");
        let theirs =
            stage.simulator.requests().into_iter().rfind(|it| it["system"].to_string().contains("You are scout"));
        let theirs = theirs.unwrap().to_string();
        assert!(theirs.contains("Walls are painted with care."), "{theirs}");
        assert!(theirs.contains(&path.display().to_string()) && !theirs.contains("as the lead changed it"), "{theirs}");
        assert_eq!(result["teammates"][0]["name"], "scout", "{result}");
        assert!(result["teammates"][0]["costUsd"].as_f64().unwrap() > 0.0, "{result}");
        assert_eq!(stage.session_files().len(), 2, "both lie beside each other");
    }
}

/// AGENT-2: a teammate's worktree that it did not change goes with it, and its branch too.
#[test]
fn an_unchanged_worktree_goes_with_its_teammate() {
    let stage = stage(ISOLATED);
    let project = repository(&stage);
    let ran = run(&mut lead(&stage, &["-p", "Look"]));
    assert_eq!(ran.stdout, "The scout is done.\n", "{ran:?}");
    let records = stage.config().join("cairn/worktrees");
    until("nothing is left to be looked at", || std::fs::read_dir(&records).unwrap().count() == 0);
    assert_eq!(worktree(&project), None);
    assert_eq!(git(&project, &["branch", "--list", "agent-*"]), "");
}

/// AGENT-2: where there can be no worktree, the call says why, and nobody is started.
#[test]
fn without_a_repository_there_is_no_worktree() {
    for wanted in [ISOLATED, TYPED] {
        let stage = stage(wanted);
        let ran = run(&mut lead(&stage, &["-p", "Look"]));
        let why = format!("The teammate was not started: {} is not in a git repository", stage.project().display());
        assert!(ran.stdout.contains(&why), "{ran:?}");
        assert_eq!(stage.session_files().len(), 1, "nobody was started");
    }
}

/// AGENT-2, TRUST-2: where git would run what the repository's configuration names to make a teammate's worktree, that is
/// asked about first: without anybody to ask, no worktree is made and nobody is started.
#[test]
fn what_git_would_run_for_a_teammates_worktree_is_asked_about() {
    let stage = stage(ISOLATED);
    let project = repository(&stage);
    git(&project, &["config", "core.fsmonitor", "touch hooked; false"]);
    let ran = run(&mut lead(&stage, &["-p", "Look"]));
    assert!(ran.stdout.contains("It said:") && ran.stdout.contains("Agent"), "{ran:?}");
    assert!(!project.join("hooked").exists());
    assert_eq!((worktree(&project), stage.session_files().len()), (None, 1));
    assert!(!stage.simulator.requests().iter().any(|it| it["system"].to_string().contains("You are scout")));
}

/// AGENT-2: killed with its lead, a teammate's worktree stays with all that it did; the next session names it, and the
/// teammate that is written to goes on in it.
#[test]
fn a_teammate_goes_on_in_its_worktree_after_a_kill() {
    let stage = stage(ISOLATED);
    let project = repository(&stage);
    let mut first = lead(&stage, &["-p", "Paint forever", "--allowedTools", "Bash"]);
    let mut child = first.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("it has painted", || project.parent().unwrap().join("painted").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    until("all are gone", || processes(&stage).is_empty());
    let (path, branch) = worktree(&project).unwrap();
    let ran = run(&mut lead(&stage, &["-p", "ask", "--continue", "--allowedTools", "Bash"]));
    let named = format!("left changes in {}, on the branch {branch}", path.display());
    assert!(ran.stderr.contains(&named), "{ran:?}");
    assert_eq!(ran.stdout, "The scout saw there is red.\n", "{ran:?}");
    assert_eq!(worktree(&project), Some((path, branch)));
}

/// AGENT-2, PERM-2: what the project's rules deny in the project is denied in a worktree of it, to agents and to teammates.
#[test]
fn what_is_denied_in_the_project_is_denied_in_its_worktrees() {
    let script = r#"
        [[rule]]
        when = { user = "Look around", tool = "Bash" }
        say = "I am done."
        [[rule]]
        when = { user = "Look around", system = "Working directory: (?P<here>\\S+)" }
        call = [{ tool = "Read", input = { file_path = "{{ here }}/secret.txt" } }, { tool = "Bash", input = { command = "cat secret.txt" } }]
        [[rule]]
        when = { tool = "Agent" }
        say = "Back."
        [[rule]]
        call = [{ tool = "Agent", input = { description = "look", prompt = "Look around.", isolation = "worktree", WANTED } }]
    "#;
    for wanted in [r#"subagent_type = "general-purpose""#, r#"name = "scout", team_name = "us""#] {
        let stage = Stage::new(&script.replace("WANTED", wanted));
        stage.write("secret.txt", "the secret\n");
        repository(&stage);
        std::fs::create_dir(stage.project().join(".claude")).unwrap();
        stage.write(".claude/settings.local.json", r#"{"permissions": {"deny": ["Read(./secret.txt)"]}}"#);
        let ran = run(&mut lead(&stage, &["-p", "go", "--permission-mode", "bypassPermissions", "--trust"]));
        let told = stage.simulator.requests().iter().map(Value::to_string).collect::<String>();
        assert!(told.contains("secret.txt") && !told.contains("the secret"), "{wanted}: {ran:?} {told}");
    }
}

/// AGENT-2, SANDBOX-1: in the sandbox an agent or a teammate in a worktree writes there and not into the project, and git
/// tells it what it changed.
#[test]
fn in_the_sandbox_a_worktree_can_be_written_to() {
    let script = r#"
        [[rule]]
        when = { user = "Look around", tool = "Bash", result = "(?s)(?P<what>.*)" }
        say = "I saw: {{ what }}"
        [[rule]]
        when = { user = "Look around" }
        call = [{ tool = "Bash", input = { command = "echo made > made.txt; git status --porcelain; echo no > {{ project }}/made.txt || echo kept out" } }]
        [[rule]]
        when = { visible = "I saw: (?P<what>[^\"]*)" }
        say = "It saw {{ what }}"
        [[rule]]
        when = { tool = "Agent" }
        say = "I wait."
        [[rule]]
        call = [{ tool = "Agent", input = { description = "look", prompt = "Look around.", isolation = "worktree", WANTED } }]
    "#;
    for wanted in [r#"subagent_type = "general-purpose""#, r#"name = "scout", team_name = "us""#] {
        let stage = Stage::new(&script.replace("WANTED", wanted));
        let project = repository(&stage);
        let sandboxed = ["--settings", r#"{"sandbox": {"enabled": true}}"#];
        let ran = run(lead(&stage, &["-p", "go", "--permission-mode", "acceptEdits"]).args(sandboxed));
        if ran.stderr.contains("the sandbox:") {
            return skipped_on_this_machine("this system has no sandbox");
        }
        assert!(ran.stdout.contains("?? made.txt") && ran.stdout.contains("kept out"), "{wanted}: {ran:?}");
        let (path, _) = worktree(&project).unwrap();
        assert_eq!(std::fs::read_to_string(path.join("made.txt")).unwrap(), "made\n");
        assert!(!project.join("made.txt").exists());
    }
}
