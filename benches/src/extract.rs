//! The gate before learning: how many turns it passes over before a model is paid, and what it misses.

use std::path::Path;

use anyhow::Result;
use memory::extraction_prompt::signals;

use crate::table::{Row, Unit};

/// What users say in a turn, each with whether something in it is worth remembering.
const TURNS: &str = include_str!("../../crates/memory/tests/extract/turns.txt");

/// The same, written when the gate was done.
const FRESH: &str = include_str!("../../crates/memory/tests/extract/fresh.txt");

/// The rows.
pub(crate) fn measure(_: &Path) -> Result<Vec<Row>> {
    let with = |turns: &'static str, mark: &str| -> Vec<&'static str> {
        turns.lines().filter_map(|line| line.strip_prefix(mark)).collect()
    };
    let (worth, others) = (with(TURNS, "+ "), with(TURNS, "- "));
    let share = |turns: &[&str]| turns.iter().filter(|turn| !signals(turn)).count() as f64 / turns.len() as f64;
    let afterwards = |mark: &str| format!("{:.0} %", 100.0 * share(&with(FRESH, mark)));
    for missed in worth.iter().filter(|turn| !signals(turn)) {
        eprintln!("  missed: {missed}");
    }
    Ok(vec![
        Row::figure("labelled turns", format!("{} worth remembering, {} not", worth.len(), others.len())),
        Row::at_most("passed over, though worth it", Unit::Percent, share(&worth), 0.1),
        Row::at_least("passed over, and rightly", Unit::Percent, share(&others), 0.5),
        Row::figure("turns written afterwards: passed over, though worth it", afterwards("+ ")),
        Row::figure("  and rightly", afterwards("- ")),
    ])
}
