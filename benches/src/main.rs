//! What the specification sets a figure for, measured.
//!
//! One file a case. A case gives rows for the table, and a row with a target is met or missed: the exit code says
//! whether one was missed. Targets are ratios within one run wherever they can be, since machines differ, and counts of
//! instructions wherever time is noisy. A new case is a file, a line in [`CASES`] and a word in `../bench`.
//!
//! Run from the root of the repository, by `./bench`.
#![allow(
    clippy::disallowed_methods,
    reason = "a measuring program reads the clock, and files that are none of a user's"
)]

mod agents;
mod answers;
mod command;
mod cost;
mod count;
mod extract;
mod gate;
mod keys;
mod layers;
mod load;
mod log;
mod month;
mod prose;
mod recall;
mod recording;
mod regret;
mod secrets;
#[path = "../../tests/skipped.rs"]
mod skipped;
mod start;
mod table;
mod team;
mod tokens;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};

use table::{Row, Table};

/// What is built and generated for measuring, relative to the root of the repository.
const PLACE: &str = "target/bench";

/// The cases by name.
const CASES: [(&str, fn(&Path) -> Result<Vec<Row>>); 16] = [
    ("tokens", tokens::measure),
    ("log", log::measure),
    ("load", load::measure),
    ("recall", recall::measure),
    ("extract", extract::measure),
    ("secrets", secrets::measure),
    ("layers", layers::measure),
    ("cost", cost::measure),
    ("regret", regret::measure),
    ("month", month::measure),
    ("team", team::measure),
    ("agents", agents::measure),
    ("gate", gate::measure),
    ("command", command::measure),
    ("start", start::measure),
    ("keys", keys::measure),
];

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, rest @ ..] = arguments.as_slice()
        && first == count::CHILD
    {
        match rest {
            [case, rest @ ..] if case == gate::NAME => gate::child(rest)?,
            _ => log::child(rest)?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let known = |name: &String| CASES.iter().any(|(case, _)| case == name);
    if let Some(unknown) = arguments.iter().find(|name| !known(name)) {
        let names: Vec<&str> = CASES.iter().map(|(name, _)| *name).collect();
        bail!("`{unknown}` is not measured; there is: {}", names.join(", "));
    }
    let mut table = Table::default();
    for (name, measure) in CASES {
        if arguments.is_empty() || arguments.iter().any(|wanted| wanted == name) {
            eprintln!("measuring {name} …");
            table.extend(name, measure(Path::new(PLACE))?);
        }
    }
    print!("{table}");
    Ok(if table.is_missed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
