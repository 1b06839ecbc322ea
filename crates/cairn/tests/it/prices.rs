use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use transcript::price::Prices;

use crate::stage::{Ran, Stage, bare, run};

const MODEL: &str = "claude-sonnet-4-5";

/// A project and a config home, gone when dropped.
struct Home {
    root: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("project")).unwrap();
        Self { root }
    }

    fn projects(&self) -> PathBuf {
        self.root.path().join("config/projects")
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.projects().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn cairn(&self, args: &[&str]) -> Ran {
        run(bare(&self.root.path().join("project"), &self.root.path().join("config")).args(args))
    }

    fn json(&self, args: &[&str]) -> Value {
        let ran = self.cairn(args);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        serde_json::from_str(&ran.stdout).unwrap()
    }
}

/// A session of so many rounds in which files are read, and one of the first is edited at the end; as Claude Code writes it,
/// in several lines a reply.
fn session(name: &str, rounds: usize, began: Timestamp) -> String {
    let (mut text, mut parent, mut context) = (String::new(), Value::Null, 20_000);
    let mut seconds = 0;
    let mut push = |kind: &str, uuid: String, message: Value| {
        seconds += 1;
        let time = began + SignedDuration::from_secs(seconds);
        let line = json!({
            "type": kind, "uuid": uuid, "parentUuid": parent, "timestamp": time.to_string(), "sessionId": name,
            "version": "2.1.0", "cwd": "/p", "message": message,
        });
        parent = json!(uuid);
        text.push_str(&format!("{line}\n"));
    };
    push("user", format!("{name}-u"), json!({"role": "user", "content": "Mend it."}));
    for round in 0..rounds {
        let (call, path) = (format!("{name}-call-{round}"), format!("/p/{round}.rs"));
        let (tool, input) = match round + 1 == rounds {
            true => ("Edit", json!({"file_path": "/p/0.rs", "old_string": "line 2 of /p/0.rs", "new_string": "x"})),
            false => ("Read", json!({"file_path": path})),
        };
        let usage = json!({"input_tokens": 3, "cache_read_input_tokens": context, "cache_creation_input_tokens": 3_000,
            "output_tokens": 50});
        for (part, block) in [
            json!({"type": "text", "text": "I look."}),
            json!({"type": "tool_use", "id": call, "name": tool, "input": input}),
        ]
        .into_iter()
        .enumerate()
        {
            let message = json!({"role": "assistant", "id": format!("{name}-m{round}"), "model": MODEL, "usage": usage,
                "content": [block]});
            push("assistant", format!("{name}-a{round}-{part}"), message);
        }
        let lines: Vec<String> = (0..400).map(|line| format!("line {line} of {path}")).collect();
        let result = json!([{"type": "tool_result", "tool_use_id": call, "content": lines.join("\n")}]);
        push("user", format!("{name}-r{round}"), json!({"role": "user", "content": result}));
        context += 3_000;
    }
    text
}

/// The sum of the usage in files at list prices: each reply once, by the last of its lines.
fn recorded(texts: &[String]) -> f64 {
    let mut replies: HashMap<String, f64> = HashMap::new();
    for line in texts.iter().flat_map(|text| text.lines()) {
        let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
        let message = &line["message"];
        let (Some(id), Some(model)) = (message["id"].as_str(), message["model"].as_str()) else { continue };
        let Some(price) = Prices::default().of(model) else { continue };
        let tokens = |key: &str| message["usage"][key].as_f64().unwrap_or_default();
        let hour = message["usage"]["cache_creation"]["ephemeral_1h_input_tokens"].as_f64().unwrap_or_default();
        let cost = tokens("input_tokens") * price.input
            + tokens("cache_read_input_tokens") * price.cache_read
            + (tokens("cache_creation_input_tokens") - hour) * price.cache_write_5m
            + hour * price.cache_write_1h
            + tokens("output_tokens") * price.output;
        replies.insert(id.to_owned(), cost / 1_000_000.0);
    }
    replies.values().sum()
}

fn near(one: &Value, other: f64) -> bool {
    one.as_f64().is_some_and(|one| (one - other).abs() < 1e-6)
}

/// PRICE-1: sessions are priced under policies: a table, JSON, and a picture.
#[test]
fn sessions_are_priced_under_policies() {
    let home = Home::new();
    let text = session("one", 30, Timestamp::now());
    home.write("-p/one.jsonl", &text);
    home.write("-p/two.jsonl", &session("two", 4, Timestamp::now()));
    let folder = home.projects().display().to_string();
    let shown = home.cairn(&["session", "replay", &folder, "--price"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for policy in ["recorded", "everything", "ours", "age", "reads", "mask", "provider"] {
        let row = shown.stdout.lines().find(|line| line.starts_with(policy));
        assert!(row.is_some_and(|row| row.contains('$')), "{policy}: {}", shown.stdout);
    }
    assert!(shown.stdout.contains("2 sessions, 34 requests"), "{}", shown.stdout);

    let args = ["session", "replay", &folder, "--price", "--json", "--policy", "recorded", "--policy", "mask"];
    let priced = home.json(&args);
    let policies = priced["policies"].as_array().unwrap();
    assert_eq!(policies.len(), 2);
    assert!(near(&policies[0]["cost"]["5m"], recorded(&[text.clone(), session("two", 4, Timestamp::now())])));
    let mask = &policies[1];
    assert!(
        mask["ofEverything"]["5m"].as_f64() > Some(1.0) && mask["ofEverything"]["1h"].as_f64() > Some(1.0),
        "{mask}"
    );
    assert_eq!((&mask["edits"], &mask["missedEdits"]), (&json!(2), &json!(1)), "the file was read 29 rounds before");
    assert!(mask["regrets"]["5m"].as_f64() > Some(0.0));
    let sessions: Vec<&str> =
        priced["sessions"].as_array().unwrap().iter().filter_map(|one| one["session"].as_str()).collect();
    assert_eq!(sessions, ["one", "two"]);

    let drawn = home.cairn(&["session", "replay", &folder, "--price", "--svg", "prices.svg"]);
    assert_eq!(drawn.code, Some(0), "{drawn:?}");
    let svg = fs::read_to_string(home.root.path().join("project/prices.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    for label in [">ours<", ">mask<", ">everything<", ">as recorded<"] {
        assert!(svg.contains(label), "{label}: {svg}");
    }
}

/// PRICE-1: the window is the one that is given; a policy that is not known is refused with those that are.
#[test]
fn the_window_and_the_policies_can_be_chosen() {
    let home = Home::new();
    let file = home.write("-p/one.jsonl", &session("one", 60, Timestamp::now())).display().to_string();
    let ours = |window: &str| {
        let priced =
            home.json(&["session", "replay", &file, "--price", "--policy", "ours", "--window", window, "--json"]);
        priced["policies"][0]["ofEverything"]["5m"].as_f64().unwrap()
    };
    let (small, large) = (ours("80000"), ours("1000000"));
    assert!(small < 0.97 && large < 0.97 && small != large, "{small} {large}");
    let unknown = home.cairn(&["session", "replay", &file, "--price", "--policy", "magic"]);
    assert!(unknown.code == Some(2) && unknown.stderr.contains("everything, ours, age"), "{unknown:?}");
    let two = home.cairn(&["session", "replay", &file, &file]);
    assert!(two.code == Some(1) && two.stderr.contains("--price"), "{two:?}");
}

/// PRICE-1: an audit says what all sessions cost and would have cost, by project and by layer; each reply counts once, those
/// of subagents too, and what is older than asked for does not.
#[test]
fn an_audit_counts_every_reply_once() {
    let home = Home::new();
    let now = Timestamp::now();
    let (one, two) = (session("one", 30, now), session("two", 6, now));
    let (agent, old) = (session("sub", 3, now), session("old", 9, now - SignedDuration::from_hours(24 * 40)));
    home.write("-p/one.jsonl", &one);
    home.write("-p/one/subagents/agent-1.jsonl", &agent.replace("\"version\"", "\"isSidechain\":true,\"version\""));
    home.write("-p/resumed.jsonl", &format!("{one}{}", session("more", 2, now)));
    home.write("-q/two.jsonl", &two);
    home.write("-q/old.jsonl", &old);
    let expected = recorded(&[one, two, agent, session("more", 2, now)]);
    let audit = home.json(&["audit", "--json"]);
    assert!(near(&audit["recordedUsd"], expected), "{expected}: {audit}");
    assert_eq!(audit["requests"], 41);
    assert_eq!((&audit["sessions"], &audit["subagents"]), (&json!(3), &json!(1)));
    assert_eq!(audit["projects"][0]["project"], "-p");
    assert_eq!(audit["projects"][1]["requests"], 6);
    assert!(audit["oursUsd"].as_f64() > Some(0.0) && audit["everythingUsd"].as_f64() > Some(0.0));
    let longer = home.json(&["audit", "--json", "--days", "60"]);
    assert_eq!(longer["requests"], 50);
    let small = home.json(&["audit", "--json", "--window", "100000"]);
    let clear = small["layers"]
        .as_array()
        .unwrap()
        .iter()
        .find(|layer| layer["layer"] == "clear")
        .unwrap_or_else(|| panic!("{small}"));
    assert!(clear["times"].as_u64() > Some(0) && clear["sparedCompactions"].as_i64() > Some(0), "{clear}");
    let shown = home.cairn(&["audit", "--window", "100000"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let first = shown.stdout.lines().next().unwrap();
    assert!(first.starts_with(&format!("The last 30 days cost ${expected:.2}; with Cairn $")), "{first}");
    assert!(first.contains("would have needed a file to be read again"), "{first}");
    assert!(!shown.stdout.contains('\u{1b}'), "colours are for terminals");
    // The cascade is printed: how often each layer acted, and the dearer actions that it spared.
    let head = shown.stdout.lines().find(|line| line.starts_with("layer")).unwrap_or_default();
    let words: Vec<&str> = head.split_whitespace().collect();
    let expected = "layer acts tokens out saves spared: clearings compactions overflows";
    assert_eq!(words, expected.split(' ').collect::<Vec<_>>(), "{}", shown.stdout);
    let row = shown.stdout.lines().find(|line| line.starts_with("clear ")).unwrap_or_default();
    let cells: Vec<&str> = row.split_whitespace().collect();
    let figure = |key: &str| clear[key].as_i64().unwrap().to_string();
    assert_eq!(cells[1], figure("times"), "{row}");
    let spared = [figure("sparedClearings"), figure("sparedCompactions"), figure("sparedOverflows")];
    assert_eq!(cells[4..], spared, "{row}");
}

/// PRICE-1: what sessions of a provider without a cache cost is no measure of the others; sessions that were compacted in a
/// smaller window than they have here are counted.
#[test]
fn an_audit_is_scaled_by_most_sessions() {
    let home = Home::new();
    let now = Timestamp::now();
    for name in ["one", "two", "three"] {
        home.write(&format!("-p/{name}.jsonl"), &session(name, 12, now));
    }
    let usual = home.json(&["audit", "--json"])["computedShare"].as_f64().unwrap();
    let uncached = session("four", 12, now).replace("\"input_tokens\":3,", "").replace("cache_read_input", "input");
    home.write("-q/four.jsonl", &uncached);
    let compaction = json!({"type": "system", "subtype": "compact_boundary", "uuid": "five-c", "parentUuid": null,
        "logicalParentUuid": "five-r11", "timestamp": now.to_string(), "sessionId": "five", "content": "Conversation compacted",
        "compactMetadata": {"trigger": "auto", "preTokens": 56_000}});
    let (before, after) = (session("five", 12, now), session("six", 12, now).replacen("null", "\"five-c\"", 1));
    home.write("-r/five.jsonl", &format!("{before}{compaction}\n{after}"));
    let audit = home.json(&["audit", "--json"]);
    assert!((audit["computedShare"].as_f64().unwrap() / usual - 1.0).abs() < 0.01, "{usual}: {audit}");
    assert_eq!(audit["smallerWindows"], 1, "{audit}");
    let compacted = &audit["projects"].as_array().unwrap().iter().find(|one| one["project"] == "-r").unwrap();
    let (everything, recorded) =
        (compacted["everythingUsd"].as_f64().unwrap(), compacted["recordedUsd"].as_f64().unwrap());
    assert!(everything < recorded * 3.0, "{compacted}");
    let shown = home.cairn(&["audit"]).stdout;
    assert!(shown.contains("1 session had been compacted at less than half of the window used here"), "{shown}");
    assert_eq!(home.json(&["audit", "--json", "--window", "100000"])["smallerWindows"], 0);
}

/// PRICE-1: an audit names the files that it leaves out, and finishes.
#[test]
fn an_audit_names_what_it_leaves_out() {
    let home = Home::new();
    let now = Timestamp::now();
    let good = session("good", 5, now);
    home.write("-p/good.jsonl", &good);
    let torn = session("torn", 4, now);
    home.write("-p/torn.jsonl", &format!("{torn}{{\"type\":\"assist"));
    home.write("-p/broken.jsonl", "{no JSON\n\u{0}\u{1}\n[[[[\n");
    home.write("-p/empty.jsonl", "");
    home.write("-p/foreign.jsonl", "{\"product\":\"tea\",\"price\":3}\n{\"product\":\"milk\"}\n");
    home.write("-p/asked.jsonl", good.lines().next().unwrap());
    let huge = home.write("-p/huge.jsonl", "");
    fs::File::options().write(true).open(huge).unwrap().set_len(3_000_000_000).unwrap();
    std::os::unix::fs::symlink("/dev/zero", home.projects().join("-p/link.jsonl")).unwrap();
    std::os::unix::fs::symlink(home.root.path(), home.projects().join("-linked")).unwrap();
    let pipe = home.projects().join("-p/pipe.jsonl");
    assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
    home.write("-p/notes.txt", "not looked at");
    let audit = home.json(&["audit", "--json"]);
    assert!(near(&audit["recordedUsd"], recorded(&[good, torn])), "{audit}");
    let left_out: HashMap<String, String> = audit["leftOut"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let name = Path::new(one["file"].as_str().unwrap()).file_name().unwrap().to_str().unwrap().to_owned();
            (name, one["why"].as_str().unwrap().to_owned())
        })
        .collect();
    let why = |name: &str| left_out.get(name).map(String::as_str);
    assert_eq!(why("broken.jsonl"), Some("not a session"));
    assert_eq!(why("empty.jsonl"), Some("empty"));
    assert_eq!(why("foreign.jsonl"), Some("not a session"));
    assert_eq!(why("asked.jsonl"), Some("no request in it"));
    assert_eq!(why("huge.jsonl"), Some("too large: 3000 MB"));
    assert_eq!(why("link.jsonl"), Some("a link"));
    assert_eq!(why("pipe.jsonl"), Some("not a file"));
    assert_eq!(why("-linked"), Some("a link"));
    assert_eq!(left_out.len(), 8, "{left_out:?}");
    let shown = home.cairn(&["audit"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.stdout.contains("foreign.jsonl: not a session"), "{}", shown.stdout);
    let nothing = Home::new().cairn(&["audit"]);
    assert!(nothing.code == Some(0) && nothing.stderr.contains("No requests in the last 30 days"), "{nothing:?}");
}

/// PRICE-1: of real sessions the recorded cost is the sum of their usage, and our layers cost less than keeping everything.
/// (Runs where the recordings lie beside the project.)
#[test]
fn recorded_sessions_of_others_are_priced() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/transcripts");
    let Ok(entries) = fs::read_dir(&folder) else { return };
    let ours = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("claude-code"));
    let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| ours(path)).collect();
    let texts: Vec<String> = paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let home = Home::new();
    let mut args = vec!["session", "replay", "--price", "--json", "--window", "100000"];
    args.extend(paths.iter().map(|path| path.to_str().unwrap()));
    let priced = home.json(&args);
    let row =
        |name: &str| priced["policies"].as_array().unwrap().iter().find(|row| row["policy"] == name).unwrap().clone();
    assert!(near(&row("recorded")["cost"]["5m"], recorded(&texts)), "{}", row("recorded"));
    assert_eq!(row("recorded")["compactions"], 3);
    assert!(row("ours")["ofEverything"]["5m"].as_f64() < Some(0.9), "{}", row("ours"));
    assert_eq!(row("everything")["missedEdits"], 0);
}

/// PRICE-1: a session of our own costs as recorded what its statistics say, and is priced under policies too.
#[test]
fn a_session_of_our_own_is_priced() {
    let stage = Stage::new("[[rule]]\nname = \"hear\"\nsay = \"I heard.\"\n");
    run(stage.cairn().args(["-p", "the word is quartz"]));
    run(stage.cairn().args(["-p", "and the next is slate", "--continue"]));
    let file = stage.session_files().remove(0);
    let json = |args: &[&str]| -> Value {
        let ran = run(stage.cairn().args(args).arg(&file));
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
    };
    let stats = json(&["session", "stats", "--json"]);
    let priced = json(&["session", "replay", "--price", "--json"]);
    let cost = |at: usize| priced["policies"][at]["cost"]["5m"].as_f64().unwrap();
    assert!(near(&stats["costUsd"], cost(0)), "{stats} {priced}");
    assert!((cost(1) / cost(0) - 1.0).abs() < 0.1, "everything was kept: {priced}");
    assert_eq!(priced["policies"][2]["ofEverything"]["5m"], 1.0);
}
