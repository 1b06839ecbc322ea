//! Sessions with agents in the background and teammates, killed somewhere in their work: who was sent out is heard or told
//! lost, and what was paid is told.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::agents::git;
use crate::skipped::is_full;
use crate::stage::{Stage, run};
use crate::teammates::{lead, processes, until};

/// A lead that sends out two forks, three agents, two of them with worktrees, and two teammates; each reads a file in many
/// steps, and reports.
const CROWD: &str = r#"
    [[rule]]
    when = { user = "^again" }
    say = "Well."
    [[rule]]
    when = { system = "You are (?P<who>anna|bert)", visible = "stone 5" }
    say = "{{ who }} has seen them."
    [[rule]]
    when = { visible = "<fork>", tool = "Read", result = "stone 5" }
    say = "The fork has seen them."
    [[rule]]
    when = { user = "^Look", tool = "Read", result = "stone 5" }
    say = "I have seen them."
    [[rule]]
    when = { tool = "Read", result = "stone (?P<n>[1-4])" }
    call = [{ tool = "Read", input = { file_path = "{{ project }}/{{ n }}.txt" } }]
    [[rule]]
    when = { user = "^Look" }
    call = [{ tool = "Read", input = { file_path = "{{ project }}/0.txt" } }]
    [[rule]]
    when = { visible = "<fork>" }
    call = [{ tool = "Read", input = { file_path = "{{ project }}/0.txt" } }]
    [[rule]]
    when = { system = "You are (anna|bert)" }
    call = [{ tool = "Read", input = { file_path = "{{ project }}/0.txt" } }]
    [[rule]]
    when = { visible = "in the background as" }
    say = "I wait."
    [[rule]]
    call = [
        { tool = "Agent", input = { description = "look", prompt = "Look.", name = "anna", team_name = "us" } },
        { tool = "Agent", input = { description = "look", prompt = "Look.", name = "bert", team_name = "us" } },
        { tool = "Agent", input = { description = "one", prompt = "See.", run_in_background = true } },
        { tool = "Agent", input = { description = "two", prompt = "See.", run_in_background = true } },
        { tool = "Agent", input = { description = "three", prompt = "Look.", subagent_type = "Explore", run_in_background = true } },
        { tool = "Agent", input = { description = "four", prompt = "Look.", subagent_type = "general-purpose", isolation = "worktree", run_in_background = true } },
        { tool = "Agent", input = { description = "five", prompt = "Look.", subagent_type = "general-purpose", isolation = "worktree", run_in_background = true } },
    ]
"#;

/// How often, in the quick tests and in the full ones.
const KILLS: [u64; 2] = [5, 60];
/// At most so many requests are under way when a session is killed: its own, those of five agents and of two teammates.
const UNDER_WAY: usize = 8;

/// AGENT-5, TOK-7: wherever a session with agents and teammates is killed, the one that goes on has heard of each of them,
/// or is told that it is lost, once. What was paid for every reply that was read to its end stands in the ledger, of others
/// what was known, and their number is told. Nothing runs on.
#[test]
fn a_killed_crowd_is_heard_or_told_lost_and_paid_for() {
    let kills = KILLS[usize::from(is_full())];
    let (mut sent, mut lost) = (0, 0);
    for kill in 0..kills {
        let stage = Stage::new(CROWD);
        (0..=4).for_each(|n| drop(stage.write(&format!("{n}.txt"), &format!("stone {}\n", n + 1))));
        for arguments in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "one"]] {
            git(&stage.project(), arguments);
        }
        // Further and further into the work, from the first call to the last reports.
        let lines = 4 + (kill * 112 / (kills - 1)) as usize;
        let mut child = lead(&stage, &["-p", "go", "--output-format", "stream-json", "--verbose"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let seen = BufReader::new(child.stdout.take().unwrap()).lines().take(lines).count();
        assert!(seen > 3, "kill {kill}");
        child.kill().unwrap();
        child.wait().unwrap();
        until("nobody of it runs", || processes(&stage).is_empty());

        let ran = run(&mut lead(&stage, &["-p", "again", "--continue", "--output-format", "stream-json"]));
        assert_eq!(ran.code, Some(0), "kill {kill}: {}", ran.stderr);
        assert_eq!(stage.simulator.report().totals.refused, 0, "kill {kill}");
        let session = first_session(&stage);
        let log = std::fs::read_to_string(&session).unwrap();
        for agent in session::subagent_files::past(&session) {
            let told = log.matches(&format!("<task-id>{}</task-id>", agent.id)).count();
            assert_eq!(told, 1, "kill {kill} after {lines} lines: {} {}", agent.id, agent.description);
            sent += 1;
        }
        lost += log.matches("<status>lost</status>").count();
        for name in ["anna", "bert"].iter().filter(|name| log.contains(&format!("{name} works in a process"))) {
            let told = stage.simulator.requests().last().unwrap().to_string();
            assert!(told.contains(name) && told.contains("ended when this session last ended"), "kill {kill}: {name}");
        }
        check_cost(&stage, &format!("kill {kill} after {lines} lines"));
    }
    println!("{kills} kills, {sent} agents sent out, {lost} of them told lost");
    assert!(lost > 0 && lost < sent, "{lost} of {sent}");
}

fn first_session(stage: &Stage) -> std::path::PathBuf {
    let is_lead = |path: &std::path::PathBuf| std::fs::read_to_string(path).unwrap().contains("\"again\"");
    stage.session_files().into_iter().find(is_lead).unwrap()
}

/// How often each number of tokens occurs.
type Counted = BTreeMap<u64, i64>;

fn counted(tokens: impl Iterator<Item = u64>) -> Counted {
    let mut counted = Counted::new();
    tokens.for_each(|tokens| *counted.entry(tokens).or_default() += 1);
    counted
}

/// How many of these are not among those.
fn missing(these: &Counted, those: &Counted) -> i64 {
    these.iter().map(|(tokens, times)| (times - those.get(tokens).unwrap_or(&0)).max(0)).sum()
}

fn check_cost(stage: &Stage, at: &str) {
    let entries: Vec<Value> = lines(&stage.config().join("cairn/ledger"));
    let (begun, settled): (Vec<&Value>, Vec<&Value>) = entries.iter().partition(|entry| entry["begins"].is_string());
    let (broken, whole): (Vec<&Value>, Vec<&Value>) = settled.iter().partition(|entry| entry["brokenOff"] == true);
    let is_open = |entry: &&&Value| !settled.iter().any(|end| end["ends"] == entry["begins"]);
    let open: Vec<&&Value> = begun.iter().filter(is_open).collect();

    let told = counted(whole.iter().map(|entry| entry["tokens"].as_u64().unwrap()));
    let billed = counted(stage.simulator.report().requests.iter().map(|line| line.input.total() + line.output));
    assert_eq!(missing(&told, &billed), 0, "{at}: what is told was billed\n{told:?}\n{billed:?}");
    assert_eq!(missing(&read_to_the_end(stage), &told), 0, "{at}: what was read to its end is told");
    let not_told = usize::try_from(missing(&billed, &told)).unwrap();
    assert!(not_told <= UNDER_WAY, "{at}: {not_told} requests are not told");
    assert!(open.len() + broken.len() <= not_told, "{at}: {} {} {not_told}", open.len(), broken.len());

    let stats: Value = serde_json::from_str(&run(stage.cairn().args(["stats", "--json"])).stdout).unwrap();
    assert_eq!(stats["today"]["spent"]["unfinished"], open.len() + broken.len(), "{at}: their number is told");
    let usd = |entry: &Value| entry["usd"].as_f64().unwrap();
    let sum: f64 = settled.iter().map(|entry| usd(entry)).chain(open.iter().map(|entry| usd(entry))).sum();
    assert!((stats["today"]["usd"].as_f64().unwrap() - sum).abs() < 1e-9, "{at}");
}

/// What each reply used that stands in a transcript.
fn read_to_the_end(stage: &Stage) -> Counted {
    let mut replies = BTreeMap::new();
    for line in lines(&stage.config().join("projects")) {
        let usage = &line["message"]["usage"];
        let keys = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"];
        let tokens: u64 = keys.iter().filter_map(|key| usage[key].as_u64()).sum();
        if let Some(id) = line["message"]["id"].as_str().filter(|_| tokens > 0) {
            replies.insert(id.to_owned(), tokens);
        }
    }
    counted(replies.into_values())
}

/// Every line of every log below a folder.
fn lines(folder: &Path) -> Vec<Value> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(lines(&path));
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            let text = std::fs::read_to_string(&path).unwrap();
            all.extend(text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()));
        }
    }
    all
}
