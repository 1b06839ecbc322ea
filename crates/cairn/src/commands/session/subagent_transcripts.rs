//! The subagents of a session, beside its conversation.

use std::path::{Path, PathBuf};

use session::subagent_files::{PastSubagent, past};

use crate::out::data;
use crate::styled_text::{bold, cyan, dim, one_line};

/// The most characters of a task that are shown.
const LONGEST: usize = 80;

/// Lists them, if there are any.
pub(super) fn list(session: &Path) -> anyhow::Result<()> {
    let all = past(session);
    if !all.is_empty() {
        data!([bold("Agents it started"), dim("  (--agent ID shows one)")])?;
    }
    for PastSubagent { id, kind, description, parent, .. } in &all {
        let above = parent.as_ref().map(|parent| format!("  started by {}", one_line(parent, LONGEST)));
        let about = format!("  {}: {}", one_line(kind, LONGEST), one_line(description, LONGEST));
        data!(["  ", cyan(id), about, dim(&above.unwrap_or_default())])?;
    }
    Ok(())
}

/// The transcript of one, by its id or the beginning of it.
pub(super) fn file(session: &Path, id: &str) -> anyhow::Result<PathBuf> {
    let all = past(session);
    let fits: Vec<&PastSubagent> = all.iter().filter(|one| !id.is_empty() && one.id.starts_with(id)).collect();
    match (&fits[..], fits.iter().find(|one| one.id == id)) {
        ([one], _) | (_, Some(one)) => Ok(one.file.clone()),
        ([], _) if all.is_empty() => anyhow::bail!("the session started no agents"),
        (found, None) => {
            let ids: Vec<&str> = all.iter().map(|one| one.id.as_str()).collect();
            let how = if found.is_empty() { "no agent" } else { "more than one agent" };
            anyhow::bail!("{how} of the session is called {id}; there are {}", ids.join(", "))
        }
    }
}
