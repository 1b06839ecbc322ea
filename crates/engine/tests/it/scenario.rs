//! Scenarios: whole sessions against the simulated provider, each described in a file of its own.
//!
//! A scenario says in one sentence what happens, what the provider is like, and what is expected. On each, whatever it
//! is about, the same must hold: the user sees no overflow, the provider refuses nothing, the cache is read, nothing is
//! written twice without a reason, and no step is done twice because its trace was lost.

use std::fmt::Write as _;
use std::future::ready;
use std::sync::Arc;

use engine::Event;
use engine::run::TurnEnd;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use provider::Model;
use provider::anthropic::{Anthropic, Auth, Config};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::RwLock;
use transcript::Request;
use transcript::window::AutoCompact;

use crate::stage::{Stage, say, window};
use crate::worker;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    sentence: String,
    /// The provider's window.
    window: u64,
    /// What the provider counts, as a factor.
    #[serde(default = "one")]
    count_factor: f64,
    /// The client's window, where it is another.
    client_window: Option<u64>,
    steps: u32,
    bytes: usize,
    /// Rules and faults that come before the worker's.
    #[serde(default)]
    script: String,
    #[serde(default)]
    layers: Switches,
    /// What the user says; between two, time goes by.
    say: Vec<Said>,
    #[serde(default)]
    expect: Expected,
}

fn one() -> f64 {
    1.0
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    text: String,
    /// Repeats the text.
    #[serde(default = "once")]
    times: usize,
    /// Seconds before it.
    #[serde(default)]
    after: i64,
    /// Resumes the session before it, with this window.
    resumed_in: Option<u64>,
}

fn once() -> usize {
    1
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Switches {
    no_clear: bool,
    no_notes: bool,
    economy: bool,
    no_compact: bool,
    collapse: bool,
    reactive_only: bool,
}

/// What is expected beyond what must always hold.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Expected {
    spilled: usize,
    cleared: bool,
    compacted: usize,
    failed: usize,
    /// Refusals of the provider that the session has to survive.
    refused: u64,
    /// The turn ends with these words.
    answer: Option<String>,
    /// Or cannot begin, with these words.
    no_room: Option<String>,
}

/// A model with which a summary that is written beside the conversation is finished before the conversation goes on: how
/// many steps are done meanwhile must not depend on the machine.
struct SummariesFirst {
    model: Anthropic,
    /// Held while a summary is written.
    writing: Arc<RwLock<()>>,
}

impl Model for SummariesFirst {
    fn stream(&self, request: Request) -> BoxStream<'static, provider::Event> {
        let directive = request.messages.last().and_then(|message| message.blocks.last()?.as_text());
        let is_summary = directive.is_some_and(|text| text.contains("about to leave the window"));
        let events = self.model.stream(request);
        let writing = self.writing.clone();
        if is_summary {
            let held = writing.try_read_owned();
            return Box::pin(events.inspect(move |_| {
                let _until_it_ends = &held;
            }));
        }
        let summaries_first = async move {
            // One that was begun before this is a task that has not asked yet.
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            drop(writing.write().await);
        };
        Box::pin(stream::once(summaries_first).filter_map(|()| ready(None)).chain(events))
    }

    fn count_tokens(&self, request: Request) -> BoxFuture<'static, Result<u64, provider::Error>> {
        self.model.count_tokens(request)
    }

    fn edits_cache(&self) -> bool {
        self.model.edits_cache()
    }
}

async fn play(name: &str) {
    let file = format!("{}/tests/scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let scenario: Scenario = toml::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let script = format!(
        "[model]\nwindow = {}\ncount_factor = {}\n{}\n{}",
        scenario.window,
        scenario.count_factor,
        scenario.script,
        worker::script(scenario.steps)
    );
    let mut stage = Stage::new(&script).await;
    worker::equip(&stage.project(), scenario.bytes);
    let switches = &scenario.layers;
    stage.layers.window = window(scenario.client_window.unwrap_or(scenario.window));
    stage.layers.clear = !switches.no_clear;
    stage.layers.notes = !switches.no_notes;
    if switches.economy {
        stage.layers.when = context::LayerTiming::Economy;
    }
    (stage.layers.collapse, stage.layers.reactive_only) = (switches.collapse, switches.reactive_only);
    if switches.no_compact {
        stage.layers.auto_compact = AutoCompact::Off;
    }
    let writing = Arc::default();
    let agent_of = |stage: &Stage, resumed: Option<&str>| {
        stage.agent_with(resumed, |parts| {
            let model = Anthropic::new(Config::new(stage.simulator.url(), Auth::ApiKey("k".into()))).unwrap();
            parts.talk.model = Arc::new(SummariesFirst { model, writing: Arc::clone(&writing) });
        })
    };
    let mut agent = agent_of(&stage, None);
    let mut ends = Vec::new();
    for said in &scenario.say {
        stage.wait(said.after);
        if let Some(size) = said.resumed_in {
            let id = agent.session().id().to_owned();
            drop(agent);
            stage.layers.window = window(size);
            agent = agent_of(&stage, Some(&id));
        }
        let turn = say(&mut agent, &said.text.repeat(said.times)).await;
        agent.settled().await.unwrap();
        ends.push(turn);
    }
    let last = ends.last().unwrap();
    let expect = &scenario.expect;
    match (&last.end, &expect.no_room) {
        (TurnEnd::NoRoom(why), Some(words)) => assert!(why.contains(words.as_str()), "{why}"),
        (TurnEnd::Ended(_), None) => {}
        (end, _) => panic!("{name}: {end:?}"),
    }
    if let Some(words) = &expect.answer {
        assert!(last.text.contains(words.as_str()), "{name}: {}", last.text);
    }
    holds(&stage, expect, scenario.steps);
    plays_again(&stage, &agent, name);
    if stage.simulator.report().requests.is_empty() {
        return;
    }
    insta::with_settings!({ description => scenario.sentence, omit_expression => true, snapshot_path => "../scenarios" }, {
        insta::assert_snapshot!(name, shape(&stage));
    });
}

/// REACT-3: a session played again with the settings it had does what it did.
fn plays_again(stage: &Stage, agent: &engine::Agent, name: &str) {
    let (lines, _) = session::record::lines(agent.session().path()).unwrap();
    let replayed = session::replay::replay_as_recorded(lines, &stage.layers, session::replay::SUMMARY_TOKENS);
    assert_eq!(replayed.differs_from, None, "{name}: {:?}", replayed.rounds.last());
    assert_eq!(replayed.broken, [""; 0], "{name}");
}

/// What must hold on every scenario.
fn holds(stage: &Stage, expect: &Expected, steps: u32) {
    let report = stage.simulator.report();
    let mut story = String::new();
    for line in &report.requests {
        let _ = writeln!(
            story,
            "{:3} {:16} uncached {:6} written {:6} read {:6} output {:5} {} {}",
            line.index,
            line.rule.as_deref().unwrap_or_default(),
            line.input.uncached,
            line.input.written(),
            line.input.read,
            line.output,
            line.status,
            line.error.as_deref().unwrap_or_default()
        );
    }
    let events = stage.events.lock().unwrap();
    let mut cleared = 0;
    let (mut spilled, mut compacted, mut failed, mut attempts) = (0, 0, 0, 0);
    for event in events.iter() {
        match event {
            Event::Spilled { results, .. } => spilled += results,
            Event::Cleared { .. } => cleared += 1,
            Event::Compacted { .. } => compacted += 1,
            Event::CompactionFailed { .. } => failed += 1,
            Event::Compacting { .. } => attempts += 1,
            Event::Replied { .. } => attempts = 0,
            Event::CacheBroke(broke) => assert!(broke.is_declared(), "{broke:?}\n{story}"),
            _ => {}
        }
        assert!(attempts <= 1, "a further compaction needs a reply since the last\n{story}");
        let _ = match event {
            Event::Cleared { .. }
            | Event::Compacted { .. }
            | Event::CompactionFailed { .. }
            | Event::NotesUpdated { .. } => {
                writeln!(story, "{event:?}")
            }
            _ => Ok(()),
        };
    }
    assert_eq!(report.totals.refused, expect.refused, "{story}");
    assert_eq!(spilled, expect.spilled, "{story}");
    assert_eq!(cleared > 0, expect.cleared, "{story}");
    assert_eq!((compacted, failed), (expect.compacted, expect.failed), "{story}");
    let done = worker::done(&stage.project());
    assert_eq!(done, (1..=u32::try_from(done.len()).unwrap()).collect::<Vec<_>>(), "a step was done twice\n{story}");
    assert!(expect.no_room.is_some() || done.len() == steps as usize, "{} steps of {steps}\n{story}", done.len());
    cache_holds(&report, &story);
}

/// Outside declared breaks at least 95 % of what was sent before is read from the cache; between two breaks the cache is
/// written at most 1.3 times; and who summarises reads nine tenths of its input from the cache.
fn cache_holds(report: &simulator::Report, story: &str) {
    let answered = || report.requests.iter().filter(|line| line.status == 200);
    let is_side = |line: &&simulator::RequestLine| {
        line.rule.as_deref().is_some_and(|rule| rule.starts_with("summary") || rule.starts_with("notes"))
    };
    let (mut expected, mut read) = (0, 0);
    let mut before: Option<u64> = None;
    let (mut written, mut largest) = (0_u64, 0_u64);
    for line in answered().filter(|line| !is_side(line)) {
        let broke =
            before.is_some_and(|before| line.input.read * 100 < before * 95 && before - line.input.read > 2_000);
        if broke {
            assert!(written as f64 <= largest as f64 * 1.3, "{written} written for a window of {largest}\n{story}");
            (written, largest) = (0, 0);
        } else if let Some(before) = before {
            expected += before;
            read += line.input.read.min(before);
        }
        written += line.input.written();
        largest = largest.max(line.input.total());
        before = Some(line.input.read + line.input.written());
    }
    assert!(read as f64 >= expected as f64 * 0.95, "{read} of {expected} read\n{story}");
    for line in answered().filter(|line| line.rule.as_deref() == Some("summary")) {
        assert!(line.input.read * 10 >= line.input.total() * 9, "a summary read too little from the cache\n{story}");
    }
}

/// What the model saw last: one line for each kind of block in a row.
fn shape(stage: &Stage) -> String {
    let request = stage.simulator.requests().into_iter().next_back().unwrap();
    let mut lines: Vec<(String, usize)> = vec![(format!("tools {}", request["tools"].as_array().unwrap().len()), 1)];
    let mut add = |line: String| match lines.last_mut() {
        Some((last, times)) if *last == line => *times += 1,
        _ => lines.push((line, 1)),
    };
    for block in request["system"].as_array().unwrap() {
        add(format!("system{}", mark(block)));
    }
    for message in request["messages"].as_array().unwrap() {
        let mut kinds: Vec<String> = Vec::new();
        for block in message["content"].as_array().unwrap() {
            kinds.push(kind(block) + mark(block));
        }
        kinds.dedup_by(|a, b| a == b);
        add(format!("{}: {}", message["role"].as_str().unwrap(), kinds.join(" + ")));
    }
    // A call and its result are two lines; many of the same in a row are one.
    let mut out: Vec<String> = Vec::new();
    let mut pairs: Vec<(String, usize)> = Vec::new();
    for (line, times) in lines {
        let pair = match pairs.last_mut() {
            Some((last, _)) if line.starts_with("user: result") && last.ends_with("call Bash") => {
                last.push_str(" → ");
                last.push_str(&line["user: ".len()..]);
                None
            }
            _ => Some((line, times)),
        };
        if let Some(pair) = pair {
            pairs.push(pair);
        }
    }
    for (line, times) in pairs {
        match out.last_mut() {
            Some(last) if last.split(" ×").next() == Some(line.as_str()) => {
                let count: usize = last.rsplit_once(" ×").and_then(|(_, n)| n.parse().ok()).unwrap_or(1);
                *last = format!("{line} ×{}", count + times);
            }
            _ => out.push(if times > 1 { format!("{line} ×{times}") } else { line }),
        }
    }
    out.join("\n")
}

fn mark(block: &Value) -> &'static str {
    if block["cache_control"].is_object() { " *" } else { "" }
}

fn kind(block: &Value) -> String {
    let size = |bytes: usize| match bytes {
        0..1_000 => "short".to_owned(),
        _ => format!("{} KB", (bytes + 500) / 1_000),
    };
    match block["type"].as_str().unwrap() {
        "tool_use" => format!("call {}", block["name"].as_str().unwrap()),
        "tool_result" => {
            let text = block["content"][0]["text"].as_str().unwrap_or_default();
            match text {
                "[Old tool result content cleared]" => "result cleared".to_owned(),
                _ if text.starts_with("[Old tool result content cleared]") => "results written down".to_owned(),
                _ if text.starts_with("<persisted-output>") => "result in a file".to_owned(),
                _ => format!("result {}", size(text.len())),
            }
        }
        "text" => {
            let text = block["text"].as_str().unwrap();
            let begins: String = text.chars().take(60).collect();
            format!("text {} {begins:?}", size(text.len()))
        }
        other => other.to_owned(),
    }
}

macro_rules! scenarios {
    ($($name:ident: $ids:literal,)*) => {
        $(#[doc = $ids] #[tokio::test] async fn $name() { play(stringify!($name)).await; })*

        /// Every file is played.
        #[test]
        fn every_scenario_is_played() {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenarios");
            let files = std::fs::read_dir(folder).unwrap().filter_map(|entry| {
                entry.unwrap().file_name().into_string().unwrap().strip_suffix(".toml").map(str::to_owned)
            });
            let mut files: Vec<String> = files.collect();
            let mut played = vec![$(stringify!($name).to_owned()),*];
            files.sort();
            played.sort();
            assert_eq!(files, played);
        }
    };
}

scenarios! {
    pure_append: "LOG-5, CACHE-2: nothing is changed, so nothing is written twice.",
    one_huge_result: "SPILL-1: a result of 300 KB leaves a preview.",
    ten_large_results: "SPILL-3: ten results of 30 KB in one reply are too much together.",
    many_steps_in_a_small_window: "MICRO-5, COMPACT-12: 200 steps in a window of 64K.",
    what_was_read_in_a_small_window: "MICRO-8: what was read stays in the middle of a turn.",
    idle_past_the_cache: "MICRO-2: after two hours old results are cleared, since the cache is gone.",
    a_provider_that_counts_more: "TOK-3, REACT-1: a provider that counts 15 % more than was estimated.",
    notes_instead_of_a_summary: "NOTES-2, COMPACT-2: notes are ready when the window is full, and no summary is paid.",
    a_summary: "COMPACT-3, FORK-2: without notes a fork summarises, from the parent's cache.",
    a_summariser_that_fails: "COMPACT-8, COMPACT-12: a summariser that is never there.",
    a_summariser_that_says_nothing: "COMPACT-12: a summary without a word in it.",
    a_summariser_that_never_ends: "COMPACT-3: a summary five times too long is cut.",
    a_smaller_window: "REACT-1, COMPACT-1: the model is switched to one with a smaller window.",
    a_giant_prompt: "COMPACT-4: what the user just said stays, however long it is.",
    a_prompt_larger_than_the_window: "SPILL-1, REACT-1: a prompt that could never be sent is kept in a file.",
    a_window_smaller_than_known: "REACT-1, REACT-4: a refusal is withheld, the newest rounds are summarised, and the prefix stays.",
    no_room_at_all: "COMPACT-12: system and tools alone are too much, and that is said.",
    spans: "COLLAPSE-1, COLLAPSE-2, COLLAPSE-3: spans give way to summaries, and nothing is compacted.",
    only_when_refused: "REACT-1, REACT-2: nothing is compacted before the provider says no; then it is, and the turn goes on.",
    economy: "COMPACT-14: context is made shorter as soon as that is cheaper.",
}
