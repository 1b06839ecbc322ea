//! The gate before learning: how many turns it passes over before a model is paid, and what it misses.

use std::path::Path;

use anyhow::Result;
use memory::extract::signals;

use crate::table::{Row, Unit};

/// What users say in a turn, each with whether something in it is worth remembering.
const TURNS: &str = include_str!("../../crates/memory/tests/extract/turns.txt");

/// The rows.
pub(crate) fn measure(_: &Path) -> Result<Vec<Row>> {
    let with = |mark: &str| -> Vec<&str> { TURNS.lines().filter_map(|line| line.strip_prefix(mark)).collect() };
    let (worth, others) = (with("+ "), with("- "));
    let share = |turns: &[&str]| turns.iter().filter(|turn| !signals(turn)).count() as f64 / turns.len() as f64;
    for missed in worth.iter().filter(|turn| !signals(turn)) {
        eprintln!("  missed: {missed}");
    }
    Ok(vec![
        Row::figure("labelled turns", format!("{} worth remembering, {} not", worth.len(), others.len())),
        Row::at_most("passed over, though worth it", Unit::Percent, share(&worth), 0.1),
        Row::at_least("passed over, and rightly", Unit::Percent, share(&others), 0.5),
    ])
}
