//! What the same work costs with the layers, with each alone, and with none.
//!
//! A scripted model does one numbered step after another; each runs a real command that prints so much. The simulated
//! provider bills it as the real one would, forks and output included. Costs are in tokens of input that is not cached:
//! a cache write is 1.25 of them, a cache read 0.1, a token of output 5.
//!
//! Without layers the work is done in a window of a million tokens, since it fits no smaller one; so it is with a layer
//! that makes no room by itself.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};
use engine::agent::{End, Parts};
use engine::context::When;
use engine::context::Layers;
use engine::provider::anthropic::{Anthropic, Auth, Config};
use engine::{Agent, Event, Home, Session, World};
use simulator::{Options, Script, Simulator};
use transcript::price::Prices;
use transcript::window::{AutoCompact, Window, WindowHints};

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
}

const WORKS: [Work; 2] = [
    Work { name: "100 steps of 10 KB", steps: 100, bytes: 10_000, all: 780_000.0, economy: Some(700_000.0) },
    Work { name: "40 steps of 60 KB", steps: 40, bytes: 60_000, all: 130_000.0, economy: None },
];

/// The cost of both pieces of work under each choice of layers.
pub(crate) fn measure(place: &Path) -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut rows = Vec::new();
    for work in &WORKS {
        let mut forked = Vec::new();
        let mut run = |name: &str, layers: Layers| -> Result<f64> {
            eprintln!("  {}, {name} …", work.name);
            let (cost, forks) = runtime.block_on(play(place, work, layers))?;
            forked.push(forks);
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
        let silent = run("all but notes", Layers { notes: false, ..usual.clone() })?;
        let all = run("all", usual.clone())?;
        let economy = run("all, economy", Layers { when: When::Economy, ..usual })?;
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
        if let Some(most) = work.economy {
            rows.push(Row::at_most("  all, economy", Unit::Tokens, economy, most));
        }
    }
    Ok(rows)
}

fn window(size: u64) -> Window {
    Window::of(&WindowHints { configured: Some(size), max_output: 32_000, ..WindowHints::default() })
}

/// Does the work once; gives what it cost in all, and what forks cost of it.
async fn play(place: &Path, work: &Work, layers: Layers) -> Result<(f64, f64)> {
    let root = std::fs::canonicalize(place)?.join("cost");
    let _ = std::fs::remove_dir_all(&root);
    let project = root.join("project");
    std::fs::create_dir_all(&project)?;
    equip(&project, work.bytes)?;
    let size = layers.window.size;
    let options = Options { window: Some(size), ..Options::default() };
    let simulator = Simulator::start(Script::parse(&script(work.steps))?, options).await?;
    let model = Anthropic::new(Config::new(simulator.url(), Auth::ApiKey("bench".into())))?;
    let session = Session::create(&Home::at(root.join("config")), &project, None, World::real())?;
    let mut parts = Parts::new(Arc::new(model), MODEL);
    parts.policy.mode = engine::tools::permission::Mode::BypassPermissions.into();
    parts.layers = layers;
    parts.listener = Arc::new(|event| {
        if let Event::Warning(text) = event {
            eprintln!("  {text}");
        }
    });
    let mut agent = Agent::new(session, parts)?;
    let turn = agent.say("Do all the steps.").await;
    ensure!(matches!(turn.end, End::Ended(_)), "the work was not done: {:?}", turn.end);
    agent.settled().await?;
    let done = std::fs::read_to_string(project.join("done.txt"))?.lines().count();
    ensure!(done == work.steps as usize, "{done} steps were done, not {}", work.steps);
    let (mut all, mut forks) = (0.0, 0.0);
    for line in simulator.report().requests {
        let written = (line.input.write_5m + line.input.write_1h) as f64;
        let cost =
            line.input.uncached as f64 + written * 1.25 + line.input.read as f64 * 0.1 + line.output as f64 * 5.0;
        all += cost;
        if line.rule.is_some_and(|rule| rule.starts_with("summary") || rule.starts_with("notes")) {
            forks += cost;
        }
    }
    simulator.shutdown().await;
    Ok((all, forks))
}

/// A command that leaves a mark and prints so many bytes.
fn equip(project: &Path, bytes: usize) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let line = |n: usize| format!("the parser reads line {n} of the module and finds nothing of note in its body\n");
    let mut text: String = (0..bytes / 70).map(line).collect();
    text.truncate(bytes);
    std::fs::write(project.join("output.txt"), text)?;
    std::fs::write(project.join("work"), "#!/bin/sh\necho \"$1\" >> done.txt\necho \"work $1\"\ncat output.txt\n")?;
    Ok(std::fs::set_permissions(project.join("work"), std::fs::Permissions::from_mode(0o755))?)
}

/// The model: it looks at what it sees, and does the next step. A summary of it has 900 tokens, an update of its notes 400.
fn script(steps: u32) -> String {
    include_str!("../../crates/engine/tests/it/worker.toml").replace("STEPS", &steps.to_string())
}
