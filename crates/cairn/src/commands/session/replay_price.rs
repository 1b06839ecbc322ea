//! `cairn session replay --price`: what sessions would have cost under each policy.

use std::path::PathBuf;

use serde_json::{Value, json};
use session::home::SessionFile;
use session::price::{
    POLICIES, PricePolicy, PriceTable, Recording, RepliesCounted, SessionBill, SessionFiles, price_files,
};

use super::replay::ReplayArgs;
use crate::event_text::count;
use crate::exit::Code;
use crate::out::{data, talk};
use crate::price_plot::plot;
use crate::pricing::{Pricing, left_out_rows, with_progress};
use crate::program_paths::ProgramPaths;
use crate::styled_text::{bold, dim};

/// Sessions are listed one by one up to so many of them.
const MOST_LISTED: usize = 20;
/// The policy that the others are compared with.
const BASE: &str = "everything";

/// The bills of one session.
struct SessionPrice {
    file: SessionFile,
    model: String,
    requests: usize,
    /// One for each policy that was asked for.
    bills: Vec<SessionBill>,
    everything: SessionBill,
}

/// Prices and prints.
pub(super) fn run(place: &ProgramPaths, args: &ReplayArgs) -> anyhow::Result<Code> {
    let pricing = Pricing::new(place, args.settings.as_deref(), args.window)?;
    let mut found = SessionFiles::default();
    for name in &args.files {
        found.add(&path(place, name)?)?;
    }
    let names = policies(args);
    let price = |file: &SessionFile, recording: Recording| -> SessionPrice {
        let layers = pricing.layers(&recording);
        let bill = |name: &String| PricePolicy::named(name, &layers).map(|policy| recording.bill(&policy));
        SessionPrice {
            file: file.clone(),
            model: recording.model().to_owned(),
            requests: recording.len(),
            bills: names.iter().filter_map(bill).collect(),
            everything: recording.bill(&PricePolicy::Everything),
        }
    };
    let (mut sessions, left_out) =
        with_progress(|progress| price_files(&found.files, &pricing.prices, &price, progress));
    found.left_out.extend(left_out);
    let mut counted = RepliesCounted::default();
    for session in &mut sessions {
        counted.take(session.bills.iter_mut().chain([&mut session.everything]));
    }
    let bills: Vec<&[SessionBill]> = sessions.iter().map(|session| session.bills.as_slice()).collect();
    let everything: Vec<&SessionBill> = sessions.iter().map(|session| &session.everything).collect();
    let table = PriceTable::of(&names, &bills, &everything);
    if args.json {
        let rows: Vec<Value> = sessions.iter().map(|session| as_json(session, &names)).collect();
        let whole = json!({
            "window": args.window, "policies": table.rows, "sessions": rows, "leftOut": found.left_out,
        });
        data!("{whole}")?;
    } else {
        left_out_rows(place, &found.left_out).iter().for_each(|row| talk!("{row}"));
        print(&table, &sessions, &names)?;
    }
    if let Some(file) = &args.svg {
        files::replace(place.directory.join(file), plot(&table).as_bytes())?;
        talk!("drawn into {}", file.display());
    }
    anyhow::ensure!(!sessions.is_empty(), "there is no session to price");
    Ok(Code::Success)
}

/// A file, a folder, or a session of this project by its id.
fn path(place: &ProgramPaths, name: &str) -> anyhow::Result<PathBuf> {
    let path = place.directory.join(name);
    if path.is_dir() { Ok(path) } else { super::find(place, name) }
}

/// The policies that are asked for, or all of them.
fn policies(args: &ReplayArgs) -> Vec<String> {
    let all = || POLICIES.iter().map(|(name, _)| (*name).to_owned()).collect();
    if args.policy.is_empty() { all() } else { args.policy.clone() }
}

fn table_of(session: &SessionPrice, names: &[String]) -> PriceTable {
    PriceTable::of(names, &[&session.bills], &[&session.everything])
}

fn as_json(session: &SessionPrice, names: &[String]) -> Value {
    json!({
        "file": session.file.path, "session": session.file.id, "model": session.model, "requests": session.requests,
        "policies": table_of(session, names).rows,
    })
}

fn print(table: &PriceTable, sessions: &[SessionPrice], names: &[String]) -> anyhow::Result<()> {
    let requests: usize = sessions.iter().map(|session| session.requests).sum();
    let text = table.to_string();
    let (head, rows) = text.split_once('\n').unwrap_or((&text, ""));
    data!([bold(head)])?;
    data!("{rows}")?;
    let count = count(sessions.len(), "session", "sessions");
    data!("\n{count}, {requests} requests; shares are of keeping {BASE}")?;
    if sessions.len() < 2 {
        return Ok(());
    }
    if sessions.len() > MOST_LISTED {
        talk!("--json has every session");
        return Ok(());
    }
    for session in sessions {
        let row = |row: &session::price::PriceRow| {
            format!("{} {:.3}/{:.3}", row.policy, row.of_everything.five_minutes, row.of_everything.one_hour)
        };
        let shares: Vec<String> = table_of(session, names).rows.iter().map(row).collect();
        data!([session.file.id.as_str(), dim(&format!("  {} requests  ", session.requests)), shares.join("  ")])?;
    }
    Ok(())
}
