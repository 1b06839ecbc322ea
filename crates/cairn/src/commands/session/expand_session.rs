//! `cairn session expand`: what the layers did to a session.

use std::path::Path;

use serde_json::json;
use session::{Fork, Session, World, record};
use transcript::commit::{Act, Commit};
use transcript::line::{Body, Line};
use transcript::{Id, Log};

use crate::out::{data, talk};
use crate::program_paths::ProgramPaths;
use crate::styled_text::{cyan, dim};

/// Brings back what a commit covers, or lists what is covered.
pub(crate) fn expand(
    place: &ProgramPaths,
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
        data!("{chosen} is expanded: the view had {before} tokens and now has {after}")?;
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
