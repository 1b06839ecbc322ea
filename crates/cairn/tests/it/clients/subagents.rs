//! Sessions with agents that were sent out, between this program and Claude Code.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::agents::AGENTS;
use super::{KEY, claude_code};
use crate::stage::{Ran, Stage, run};
use crate::terminal::{DOWN, ENTER, Terminal};

/// Every file below a folder, with its bytes.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push((entry.path(), std::fs::read(entry.path()).unwrap())),
        }
    }
    found.sort();
    found
}

fn id(file: &Path) -> String {
    file.file_stem().unwrap().to_str().unwrap().to_owned()
}

fn ours(stage: &Stage, words: &[&str]) -> Ran {
    let teams = "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS";
    let ran = run(stage.cairn().env(teams, "1").args(["--permission-mode", "bypassPermissions", "-p"]).args(words));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran
}

/// Claude Code begins without its questions to a newcomer.
fn is_known(stage: &Stage) {
    let settings = json!({
        "hasCompletedOnboarding": true, "theme": "dark",
        "customApiKeyResponses": {"approved": [KEY], "rejected": []},
        "projects": {stage.project().display().to_string(): {"hasTrustDialogAccepted": true}},
    });
    std::fs::write(stage.config().join(".claude.json"), settings.to_string()).unwrap();
}

/// AGENT-2, LOG-2: Claude Code lists a session of ours that sent out agents, a typed one, a fork and one in the background,
/// shows it, names and opens each of them, and goes on with it. What they said keeps every byte.
#[test]
fn claude_code_lists_and_shows_a_session_with_agents_of_ours() {
    let stage = Stage::new(AGENTS);
    if claude_code(&stage).is_none() {
        return;
    }
    ours(&stage, &["let general-purpose look"]);
    ours(&stage, &["let fork look", "--continue"]);
    stage.write("go", "");
    ours(&stage, &["let general-purpose wait behind", "--continue"]);
    let file = stage.session_files().remove(0);
    let folder = file.with_extension("");
    let (written, before) = (std::fs::read(&file).unwrap(), files(&folder));
    assert_eq!(before.len(), 6, "three agents, each with a transcript and what is known of it");

    is_known(&stage);
    let open = |arguments: &[&str]| {
        let mut claude = claude_code(&stage).unwrap();
        Terminal::open(claude.args(arguments).env("TERM", "xterm-256color"), 120, 40)
    };
    let mut terminal = open(&["--resume"]);
    terminal
        .comes("the list", |screen| screen.contains("Resume session") && screen.contains("let general-purpose look"));
    drop(terminal);
    let agents = [
        ("look at the stone", "general-purpose", "The stone is quartz."),
        ("look at the stone", "fork", "You are a fork of"),
        ("wait for it", "general-purpose", "I have waited."),
    ];
    for (place, (_, kind, said)) in agents.into_iter().enumerate() {
        let mut terminal = open(&["--resume", &id(&file)]);
        terminal.comes("what was said", |screen| {
            let done = screen.rows.iter().filter(|row| row.contains("Done (") && row.contains("tokens")).count();
            screen.contains("let fork look") && screen.contains("The stone is quartz.") && done == 2
        });
        terminal.keys("/tasks");
        terminal.comes("the command", |screen| screen.contains("/tasks"));
        terminal.keys(ENTER);
        terminal.comes("that there were agents", |screen| screen.contains("Earlier in this session (3)"));
        terminal.keys(ENTER);
        let row = |row: &str, place: usize| {
            let (what, kind, _) = agents[place];
            row.contains(what) && row.contains(&format!("{kind} · started"))
        };
        terminal.comes("their names", |screen| {
            (0..agents.len()).all(|place| screen.rows.iter().any(|one| row(one, place)))
        });
        for place in 1..=place {
            terminal.keys(DOWN);
            let chosen = |one: &String| one.contains("❯") && row(one, place);
            terminal.comes("the next one", |screen| screen.rows.iter().any(chosen));
        }
        terminal.keys(ENTER);
        let place = format!("Message @{kind}");
        terminal.comes("what it said", |screen| screen.contains(&place) && screen.contains(said));
    }
    assert!(std::fs::read(&file).unwrap().starts_with(&written), "our lines are as they were");

    let ran = run(claude_code(&stage).unwrap().args(["-p", "hello", "--resume", &id(&file)]));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    assert!(std::fs::read(&file).unwrap().starts_with(&written), "our lines are as they were");
    for (path, bytes) in before {
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{}", path.display());
    }
    assert_eq!(stage.simulator.report().totals.refused, 0);
}

/// AGENT-2, MSG-2: a session of Claude Code that sent out an agent is shown with it, gone on with in a copy, and its agent
/// goes on there from what it had said. The files of the original keep every byte.
#[test]
fn an_agent_of_claude_code_goes_on_here() {
    let stage = Stage::new(AGENTS);
    let Some(mut claude) = claude_code(&stage) else { return };
    let ran = run(claude.args(["-p", "let general-purpose look"]));
    assert!(ran.code == Some(0) && ran.stdout.contains("The stone is quartz."), "{ran:?}");
    let theirs = stage.session_files().remove(0);
    let before = files(theirs.parent().unwrap());
    let agents = session::subagent_files::past(&theirs);
    assert_eq!((agents.len(), agents[0].kind.as_str()), (1, "general-purpose"), "{agents:?}");
    let agent = agents[0].id.as_str();

    let shown = run(stage.cairn().args(["session", "show", &id(&theirs)]));
    assert!(shown.stderr.is_empty() && shown.stdout.contains("general-purpose: look at the stone"), "{shown:?}");
    let shown = run(stage.cairn().args(["session", "show", &id(&theirs), "--agent", agent]));
    assert!(shown.stderr.is_empty() && shown.stdout.contains("› Look at it."), "{shown:?}");
    assert!(shown.stdout.contains("The stone is quartz."), "{shown:?}");

    let ran = ours(&stage, &[&format!("ask {agent} again"), "--resume", &id(&theirs)]);
    assert_eq!(ran.stdout, "It went on.\n", "{ran:?}");
    let asked = stage.simulator.requests().into_iter().map(|request| request["messages"].to_string());
    let its = asked.filter(|text| text.contains("Look at it.") && !text.contains("let general-purpose look"));
    let went_on = its.filter(|text| text.contains("tell me more") && text.contains("The stone is quartz.")).count();
    assert_eq!(went_on, 1, "it knows what it was told, and what it said");
    for (path, bytes) in before {
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{}", path.display());
    }
    let copy = stage.session_files().into_iter().find(|file| *file != theirs).unwrap();
    let shown = run(stage.cairn().args(["session", "show", &id(&copy), "--agent", agent]));
    for words in ["› Look at it.", "The stone is quartz.", "tell me more", "More: the word was quartz."] {
        assert!(shown.stdout.contains(words), "{words}: {shown:?}");
    }
    assert_eq!(stage.simulator.report().totals.refused, 0);
}
