//! What keeps a session inside its window, as scripts and the command line see it.

use std::path::PathBuf;

use serde_json::Value;

use crate::stage::{Ran, Stage, piped_into, run};
use crate::worker;

/// The window that is worked in.
const WINDOW: &str = "48000";
/// Only a summary makes room.
const SUMMARIES: &str = r#"{"microcompact": false, "notes": false}"#;
/// Only clearing does.
const CLEARING: &str = r#"{"notes": false}"#;

/// A stage on which a model does so many steps, each with a result of 5 kB.
fn stage(steps: u32) -> Stage {
    let stage = Stage::new(&worker::script(steps));
    worker::equip(&stage.project(), 5_000);
    stage
}

fn work(stage: &Stage, settings: &str) -> Ran {
    let mut cairn = stage.cairn();
    cairn.args(["-p", "Do all the steps.", "--permission-mode", "bypassPermissions", "--settings", settings]);
    run(cairn.args(["--output-format", "stream-json"]).env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", WINDOW))
}

/// A session that was compacted once.
fn compacted() -> (Stage, PathBuf, Ran) {
    let stage = stage(14);
    let ran = work(&stage, SUMMARIES);
    assert_eq!((ran.code, worker::done(&stage.project())), (Some(0), (1..=14).collect()), "{ran:?}");
    let file = stage.session_files().remove(0);
    (stage, file, ran)
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("no JSON: {ran:?}"))
}

/// The lines of a stream whose subtype is this.
fn told(ran: &Ran, subtype: &str) -> Vec<Value> {
    let lines = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["subtype"] == subtype).collect()
}

#[test]
fn a_stream_tells_of_compactions_and_of_what_was_cleared() {
    let (_stage, _, ran) = compacted();
    let lines = told(&ran, "compact_boundary");
    let about = &lines[0]["compact_metadata"];
    assert_eq!((lines.len(), about["trigger"].as_str()), (1, Some("auto")));
    assert!(about["pre_tokens"].as_u64() > about["post_tokens"].as_u64(), "{about}");
    assert!(told(&ran, "microcompact_boundary").is_empty());

    let stage = stage(24);
    let ran = work(&stage, CLEARING);
    let lines = told(&ran, "microcompact_boundary");
    assert!(!lines.is_empty() && told(&ran, "compact_boundary").is_empty(), "{ran:?}");
    let about = &lines[0]["microcompact_metadata"];
    assert!(about["results"].as_u64() > Some(0) && about["tokens_saved"].as_u64() > Some(1_000), "{about}");
}

/// COMPACT-12: a window that the system prompt and the tools alone fill is an error that says what to do.
#[test]
fn a_window_too_small_for_anything_is_explained() {
    let stage = stage(1);
    let ran = run(stage.cairn().args(["-p", "hello"]).env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "4000"));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(5), ""), "{ran:?}");
    let said = "the system prompt and the tools alone have about";
    assert!(ran.stderr.contains(said) && ran.stderr.contains("a larger window"), "{ran:?}");
    assert!(stage.simulator.requests().is_empty(), "nothing is sent that cannot fit");
    let ran = run(stage
        .cairn()
        .args(["-p", "hello", "--output-format", "json"])
        .env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "4000"));
    let result = json(&ran);
    assert_eq!((ran.code, result["subtype"].as_str()), (Some(5), Some("error_window_full")));
    assert!(result["result"].as_str().unwrap().contains(said), "{result}");
}

/// LOG-12: what a compaction covers is listed, brought back by its id, and covered again by undoing that.
#[test]
fn what_a_compaction_covers_is_brought_back() {
    let (stage, file, _) = compacted();
    let session = |args: &[&str]| run(stage.cairn().arg("session").args(args));
    let (file, size) = (file.to_str().unwrap(), std::fs::metadata(&file).unwrap().len());

    let listed = session(&["expand", file, "--list"]);
    assert!(listed.stdout.contains("compact   ") && listed.stdout.contains("the window was full"), "{listed:?}");
    let covers = json(&session(&["expand", file, "--list", "--json"]));
    let commit = covers[0]["commit"].as_str().unwrap();
    assert_eq!((covers.as_array().unwrap().len(), covers[0]["kind"].as_str()), (1, Some("compact")));
    assert!(listed.stdout.contains(commit));

    let ran = session(&["expand", file, "nonsense"]);
    assert!(ran.code != Some(0) && ran.stderr.contains("nonsense covers nothing in this session; --list"), "{ran:?}");
    assert_eq!(std::fs::metadata(file).unwrap().len(), size, "listing and failing write nothing");

    let tokens = |value: &Value| (value["tokensBefore"].as_u64().unwrap(), value["tokensAfter"].as_u64().unwrap());
    let expanded = json(&session(&["expand", file, commit, "--json"]));
    let (covered, whole) = tokens(&expanded);
    assert!(expanded["expanded"] == commit && whole > covered + 10_000, "{expanded}");
    let shown = session(&["show", file]).stdout;
    assert!(shown.contains(r#"{"command":"./work 1"}"#), "the first step can be seen again: {shown}");
    let ran = session(&["expand", file]);
    assert!(ran.code != Some(0) && ran.stderr.contains("nothing is covered in this session"), "{ran:?}");
    assert!(session(&["expand", file, "--list"]).stderr.contains("Nothing is covered"));

    let undone = json(&session(&["undo", file, "--json"]));
    let (_, covered_again) = tokens(&undone);
    assert!(covered_again.abs_diff(covered) < 100, "{covered} {undone}");
    let ran = session(&["expand", file]);
    assert!(ran.stdout.contains(&format!("{commit} is expanded: the view had")), "{ran:?}");
}

/// CONF-2: `CLAUDE_CONTEXT_COLLAPSE` overrides the setting, either way.
#[test]
fn a_variable_turns_collapse_on_and_off() {
    for (set, variable, collapses) in [("{}", "1", true), (r#"{"collapse": true}"#, "0", false)] {
        let stage = stage(22);
        let mut cairn = stage.cairn();
        cairn.args(["-p", "Do all the steps.", "--permission-mode", "bypassPermissions"]);
        let more = serde_json::json!({"microcompact": false, "notes": false});
        let mut settings: Value = serde_json::from_str(set).unwrap();
        settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        cairn.args(["--output-format", "stream-json", "--settings", &settings.to_string()]);
        cairn.env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", WINDOW).env("CLAUDE_CONTEXT_COLLAPSE", variable);
        let ran = run(&mut cairn);
        assert_eq!(!told(&ran, "collapse_boundary").is_empty(), collapses, "{ran:?}");
        assert_eq!(told(&ran, "compact_boundary").is_empty(), collapses, "{ran:?}");
    }
}

/// COLLAPSE-4, CONF-2: with the setting on spans are collapsed; the stream tells of it, and a span is brought back.
#[test]
fn what_was_collapsed_is_brought_back() {
    let stage = stage(22);
    let ran = work(&stage, r#"{"collapse": true, "microcompact": false}"#);
    assert_eq!((ran.code, worker::done(&stage.project())), (Some(0), (1..=22).collect()), "{ran:?}");
    let lines = told(&ran, "collapse_boundary");
    assert!(!lines.is_empty() && told(&ran, "compact_boundary").is_empty(), "{ran:?}");
    assert!(lines[0]["collapse_metadata"]["tokens_saved"].as_u64() > Some(10_000), "{lines:?}");
    let file = stage.session_files().remove(0);
    let session = |args: &[&str]| run(stage.cairn().arg("session").args(args).arg(&file));
    assert!(session(&["expand", "--list"]).stdout.contains("collapse  "));
    let expanded = json(&session(&["expand", "--json"]));
    let tokens = |key: &str| expanded[key].as_u64().unwrap();
    assert!(tokens("tokensAfter") > tokens("tokensBefore") + 10_000, "{expanded}");
    let shown = session(&["show"]).stdout;
    assert!(shown.contains(r#"{"command":"./work 1"}"#), "the first step can be seen again: {shown}");
}

/// LOG-12: the newest decision is the compaction, and undoing it shows what was said.
#[test]
fn a_compaction_is_undone() {
    let (stage, file, _) = compacted();
    let shown = |what: &str| run(stage.cairn().args(["session", "show"]).arg(&file)).stdout.matches(what).count();
    assert_eq!(shown("It is history"), 1);
    let ran = run(stage.cairn().args(["session", "undo"]).arg(&file));
    assert!(ran.code == Some(0) && ran.stdout.contains("undid"), "{ran:?}");
    assert_eq!((shown("It is history"), shown("./work ") > 12), (0, true));
}

/// REACT-3: a session is played through the layers without a model: text, JSON, and a code that says whether all held.
#[test]
fn a_session_is_replayed_in_another_window() {
    let (stage, file, _) = compacted();
    let requests = stage.simulator.requests().len();
    let replay = |args: &[&str]| run(stage.cairn().args(["session", "replay"]).arg(&file).args(args));
    let ran = replay(&["--window", WINDOW, "--settings", SUMMARIES]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stdout.contains("compact") && ran.stdout.contains("15 rounds in a window of 48000 tokens: 1 commits"),
        "{ran:?}"
    );
    let ran = replay(&["--window", "1000000"]);
    assert_eq!(ran.stdout.lines().count(), 1, "in a large window nothing is to be done: {ran:?}");
    let replayed = json(&replay(&["--window", "40000", "--json"]));
    let rounds = replayed["rounds"].as_array().unwrap();
    assert_eq!((rounds.len(), &replayed["broken"]), (15, &serde_json::json!([])));
    assert!(rounds.iter().any(|round| round["commits"][0]["layer"] == "clear"), "{replayed}");
    assert_eq!(stage.simulator.requests().len(), requests, "no model is asked");
}

/// REACT-3: so is a session that another program wrote.
#[test]
fn a_session_of_another_program_is_replayed() {
    let stage = stage(1);
    for name in ["claude-code.jsonl", "pi.jsonl"] {
        let file = format!("{}/../transcript/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
        let before = std::fs::read(&file).unwrap();
        let ran = run(stage.cairn().args(["session", "replay", &file]));
        assert!(ran.code == Some(0) && ran.stdout.contains(" rounds in a window of "), "{name}: {ran:?}");
        assert!(!ran.stdout.starts_with("0 rounds"), "{name}: {ran:?}");
        assert_eq!(std::fs::read(&file).unwrap(), before, "{name} is only read");
    }
}

/// CACHE-5: re-write factor, hit ratio, breaks with the commit they belong to, money; and what each layer saved.
#[test]
fn stats_tell_what_sessions_used_and_what_layers_saved() {
    let (stage, file, _) = compacted();
    let stats = |args: &[&str]| run(stage.cairn().arg("stats").args(args));
    let id = file.file_stem().unwrap().to_str().unwrap().to_owned();
    let one = json(&stats(&[&id[..20], "--json"]));
    let session = &one["sessions"][0];
    assert!(session["rewriteFactor"].as_f64() > Some(1.0) && session["hitRatio"].as_f64() > Some(0.8), "{session}");
    assert!(
        session["beside"][0]["costUsd"].as_f64() > Some(0.0)
            && session["costUsd"].as_f64() > session["beside"][0]["costUsd"].as_f64()
    );
    let (saved, cost) = (session["cacheSavedUsd"].as_f64().unwrap(), session["costUsd"].as_f64().unwrap());
    assert!(saved > cost, "without the cache it would have cost more than twice as much: {session}");
    let covers = json(&run(stage.cairn().args(["session", "expand", &id, "--list", "--json"])));
    let broke = &session["breaks"][0];
    assert_eq!((&broke["cause"], &broke["commit"]), (&Value::from("compact"), &covers[0]["commit"]));
    let layer = &one["layers"][0];
    assert_eq!((layer["layer"].as_str(), layer["times"].as_u64()), (Some("compact"), Some(1)));
    let freed = layer["freedTokens"].as_u64().unwrap();
    assert!((5_000..40_000).contains(&freed), "{layer}");

    run(stage.cairn().args(["-p", "hello"]));
    let text = stats(&[]).stdout;
    for part in [
        "sessions     2, ",
        "% read, $",
        "less than without it;",
        "cache break  compact, 1×",
        "\nbackground   $",
        "compact 1× $",
        "layer ",
        "\ncompact ",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let both = json(&stats(&["--json"]));
    assert_eq!(both["sessions"].as_array().unwrap().len(), 2);
    let path = stats(&[file.to_str().unwrap()]).stdout;
    assert!(path.contains("sessions     1, 15 replies"), "{path}");
}

#[test]
fn stats_of_nothing_say_so() {
    let stage = stage(1);
    let ran = run(stage.cairn().arg("stats"));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
    assert!(ran.stderr.contains("No sessions in"), "{ran:?}");
    let nothing = json(&run(stage.cairn().args(["stats", "--json"])));
    assert_eq!((&nothing["sessions"], &nothing["layers"]), (&serde_json::json!([]), &serde_json::json!([])));
    assert_eq!((&nothing["today"]["usd"], &nothing["today"]["budgetUsd"]), (&0.0.into(), &2.0.into()));
    let ran = run(stage.cairn().args(["stats", "0000"]));
    assert!(ran.code != Some(0) && ran.stderr.contains("0000"), "{ran:?}");
}

/// COMPACT-9: who asks for room gets it. What follows the notes
/// stays beside them; where that is nearly all there is, because the rest was cleared, a summary is made.
#[test]
fn a_compaction_that_was_asked_for_makes_room_whatever_the_notes_cover() {
    let stage = stage(20);
    worker::equip(&stage.project(), 8_500);
    let mut cairn = stage.cairn();
    cairn.args(["--permission-mode", "bypassPermissions", "--settings", r#"{"notesShare": 0}"#]);
    let text = piped_into(cairn.env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "64000"), "Do all the steps.\n/compact\n");
    let figures = regex::Regex::new(r"compacted: .*\((\d+) → (\d+) tokens\)").unwrap();
    let found = figures.captures(&text).unwrap_or_else(|| panic!("{text}"));
    let tokens = |at: usize| found[at].parse::<u64>().unwrap();
    assert!(tokens(2) * 8 <= tokens(1) * 7, "{text}");
    assert!(!text.contains("\n\n"), "no empty lines for replies without a word: {text:?}");
}

/// TOK-4: a name that asks for the large window asks the provider for it too, and so does whoever names betas; a model that
/// has it by itself needs none. Betas that are named twice are sent once, and those named alone change the window.
#[test]
fn the_large_window_is_asked_for_in_the_request() {
    const LARGE: &str = "context-1m-2025-08-07";
    for (model, flags, variable, sent, window) in [
        ("claude-sonnet-4-5[1m]", &[][..], "", vec![LARGE], 1_000_000),
        ("claude-sonnet-4-5", &[], "", vec![], 200_000),
        ("claude-sonnet-5[1m]", &[], "", vec![], 1_000_000),
        (
            "claude-sonnet-4-5",
            &["--betas", "mine-2026-01-01"],
            " context-1m-2025-08-07,mine-2026-01-01",
            vec!["mine-2026-01-01", LARGE],
            1_000_000,
        ),
    ] {
        let stage = stage(1);
        let mut cairn = stage.cairn();
        cairn.args(["-p", "hello", "--output-format", "json", "--model", model]).args(flags);
        let ran = run(cairn.env("ANTHROPIC_BETAS", variable));
        assert_eq!(stage.simulator.report().requests[0].betas, sent, "{model} {ran:?}");
        let log = std::fs::read_to_string(stage.session_files().remove(0)).unwrap();
        assert!(log.contains(&format!("\"window\":[{window},")), "{model}: {log}");
    }
}
