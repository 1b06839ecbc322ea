//! What a kill leaves of agents: their work, their transcripts, and nothing that runs.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::agents::git;
use crate::stage::{Stage, run};
use crate::stream::Talk;
use crate::teammates::until;

/// Three agents in worktrees: one commits, one leaves a file, one changes nothing. Then each waits for ever.
const WORKERS: &str = r#"
    [[rule]]
    when = { user = "^(?P<how>Commit|Leave|Nothing)", missing = "tool_result" }
    call = [{ tool = "Bash", input = { command = "{% if how == 'Commit' %}echo done > kept.txt; git add . ; git -c user.name=a -c user.email=a@b commit -qm kept; {% elif how == 'Leave' %}echo done > left.txt; {% endif %}echo $$ > {{ project }}/../pid-{{ how }}; exec sleep 987654" } }]
    [[rule]]
    when = { user = "^go" }
    call = [
        { tool = "Agent", input = { description = "commit", prompt = "Commit.", subagent_type = "general-purpose", isolation = "worktree" } },
        { tool = "Agent", input = { description = "leave", prompt = "Leave.", subagent_type = "general-purpose", isolation = "worktree" } },
        { tool = "Agent", input = { description = "nothing", prompt = "Nothing.", subagent_type = "general-purpose", isolation = "worktree" } },
    ]
    [[rule]]
    say = "Hello."
"#;

fn repository(stage: &Stage) -> PathBuf {
    stage.write("list.txt", "one\n");
    for arguments in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "one"]] {
        git(&stage.project(), arguments);
    }
    stage.project()
}

/// What lies below a directory and others may look at or into, worktrees themselves left out.
fn open_to_others(directory: &Path, worktrees: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let (path, metadata) = (entry.path(), entry.metadata().unwrap());
        if metadata.permissions().mode() & 0o077 != 0 && path.parent() != Some(worktrees) {
            found.push(path.clone());
        }
        if metadata.is_dir() && path != worktrees {
            found.extend(open_to_others(&path, worktrees));
        }
    }
    found
}

/// The worktree in which a file lies.
fn with(file: &str, worktrees: &[PathBuf]) -> PathBuf {
    worktrees.iter().find(|path| path.join(file).exists()).unwrap().clone()
}

/// AGENT-2: killed while agents work in worktrees, a session leaves no process; the next start names each worktree, keeps
/// those that hold work with their branch, takes away the others, half-made ones too, and says so once.
#[test]
fn what_agents_changed_outlives_a_kill() {
    let stage = Stage::new(WORKERS);
    let project = repository(&stage);
    let mode = ["--permission-mode", "bypassPermissions"];
    let mut child = stage.cairn().args(["-p", "go"]).args(mode).stdout(Stdio::null()).spawn().unwrap();
    let pid = |how: &str| {
        let text = std::fs::read_to_string(project.parent().unwrap().join(format!("pid-{how}"))).unwrap_or_default();
        text.trim().to_owned()
    };
    let names = ["Commit", "Leave", "Nothing"];
    while names.iter().any(|how| pid(how).is_empty()) {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    for how in names {
        let runs = |line: String| line.contains("987654");
        while std::fs::read_to_string(format!("/proc/{}/cmdline", pid(how))).is_ok_and(runs) {
            std::thread::yield_now();
        }
    }
    let killed = stage.session_files().remove(0);
    let folder = killed.with_extension("").join("worktrees");
    let worktrees: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(worktrees.len(), 3);
    assert_eq!(open_to_others(&stage.config(), &folder), [] as [PathBuf; 0]);
    let (kept, left) = (with("kept.txt", &worktrees), with("left.txt", &worktrees));
    let nothing = worktrees.iter().find(|path| **path != kept && **path != left).unwrap();
    // As a kill in the middle of its making leaves it.
    std::fs::remove_file(nothing.join(".git")).unwrap();

    let ran = run(stage.cairn().args(["-p", "hello"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hello.\n"), "{ran:?}");
    for path in [&kept, &left] {
        let branch = path.file_name().unwrap().to_str().unwrap();
        let named = format!("an agent that was killed left changes in {}, on the branch {branch}", path.display());
        assert!(ran.stderr.contains(&named), "{named}: {ran:?}");
        assert_eq!(git(&project, &["branch", "--list", branch]).lines().count(), 1);
    }
    assert_eq!(std::fs::read_to_string(kept.join("kept.txt")).unwrap(), "done\n");
    assert_eq!(std::fs::read_to_string(left.join("left.txt")).unwrap(), "done\n");
    assert!(ran.stderr.contains(&format!("{} without changes; it was removed", nothing.display())), "{ran:?}");
    assert!(!nothing.exists());
    assert_eq!(git(&project, &["worktree", "list"]).lines().count(), 3, "the project's own, and two that hold work");
    assert_eq!(git(&project, &["branch", "--list", "agent-*"]).lines().count(), 2);
    let again = run(stage.cairn().args(["-p", "hello"]));
    assert!(!again.stderr.contains("an agent that was killed"), "it is said once: {again:?}");
}

/// An agent in a worktree that works for ever.
const ONE: &str = r#"
    [[rule]]
    when = { user = "^Wait" }
    call = [{ tool = "Bash", input = { command = "touch {{ project }}/../works; exec sleep 987654" } }]
    [[rule]]
    when = { user = "^go" }
    call = [{ tool = "Agent", input = { description = "one", prompt = "Wait.", subagent_type = "general-purpose", isolation = "worktree" } }]
    [[rule]]
    say = "Hello."
"#;

const ALL: [&str; 2] = ["--permission-mode", "bypassPermissions"];

/// AGENT-2: a worktree that a kill left half-made, and that git has locked while it made it, is taken away with its branch.
#[test]
fn a_half_made_worktree_that_is_locked_is_taken_away() {
    let stage = Stage::new(ONE);
    let project = repository(&stage);
    let mut child = stage.cairn().args(["-p", "go"]).args(ALL).stdout(Stdio::null()).spawn().unwrap();
    let works = project.parent().unwrap().join("works");
    until("the agent works", || works.exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let folder = stage.session_files().remove(0).with_extension("").join("worktrees");
    let worktree = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    git(&project, &["worktree", "lock", "--reason", "initializing", worktree.to_str().unwrap()]);
    std::fs::remove_file(worktree.join(".git")).unwrap();
    let ran = run(stage.cairn().args(["-p", "hello"]));
    assert!(ran.stderr.contains("without changes; it was removed"), "{ran:?}");
    assert_eq!(git(&project, &["worktree", "list"]).lines().count(), 1, "{}", git(&project, &["worktree", "list"]));
    assert_eq!(git(&project, &["branch", "--list", "agent-*"]), "");
}

/// AGENT-2: a session that starts while another one makes a worktree leaves it alone, and does not say that it was left.
#[test]
fn a_worktree_that_is_being_made_is_nobodys_remains() {
    let stage = Stage::new(ONE);
    let project = repository(&stage);
    let mut talk = Talk::start(&stage);
    talk.say("hello");
    talk.until("result");
    // As it is while git makes one: the agent has no transcript yet.
    let folder = stage.session_files().remove(0).with_extension("");
    let record = serde_json::json!({
        "path": folder.join("worktrees/agent-x"), "branch": "agent-x", "base": git(&project, &["rev-parse", "HEAD"]).trim(),
        "transcript": folder.join("subagents/agent-x.jsonl"), "repository": project,
    });
    let records = stage.config().join("cairn/worktrees");
    std::fs::create_dir_all(&records).unwrap();
    std::fs::write(records.join("agent-x.json"), record.to_string()).unwrap();
    let ran = run(stage.cairn().args(["-p", "hello"]));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    assert!(records.join("agent-x.json").exists());
    assert_eq!(talk.end().1, Some(0));
    let ran = run(stage.cairn().args(["-p", "hello"]));
    assert!(ran.stderr.contains("without changes; it was removed"), "nobody makes it any more: {ran:?}");
}

/// Agents of two kinds that read one file after the other, for as long as they live.
const READERS: &str = r#"
    [[rule]]
    when = { user = "(?m)^stop" }
    say = "Stopped."
    [[rule]]
    when = { user = "^Read" }
    say = "I read."
    call = [{ tool = "Read", input = { file_path = "{{ project }}/list.txt" } }]
    [[rule]]
    when = { user = "fork.*Read" }
    call = [{ tool = "Read", input = { file_path = "{{ project }}/list.txt" } }]
    [[rule]]
    when = { user = "^go" }
    call = [
        { tool = "Agent", input = { description = "read", prompt = "Read.", subagent_type = "general-purpose" } },
        { tool = "Agent", input = { description = "read too", prompt = "Read.", subagent_type = "Explore", run_in_background = true } },
        { tool = "Agent", input = { description = "read as a fork", prompt = "Read." } },
    ]
    [[rule]]
    say = "Hello."
"#;

/// How often a session is killed, each time somewhere else.
const KILLS: u64 = 16;

/// AGENT-2, LOG-7: killed at any point while agents begin and write, every transcript loads and is shown, what is known of
/// each agent is whole or not there, and the session goes on with a history that the API accepts.
#[test]
fn every_transcript_of_an_agent_loads_after_a_kill() {
    for seed in 0..KILLS {
        let stage = Stage::new(READERS);
        stage.write("list.txt", "one\n");
        let arguments = ["-p", "go", "--output-format", "stream-json", "--verbose"];
        let mut child = stage.cairn().args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // One line further each time: from the call that sends them out to the middle of their work.
        let seen = lines.by_ref().take(2 + seed as usize).count();
        assert_eq!(seen, 2 + seed as usize);
        child.kill().unwrap();
        child.wait().unwrap();
        let session = stage.session_files().remove(0);
        for file in below(&session.with_extension("")) {
            match file.extension().and_then(|extension| extension.to_str()) {
                Some("jsonl") => {
                    let record = session::record::read(&file).unwrap();
                    assert!(record.skipped.is_empty(), "kill {seed}: {:?}", record.skipped);
                }
                Some("json") => {
                    let known: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
                    assert!(known["agentType"].is_string(), "kill {seed}: {known}");
                }
                _ => {}
            }
        }
        let shown = run(stage.cairn().args(["session", "show"]).arg(&session));
        assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), ""), "kill {seed}: {shown:?}");
        for agent in session::subagent_files::past(&session).into_iter().take(1) {
            let of_it = run(stage.cairn().args(["session", "show"]).arg(&session).args(["--agent", &agent.id]));
            assert_eq!(of_it.code, Some(0), "kill {seed}: {of_it:?}");
        }
        let ran = run(stage.cairn().args(["-p", "stop", "--continue"]));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Stopped.\n"), "kill {seed}: {}", ran.stderr);
        assert_eq!(stage.simulator.report().totals.refused, 0, "kill {seed}");
    }
}

/// Every file below a folder.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path().is_dir() {
            true => found.extend(below(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}
