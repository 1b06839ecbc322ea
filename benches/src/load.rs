//! Loading a long transcript is fast because what the model does not see is skipped.
//!
//! Three passes over the same file, in turns, the best of each: ours (lines, blocks, the log and its view), Python's
//! `json` over every line, and serde_json into a plain struct that names the header fields and keeps the message as a
//! tree, without any projection.
//!
//! What counts is time on the wall, as the user waits: ours uses the machine's other processors as well. A machine that
//! does other things meanwhile says less than it could; the best of several tries counts.

use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;

use crate::recording;
use crate::table::{Row, Unit};

/// How much faster than Python.
const AGAINST_PYTHON: f64 = 4.0;

/// How much slower than serde_json alone.
const AGAINST_SERDE: f64 = 1.5;

/// How many times each pass runs.
const TRIES: usize = 9;

/// Prints how many seconds its own loop took, so that starting Python does not count.
const PYTHON: &str = "
import json, sys, time
start = time.perf_counter()
with open(sys.argv[1], 'rb') as lines:
    for line in lines:
        json.loads(line)
print(time.perf_counter() - start)
";

/// The three passes and what they say of each other.
pub(crate) fn measure(place: &Path) -> Result<Vec<Row>> {
    let path = recording::file(place)?;
    let has_python = Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success());
    let (mut ours, mut serde, mut python) = (f64::INFINITY, f64::INFINITY, f64::INFINITY);
    for _ in 0..TRIES {
        ours = ours.min(load(&path)?);
        serde = serde.min(parse_typed(&path)?);
        if has_python {
            python = python.min(parse_in_python(&path)?);
        }
    }
    let megabytes = path.metadata()?.len() as f64 / 1e6;
    let figure = |seconds: f64| format!("{:.0} ms, {:.0} MB/s", seconds * 1e3, megabytes / seconds);
    let mut rows = vec![
        Row::figure(format!("load {megabytes:.0} MB"), figure(ours)),
        Row::figure("serde_json, side fields ignored", figure(serde)),
        Row::at_most("  ours against it, in time", Unit::Times, ours / serde, AGAINST_SERDE),
    ];
    if has_python {
        rows.push(Row::figure("Python's json", figure(python)));
        rows.push(Row::at_least("  ours against it, in speed", Unit::Times, python / ours, AGAINST_PYTHON));
    } else {
        rows.push(Row::figure("Python's json", "no python3 here"));
    }
    Ok(rows)
}

/// Seconds to load and project, as a session is opened.
fn load(path: &Path) -> Result<f64> {
    let start = Instant::now();
    let record = session::record::read(path)?;
    let seconds = start.elapsed().as_secs_f64();
    if !record.skipped.is_empty() || record.log.view().blocks().next().is_none() {
        bail!("{} did not load as it should: {} lines skipped", path.display(), record.skipped.len());
    }
    Ok(seconds)
}

/// What someone would write who only wants the messages.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "parsed to be parsed")]
struct Typed {
    r#type: String,
    uuid: Option<String>,
    parent_uuid: Option<String>,
    timestamp: Option<String>,
    version: Option<String>,
    is_sidechain: Option<bool>,
    message: Option<Value>,
}

fn parse_typed(path: &Path) -> Result<f64> {
    let start = Instant::now();
    let mut lines = files::Lines::open(path)?;
    while let Some(line) = lines.next()? {
        if let files::Text::Whole(text) = line.text {
            black_box(serde_json::from_slice::<Typed>(text)?);
        }
    }
    Ok(start.elapsed().as_secs_f64())
}

fn parse_in_python(path: &Path) -> Result<f64> {
    let output = Command::new("python3").args(["-c", PYTHON]).arg(path).output()?;
    if !output.status.success() {
        bail!("python3: {}", String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8(output.stdout)?.trim().parse().context("Python prints seconds")
}
