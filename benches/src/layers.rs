//! What the layers cost before a request: nothing worth naming when none fires, and little when one does.
//!
//! A step is what happens between a tool's result and the next request: the layers decide, what they decide is appended,
//! and the request is made. The shortest of many runs counts, since it is the one that nothing disturbed.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use engine::context::breaks::Detector;
use engine::context::micro::{self, KEPT_WHEN_IDLE, Situation, When};
use engine::context::worth::{Pace, Rates};
use engine::context::{compact, spill};
use jiff::Timestamp;
use transcript::commit::{Act, Commit, Extent, Reason, Trigger};
use transcript::line::{Body, Line, Source};
use transcript::mark::{Ttl, mark};
use transcript::window::{AutoCompact, Window};
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
    let quiet = |log: &Log| shortest(|| drop(black_box(decide(log, &roomy, When::Window))));
    let (quiet_small, quiet_large) = (quiet(&small), quiet(&large));
    let projecting = shortest(|| drop(black_box(request(&large))));
    let clearing = shortest_of(|| large.clone(), |mut log| clear(&mut log, &full));
    let compacting = shortest_of(|| large.clone(), |mut log| cover(&mut log, &full));
    let watching = breaks(&large)?;
    Ok(vec![
        Row::figure("deciding that nothing fires, at 1M", format!("{:.4} ms", quiet_large)),
        Row::at_most("  1M against 10K", Unit::Times, quiet_large / quiet_small, 1.2),
        Row::at_most("decide and project, nothing fires, at 1M", Unit::Milliseconds, quiet_large + projecting, 1.0),
        Row::at_most("decide and project, results are cleared, at 1M", Unit::Milliseconds, clearing, 10.0),
        Row::at_most("decide and project, all is covered, at 1M", Unit::Milliseconds, compacting, 10.0),
        Row::at_most("watching for breaks, at 1M", Unit::Microseconds, watching * 1_000.0, 100.0),
    ])
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

/// What the layers would do now.
fn decide(log: &Log, window: &Window, when: When) -> (usize, Option<micro::Clear>, bool) {
    let view = log.view();
    let fresh = view.fresh_results();
    let fresh: Vec<spill::Fresh<'_>> =
        fresh.iter().map(|(id, tool, result)| spill::Fresh { id, tool, result, limit: None }).collect();
    let situation = Situation {
        idle: None,
        window: *window,
        auto: AutoCompact::On,
        when,
        pace: &Pace::default(),
        rates: Rates::of(None, Ttl::FiveMinutes),
        kept_when_idle: KEPT_WHEN_IDLE,
        may_pay: true,
    };
    let due = compact::is_due(view.tally().count(), window, AutoCompact::On);
    (spill::decide(&fresh).len(), micro::decide(view, &situation), due)
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

fn clear(log: &mut Log, window: &Window) -> Option<Request> {
    let (_, clear, _) = decide(log, window, When::Window);
    let clear = clear?;
    let reason = Reason { freed: Some(clear.freed), changes_from: Some(clear.changes_from), why: Some(clear.why) };
    let act = Act::Clear { results: clear.results, trigger: Trigger::Auto, digest: None };
    append(log, "clear", Body::Commit(Commit { act, reason }));
    Some(request(log))
}

fn cover(log: &mut Log, window: &Window) -> Option<Request> {
    let view = log.view();
    let kept = compact::unanswered_from(view, window)?;
    let text = compact::framed(compact::Made::Summary, "What was done.", view, 0..kept, window);
    let extent = Extent::Before(view.line_of(kept)?.clone());
    let act = Act::Compact { extent, trigger: Trigger::Auto, pre_tokens: view.tally().count() };
    append(log, "boundary", Body::Commit(Commit { act, reason: Reason::default() }));
    append(log, "summary", Body::User { blocks: vec![Block::text(text)], source: Source::Summary });
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
