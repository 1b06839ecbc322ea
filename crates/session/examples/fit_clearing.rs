//! Prices recorded sessions at several settings of caution, and prints the bill beside the edits that are missed.
//!
//! `cargo run --release -p session --example fit_clearing -- [FOLDER]` takes the folder that `REGRET_SESSIONS` names, where
//! none is given. The sessions are shown in two halves, by the sum of their names' bytes: whoever chooses
//! numbers should look at the first alone.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "its output is its purpose")]
#![allow(clippy::disallowed_methods, reason = "a measuring program is told by the environment what to measure")]

use std::path::{Path, PathBuf};

use context::Layers;
use session::home::SessionFile;
use session::price::{PricePolicy, PriceTable, Recording, RepliesCounted, SessionBill, SessionFiles, price_files};
use transcript::price::Prices;
use transcript::window::{Window, WindowHints};

/// Names the folder.
const FOLDER: &str = "REGRET_SESSIONS";
const CAUTION: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];
const WINDOWS: [u64; 3] = [200_000, 1_000_000, 100_000];

fn layers(size: u64, caution: f64) -> Layers {
    let hints = WindowHints { configured: Some(size), max_output: 32_000, ..WindowHints::default() };
    Layers { window: Window::of(&hints), caution, ..Layers::default() }
}

fn policies() -> Vec<(String, PricePolicy)> {
    let mut policies = vec![("everything".to_owned(), PricePolicy::Everything)];
    for window in WINDOWS {
        let cautions: &[f64] = if window == WINDOWS[0] { &CAUTION } else { &[1.0] };
        policies.extend(cautions.iter().map(|&caution| {
            (format!("{window}, caution {caution}"), PricePolicy::Ours(Box::new(layers(window, caution))))
        }));
    }
    policies
}

fn is_first_half(path: &Path) -> bool {
    path.to_string_lossy().bytes().map(u64::from).sum::<u64>() % 2 == 0
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let named = std::env::args().nth(1).map(PathBuf::from);
    let folder = named.or_else(|| std::env::var_os(FOLDER).map(PathBuf::from));
    let mut found = SessionFiles::default();
    found.add(&std::path::absolute(folder.ok_or(format!("name a folder, or set {FOLDER}"))?)?)?;
    let policies = policies();
    let price = |file: &SessionFile, recording: Recording| {
        let bills: Vec<SessionBill> = policies.iter().map(|(_, policy)| recording.bill(policy)).collect();
        (is_first_half(&file.path), recording.is_whole(), bills)
    };
    let (mut sessions, _) = price_files(&found.files, &Prices::default(), &price, &|_| {});
    let mut counted = RepliesCounted::default();
    sessions.iter_mut().for_each(|(_, _, bills)| counted.take(bills));
    let names: Vec<String> = policies.iter().map(|(name, _)| name.clone()).collect();
    for (heading, first, whole) in [
        ("first half, whole", Some(true), Some(true)),
        ("other half, whole", Some(false), Some(true)),
        ("all", None, None),
    ] {
        let fits = |wanted: Option<bool>, is: bool| wanted.is_none_or(|wanted| wanted == is);
        let chosen = sessions.iter().filter(|(is_first, is_whole, _)| fits(first, *is_first) && fits(whole, *is_whole));
        let bills: Vec<&[SessionBill]> = chosen.map(|(_, _, bills)| bills.as_slice()).collect();
        let everything: Vec<&SessionBill> = bills.iter().map(|bills| &bills[0]).collect();
        println!("\n{} sessions, {heading}\n{}", bills.len(), PriceTable::of(&names, &bills, &everything));
    }
    Ok(())
}
