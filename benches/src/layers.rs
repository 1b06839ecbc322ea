//! What the layers cost before a request: nothing worth naming when none fires, and little when one does.
//!
//! A step is what happens between a tool's result and the next request: the layers decide, what they decide is appended,
//! and the request is made. The shortest of many runs counts, since it is the one that nothing disturbed.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use engine::context::breaks::Detector;
use engine::context::layer::{Decision, LayerChange, NeedAnswer};
use engine::context::layer_settings::ClearWhen;
use engine::context::list::LIST;
use engine::context::{Layers, Occasion, Situation, State};
use jiff::Timestamp;
use transcript::line::{Body, Line, TextSource};
use transcript::mark::{Ttl, mark};
use transcript::window::Window;
use transcript::{Block, Id, Log, Prologue, Request, Usage};

use crate::log::session;
use crate::table::{Row, Unit};

/// Rounds of a small and of a large session, a thousand tokens each.
const ROUNDS: [usize; 2] = [10, 1_000];
/// How often a step is taken.
const TRIES: usize = 50;

/// The cost of a step, in milliseconds.
pub(crate) fn measure(_: &Path) -> Result<Vec<Row>> {
    let [small, large] = ROUNDS.map(|rounds| session(rounds).0);
    let roomy = Window { size: 4_000_000, effective: 3_980_000 };
    let full = Window { size: 900_000, effective: 880_000 };
    let tiny = Window { size: 30_000, effective: 20_000 };
    let states = [&small, &large].map(|log| State::of(log.lines()));
    // Where only the window counts, nothing is weighed while there is room.
    let quiet =
        |log: &Log, state: &State| nothing_fires(log, &Layers { clear_when: ClearWhen::Window, ..of(&roomy) }, state);
    let (quiet_small, quiet_large) = (quiet(&small, &states[0])?, quiet(&large, &states[1])?);
    // So careful that nothing comes of it.
    let careful = Layers { caution: 1e9, ..of(&roomy) };
    let mut turn = states[1].clone();
    turn.pace.turn();
    let at_start = nothing_fires(&large, &careful, &turn)?;
    let midturn = nothing_fires(&large, &careful, &states[1])?;
    // All that was read stays, which has to be found out file by file.
    let mut keeping = of(&roomy);
    keeping.clear_numbers.likely_uses = 1e9;
    keeping.clear_numbers.uses = 1e9;
    let held = nothing_fires(&large, &keeping, &states[1])?;
    let projecting = shortest(|| drop(black_box(request(&large))));
    let clearing = shortest_of(|| large.clone(), |mut log| act(&mut log, &full));
    // A window that clearing does not help.
    let compacting = shortest_of(|| large.clone(), |mut log| act(&mut log, &tiny));
    let watching = breaks(&large)?;
    Ok(vec![
        Row::figure("deciding that nothing fires, at 1M", format!("{:.4} ms", quiet_large)),
        Row::at_most("  1M against 10K", Unit::Times, quiet_large / quiet_small, 1.2),
        Row::at_most("deciding at the start of a turn, at 1M", Unit::Milliseconds, at_start, 0.2),
        Row::at_most("deciding in the middle of a turn, at 1M", Unit::Milliseconds, midturn, 0.2),
        Row::at_most("deciding that all has to stay, at 1M", Unit::Milliseconds, held, 0.8),
        Row::at_most("decide and project, nothing fires, at 1M", Unit::Milliseconds, quiet_large + projecting, 1.0),
        Row::at_most("decide and project, results are cleared, at 1M", Unit::Milliseconds, clearing, 10.0),
        Row::at_most("decide and project, all is covered, at 1M", Unit::Milliseconds, compacting, 10.0),
        Row::at_most("watching for breaks, at 1M", Unit::Microseconds, watching * 1_000.0, 100.0),
    ])
}

fn of(window: &Window) -> Layers {
    Layers { window: *window, ..Layers::default() }
}

/// The shortest time to decide, in milliseconds; fails if something fires.
fn nothing_fires(log: &Log, layers: &Layers, state: &State) -> Result<f64> {
    ensure!(decide(log, layers, state).is_none(), "something fires");
    Ok(shortest(|| drop(black_box(decide(log, layers, state)))))
}

fn shortest(mut step: impl FnMut()) -> f64 {
    shortest_of(|| (), |()| step())
}

/// The shortest run, in milliseconds; making ready for one does not count.
fn shortest_of<T, R>(mut ready: impl FnMut() -> T, mut step: impl FnMut(T) -> R) -> f64 {
    let times = (0..TRIES).map(|_| {
        let given = ready();
        let start = Instant::now();
        let made = step(given);
        let took = start.elapsed().as_secs_f64() * 1_000.0;
        drop(black_box(made));
        took
    });
    times.fold(f64::INFINITY, f64::min)
}

/// What the layers would do now, up to the first that does something; what they need, they are told.
fn decide(log: &Log, layers: &Layers, state: &State) -> Option<LayerChange> {
    let now = Situation {
        occasion: &Occasion::Request,
        now: Timestamp::UNIX_EPOCH,
        layers,
        ttl: Ttl::FiveMinutes,
        state,
        notes: "",
        limit: &|_| None,
        done: &[],
    };
    let view = log.view();
    LIST.iter().find_map(|layer| match layer.decide(view, &now) {
        Decision::Nothing => None,
        Decision::Commit(change) => Some(change),
        Decision::Need(_) => layer.answered(view, &now, &NeedAnswer::Text("What was done.".into())).ok(),
    })
}

fn request(log: &Log) -> Request {
    let view = log.view();
    let prologue = view.prologue().cloned().unwrap_or_else(|| Prologue::default().into());
    let messages = view.messages();
    let marks = mark(&prologue, &messages, &view.seams(), Ttl::FiveMinutes);
    Request { prologue, messages, marks }
}

fn append(log: &mut Log, name: &str, body: Body) {
    log.append(Line::new(Id::from(name), log.tip().cloned(), Timestamp::UNIX_EPOCH, body));
}

/// Does what the layers decide.
fn act(log: &mut Log, window: &Window) -> Option<Request> {
    let change = decide(log, &of(window), &State::of(log.lines()))?;
    append(log, "commit", Body::Commit(change.commit));
    if let Some(text) = change.summary {
        append(log, "summary", Body::User { blocks: vec![Block::text(text)], source: TextSource::Summary });
    }
    Some(request(log))
}

fn breaks(log: &Log) -> Result<f64> {
    let usage = |read| Usage { cache_read_input_tokens: read, ..Usage::default() };
    let mut watched = Detector::default();
    watched.answered(request(log), &usage(1_000_000), Ttl::FiveMinutes, Timestamp::UNIX_EPOCH);
    let held = |(mut detector, sent): (Detector, Request)| {
        let told = detector.answered(sent, &usage(1_000_000), Ttl::FiveMinutes, Timestamp::UNIX_EPOCH);
        (detector, told)
    };
    let mut lost = watched.clone();
    let told = lost.answered(request(log), &usage(0), Ttl::FiveMinutes, Timestamp::UNIX_EPOCH);
    told.context("a break is told")?;
    Ok(shortest_of(|| (watched.clone(), request(log)), held))
}
