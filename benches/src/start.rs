//! Starting the program: `cairn --version`, from nothing to the prompt.
//!
//! This one is wall time by nature, so it is the median of many runs; the count of instructions beside it tells whether
//! a slow one was the program or the machine.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::count::{self, Scope};
use crate::table::{Row, Unit};

/// In milliseconds.
const TARGET: f64 = 10.0;

/// How many runs the median is of.
const RUNS: usize = 20;

/// The time a start takes, and the instructions.
pub(crate) fn measure(place: &Path) -> Result<Vec<Row>> {
    let cairn = place.join("release/cairn");
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let start = Instant::now();
        let status = Command::new(&cairn).arg("--version").stdout(Stdio::null()).status();
        times.push(start.elapsed().as_secs_f64() * 1e3);
        if !status.with_context(|| format!("{} is not built", cairn.display()))?.success() {
            bail!("`cairn --version` fails");
        }
    }
    times.sort_by(f64::total_cmp);
    let mut rows =
        vec![Row::at_most(format!("cairn --version, median of {RUNS}"), Unit::Milliseconds, times[RUNS / 2], TARGET)];
    if count::is_possible() {
        let count = count::instructions(&Scope::Program, &cairn, &["--version"])?;
        rows.push(Row::figure("  of which the program", format!("{:.2} M instructions", count as f64 / 1e6)));
    }
    Ok(rows)
}
