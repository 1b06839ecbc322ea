//! What work costs, and what the model still knows at its end: the facts in the bytes of its last request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use context::{LayerTiming, Layers};
use engine::Event;
use transcript::Block;
use transcript::price::Prices;
use transcript::window::AutoCompact;

use crate::stage::{Stage, say, window};
use crate::worker;

/// After so many steps the user adds something.
const ADDS_AFTER: u32 = 10;

/// What came of it.
#[derive(Debug)]
struct Outcome {
    cost: f64,
    /// Facts of results and of the user that are in view at the end.
    facts: Vec<u32>,
    said: u32,
    added: u32,
    compactions: usize,
}

async fn work(steps: u32, bytes: usize, layers: Layers, script: &str) -> Outcome {
    worked(steps, bytes, layers, script).await.0
}

async fn worked(steps: u32, bytes: usize, layers: Layers, script: &str) -> (Outcome, Stage, engine::Agent) {
    let script = format!("[model]\nwindow = {}\n{script}{}", layers.window.size, worker::script(steps));
    let mut stage = Stage::new(&script).await;
    worker::equip(&stage.project(), bytes);
    stage.layers = layers;
    let (ran, added) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let inbox: Arc<std::sync::OnceLock<engine::QueuedMessages>> = Arc::default();
    let (adds, waiting) = (added.clone(), inbox.clone());
    stage.heard = Arc::new(move |event: &Event| {
        if matches!(event, Event::ToolEnded { tool, .. } if tool == "Bash")
            && (ran.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(ADDS_AFTER)
        {
            let number = adds.fetch_add(1, Ordering::Relaxed) + 1;
            waiting.get().unwrap().push(vec![Block::text(said(number))]);
        }
    });
    let mut agent = stage.agent(None);
    inbox.set(agent.inbox().clone()).unwrap();
    let turn = say(&mut agent, "Do all the steps.").await;
    agent.settled().await.unwrap();
    assert!(matches!(turn.end, engine::run::TurnEnd::Ended(_)), "{:?}", turn.end);
    assert_eq!(worker::done(&stage.project()), (1..=steps).collect::<Vec<_>>(), "a step was done twice, or not at all");
    let report = stage.simulator.report();
    let cost = report.requests.iter().map(|line| {
        let written = (line.input.write_5m + line.input.write_1h) as f64;
        line.input.uncached as f64 + written * 1.25 + line.input.read as f64 * 0.1 + line.output as f64 * 5.0
    });
    let main = report.requests.iter().rposition(|line| line.rule.as_deref() == Some("done")).unwrap();
    let last = stage.simulator.requests()[main]["messages"].to_string();
    let has = |fact: &str| last.contains(&format!("{fact}\\n")) || last.contains(&format!("{fact}\""));
    let added = added.load(Ordering::Relaxed);
    let compactions =
        stage.events.lock().unwrap().iter().filter(|event| matches!(event, Event::Compacted { .. })).count();
    let (lines, _) = session::record::lines(agent.session().path()).unwrap();
    let replayed = session::replay::replay_as_recorded(lines, &stage.layers, session::replay::SUMMARY_TOKENS);
    assert_eq!((replayed.differs_from, replayed.broken), (None, Vec::new()), "played again, it does the same");
    let is_fault = |event: &&Event| matches!(event, Event::CacheBroke(broke) if !broke.is_declared());
    let faults: Vec<String> =
        stage.events.lock().unwrap().iter().filter(is_fault).map(|event| format!("{event:?}")).collect();
    assert_eq!(faults, Vec::<String>::new(), "the cache held, for forks too");
    let outcome = Outcome {
        cost: cost.sum(),
        facts: (1..=steps).filter(|step| has(&fact(*step))).collect(),
        said: (1..=added).map(|number| u32::from(has(&said(number)))).sum(),
        added,
        compactions,
    };
    (outcome, stage, agent)
}

/// What the result of a step says that has to be remembered.
fn fact(step: u32) -> String {
    format!("FACT step {step}: v{step}-{}", step * 7919 % 100_003)
}

/// What the user adds, which has to be remembered, too.
fn said(number: u32) -> String {
    format!("FACT user {number}: u{number}-{}", number * 104_729 % 99_991)
}

fn usual() -> Layers {
    Layers { window: window(100_000), price: Prices::default().of("claude-sonnet-5"), ..Layers::default() }
}

/// MICRO-7, COMPACT-11: a model that writes nothing down unasked still has all facts in view after 100 steps of 10 KB in a
/// window of 100,000, and what the user said; and it costs less than 780,000 tokens of input, in economy less than 760,000.
#[tokio::test]
async fn nothing_is_forgotten_when_results_are_cleared() {
    let outcome = work(100, 10_000, usual(), "").await;
    assert!(outcome.facts.len() >= 98 && outcome.said == outcome.added, "{outcome:?}");
    assert!(outcome.cost <= 780_000.0, "{outcome:?}");
    let economy = work(100, 10_000, Layers { when: LayerTiming::Economy, ..usual() }, "").await;
    assert!(economy.facts.len() >= 98 && economy.said == economy.added, "{economy:?}");
    assert!(economy.cost <= outcome.cost.min(760_000.0), "{economy:?}");
}

/// COMPACT-3, COMPACT-12: with compaction alone summaries build on summaries, however many there are, and lose no fact.
#[tokio::test]
async fn nothing_is_forgotten_when_summaries_build_on_summaries() {
    let outcome = work(100, 10_000, Layers { notes: false, clear: false, ..usual() }, "").await;
    assert!(outcome.facts.len() >= 98 && outcome.said == outcome.added, "{outcome:?}");
    assert!(outcome.cost <= 820_000.0, "{outcome:?}");
}

/// NOTES-8: where nothing is cleared and the model says no word, notes cost no more than the summaries they take the place of.
#[tokio::test]
async fn notes_cost_no_more_than_the_summaries_they_save() {
    let compaction = Layers { auto_compact: AutoCompact::On, ..Layers::none(window(100_000)) };
    for (steps, bytes) in [(100, 10_000), (40, 60_000)] {
        let mut forks = Vec::new();
        for notes in [false, true] {
            let layers = Layers { notes, notes_compact: notes, ..compaction.clone() };
            let (_, _stage, agent) = worked(steps, bytes, layers, "").await;
            let usages = session::savings::of_forks(agent.session().log().lines());
            let rates = context::cache_economics::Rates::of(None, transcript::mark::Ttl::FiveMinutes);
            let cost = usages.iter().map(|(_, _, usage)| rates.cost(usage)).sum::<f64>();
            forks.push(cost);
        }
        assert!(forks[1] <= forks[0], "{steps} steps: {forks:?}");
    }
}

/// COLLAPSE-1, COLLAPSE-2: with collapse on and clearing off spans give way to summaries, and no fact is lost with them.
#[tokio::test]
async fn nothing_is_forgotten_when_spans_are_collapsed() {
    let outcome = work(100, 10_000, Layers { collapse: true, clear: false, ..usual() }, "").await;
    assert!(outcome.facts.len() >= 98 && outcome.said == outcome.added, "{outcome:?}");
    assert!(outcome.cost <= 820_000.0 && outcome.compactions == 0, "{outcome:?}");
}

/// MICRO-7: what went to disk keeps its beginning in view.
#[tokio::test]
async fn nothing_is_forgotten_when_results_go_to_disk() {
    let outcome = work(40, 60_000, usual(), "").await;
    assert!(outcome.facts.len() == 40 && outcome.said == outcome.added, "{outcome:?}");
    assert!(outcome.cost <= 125_000.0, "{outcome:?}");
}

/// MICRO-7, CACHE-4: where four results fill the window, they go again and again; who writes them down reads what is in the
/// cache, and writes nothing to it again.
#[tokio::test]
async fn what_is_written_down_of_large_results_is_read_from_the_cache() {
    let layers = Layers { clear: true, ..Layers::none(window(100_000)) };
    let (outcome, stage, _agent) = worked(14, 60_000, layers, "").await;
    assert_eq!(outcome.facts.len(), 14, "{outcome:?}");
    let report = stage.simulator.report();
    let digests: Vec<_> =
        report.requests.iter().filter(|line| line.rule.as_deref() == Some("digest")).map(|line| line.input).collect();
    assert!(digests.len() >= 4, "{digests:?}");
    assert!(digests.iter().all(|input| input.read > 10 * (input.write_5m + input.uncached)), "{digests:?}");
}

/// COMPACT-12: in a small window twenty compactions and more follow one another in one turn; the newest facts and all that
/// the user said stay in view.
#[tokio::test]
async fn a_long_turn_in_a_small_window_keeps_the_newest_facts() {
    let outcome = work(250, 10_000, Layers { window: window(48_000), ..usual() }, "").await;
    let newest = outcome.facts.iter().filter(|step| **step > 150).count();
    assert!(newest >= 95 && outcome.said == outcome.added, "{newest}: {outcome:?}");
    assert!(outcome.compactions >= 20, "{outcome:?}");
}

/// A model that looks up in the history what it does not see.
const HISTORIAN: &str = r#"
    [[rule]]
    name = "told"
    when = { user = "Which fact has step \\d+\\?", tool = "History", result = "(?P<fact>FACT step \\d+: v\\d+-\\d+)" }
    say = "{{ fact }}"
    [[rule]]
    name = "look it up"
    when = { user = "(?s).*Which fact has step (?P<n>\\d+)\\?" }
    call = [{ tool = "History", input = { query = "FACT step {{ n }}:" } }]
"#;

/// COMPACT-13, CACHE-2: what is out of view after a long turn in a small window is found by a model that uses History, each of
/// it; and the same work comes to the same cost, to the token.
#[tokio::test]
async fn what_is_out_of_view_is_found_in_the_history() {
    let layers = || Layers { window: window(40_000), digest: false, notes: false, ..usual() };
    let (outcome, _stage, mut agent) = worked(60, 5_000, layers(), HISTORIAN).await;
    let lost: Vec<u32> = (1..=60).filter(|step| !outcome.facts.contains(step)).collect();
    assert!(lost.len() > 20 && outcome.said == outcome.added, "{outcome:?}");
    for step in lost {
        let turn = say(&mut agent, &format!("Which fact has step {step}?")).await;
        assert_eq!(turn.text, fact(step));
    }
    let again = work(60, 5_000, layers(), HISTORIAN).await;
    assert_eq!((again.cost, again.facts), (outcome.cost, outcome.facts));
}

/// A model that writes down what each result said, in its next reply.
const WRITER: &str = r#"
    [[rule]]
    name = "last step"
    when = { result = "work STEPS: FACT" }
    say = "{{ result|matches('FACT [a-z]+ [0-9]+: [a-z0-9-]+')|join }} All STEPS steps are done."
    [[rule]]
    name = "written step"
    when = { result = "work (?P<n>\\d+): (?P<fact>FACT [a-z]+ [0-9]+: [a-z0-9-]+)" }
    say = "I note: {{ fact }}\n"
    call = [{ tool = "Bash", input = { command = "./work {{ n|int + 1 }}" } }]
"#;

/// MICRO-7: of a model that writes down itself what it needs nothing is asked, and it has all facts.
#[tokio::test]
async fn a_model_that_writes_down_what_it_needs_is_not_asked() {
    let writer = WRITER.replace("STEPS", "100").replace("\"last step\"", "\"done\"");
    let outcome = work(100, 10_000, usual(), &writer).await;
    assert!(outcome.facts.len() == 100 && outcome.said == outcome.added, "{outcome:?}");
    assert!(outcome.cost <= 720_000.0, "{outcome:?}");
}
