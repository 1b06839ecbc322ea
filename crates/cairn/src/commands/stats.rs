//! `cairn stats`: what sessions used, and what each layer saved.

use std::path::PathBuf;

use jiff::civil::Date;
use learning::ledger::Day;
use serde_json::json;
use session::savings::{self, Saving};
use session::stats::{Stats, causes, saved_text, teammates, together};
use session::{Home, record};
use settings::Budget;
use transcript::Log;

use crate::exit::Code;
use crate::out::{data, talk};
use crate::program_paths::ProgramPaths;
use crate::styled_text::bold;
use crate::{event_text, trusted_settings};

/// No more days are looked at.
const MOST_DAYS: usize = 400;
/// Longer files are left out, with a word.
const MOST_BYTES: u64 = 200_000_000;

/// Show what the sessions of this project used and cost, and what each layer saved.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cairn stats                    all sessions of this project
  cairn stats 01890a5d           one of them
  cairn stats --days 7           what each of the last days cost, and who spent it
  cairn stats --json | jq .layers")]
pub(crate) struct StatsArgs {
    /// One session: a file, an id, or the beginning of one.
    file: Option<String>,
    /// Show what was spent on each of the last days instead.
    #[arg(long, value_name = "N", conflicts_with = "file")]
    days: Option<usize>,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// Counts and prints.
pub(crate) fn run(args: &StatsArgs) -> anyhow::Result<Code> {
    let place = ProgramPaths::from_env()?;
    let settings = trusted_settings::settings(&place, None)?;
    let ledger = place.ledger(&settings, "");
    if let Some(most) = args.days {
        return days(&ledger.days(most.min(MOST_DAYS)), args.json);
    }
    let (today, budget) = (ledger.today(), ledger.budget());
    let prices = settings.prices;
    let logs = match &args.file {
        Some(name) => {
            let file = super::session::find(&place, name)?;
            vec![(record::read(&file)?.log, file)]
        }
        None => all(&place.home, &place)?,
    };
    let of =
        |(log, file): &(Log, PathBuf)| Stats { teammates: teammates(file, log, &prices), ..Stats::of(log, &prices) };
    let figures: Vec<Stats> = logs.iter().map(of).collect();
    let layers = savings::sum(logs.iter().map(|(log, _)| savings::of(log, &prices)));
    if args.json {
        data!("{}", json!({"sessions": figures, "layers": layers, "today": today_json(&today, &budget)}))?;
    } else {
        print(&figures, &layers, &place)?;
        if today.kinds.is_empty() {
            return Ok(Code::Success);
        }
        data!("")?;
        data!("today        {}", event_text::spent(&today))?;
        data!("budget       {}", event_text::budget(&today, &budget))?;
    }
    Ok(Code::Success)
}

/// Prints the cost of each of the last days.
fn days(days: &[(Date, Day)], json: bool) -> anyhow::Result<Code> {
    if json {
        let each = |(date, day): &(Date, Day)| json!({"day": date.to_string(), "spent": day, "usd": day.total().usd});
        data!("{}", json!({"days": days.iter().map(each).collect::<Vec<_>>()}))?;
        return Ok(Code::Success);
    }
    for (date, day) in days {
        data!("{date}   {}", event_text::spent(day))?;
    }
    Ok(Code::Success)
}

fn today_json(today: &Day, budget: &Budget) -> serde_json::Value {
    json!({"spent": today, "usd": today.total().usd, "budgetUsd": budget.usd, "budgetTokens": budget.tokens})
}

fn all(home: &Home, place: &ProgramPaths) -> anyhow::Result<Vec<(Log, PathBuf)>> {
    let mut logs = Vec::new();
    for session in home.sessions(&place.directory)? {
        if session.len > MOST_BYTES {
            talk!("{} is left out: {} bytes", session.id, session.len);
        } else if let Ok(record) = record::read(&session.path) {
            logs.push((record.log, session.path));
        }
    }
    Ok(logs)
}

fn print(figures: &[Stats], layers: &[Saving], place: &ProgramPaths) -> anyhow::Result<()> {
    if figures.is_empty() {
        talk!("No sessions in {} yet.", place.directory.display());
        return Ok(());
    }
    let sum = |of: fn(&Stats) -> u64| figures.iter().map(of).sum::<u64>();
    let (uncached, written, read) =
        (sum(|one| one.uncached_tokens), sum(|one| one.cache_write_tokens), sum(|one| one.cache_read_tokens));
    let input = (uncached + written + read).max(1);
    let cost: f64 = figures.iter().filter_map(|one| one.cost_usd).sum();
    // Of all sessions, those of teammates are counted as their own.
    let theirs = match figures {
        [one] => one.teammates.as_slice(),
        _ => &[],
    };
    let beside = together(figures.iter().flat_map(|one| one.beside.clone()));
    data!("sessions     {}, {} replies", figures.len(), figures.iter().map(|one| one.replies).sum::<usize>())?;
    data!("input        {uncached} uncached, {written} written to the cache, {read} read from it")?;
    data!("output       {}", sum(|one| one.output_tokens))?;
    let worst = figures.iter().map(|one| one.rewrite_factor_per_window).fold(0.0, f64::max);
    data!(
        "cache        {:.1} % read, {}; at most {worst:.2} written for a window filled",
        read as f64 * 100.0 / input as f64,
        saved_text(figures.iter().map(|one| one.cache_saved_usd).sum::<f64>())
    )?;
    data!("cost         {}, all included", event_text::cost(Some(cost), theirs))?;
    if !beside.is_empty() {
        data!("background   {}", event_text::side_work_text(&beside))?;
    }
    for mate in figures.iter().flat_map(|one| &one.teammates) {
        data!("teammate     {}", event_text::teammate(mate))?;
    }
    for cause in causes(figures.iter().flat_map(|stats| &stats.breaks)) {
        data!("cache break  {cause}")?;
    }
    if layers.is_empty() {
        return Ok(());
    }
    let (head, rows) = event_text::savings(layers, &[]);
    data!("")?;
    data!([bold(&head)])?;
    for row in rows {
        data!("{row}")?;
    }
    if let Some(clear) = layers.iter().find(|one| one.regrets > 0) {
        let results = event_text::count(clear.regrets, "cleared result", "cleared results");
        data!("regrets    {results} needed again: ${:.4}, against ${:.4} saved", clear.regrets_usd, clear.saved_usd)?;
    }
    Ok(())
}
