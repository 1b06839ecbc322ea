//! What the same work costs with the layers, with each alone, and with none; and what the model still knows at its end.
//!
//! A scripted model does one numbered step after another; each runs a real command that prints so much, with a fact in
//! its first line, and after every tenth step the user adds another. The model writes nothing down unless it is asked to;
//! asked, it writes the facts that it sees. Facts are counted in the bytes of its last request. The simulated provider
//! bills it as the real one would, forks and output included. Costs are in tokens of input that is not cached: a cache
//! write is 1.25 of them, a cache read 0.1, a token of output 5.
//!
//! Without layers the work is done in a window of a million tokens, since it fits no smaller one; so it is with a layer
//! that makes no room by itself.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, ensure};
use engine::agent::Parts;
use engine::context::{Layers, LayerTiming};
use engine::provider::anthropic::{Anthropic, Auth, Config};
use engine::run::TurnEnd;
use engine::{Agent, Event};
use session::{Home, Session, World};
use simulator::{Options, Script, Simulator};
use transcript::line::Body;
use transcript::price::Prices;
use transcript::window::{AutoCompact, Window, WindowHints};
use transcript::{Block, Id};

use crate::table::{Row, Unit};

/// The model, for its prices.
const MODEL: &str = "claude-sonnet-5";
/// The window of the work.
const WINDOW: u64 = 100_000;
/// The window where nothing makes room.
const LARGE: u64 = 1_000_000;
/// No layer may cost more than this, against none.
const MOST: f64 = 1.02;

/// A piece of work, and what it may cost.
struct Work {
    name: &'static str,
    steps: u32,
    bytes: usize,
    all: f64,
    economy: Option<f64>,
    /// The part of the facts that has to be in view at the end.
    facts: f64,
}

const WORKS: [Work; 2] = [
    Work {
        name: "100 steps of 10 KB",
        steps: 100,
        bytes: 10_000,
        all: 733_410.0,
        economy: Some(733_410.0),
        facts: 0.98,
    },
    Work { name: "40 steps of 60 KB", steps: 40, bytes: 60_000, all: 117_626.0, economy: None, facts: 1.0 },
];
/// The long work in a small window: its steps, its window, and how many of its newest facts count.
const LONG: Work =
    Work { name: "500 steps of 10 KB", steps: 500, bytes: 10_000, all: f64::MAX, economy: None, facts: 0.95 };
const SMALL: u64 = 64_000;
const NEWEST: u32 = 100;
/// What compaction or collapse may cost where nothing is cleared, and a model that writes down itself what it needs.
const INSTEAD: f64 = 820_000.0;
const WRITER: f64 = 720_000.0;
/// After so many steps the user adds something.
const ADDS_AFTER: u32 = 10;

/// The cost of both pieces of work under each choice of layers.
pub(crate) fn measure(place: &Path) -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut rows = Vec::new();
    for work in &WORKS {
        let (mut forked, mut known) = (Vec::new(), Vec::new());
        let mut run = |name: &str, layers: Layers| -> Result<f64> {
            eprintln!("  {}, {name} …", work.name);
            let outcome = runtime.block_on(play(place, work, layers, ""))?;
            let Outcome { cost, forks, .. } = outcome;
            forked.push(forks);
            known.push(outcome.facts(1));
            let forks = if forks > 0.0 { format!(", of it {forks:.0} for forks") } else { String::new() };
            rows.push(Row::figure(format!("{}, {name}", work.name), format!("{cost:.0}{forks}")));
            Ok(cost)
        };
        let none = run("no layers", Layers::none(window(LARGE)))?;
        let spill = run("spill alone", Layers { spill: true, ..Layers::none(window(LARGE)) })?;
        let notes = run("notes alone", Layers { notes: true, ..Layers::none(window(LARGE)) })?;
        let clear = run("clear alone", Layers { clear: true, ..Layers::none(window(WINDOW)) })?;
        let compaction = Layers { auto_compact: AutoCompact::On, ..Layers::none(window(WINDOW)) };
        let compact = run("compact alone", compaction.clone())?;
        let noted = run("compact with notes", Layers { notes: true, notes_compact: true, ..compaction })?;
        let usual = Layers { window: window(WINDOW), price: Prices::default().of(MODEL), ..Layers::default() };
        let spans = Layers { collapse: true, clear: false, window: window(WINDOW), ..Layers::default() };
        let collapsed = run("collapse, nothing cleared", spans)?;
        let silent = run("all but notes", Layers { notes: false, ..usual.clone() })?;
        let all = run("all", usual.clone())?;
        let economy = run("all, economy", Layers { when: LayerTiming::Economy, ..usual })?;
        let choices = [
            ("spill alone", spill),
            ("notes alone", notes),
            ("clear alone", clear),
            ("compact alone", compact),
            ("compact with notes", noted),
            ("all", all),
            ("all, economy", economy),
        ];
        for (name, cost) in choices {
            rows.push(Row::at_most(format!("  {name} against none"), Unit::Times, cost / none, MOST));
        }
        // The fifth and the sixth run: what summaries cost, and what notes in their place did.
        rows.push(Row::at_most("  notes against the summaries they save", Unit::Times, forked[5] / forked[4], 1.0));
        rows.push(Row::at_most("  all against all but notes", Unit::Times, all / silent, 1.0));
        rows.push(Row::at_most("  all", Unit::Tokens, all, work.all));
        rows.push(Row::at_least("  all, facts in view", Unit::Percent, known[8], work.facts));
        if let Some(most) = work.economy {
            rows.push(Row::at_most("  all, economy", Unit::Tokens, economy, most.min(all)));
            rows.push(Row::at_least("  all, economy, facts in view", Unit::Percent, known[9], work.facts));
            rows.push(Row::at_most("  collapse, nothing cleared", Unit::Tokens, collapsed, INSTEAD));
            rows.push(Row::at_least("  collapse, facts in view", Unit::Percent, known[6], work.facts));
            rows.push(Row::at_most("  compact alone", Unit::Tokens, compact, INSTEAD));
            rows.push(Row::at_least("  compact alone, facts in view", Unit::Percent, known[4], work.facts));
        }
    }
    let usual = Layers { window: window(WINDOW), price: Prices::default().of(MODEL), ..Layers::default() };
    eprintln!("  a model that writes down what it needs …");
    let writer = runtime.block_on(play(place, &WORKS[0], usual.clone(), WRITES))?;
    rows.push(Row::at_most("a model that writes down what it needs", Unit::Tokens, writer.cost, WRITER));
    rows.push(Row::at_least("  facts in view", Unit::Percent, writer.facts(1), 1.0));
    eprintln!("  {} in a window of {SMALL} …", LONG.name);
    let long = runtime.block_on(play(place, &LONG, Layers { window: window(SMALL), ..usual }, HISTORIAN))?;
    rows.push(Row::figure(format!("{} in a window of {SMALL}", LONG.name), format!("{:.0}", long.cost)));
    rows.push(Row::at_least("  newest facts in view", Unit::Percent, long.facts(LONG.steps - NEWEST + 1), LONG.facts));
    rows.push(Row::at_least("  what the user said in view", Unit::Percent, long.said, 1.0));
    rows.push(Row::at_least("  the others by a visible id", Unit::Percent, long.reachable, 1.0));
    rows.push(Row::at_least("  the others found in the history", Unit::Percent, long.found, 1.0));
    Ok(rows)
}

/// What came of a piece of work.
struct Outcome {
    cost: f64,
    /// What forks cost of it.
    forks: f64,
    /// Which steps' facts are in the last request.
    known: Vec<bool>,
    /// The part of what the user added that is there.
    said: f64,
    /// The part of the other facts whose id is there, alone or within a span.
    reachable: f64,
    /// The part of them that a model which uses History finds.
    found: f64,
}

impl Outcome {
    /// The part of the facts from a step on that is in view.
    fn facts(&self, from: u32) -> f64 {
        let of = &self.known[from as usize - 1..];
        of.iter().filter(|known| **known).count() as f64 / of.len().max(1) as f64
    }
}

fn window(size: u64) -> Window {
    Window::of(&WindowHints { configured: Some(size), max_output: 32_000, ..WindowHints::default() })
}

/// Does the work once. Rules given come before the worker's own.
async fn play(place: &Path, work: &Work, layers: Layers, rules: &str) -> Result<Outcome> {
    let root = std::fs::canonicalize(place)?.join("cost");
    let _ = std::fs::remove_dir_all(&root);
    let project = root.join("project");
    std::fs::create_dir_all(&project)?;
    equip(&project, work.bytes)?;
    let size = layers.window.size;
    let options = Options { window: Some(size), ..Options::default() };
    let script = format!("{}{}", rules.replace("STEPS", &work.steps.to_string()), script(work.steps));
    let simulator = Simulator::start(Script::parse(&script)?, options).await?;
    let model = Anthropic::new(Config::new(simulator.url(), Auth::ApiKey("bench".into())))?;
    let session = Session::create(&Home::at(root.join("config")), &project, None, world())?;
    let mut parts = Parts::new(Arc::new(model), MODEL);
    parts.consent.policy.mode = engine::tools::permission::Mode::BypassPermissions.into();
    parts.talk.layers = layers;
    let (inbox, ran) = (Arc::new(OnceLock::<engine::QueuedMessages>::new()), AtomicU32::new(0));
    let waiting = inbox.clone();
    parts.out.listener = Arc::new(move |event| match event {
        Event::Warning(text) => eprintln!("  {text}"),
        Event::ToolEnded { .. } => {
            let done = ran.fetch_add(1, Ordering::Relaxed) + 1;
            if let (true, Some(inbox)) = (done.is_multiple_of(ADDS_AFTER), waiting.get()) {
                inbox.push(vec![Block::text(added(done / ADDS_AFTER))]);
            }
        }
        _ => {}
    });
    let mut agent = Agent::new(session, parts)?;
    inbox.set(agent.inbox().clone()).ok().context("the inbox is set once")?;
    let turn = agent.say("Do all the steps.").await;
    ensure!(matches!(turn.end, TurnEnd::Ended(_)), "the work was not done: {:?}", turn.end);
    agent.settled().await?;
    let done = std::fs::read_to_string(project.join("done.txt"))?.lines().count();
    ensure!(done == work.steps as usize, "{done} steps were done, not {}", work.steps);
    let (mut cost, mut forks, mut last) = (0.0, 0.0, None);
    for (at, line) in simulator.report().requests.into_iter().enumerate() {
        let written = (line.input.write_5m + line.input.write_1h) as f64;
        let paid =
            line.input.uncached as f64 + written * 1.25 + line.input.read as f64 * 0.1 + line.output as f64 * 5.0;
        cost += paid;
        let rule = line.rule.unwrap_or_default();
        if ["summary", "notes", "digest"].iter().any(|fork| rule.starts_with(fork)) {
            forks += paid;
        } else {
            last = Some(at);
        }
    }
    let last = simulator.requests()[last.context("something was sent")?]["messages"].to_string();
    let has = |fact: &str| last.contains(&format!("{fact}\\n")) || last.contains(&format!("{fact}\""));
    let known: Vec<bool> = (1..=work.steps).map(|step| has(&fact(step))).collect();
    let added: Vec<bool> = (1..=work.steps / ADDS_AFTER).map(|number| has(&self::added(number))).collect();
    let share = |of: &[bool]| of.iter().filter(|one| **one).count() as f64 / of.len().max(1) as f64;
    let reachable: Vec<bool> = unknown_ids(&agent, &known).iter().map(|id| is_named(&agent, id, &last)).collect();
    let said = share(&added);
    let reachable = if reachable.is_empty() { 1.0 } else { share(&reachable) };
    let mut found = Vec::new();
    if rules == HISTORIAN {
        for step in (1..=work.steps).filter(|step| !known[*step as usize - 1]) {
            let turn = agent.say(&format!("Which fact has step {step}?")).await;
            found.push(turn.text == fact(step));
        }
    }
    let found = if found.is_empty() { 1.0 } else { share(&found) };
    simulator.shutdown().await;
    Ok(Outcome { cost, forks, known, said, reachable, found })
}

/// Names in order: the prompt has the session's, and the same work is to cost the same.
fn world() -> World {
    let named = AtomicU32::new(0);
    World::new(jiff::Timestamp::now, move |_| {
        Id::from(format!("00000000-0000-7000-8000-{:012}", named.fetch_add(1, Ordering::Relaxed)))
    })
}

/// The replies whose calls brought facts that are out of view, by line.
fn unknown_ids(agent: &Agent, known: &[bool]) -> Vec<Id> {
    let mut ids = Vec::new();
    for line in agent.session().log().lines() {
        let Body::Assistant { blocks, .. } = &line.body else { continue };
        let command = blocks.iter().find_map(|block| block.input()?.get("command")?.as_str().map(str::to_owned));
        let step = command.and_then(|command| command.strip_prefix("./work ")?.parse::<usize>().ok());
        if step.is_some_and(|step| !known[step - 1]) {
            ids.extend(line.id.clone());
        }
    }
    ids
}

/// Whether a reply is named in a request: itself, a call of its own, or as part of a span.
fn is_named(agent: &Agent, id: &Id, request: &str) -> bool {
    let view = agent.session().log().view();
    let Some(item) = view.item_of(id) else { return false };
    let own = view.entries(item..item + 1).any(|entry| entry.calls().any(|call| request.contains(&**call.id)));
    let within = || {
        request.split(" … ").collect::<Vec<_>>().windows(2).any(|around| {
            let is_end = |c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_');
            let first = around[0].rsplit(is_end).next().unwrap_or_default();
            let last = around[1].split(is_end).next().unwrap_or_default();
            let place =
                |id: &str| view.item_of(&Id::from(id.trim_start_matches('n')).clone()).or(view.item_of(&Id::from(id)));
            place(first).zip(place(last)).is_some_and(|(first, last)| (first..=last).contains(&item))
        })
    };
    own || request.contains(id.as_str()) || within()
}

/// What the result of a step says that has to be remembered.
fn fact(step: u32) -> String {
    format!("FACT step {step}: v{step}-{}", step * 7919 % 100_003)
}

/// What the user adds, which has to be remembered, too.
fn added(number: u32) -> String {
    format!("FACT user {number}: u{number}-{}", number * 104_729 % 99_991)
}

/// A model that looks up in the history what it is asked about.
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

/// A model that writes down what each result said, in its next reply.
const WRITES: &str = r#"
    [[rule]]
    name = "done"
    when = { result = "work STEPS: FACT" }
    say = "{{ result|matches('FACT [a-z]+ [0-9]+: [a-z0-9-]+')|join }}\nAll STEPS steps are done."
    [[rule]]
    name = "written step"
    when = { result = "work (?P<n>\\d+): (?P<fact>FACT [a-z]+ [0-9]+: [a-z0-9-]+)" }
    say = "I note: {{ fact }}\n"
    call = [{ tool = "Bash", input = { command = "./work {{ n|int + 1 }}" } }]
"#;

/// A command that leaves a mark and prints so many bytes.
fn equip(project: &Path, bytes: usize) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let line = |n: usize| format!("the parser reads line {n} of the module and finds nothing of note in its body\n");
    let mut text: String = (0..bytes / 70).map(line).collect();
    text.truncate(bytes);
    std::fs::write(project.join("output.txt"), text)?;
    let tool = "#!/bin/sh\necho \"$1\" >> done.txt\n\
                echo \"work $1: FACT step $1: v$1-$(($1 * 7919 % 100003))\"\ncat output.txt\n";
    std::fs::write(project.join("work"), tool)?;
    Ok(std::fs::set_permissions(project.join("work"), std::fs::Permissions::from_mode(0o755))?)
}

/// The model: it looks at what it sees, and does the next step.
fn script(steps: u32) -> String {
    include_str!("../../crates/engine/tests/it/worker.toml").replace("STEPS", &steps.to_string())
}
