//! `cairn dream`: memories are brought into order, now; and what dreams did, to look at and to take back.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use learning::dream::dream_log::{DreamFinish, DreamOutcome};
use learning::dream::progress::{DreamProgress, improved};
use learning::dream::run::{Listener, NoDreamReason};
use learning::dream::schedule::{DreamSchedule, ScheduleDecision};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use transcript::price::Price;

use crate::dream_setup::past::{self, why_not};
use crate::exit::Code;
use crate::out::{data, talk, talk_row, warn};
use crate::program_paths::ProgramPaths;
use crate::shutdown::{ShutdownCause, ShutdownSignals};
use crate::styled_text::{bold, dim, first_line};
use crate::{dream_setup, event_text, memory_setup, model, trusted_settings};

/// Dream: merge memories that overlap, make dates absolute, remove what is no longer true.
///
/// A model goes over the memories of this project, over what they name that is gone, and over what was said in sessions
/// since the last time, ours and Claude Code's. It can change nothing but memories, and all it changes can be taken back.
/// It needs no session, so a timer can run it. Ctrl-C stops it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cairn dream                          now, in this project
  cairn dream --dry-run                what it would change
  cairn dream apply                    apply that, if nothing else has changed since
  cairn dream --if-due --all-projects  for a timer: only where a day and five sessions have passed
  cairn dream log                      past dreams
  cairn dream diff                     what the last one changed
  cairn dream undo                     take it back")]
pub(crate) struct DreamArgs {
    /// Use another project than the one in the working directory.
    #[arg(long, value_name = "DIR", global = true)]
    project: Option<PathBuf>,
    /// Print JSON.
    #[arg(long, global = true)]
    json: bool,
    /// Show what would change, and change nothing. It costs what a dream costs; `dream apply` carries it out without
    /// asking a model again.
    #[arg(long)]
    dry_run: bool,
    /// Every project that has memories, one after another.
    #[arg(long, conflicts_with = "project")]
    all_projects: bool,
    /// Only if a dream is due: hours and sessions as in the settings.
    #[arg(long)]
    if_due: bool,
    #[command(subcommand)]
    command: Option<DreamCommand>,
}

#[derive(Debug, clap::Subcommand)]
enum DreamCommand {
    /// List past dreams, newest first.
    Log,
    /// Show what a dream changed: the last one that changed something, or the one named.
    Diff {
        /// Its name, or the beginning of it.
        id: Option<String>,
    },
    /// Undo what a dream changed. What was edited since is kept, and shown.
    Undo {
        /// Its name, or the beginning of it.
        id: Option<String>,
    },
    /// Show when the last dream was, whether the next is due, and whether one is running.
    Status,
    /// Apply what the last `--dry-run` showed, if those memories have not changed since.
    Apply,
}

/// Runs it.
pub(crate) async fn run(args: &DreamArgs) -> anyhow::Result<Code> {
    let mut place = ProgramPaths::from_env()?;
    if let Some(project) = &args.project {
        let project = files::real(place.directory.join(project))?;
        anyhow::ensure!(project.is_dir(), "--project {}: no such directory", project.display());
        place.directory = project;
    }
    if let Some(command) = &args.command {
        return of_the_past(command, &place, args.json);
    }
    if !args.all_projects {
        return one(args, &place).await;
    }
    let projects = dream_setup::projects(&place.home);
    if projects.is_empty() {
        talk!("No project has memories yet.");
    }
    let mut code = Code::Success;
    for directory in projects {
        let place = ProgramPaths { directory, ..place.clone() };
        talk_row(&[bold(&place.directory.display().to_string())]);
        match one(args, &place).await {
            Ok(Code::Success) => {}
            Ok(ended @ (Code::Interrupted | Code::HungUp | Code::Terminated | Code::Unread)) => return Ok(ended),
            Ok(other) => code = other,
            // One project that cannot dream keeps no other from it.
            Err(error) => {
                warn(&format!("{error:#}"));
                code = Code::Failure;
            }
        }
    }
    Ok(code)
}

/// Runs one of the commands about the past.
fn of_the_past(command: &DreamCommand, place: &ProgramPaths, as_json: bool) -> anyhow::Result<Code> {
    let settings = trusted_settings::settings(place, None)?;
    let (site, rhythm) = (dream_setup::site(place, &settings)?, dream_setup::rhythm(&settings));
    let mut code = Code::Success;
    let (lines, object) = match command {
        DreamCommand::Log => (past::log(&site), past::log_object(&site)),
        DreamCommand::Diff { id } => (past::diff(&site, id.as_deref())?, past::diff_object(&site, id.as_deref())?),
        DreamCommand::Status => (past::status(&site, &rhythm)?, past::status_object(&site, &rhythm)?),
        DreamCommand::Apply => {
            let over = past::apply(&site, memory_setup::MemorySetup::new(place, &settings).indexing)?;
            (past::applied(&over), object(&over, place, None))
        }
        DreamCommand::Undo { id } => {
            let back = past::undo(&site, id.as_deref())?;
            if back.kept_some() {
                code = Code::Failure;
            }
            (back.lines(), back.object())
        }
    };
    if as_json {
        data!("{object}")?;
        return Ok(code);
    }
    if lines.is_empty() {
        talk!("{}", past::NONE);
    }
    for line in lines {
        data!("{line}")?;
    }
    Ok(code)
}

/// One project.
async fn one(args: &DreamArgs, place: &ProgramPaths) -> anyhow::Result<Code> {
    let settings = trusted_settings::settings(place, None)?;
    let site = dream_setup::site(place, &settings)?;
    if args.if_due {
        match dream_setup::due(&site, &settings, &mut DreamSchedule::default())? {
            ScheduleDecision::Due => {}
            ScheduleDecision::Off => {
                talk!("Dreams are off here.");
                return Ok(Code::Success);
            }
            ScheduleDecision::TooFew(_) if settings.daily_log == Some(true) => {
                talk!("Not yet: nothing was logged since the last one.");
                return Ok(Code::Success);
            }
            other => {
                talk!("{}", why_not(&other, &dream_setup::rhythm(&settings)));
                return Ok(Code::Success);
            }
        }
    }
    let chosen = model::choose(None, None, &settings).await?;
    let cancel = CancellationToken::new();
    let ledger = Arc::new(place.ledger(&settings, ""));
    let dream = dream_setup::dream(site, place, &settings, &chosen, ledger, progress_listener(), cancel.clone())?;
    let price = settings.prices.of(&dream.name);
    let mut closing = ShutdownSignals::watch_all()?;
    if args.dry_run {
        let ended = closing.or_done(&cancel, dream.rehearse()).await;
        return finish(ended, |(over, net)| {
            if args.json {
                let changes: Vec<_> =
                    net.iter().map(|one| json!({"path": one.path, "before": one.before, "after": one.after})).collect();
                let mut object = object(&over, place, price);
                object["changes"] = changes.into();
                data!("{object}")?;
            } else {
                for change in &net {
                    data!(
                        "{}",
                        event_text::diff_text(&change.path, change.before.as_deref(), change.after.as_deref())
                    )?;
                }
                talk!("Nothing was changed. {}", over.text);
                if !net.is_empty() {
                    talk_row(&[dim("cairn dream apply makes these changes")]);
                }
            }
            Ok(code(&over))
        });
    }
    let ended = closing.or_done(&cancel, dream.run()).await;
    finish(ended, |over| {
        if args.json {
            data!("{}", object(&over, place, price))?;
        } else {
            say(&over);
        }
        Ok(code(&over))
    })
}

fn finish<T>(
    ended: Result<(Result<T, NoDreamReason>, Option<ShutdownCause>), ShutdownCause>,
    show: impl FnOnce(T) -> anyhow::Result<Code>,
) -> anyhow::Result<Code> {
    let (outcome, closed) = match ended {
        Ok(ended) => ended,
        Err(closed) => return Ok(closed.code()),
    };
    let code = match outcome {
        Ok(done) => show(done)?,
        Err(why @ (NoDreamReason::Busy(_) | NoDreamReason::Overtaken | NoDreamReason::Nothing)) => {
            talk!("Not now: {why}.");
            Code::Success
        }
        Err(error) => return Err(error.into()),
    };
    Ok(closed.map_or(code, ShutdownCause::code))
}

fn code(over: &DreamFinish) -> Code {
    if over.how == DreamOutcome::Completed { Code::Success } else { Code::Failure }
}

/// Prints the outcome of a dream, for people.
fn say(over: &DreamFinish) {
    let files = over.saved.len() + over.removed.len();
    match over.how {
        DreamOutcome::Completed => talk!("{}. {}", improved(files), over.text),
        DreamOutcome::Failed => warn(&format!("the dream failed: {}", over.text)),
        DreamOutcome::Killed => talk!("Stopped. {files} memory files had already been changed."),
    }
    if files > 0 {
        talk_row(&[dim("cairn dream diff shows it; cairn dream undo undoes it")]);
    }
}

fn object(over: &DreamFinish, place: &ProgramPaths, price: Option<Price>) -> serde_json::Value {
    let mut object = serde_json::to_value(over).unwrap_or_default();
    object["project"] = place.directory.display().to_string().into();
    object["costUsd"] = price.map(|price| price.cost(&over.usage)).into();
    object
}

/// Tells of progress, a line a round.
fn progress_listener() -> Listener {
    let rounds = AtomicU32::new(0);
    Arc::new(move |progress: &DreamProgress| {
        let waits = progress.waits.as_deref().filter(|_| progress.is_under_way());
        if let Some(waits) = waits {
            talk_row(&[dim(&format!("waits: {}", first_line(waits, 200)))]);
        }
        if rounds.swap(progress.rounds, Ordering::Relaxed) == progress.rounds || waits.is_some() {
            return;
        }
        let calls: Vec<String> = progress.tools.iter().map(|(tool, times)| format!("{tool} {times}")).collect();
        let said = progress.texts.back().map(|text| first_line(text, 100)).unwrap_or_default();
        talk_row(&[dim(&format!("round {}  {}  {}", progress.rounds, calls.join(", "), said))]);
    })
}
