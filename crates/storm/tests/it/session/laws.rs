//! What has to hold when a session has been through a storm, as its files and the model's minutes say.

use std::path::{Path, PathBuf};

use serde_json::Value;
use transcript::price::Prices;

use super::model::{Bill, NAME};
use super::{SESSION, SessionWorld};

/// A reply that broke off is paid for by how much of it came: never more than this.
const MOST_BROKEN_OFF: u64 = 200;
/// Sums of dollars are not exact.
const DUST: f64 = 1e-9;

/// What the session and the ledger tell is what was billed.
pub(super) fn costs(world: &SessionWorld, told: Option<f64>) {
    let mut minutes = world.model.minutes();
    let price = Prices::default().of(NAME).unwrap();
    let (mut least, mut most) = (0.0, 0.0);
    let mut least_by_ledger = 0.0;
    for (asker, Bill { usage, is_whole, is_certain }) in minutes.bills.values() {
        let cost = price.cost(usage);
        if *is_certain {
            least_by_ledger += cost;
            // What one that learns used is the session's once it has ended.
            least += if *asker == super::model::Asker::Learning { 0.0 } else { cost };
        }
        let mut highest = *usage;
        highest.output_tokens += if *is_whole { 0 } else { MOST_BROKEN_OFF };
        most += if usage.total() == 0 { 0.0 } else { price.cost(&highest) };
    }
    let told = told.unwrap_or(f64::NAN);
    if world.disk.lock().has_failed {
        least = 0.0; // what could not be written is in the ledger alone
    }
    if !(least - DUST..=most + DUST).contains(&told) {
        minutes.broken.push(format!("the session tells ${told}, and at least ${least}, at most ${most} were billed"));
    }
    if !world.is_forgetful {
        let noted = ledger(&world.place.path().join("config/cairn/ledger"));
        if !(least_by_ledger - DUST..=most + DUST).contains(&noted) {
            let known = noted_tokens(&world.place.path().join("config/cairn/ledger"));
            let missing =
                minutes.bills.iter().filter(|(_, (_, bill))| bill.is_certain && !known.contains(&bill.usage.total()));
            let missing: Vec<String> =
                missing.map(|(number, (who, bill))| format!("{number} of {who:?}, whole: {}", bill.is_whole)).collect();
            let text = format!(
                "the ledger has ${noted}, and at least ${least_by_ledger}, at most ${most} were billed; requests that it may \
                 lack: {missing:?}"
            );
            minutes.broken.push(text);
            let lines = all_files(&world.place.path().join("config/cairn/ledger")).into_iter().map(|path| raw(&path));
            lines.for_each(|line| minutes.tell(&line));
        }
    }
}

fn noted_tokens(folder: &Path) -> Vec<u64> {
    let lines = all_files(folder).into_iter().flat_map(|path| lines(&path));
    lines.filter_map(|line| line["tokens"].as_u64()).collect()
}

/// What all requests cost, each by the last that is known of it.
fn ledger(folder: &Path) -> f64 {
    let lines: Vec<Value> = all_files(folder).into_iter().flat_map(|path| lines(&path)).collect();
    let is_last = |line: &&Value| line["begins"].is_null() || !lines.iter().any(|end| end["ends"] == line["begins"]);
    lines.iter().filter(is_last).filter_map(|line| line["usd"].as_f64()).sum()
}

/// What was acknowledged is in the files, once.
pub(super) fn files(world: &SessionWorld) {
    let all = all_files(world.place.path());
    let name = format!("{SESSION}.jsonl");
    let session = all.iter().find(|path| path.ends_with(&name));
    let log = session.map(|path| lines(path)).unwrap_or_default();
    let mut minutes = world.model.minutes();
    let mut broken = Vec::new();

    for said in &minutes.heard {
        let times = log.iter().filter(|line| is_user(line) && text(line).contains(said.as_str())).count();
        if times != 1 {
            broken.push(format!("{said:?} was heard, and is in the log {times} times"));
        }
    }

    for letter in &minutes.letters {
        let entered = |lines: &[Value]| {
            let is_it = |line: &&Value| {
                let text = text(line);
                let is_given_back = text.contains("ended before it read your message");
                is_user(line) && text.contains("<agent-message") && text.contains(&letter.token) && !is_given_back
            };
            lines.iter().filter(is_it).count()
        };
        let times = if letter.to == "team-lead" {
            entered(&log)
        } else {
            let transcripts = all.iter().filter(|path| is_transcript(path));
            let in_logs: usize = transcripts.map(|path| entered(&lines(path))).sum();
            // It waits for one who is not at work.
            let others = all.iter().filter(|path| path.extension().is_none_or(|ending| ending != "jsonl"));
            let waits = others.filter(|path| raw(path).contains(&letter.token)).count();
            if in_logs > 0 { in_logs } else { waits.min(1) }
        };
        if times != 1 {
            broken.push(format!("{letter:?} was sent, and arrived {times} times"));
        }
    }

    let memories = world.memories();
    for memory in minutes.memories.iter().filter(|memory| !memories.join(memory).exists()) {
        broken.push(format!("{memory} was saved, and is not there"));
    }

    let texts: Vec<String> = log.iter().filter(|line| is_user(line)).map(text).collect();
    for id in texts.iter().flat_map(|text| launched(text)) {
        let told = format!("<task-id>{id}</task-id>");
        let times = texts.iter().filter(|text| text.contains(&told)).count();
        // Who is written to after its end goes on, and ends again.
        let name = name_of(&all, &id);
        let letters = minutes.written.iter().filter(|to| Some(*to) == name.as_ref()).count();
        if times == 0 || times > 1 + letters {
            broken.push(format!("the agent {id} was sent out, and its end is told {times} times"));
        }
    }
    minutes.broken.append(&mut broken);
}

/// The name by which an agent is written to.
fn name_of(all: &[PathBuf], id: &str) -> Option<String> {
    let meta = all.iter().find(|path| path.ends_with(format!("agent-{id}.meta.json")))?;
    serde_json::from_str::<Value>(&raw(meta)).ok()?["name"].as_str().map(str::to_owned)
}

/// The agents that a result says were sent to the background.
fn launched(text: &str) -> Vec<String> {
    let ids = text.split("works in the background as ").skip(1);
    ids.map(|rest| rest.chars().take_while(char::is_ascii_alphanumeric).collect()).collect()
}

fn is_user(line: &Value) -> bool {
    line["type"] == "user"
}

fn is_transcript(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "jsonl") && !path.to_string_lossy().contains("/ledger/")
}

fn text(line: &Value) -> String {
    match &line["message"]["content"] {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().map(|block| match block["text"].as_str() {
                Some(text) => text.to_owned(),
                None => block["content"].to_string(),
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    }
}

fn raw(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}

/// The whole lines of a file. Torn ones are nobody's.
fn lines(path: &Path) -> Vec<Value> {
    raw(path).lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn all_files(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}
