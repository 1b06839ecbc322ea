//! `cairn audit`: what all sessions cost, and what they would have cost with this program's layers.

use std::path::Path;

use jiff::SignedDuration;
use session::World;
use session::home::{PROJECTS, SessionFile};
use session::price::{Audit, AuditCost, Recording, SessionAudit, SessionFiles, price_files};

use crate::event_text::count;
use crate::exit::Code;
use crate::out::{data, talk};
use crate::pricing::{Pricing, left_out_rows, with_progress};
use crate::program_paths::ProgramPaths;
use crate::styled_text::{bold, cyan};

/// No more days are looked at.
const MOST_DAYS: u32 = 36_500;
/// So many projects are shown; the JSON has all of them.
const MOST_PROJECTS: usize = 20;

/// Show what your sessions cost, and what they would have cost with Cairn.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
All sessions below the config home are priced, those of Claude Code too: as recorded, from the usage in them at list prices,
and replayed through the layers. Nothing is sent anywhere.

Examples:
  cairn audit
  cairn audit --days 7
  cairn audit --json | jq .worst")]
pub(crate) struct AuditArgs {
    /// Count the requests of the last N days.
    #[arg(long, value_name = "N", default_value_t = 30)]
    days: u32,
    /// The window, in tokens, instead of each model's.
    #[arg(long, value_name = "TOKENS")]
    window: Option<u64>,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// Audits and prints.
pub(crate) fn run(args: &AuditArgs) -> anyhow::Result<Code> {
    let place = ProgramPaths::from_env()?;
    let pricing = Pricing::new(&place, None, args.window)?;
    let days = args.days.min(MOST_DAYS);
    let since = World::real().now() - SignedDuration::from_hours(24 * i64::from(days));
    let projects = place.home.path().join(PROJECTS);
    let mut found = SessionFiles::default();
    match found.add(&projects) {
        Err(session::Error::Files(files::Error::NotFound { .. })) | Ok(()) => {}
        Err(error) => return Err(error.into()),
    }
    // What was last written before then has no request since.
    found.files.retain(|file| crate::event_text::written(file).is_none_or(|time| time >= since));
    let bill = |file: &SessionFile, recording: Recording| {
        SessionAudit::of(file, project(&projects, &file.path), &recording, &pricing.layers(&recording))
    };
    let (sessions, left_out) = with_progress(|progress| price_files(&found.files, &pricing.prices, &bill, progress));
    found.left_out.extend(left_out);
    let audit = Audit::of(sessions, found.left_out, Some(since));
    if args.json {
        let mut whole = serde_json::to_value(&audit)?;
        (whole["days"], whole["since"]) = (days.into(), format!("{since:.0}").into());
        data!("{whole}")?;
    } else {
        print(&audit, days, &projects)?;
        for row in left_out_rows(&place, &audit.left_out) {
            data!("{row}")?;
        }
    }
    Ok(Code::Success)
}

/// The project that a file belongs to: the folder below all projects.
fn project(projects: &Path, file: &Path) -> String {
    let below = file.strip_prefix(projects).unwrap_or(file);
    below.iter().next().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn print(audit: &Audit, days: u32, projects: &Path) -> anyhow::Result<()> {
    if audit.requests == 0 {
        talk!("No requests in the last {} below {}.", count(days as usize, "day", "days"), projects.display());
        return Ok(());
    }
    let AuditCost { recorded_usd, everything_usd, ours_usd } = audit.cost;
    let days = count(days as usize, "day", "days");
    let edits = count(audit.edits, "edit", "edits");
    let again = format!("; {} of {edits} would have needed a file to be read again.", audit.missed_edits);
    data!([bold(&format!("The last {days} cost ${recorded_usd:.2}; with Cairn ${ours_usd:.2}")), again])?;
    let subagents = count(audit.subagents, "subagent", "subagents");
    let sessions = count(audit.sessions, "session", "sessions");
    data!("{sessions}, {subagents}, {} requests; with everything kept ${everything_usd:.2}", audit.requests)?;
    if let Some(share) = audit.computed_share {
        data!(
            "Where nothing was removed, computed costs are {share:.2} of the recorded ones (the median); the others are scaled by that"
        )?;
    }
    if audit.smaller_windows > 0 {
        data!(
            "{} had been compacted at less than half of the window used here; --window N sets another",
            count(audit.smaller_windows, "session", "sessions")
        )?;
    }
    if audit.unpriced_requests > 0 {
        data!(
            "Not counted: {} to a model without a known price",
            count(audit.unpriced_requests, "request", "requests")
        )?;
    }
    print_projects(audit)?;
    print_layers(audit)?;
    print_worst(audit)
}

fn print_projects(audit: &Audit) -> anyhow::Result<()> {
    let head = format!("{:>10}  {:>10}  {:>8}  {:>8}  project", "recorded", "with Cairn", "sessions", "requests");
    data!("")?;
    data!([bold(&head)])?;
    for project in audit.projects.iter().take(MOST_PROJECTS) {
        let (recorded, ours) = (dollars(project.cost.recorded_usd), dollars(project.cost.ours_usd));
        let figures = format!("{recorded:>10}  {ours:>10}  {:>8}  {:>8}  ", project.sessions, project.requests);
        data!([figures, cyan(&project.project)])?;
    }
    if let Some(more) = audit.projects.len().checked_sub(MOST_PROJECTS).filter(|more| *more > 0) {
        talk!("and {}; --json has all of them", count(more, "more project", "more projects"));
    }
    Ok(())
}

fn print_layers(audit: &Audit) -> anyhow::Result<()> {
    data!("")?;
    if audit.layers.is_empty() {
        data!("No layer would have acted.")?;
        return Ok(());
    }
    let head = format!(
        "{:<10}  {:>6}  {:>12}  {:>9}  spared: {:>9}  {:>11}  {:>9}",
        "layer", "acts", "tokens out", "saves", "clearings", "compactions", "overflows"
    );
    data!([bold(&head)])?;
    for layer in &audit.layers {
        data!(
            "{:<10}  {:>6}  {:>12}  {:>9}          {:>9}  {:>11}  {:>9}",
            layer.layer,
            layer.times,
            layer.freed_tokens,
            dollars(layer.saved_usd),
            layer.spared_clearings,
            layer.spared_compactions,
            layer.spared_overflows,
        )?;
    }
    if audit.unjudged_sessions > 0 {
        let sessions = count(audit.unjudged_sessions, "session is", "sessions are");
        data!("{sessions} too long to say what each layer saved there.")?;
    }
    Ok(())
}

fn print_worst(audit: &Audit) -> anyhow::Result<()> {
    data!("")?;
    if audit.worst.is_empty() {
        data!("No session of 20 requests or more would have cost more than with everything kept.")?;
        return Ok(());
    }
    data!([bold("Sessions that would have cost more than with everything kept")])?;
    for worst in &audit.worst {
        let AuditCost { recorded_usd, everything_usd, ours_usd } = worst.cost;
        let figures = format!(
            "  {:.2}: ${ours_usd:.2} instead of ${everything_usd:.2}, recorded ${recorded_usd:.2}, {}  ",
            worst.share,
            count(worst.requests, "request", "requests")
        );
        data!([cyan(&worst.session), figures, worst.project.as_str()])?;
    }
    Ok(())
}

fn dollars(amount: f64) -> String {
    if amount < 0.0 { format!("-${:.2}", -amount) } else { format!("${amount:.2}") }
}
