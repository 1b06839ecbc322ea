//! What of memory a message brings up, from outside.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::stage::{Ran, Stage, run};

const QUESTION: &str = "what is needed to deploy to production?";

/// A project with two memories, and a folder with others.
fn stage() -> Stage {
    let stage =
        Stage::new("[[rule]]\nwhen = { visible = 'two people sign off' }\nsay = 'Two.'\n[[rule]]\nsay = 'No idea.'");
    remember(&mut stage.cairn(), &[], "Deploys to production", "Since March two people sign off every deploy.");
    remember(&mut stage.cairn(), &[], "Walrus", "It is large.");
    remember(&mut stage.cairn(), &["--dir", "elsewhere"], "Production deploys", "Ask Ada before you deploy.");
    stage
}

fn remember(cairn: &mut Command, dir: &[&str], name: &str, body: &str) {
    let ran = run(cairn.arg("memory").args(dir).args(["add", name, "--type", "project", "--body", body]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

fn recall(stage: &Stage, args: &[&str]) -> Ran {
    let ran = run(stage.cairn().arg("recall").args(args));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|one| one["path"].as_str().or(one.as_str()).unwrap()).collect()
}

/// RECALL-9: what would be surfaced is printed as the model would see it, and nothing where nothing would be.
#[test]
fn recall_prints_what_would_be_surfaced() {
    let stage = stage();
    let ran = recall(&stage, &[QUESTION]);
    assert!(ran.stdout.contains("saved today") && ran.stdout.contains("two people sign off"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("large"), "{}", ran.stdout);
    let ran = recall(&stage, &["rename this variable to total"]);
    assert_eq!((ran.stdout.as_str(), ran.stderr.contains("--explain")), ("", true));
}

/// RECALL-9: that nothing was saved yet is said, and is no error.
#[test]
fn a_project_without_memories_recalls_none() {
    let stage = Stage::new("[[rule]]\nsay = 'No idea.'");
    let ran = recall(&stage, &[QUESTION]);
    assert_eq!(
        (ran.stdout.as_str(), ran.stderr.contains("no memories of this project yet")),
        ("", true),
        "{}",
        ran.stderr
    );
}

/// RECALL-9: `--explain` says why, with scores and the manifest, for people and as JSON.
#[test]
fn recall_explains_itself() {
    let stage = stage();
    let ran = recall(&stage, &["--explain", QUESTION]);
    let row = ran.stdout.lines().find(|row| row.starts_with('✓')).unwrap();
    assert!(row.contains("likeness") && row.contains("deploys-to-production.md") && row.contains("deploy"), "{row}");
    assert!(row.split_whitespace().nth(1).unwrap().parse::<f32>().unwrap() > 0.5, "{row}");
    for line in ["- [project] deploys-to-production.md (", "- [project] walrus.md ("] {
        assert!(ran.stdout.contains(line), "{}", ran.stdout);
    }
    let ran = recall(&stage, &["--explain", "--json", QUESTION]);
    let explained: Value = serde_json::from_str(&ran.stdout).unwrap();
    let best = &explained["ranked"][0];
    assert_eq!((best["path"].as_str(), best["route"].as_str()), (Some("deploys-to-production.md"), Some("likeness")));
    assert!(best["matched"].to_string().contains("deploy") && best["score"].as_f64() > Some(0.5), "{best}");
    assert_eq!(explained["manifest"].as_array().unwrap().len(), 2);
}

/// RECALL-9: `--dir` points it at any folder of memories; `--json` prints one object.
#[test]
fn recall_looks_into_any_folder() {
    let stage = stage();
    let ran = recall(&stage, &["--dir", "elsewhere", "--json", QUESTION]);
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(found["query"], QUESTION);
    assert_eq!(
        (names(&found["ranked"]), names(&found["surfaced"])),
        (vec!["production-deploys.md"], vec!["production-deploys.md"])
    );
    let ran = run(stage.cairn().args(["recall", "--dir", "nowhere", QUESTION]));
    assert!(ran.code != Some(0) && ran.stderr.contains("nowhere"), "{}", ran.stderr);
}

/// RECALL-9: `--stdin` takes one query a line and prints one JSON line each, also for a line that says nothing.
#[test]
fn recall_answers_line_by_line() {
    let stage = stage();
    let mut command = stage.cairn();
    let mut child = command.args(["recall", "--stdin"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    write!(child.stdin.take().unwrap(), "{QUESTION}\n\nhow large is a walrus?\n").unwrap();
    let output = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let lines: Vec<Value> = output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let queries: Vec<&str> = lines.iter().map(|line| line["query"].as_str().unwrap()).collect();
    assert_eq!(queries, [QUESTION, "", "how large is a walrus?"]);
    let surfaced: Vec<Vec<&str>> = lines.iter().map(|line| names(&line["surfaced"])).collect();
    assert_eq!(surfaced, [vec!["deploys-to-production.md"], vec![], vec!["walrus.md"]]);
    assert!(lines[0]["ranked"][0]["score"].as_f64() > Some(0.5), "{}", lines[0]);
}

/// RECALL-6: a run of one request finds its memories in it.
#[test]
fn a_single_request_has_what_is_recalled_for_it() {
    let stage = stage();
    assert_eq!(run(stage.cairn().args(["-p", QUESTION])).stdout, "Two.\n");
}

/// SHELF-1, RECALL-9: several folders are ranked together, and each hit says where it lies.
#[test]
fn several_folders_are_ranked_together() {
    let stage = Stage::new("");
    for (folder, body) in [("one", "Deploys need two approvals."), ("two", "The cafeteria closes at three.")] {
        let args =
            ["memory", "--dir", folder, "add", folder, "--type", "project", "--description", body, "--body", body];
        assert_eq!(run(stage.cairn().args(args)).code, Some(0));
    }
    let asked = |question: &str, more: &[&str]| {
        run(stage.cairn().args(["recall", "--dir", "one", "--dir", "two", question]).args(more)).stdout
    };
    let found: serde_json::Value =
        serde_json::from_str(&asked("how many approvals do deploys need?", &["--json"])).unwrap();
    let surfaced = found["surfaced"][0].as_str().unwrap();
    assert!(surfaced.ends_with("/one/one.md"), "{found}");
    assert!(asked("when does the cafeteria close?", &[]).contains("The cafeteria closes at three."));
}

/// MEM-4: the part on past sessions has ready calls for Grep, or for the shell where that alone is offered.
#[test]
fn past_sessions_are_searched_with_the_tool_that_is_offered() {
    for (tools, call) in [
        (&[][..], Some("Grep with pattern `<term>`, path `")),
        (&["--tools", "Read,Bash"][..], Some("`grep -rn --include='*.md' '<term>' ")),
        (&["--tools", "Read"][..], None),
    ] {
        let stage = Stage::new("[[rule]]\nsay = 'Hello.'\n");
        let settings = ["-p", "hello", "--settings", r#"{"searchPastContext": true}"#];
        assert_eq!(run(stage.cairn().args(settings).args(tools)).code, Some(0));
        let system = stage.simulator.requests()[0]["system"].to_string();
        assert_eq!(system.contains("Searching past context"), call.is_some(), "{tools:?}");
        assert!(call.is_none_or(|call| system.contains(call)), "{tools:?}: {system}");
        assert_eq!(system.matches("<term>").count(), if call.is_some() { 2 } else { 0 }, "no other call");
    }
}
