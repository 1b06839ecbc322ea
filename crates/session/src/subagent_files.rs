//! The subagents of a session, read from the files they left.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::child::{SubagentMeta, id_of, subagents_folder, transcript_of};

/// The deepest level of subagents.
pub const DEPTH: u32 = 3;

/// A subagent of a session, according to its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastSubagent {
    /// Its id.
    pub id: String,
    /// Its type.
    pub kind: String,
    /// Its task, in a few words.
    pub description: String,
    /// The agent that sent it out, where it was not the session itself.
    pub parent: Option<String>,
    /// Its transcript.
    pub file: PathBuf,
}

/// The subagents of a session, in the order in which they began. The text of their files is untrusted.
pub fn past(session: &Path) -> Vec<PastSubagent> {
    let mut past = started(session);
    past.retain(|past| files::glance(&past.file).is_some());
    past
}

/// The same, with those that have not begun to speak and have no transcript yet.
pub fn started(session: &Path) -> Vec<PastSubagent> {
    let mut found = below(session, DEPTH);
    found.sort_by(|(one, a), (other, b)| (one, &a.id).cmp(&(other, &b.id)));
    found.into_iter().map(|(_, past)| past).collect()
}

/// The subagents of a transcript, and theirs, with the time each began.
fn below(session: &Path, depth: u32) -> Vec<(Option<jiff::Timestamp>, PastSubagent)> {
    let mut found: Vec<(Option<jiff::Timestamp>, PastSubagent)> = Vec::new();
    let entries = files::list(subagents_folder(session)).unwrap_or_default();
    for id in entries.iter().filter_map(|entry| id_of(&entry.name)).collect::<BTreeSet<_>>() {
        let file = transcript_of(session, id);
        if depth > 1 {
            found.extend(below(&file, depth - 1));
        }
        let meta = SubagentMeta::read(&file);
        let (kind, description, parent) = (meta.agent_type, meta.description, meta.parent_agent_id);
        found.push((began(&file), PastSubagent { id: id.to_owned(), kind, description, parent, file }));
    }
    found
}

/// When the first line of a transcript was written.
fn began(file: &Path) -> Option<jiff::Timestamp> {
    let mut lines = files::Lines::open(file).ok()?;
    let files::Text::Whole(text) = lines.next().ok()??.text else { return None };
    transcript::line::Line::parse(text).ok()?.time
}
