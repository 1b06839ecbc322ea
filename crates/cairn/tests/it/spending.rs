//! What was spent today, as scripts and the command line see it.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;
use simulator::Fault;

use crate::stage::{Ran, Stage, run};
use crate::worker;

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("no JSON: {ran:?}"))
}

fn work(stage: &Stage, settings: &str) -> Ran {
    let mut cairn = stage.cairn();
    cairn.args(["-p", "Do all the steps.", "--permission-mode", "bypassPermissions", "--settings", settings]);
    run(&mut cairn)
}

/// TOK-7, BUDGET-1: two processes at once write into the ledger of the day, and `stats` tells who spent what.
#[test]
fn processes_at_once_share_the_ledger_of_the_day() {
    let stage = Stage::new("[[rule]]\nsay = \"hello\"\n");
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert_eq!(run(stage.cairn().args(["-p", "hi"])).code, Some(0)));
        }
    });
    let stats = |args: &[&str]| run(stage.cairn().arg("stats").args(args));
    let today = json(&stats(&["--json"]))["today"].clone();
    let conversation = &today["spent"]["kinds"]["conversation"];
    assert_eq!((conversation["requests"].as_u64(), today["spent"]["broken"].as_u64()), (Some(2), Some(0)), "{today}");
    assert!(conversation["usd"].as_f64() > Some(0.0) && conversation["usd"] == today["usd"], "{today}");
    let text = stats(&[]).stdout;
    assert!(text.contains("\ntoday        $") && text.contains(": conversation $"), "{text}");
    assert!(text.contains("budget       $0.0000 of $2.00 a day for background work\n"), "{text}");
    let days = stats(&["--days", "2"]).stdout;
    assert!(days.lines().count() == 2 && days.lines().nth(1).unwrap().ends_with("   nothing"), "{days}");
    let days = json(&stats(&["--days", "2", "--json"]));
    assert_eq!(days["days"][0]["usd"], today["usd"]);
}

/// BUDGET-1: a spent budget is said, nothing is asked beside the conversation, and the work is done.
#[test]
fn a_spent_budget_is_said_and_the_work_goes_on() {
    let stage = Stage::new(&worker::script(12));
    worker::equip(&stage.project(), 9_000);
    let ran = work(&stage, r#"{"notesShare": 0, "budget": {"usdPerDay": 0}}"#);
    assert_eq!((ran.code, worker::done(&stage.project()).len()), (Some(0), 12), "{ran:?}");
    assert_eq!(ran.stderr.matches("background work pauses: $0.00 of $0.00 a day are spent").count(), 1, "{ran:?}");
    let today = json(&run(stage.cairn().args(["stats", "--json"])))["today"].clone();
    assert_eq!(today["spent"]["kinds"].as_object().unwrap().keys().collect::<Vec<_>>(), ["conversation"], "{today}");
}

/// TOK-7: what a run says that it cost is what the ledger has of it, and what its session says: with agents, those that these
/// send out, and all that was asked beside.
#[test]
fn the_cost_that_is_told_is_the_whole_of_it() {
    let script = r#"
        [[rule]]
        when = { user = "^Look deeper" }
        say = "Deep down it is red."
        [[rule]]
        when = { user = "^Look at it", tool = "Agent" }
        say = "It is red."
        [[rule]]
        when = { user = "^Look at it" }
        call = [{ tool = "Agent", input = { description = "d", prompt = "Look deeper.", subagent_type = "Explore", model = "haiku" } }]
        [[rule]]
        when = { tool = "Agent" }
        say = "Done."
        [[rule]]
        call = [{ tool = "Agent", input = { description = "d", prompt = "Look at it.", subagent_type = "general-purpose" } }]
    "#;
    let stage = Stage::new(script);
    let result = json(&run(stage.cairn().args(["-p", "hi", "--output-format", "json"])));
    let stats = json(&run(stage.cairn().args(["stats", "--json"])));
    assert_eq!(stats["today"]["spent"]["kinds"]["agent"]["requests"], 3, "{stats}");
    let (told, spent) = (result["total_cost_usd"].as_f64().unwrap(), stats["today"]["usd"].as_f64().unwrap());
    assert!((told - spent).abs() < 1e-9, "{told} {spent}");
    let session = &stats["sessions"][0];
    assert!((session["costUsd"].as_f64().unwrap() - spent).abs() < 1e-9, "{spent} {session}");
    let beside: Vec<&str> =
        session["beside"].as_array().unwrap().iter().filter_map(|one| one["who"].as_str()).collect();
    assert_eq!(beside, ["general-purpose", "general-purpose: Explore"]);
    assert_eq!(result["modelUsage"].as_object().unwrap().len(), 2, "{result}");
}

/// TOK-7: so it is after long work with notes and a compaction.
#[test]
fn the_cost_of_notes_and_summaries_is_told() {
    let stage = Stage::new(&worker::script(12));
    worker::equip(&stage.project(), 9_000);
    let mut cairn = stage.cairn();
    cairn.args(["-p", "Do all the steps.", "--permission-mode", "bypassPermissions", "--output-format", "json"]);
    let result = json(&run(cairn.args(["--settings", r#"{"notesShare": 0}"#])));
    let today = json(&run(stage.cairn().args(["stats", "--json"])))["today"].clone();
    assert!(today["spent"]["kinds"].as_object().unwrap().len() > 1, "{today}");
    let (told, spent) = (result["total_cost_usd"].as_f64().unwrap(), today["usd"].as_f64().unwrap());
    assert!((told - spent).abs() < 1e-9, "{told} {spent}");
}

/// TOK-7: a request that the user interrupts is paid for: what the provider said of it when it began is told, and stands in
/// the ledger and in the session. One that it has not begun to answer costs nothing, and not less.
#[test]
fn an_interrupted_request_is_paid_for() {
    for begun in [true, false] {
        let stage = Stage::new("[[rule]]\nsay = \"It comes in pieces, one after the other, until it is whole.\"\n");
        let cut_after = begun.then_some(5);
        stage.simulator.push_fault(Fault { stall: true, cut_after, ..Fault::default() }).unwrap();
        let mut run_it = stage.cairn();
        run_it.args(["-p", "hi", "--output-format", "stream-json", "--include-partial-messages"]);
        let mut child = run_it.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        match begun {
            true => drop(lines.by_ref().find(|line| line.contains("text_delta")).unwrap()),
            false => while stage.simulator.requests().is_empty() {},
        }
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        let result = lines.last().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert!(!result.contains("-0.0"), "{result}");
        let result: Value = serde_json::from_str(&result).unwrap();
        let told = result["total_cost_usd"].as_f64().unwrap();
        let stats = json(&run(stage.cairn().args(["stats", "--json"])));
        let spent = stats["today"]["usd"].as_f64().unwrap();
        let session = stats["sessions"][0]["costUsd"].as_f64().unwrap();
        assert!((told - spent).abs() < 1e-9 && (told - session).abs() < 1e-9, "{told} {spent} {session}");
        assert_eq!(told > 0.0, begun, "{result}");
        if begun {
            let (sent, used) =
                (stage.simulator.report().totals.input.total(), &result["modelUsage"]["claude-sonnet-5"]);
            let read =
                ["inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"].map(|key| used[key].as_u64());
            assert_eq!(read.iter().flatten().sum::<u64>(), sent, "{result}");
            assert!(used["outputTokens"].as_u64() > Some(0), "{result}");
        }
    }
}
