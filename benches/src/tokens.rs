//! How far the count made before a request is from what the provider then reported, over recorded sessions.
//!
//! The recordings lie beside the repository where there are any, and else among the tests of `transcript` (too few to
//! say much). The rough estimator has no target; it stands there for comparison.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use transcript::line::{Body, Line};
use transcript::tokens::Estimator;
use transcript::{Id, Log, predictions};

use crate::table::{Row, Unit};

/// Where recordings are looked for, the first that exists.
const RECORDINGS: [&str; 2] = ["../shared/fixtures/transcripts", "crates/transcript/tests/data"];

/// The error of half of all requests.
const MEDIAN: f64 = 0.01;

/// The error of all but a twentieth.
const P95: f64 = 0.05;

/// The errors of both estimators.
pub(crate) fn measure(_: &Path) -> Result<Vec<Row>> {
    let (mut fitted, mut rough) = (Vec::new(), Vec::new());
    let paths = recordings()?;
    for path in &paths {
        let (lines, _) = session::record::lines(path)?;
        fitted.extend(predictions(lines.clone()).iter().map(|prediction| prediction.error()));
        rough.extend(rough_errors(lines));
    }
    if fitted.is_empty() || fitted.len() != rough.len() {
        bail!("{} predictions by one estimator, {} by the other", fitted.len(), rough.len());
    }
    fitted.sort_by(f64::total_cmp);
    rough.sort_by(f64::total_cmp);
    let rank = |errors: &[f64], percent: usize| errors[errors.len() * percent / 100];
    let percent = |error: f64| format!("{:.2} %", error * 100.0);
    Ok(vec![
        Row::figure("recorded requests", format!("{} in {} sessions", fitted.len(), paths.len())),
        Row::at_most("error of the fitted estimator, median", Unit::Percent, rank(&fitted, 50), MEDIAN),
        Row::at_most("error of the fitted estimator, p95", Unit::Percent, rank(&fitted, 95), P95),
        Row::figure("error of the rough estimator, median", percent(rank(&rough, 50))),
        Row::figure("error of the rough estimator, p95", percent(rank(&rough, 95))),
    ])
}

fn recordings() -> Result<Vec<PathBuf>> {
    for folder in RECORDINGS {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
        paths.sort();
        if !paths.is_empty() {
            return Ok(paths);
        }
    }
    bail!("no recorded sessions in any of: {}", RECORDINGS.join(", "))
}

/// As [`predictions`] makes them, with the other estimator for what was said since the last report.
fn rough_errors(lines: Vec<Line>) -> Vec<f64> {
    let (mut errors, mut last, mut known): (Vec<f64>, Option<Id>, bool) = (Vec::new(), None, false);
    Log::load_watching(lines, |view, line| {
        known |= view.prologue().is_some();
        let Body::Assistant { id, usage: Some(usage), .. } = &line.body else { return };
        if usage.context() == 0 || last.as_ref() == Some(id) {
            return;
        }
        let mut tally = view.tally().clone();
        tally.use_estimator(Estimator::Rough);
        errors.push(tally.count().abs_diff(usage.context()) as f64 / usage.context() as f64);
        last = Some(id.clone());
    });
    if !known && !errors.is_empty() {
        errors.remove(0); // nothing says what stood before the messages
    }
    errors
}
