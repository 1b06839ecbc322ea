//! Changes to memory, by agents and by commands, and undoing them.

use jiff::Timestamp;
use memory::changes::{ChangeRun, Changes, KeptChange, USER, UndoResult};
use memory::store::Store;
use serde_json::json;

use crate::event_text::{diff_text, local_time};
use crate::out::{data, talk};
use crate::styled_text::{Span, cyan, dim};

/// The runs, newest first.
pub(super) fn log(changes: &Changes, diffs: bool, as_json: bool) -> anyhow::Result<()> {
    let runs = changes.runs();
    if as_json {
        let row = |run: &ChangeRun| {
            let net = run.net();
            let rows = net.iter().map(|one| json!({"path": one.path, "before": one.before, "after": one.after}));
            json!({
                "id": run.id, "agent": run.head.agent, "session": run.head.session, "model": run.head.model,
                "at": run.head.at, "changes": rows.collect::<Vec<_>>(),
            })
        };
        data!("{}", runs.iter().map(row).collect::<serde_json::Value>())?;
        return Ok(());
    }
    if runs.is_empty() {
        talk!("These memories have only been changed by hand so far.");
    }
    for run in &runs {
        let net = run.net();
        let names: Vec<String> = net.iter().map(|one| format!("{} {}", word(one), one.path)).collect();
        let at = run.head.began().map(local_time).unwrap_or_default();
        let by = if run.head.agent == USER { "you" } else { &run.head.agent };
        data!([cyan(&run.id), Span::plain(&format!("  {at}  {by:<8}  ")), dim(&names.join(", "))])?;
        if diffs {
            for one in &net {
                data!("{}", diff_text(&one.path, one.before.as_deref(), one.after.as_deref()))?;
            }
        }
    }
    Ok(())
}

fn word(change: &KeptChange) -> &'static str {
    match (&change.before, &change.after) {
        (None, _) => "made",
        (_, None) => "removed",
        _ => "changed",
    }
}

/// Takes back what a run changed, or one memory of it.
pub(super) fn undo(
    changes: &Changes,
    store: &Store,
    id: &str,
    only: Option<&str>,
    at: Timestamp,
) -> anyhow::Result<()> {
    let runs = changes.runs();
    let found: Vec<&ChangeRun> = runs.iter().filter(|run| run.id.starts_with(id)).collect();
    let run = match found.as_slice() {
        [run] => run,
        [] => anyhow::bail!("there is no run {id}; cairn memory log lists them"),
        _ => anyhow::bail!("several runs begin with {id}; cairn memory log lists them"),
    };
    for undone in changes.undo(&run.id, only, store, at)? {
        match undone {
            UndoResult::Restored { path } => talk!("{path} is as it was before"),
            UndoResult::Removed { path } => talk!("{path} was new and has been removed"),
            UndoResult::ChangedSince { path, before, now } => {
                talk!("{path} has been changed since and stays as it is; undoing would change this:");
                data!("{}", diff_text(&path, now.as_deref(), before.as_deref()))?;
            }
        }
    }
    Ok(())
}
