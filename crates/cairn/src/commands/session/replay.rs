//! `cairn session replay`: what the layers would do to a session, and what that would cost.

use std::path::{Path, PathBuf};

use engine::context::Layers;
use session::price::POLICIES;
use session::record;
use session::replay::ReplayedSession;
use transcript::Log;
use transcript::line::Body;

use super::replay_price;
use crate::exit::Code;
use crate::out::data;
use crate::pricing::given_window;
use crate::program_paths::ProgramPaths;
use crate::styled_text::{dim, red};
use crate::trusted_settings;

/// Flags for replaying sessions.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", policies()))]
pub(crate) struct ReplayArgs {
    /// The session; with --price any number of sessions and folders.
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<String>,
    /// The window, in tokens, instead of the model's.
    #[arg(long, value_name = "TOKENS")]
    pub(super) window: Option<u64>,
    /// Settings for the layers, as a file or as JSON.
    #[arg(long, value_name = "FILE_OR_JSON")]
    pub(super) settings: Option<String>,
    /// The size of simulated summaries.
    #[arg(long, value_name = "TOKENS", default_value_t = session::replay::SUMMARY_TOKENS, conflicts_with = "price")]
    summary_tokens: u64,
    /// Show what the sessions would have cost under each policy, and which edits would have been made without their
    /// text in view.
    #[arg(long)]
    price: bool,
    /// Only this policy; may be given several times.
    #[arg(long, value_name = "NAME", requires = "price", value_parser = policy_names())]
    pub(super) policy: Vec<String>,
    /// Write a plot of cost against missed edits to a file.
    #[arg(long, value_name = "FILE", requires = "price")]
    pub(super) svg: Option<PathBuf>,
    /// One JSON object.
    #[arg(long)]
    pub(super) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  cairn session replay 01890a5d --window 100000
  cairn session replay 01890a5d --price
  cairn session replay ~/.claude/projects --price --policy ours --policy age --svg prices.svg";

/// The policies, for the help.
fn policies() -> String {
    let rows: Vec<String> = POLICIES.iter().map(|(name, about)| format!("  {name:<10}  {about}")).collect();
    format!("Policies:\n{}", rows.join("\n"))
}

fn policy_names() -> Vec<&'static str> {
    POLICIES.iter().map(|(name, _)| *name).collect()
}

/// Plays sessions, or prices them.
pub(super) fn run(place: &ProgramPaths, args: &ReplayArgs) -> anyhow::Result<Code> {
    if args.price {
        return replay_price::run(place, args);
    }
    match args.files.as_slice() {
        [file] => replay(place, &super::find(place, file)?, args),
        _ => anyhow::bail!("only one session can be replayed at a time; --price takes several"),
    }
}

/// Plays a session through the layers.
fn replay(place: &ProgramPaths, path: &Path, args: &ReplayArgs) -> anyhow::Result<Code> {
    let (lines, _) = record::lines(path)?;
    let log = Log::load(lines.clone());
    let model = log.lines().iter().rev().find_map(|line| match &line.body {
        Body::Assistant { model, .. } => Some(model.clone()),
        _ => None,
    });
    let model = model.unwrap_or_default();
    let settings = trusted_settings::settings(place, args.settings.as_deref())?;
    let window = match args.window {
        Some(size) => given_window(size),
        None => super::window(&log, &model)?,
    };
    let layers = Layers { window, price: settings.prices.of(&model), ..settings.layers };
    let replayed = match args.window {
        Some(_) => session::replay::replay(lines, &layers, args.summary_tokens),
        None => session::replay::replay_as_recorded(lines, &layers, args.summary_tokens),
    };
    if args.json {
        data!("{}", serde_json::to_value(&replayed)?)?;
    } else {
        print(&replayed, &layers)?;
    }
    Ok(if replayed.broken.is_empty() { Code::Success } else { Code::Failure })
}

fn print(replayed: &ReplayedSession, layers: &Layers) -> anyhow::Result<()> {
    for round in &replayed.rounds {
        for done in &round.commits {
            let what = format!("round {:>4}  {:<8} {:>8} tokens less", round.round, done.layer, done.freed);
            data!([what, "  ", dim(&done.why)])?;
        }
    }
    let largest = replayed.rounds.iter().map(|round| round.tokens).max().unwrap_or(0);
    let commits: usize = replayed.rounds.iter().map(|round| round.commits.len()).sum();
    data!(
        "{} rounds in a window of {} tokens: {commits} commits, at most {largest} tokens in view",
        replayed.rounds.len(),
        layers.window.size
    )?;
    for broken in &replayed.broken {
        data!([red("broken: "), broken.to_string()])?;
    }
    Ok(())
}
