//! Prices the recorded sessions in a folder and prints the bills of all policies side by side.
//!
//! `cargo run --release -p session --example price_sessions -- [--messages-only] [FOLDER]` takes the folder that
//! `REGRET_SESSIONS` names, where none is given. With `--messages-only` nothing stands before the messages: neither in the
//! bill nor in the window. Each policy is priced on all sessions, and on those whose own program compacted them and the
//! others apart.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "its output is its purpose")]
#![allow(clippy::disallowed_methods, reason = "a measuring program is told by the environment what to measure")]

use std::path::PathBuf;

use context::{LayerTiming, Layers};
use session::price::{PricePolicy, PriceTable, RepliesCounted, SessionBill, SessionFiles, price_files};
use transcript::price::Prices;
use transcript::window::{Window, WindowHints};

/// Names the folder.
const FOLDER: &str = "REGRET_SESSIONS";
/// The room that is kept for a reply.
const MAX_OUTPUT: u64 = 32_000;

fn layers(size: u64) -> Layers {
    let hints = WindowHints { configured: Some(size), max_output: MAX_OUTPUT, ..WindowHints::default() };
    Layers { window: Window::of(&hints), ..Layers::default() }
}

fn policies() -> Vec<(String, PricePolicy)> {
    let usual = layers(200_000);
    let named = |name: &str| PricePolicy::named(name, &usual).map(|policy| (name.to_owned(), policy));
    let ours = |name: &str, layers: Layers| (name.to_owned(), PricePolicy::Ours(Box::new(layers)));
    let mut policies: Vec<(String, PricePolicy)> = ["recorded", "everything"].into_iter().filter_map(named).collect();
    policies.extend([
        ours("ours, 200,000", usual.clone()),
        ours("ours, 1,000,000", layers(1_000_000)),
        ours("ours, 100,000", layers(100_000)),
        ours("ours, economy", Layers { when: LayerTiming::Economy, ..usual.clone() }),
    ]);
    policies.extend(["age", "reads", "mask", "provider"].into_iter().filter_map(named));
    policies
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut messages_only, mut folder) = (false, std::env::var_os(FOLDER).map(PathBuf::from));
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--messages-only" => messages_only = true,
            path => folder = Some(path.into()),
        }
    }
    let folder = folder.ok_or(format!("name a folder, or set {FOLDER}"))?;
    let mut found = SessionFiles::default();
    found.add(&std::path::absolute(folder)?)?;
    let (policies, prices) = (policies(), Prices::default());
    let price = |_: &_, recording: session::price::Recording| -> (bool, Vec<SessionBill>) {
        let recording = if messages_only { recording.without_prologue() } else { recording };
        (recording.is_whole(), policies.iter().map(|(_, policy)| recording.bill(policy)).collect())
    };
    let (mut sessions, left_out) = price_files(&found.files, &prices, &price, &|_| {});
    let mut counted = RepliesCounted::default();
    sessions.iter_mut().for_each(|(_, bills)| counted.take(bills));
    for file in found.left_out.iter().chain(&left_out) {
        eprintln!("left out: {}: {}", file.file.display(), file.why);
    }
    let names: Vec<String> = policies.iter().map(|(name, _)| name.clone()).collect();
    for (heading, wanted) in
        [("all", None), ("whole", Some(true)), ("cleared or compacted by their own program", Some(false))]
    {
        let chosen = sessions.iter().filter(|(is_whole, _)| wanted.is_none_or(|wanted| wanted == *is_whole));
        let bills: Vec<&[SessionBill]> = chosen.map(|(_, bills)| bills.as_slice()).collect();
        let everything: Vec<&SessionBill> = bills.iter().map(|bills| &bills[1]).collect();
        let long = everything.iter().filter(|bill| bill.requests.len() >= 20).count();
        println!("\n{} sessions ({long} of 20 requests or more), {heading}", bills.len());
        println!("{}", PriceTable::of(&names, &bills, &everything));
    }
    Ok(())
}
