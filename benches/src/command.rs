//! What confining costs a command that runs unasked: `git status` held to looking, beside the same below the guard alone.
//!
//! Wall time by nature, since most of it is spent in the kernel; so both are run in turn, and their medians compared.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use serde_json::json;
use tools::permission::{ReadOnlyView, Rights, Wall};
use tools::{ToolCall, Scope, run_all, standard};

use crate::table::{Row, Unit};

/// How many times as long a confined command may take.
const TARGET: f64 = 1.5;

/// How many runs of each a median is of.
const RUNS: usize = 60;

/// How many files the repository has.
const FILES: usize = 200;

/// The time an unasked `git status` takes.
pub(crate) fn measure(place: &Path) -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(compare(place))
}

async fn compare(place: &Path) -> Result<Vec<Row>> {
    // Where people have their projects: not in /tmp, which a confined command has of its own.
    let folder = tempfile::tempdir_in(std::path::absolute(place)?)?;
    let project = repository(folder.path())?;
    let guard = std::path::absolute(place.join("release/cairn"))?;
    let scope = Scope::new(&project, folder.path().join("session")).with_guard(guard);
    scope.find_wall().await;
    if scope.wall() == Wall::None {
        let why = scope.no_wall().unwrap_or_default();
        return Ok(vec![Row::figure("an unasked git status", format!("not confined here: {why}"))]);
    }
    let (mut free, mut held) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        free.push(timed(&scope, Rights::Full).await?);
        held.push(timed(&scope, Rights::ReadOnly(ReadOnlyView::default())).await?);
    }
    let (free, held) = (median(free), median(held));
    Ok(vec![
        Row::figure("git status below the guard", format!("{free:.1} ms, median of {RUNS}")),
        Row::figure("git status held to looking", format!("{held:.1} ms, median of {RUNS}")),
        Row::at_most("  as many times as long", Unit::Times, held / free, TARGET),
    ])
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

async fn timed(scope: &Scope, rights: Rights) -> Result<f64> {
    let call = ToolCall { rights, ..ToolCall::new("Bash", json!({"command": "git status"})) };
    let start = Instant::now();
    let output = run_all(vec![call], &standard(), scope, |_, _| {}).await;
    let took = start.elapsed().as_secs_f64() * 1e3;
    let text = output.first().map(tools::Output::text).unwrap_or_default();
    ensure!(text.contains("working tree clean"), "git status says: {text}");
    Ok(took)
}

fn repository(folder: &Path) -> Result<std::path::PathBuf> {
    let project = folder.join("project");
    for number in 0..FILES {
        let file = project.join(format!("src/part{}/file{number}.txt", number % 10));
        std::fs::create_dir_all(file.parent().unwrap_or(&project))?;
        std::fs::write(file, format!("{number}\n"))?;
    }
    let who = ["-c", "user.name=x", "-c", "user.email=x"];
    for words in [&["init", "-q"][..], &["add", "."], &["commit", "-q", "-m", "x"]] {
        let status = Command::new("git").args(who).args(words).current_dir(&project).status()?;
        if !status.success() {
            bail!("git {} fails", words.join(" "));
        }
    }
    Ok(project)
}
