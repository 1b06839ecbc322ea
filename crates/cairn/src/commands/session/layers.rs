//! `cairn session expand|replay`: what the layers did to a session, and would do.

use std::path::Path;

use engine::context::Layers;
use serde_json::json;
use session::replay::Replayed;
use session::{Fork, Session, World, record};
use transcript::commit::{Act, Commit};
use transcript::line::{Body, Line};
use transcript::window::{Window, WindowHints};
use transcript::{Id, Log};

use crate::exit::Code;
use crate::judgement;
use crate::out::{data, talk};
use crate::place::Place;
use crate::span::{cyan, dim, red};

/// Brings back what a commit covers, or lists what is covered.
pub(crate) fn expand(
    place: &Place,
    path: &Path,
    commit: Option<&str>,
    list: bool,
    as_json: bool,
) -> anyhow::Result<()> {
    if list {
        return show_covers(&record::read(path)?.log, as_json);
    }
    let path = files::real(path)?;
    let (mut session, _) = Session::resume_file(&place.home, &place.directory, &path, Fork::No, World::real())?;
    let covers = covers(session.log());
    let chosen = match commit {
        Some(id) => covers.iter().find(|(line, _)| line.id.as_ref().is_some_and(|known| known.as_str() == id)),
        None => covers.last(),
    };
    let chosen = chosen.and_then(|(line, _)| line.id.clone()).ok_or_else(|| match commit {
        Some(id) => anyhow::anyhow!("{id} covers nothing in this session; --list shows what does"),
        None => anyhow::anyhow!("nothing is covered in this session"),
    })?;
    drop(covers);
    let before = session.log().view().tally().count();
    let model = session.log().view().prologue().map(|known| known.model.clone()).unwrap_or_default();
    session.undo(&chosen, &super::window(session.log(), &model)?)?;
    let after = session.log().view().tally().count();
    if as_json {
        data!(
            "{}",
            json!({"expanded": chosen, "tokensBefore": before, "tokensAfter": after, "session": session.id()})
        )?;
    } else {
        data!("{chosen} is expanded: the view had {before} tokens and has {after}")?;
    }
    Ok(())
}

/// Commits that cover something and count.
fn covers(log: &Log) -> Vec<(&Line, &Commit)> {
    let counts = |id: &Option<Id>| id.as_ref().is_some_and(|id| log.view().counts(id));
    let commits = log.lines().iter().filter_map(|line| match &line.body {
        Body::Commit(commit) if counts(&line.id) => Some((line, commit)),
        _ => None,
    });
    commits
        .filter(|(_, commit)| matches!(commit.act, Act::Compact { .. } | Act::Snip { .. } | Act::Collapse { .. }))
        .collect()
}

fn show_covers(log: &Log, as_json: bool) -> anyhow::Result<()> {
    let rows = covers(log).into_iter().map(|(line, commit)| {
        let when = line.time.map(|time| format!("{time:.0}")).unwrap_or_default();
        json!({
            "commit": line.id, "kind": commit.act.name(), "time": when, "why": commit.reason.why,
            "freed": commit.reason.freed,
        })
    });
    let rows: Vec<serde_json::Value> = rows.collect();
    if as_json {
        data!("{}", serde_json::Value::Array(rows))?;
    } else if rows.is_empty() {
        talk!("Nothing is covered in this session.");
    } else {
        for row in rows {
            let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
            let kind = format!("  {:<8}  ", text("kind"));
            data!([cyan(&text("commit")), kind, dim(&text("time")), "  ", text("why")])?;
        }
    }
    Ok(())
}

/// How a session is to be played again.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) window: Option<u64>,
    pub(crate) settings: Option<&'a str>,
    pub(crate) summary_tokens: u64,
}

/// Plays a session through the layers.
pub(crate) fn replay(place: &Place, path: &Path, asked: &Asked<'_>, as_json: bool) -> anyhow::Result<Code> {
    let (lines, _) = record::lines(path)?;
    let log = Log::load(lines.clone());
    let model = log.lines().iter().rev().find_map(|line| match &line.body {
        Body::Assistant { model, .. } => Some(model.clone()),
        _ => None,
    });
    let model = model.unwrap_or_default();
    let settings = judgement::settings(place, asked.settings)?;
    let window = match asked.window {
        Some(size) => {
            let max_output = engine::configuration::MAX_OUTPUT_TOKENS;
            Window::of(&WindowHints { configured: Some(size), max_output, ..WindowHints::default() })
        }
        None => super::window(&log, &model)?,
    };
    let layers = Layers { window, price: settings.prices.of(&model), ..settings.layers };
    let replayed = match asked.window {
        Some(_) => session::replay::replay(lines, &layers, asked.summary_tokens),
        None => session::replay::replay_as_recorded(lines, &layers, asked.summary_tokens),
    };
    if as_json {
        data!("{}", serde_json::to_value(&replayed)?)?;
    } else {
        print(&replayed, &layers)?;
    }
    Ok(if replayed.broken.is_empty() { Code::Success } else { Code::Failure })
}

fn print(replayed: &Replayed, layers: &Layers) -> anyhow::Result<()> {
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
