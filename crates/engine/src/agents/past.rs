//! The agents that a session has sent out, read off the files they left.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::session::{CHILD_PREFIX, CHILDREN};

/// How deep agents may send out agents.
pub(super) const DEPTH: u32 = 3;

/// The largest of the small files beside a transcript that is read.
const MOST_META: u64 = 100_000;

/// An agent that a session has sent out, by what its files say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Past {
    /// Its id.
    pub id: String,
    /// Its type.
    pub kind: String,
    /// What it was to do, in a few words.
    pub description: String,
    /// The agent that sent it out, where it was not the session itself.
    pub parent: Option<String>,
    /// What it said.
    pub file: PathBuf,
}

/// The agents that a session has sent out, in the order in which they began. What their files say is a stranger's text.
pub fn past(session: &Path) -> Vec<Past> {
    let mut past = sent_out(session);
    past.retain(|past| files::glance(&past.file).is_some());
    past
}

/// The same, with those that have not begun to speak and have no transcript yet.
pub(super) fn sent_out(session: &Path) -> Vec<Past> {
    let mut found = below(session, DEPTH);
    found.sort_by(|(one, a), (other, b)| (one, &a.id).cmp(&(other, &b.id)));
    found.into_iter().map(|(_, past)| past).collect()
}

/// Those that a transcript has sent out, and theirs, with when each began.
fn below(session: &Path, depth: u32) -> Vec<(Option<jiff::Timestamp>, Past)> {
    let folder = session.with_extension("").join(CHILDREN);
    let mut found: Vec<(Option<jiff::Timestamp>, Past)> = Vec::new();
    let entries = files::list(&folder).unwrap_or_default();
    let names = entries.iter().filter_map(|entry| entry.name.to_str()?.strip_prefix(CHILD_PREFIX));
    let ids = names.filter_map(|name| name.strip_suffix(".jsonl").or_else(|| name.strip_suffix(".meta.json")));
    for id in ids.collect::<BTreeSet<_>>() {
        let file = folder.join(format!("{CHILD_PREFIX}{id}.jsonl"));
        if depth > 1 {
            found.extend(below(&file, depth - 1));
        }
        let meta = meta(&file);
        let text = |key: &str| meta[key].as_str().map(str::to_owned);
        found.push((
            began(&file),
            Past {
                id: id.to_owned(),
                kind: text("agentType").unwrap_or_default(),
                description: text("description").unwrap_or_default(),
                parent: text("parentAgentId"),
                file,
            },
        ));
    }
    found
}

/// What the small file beside a transcript says of its agent; nothing where there is none. It is a stranger's text too.
pub(super) fn meta(transcript: &Path) -> Value {
    let meta = files::read(transcript.with_extension("meta.json"), MOST_META).ok();
    meta.and_then(|meta| serde_json::from_slice(&meta.bytes).ok()).unwrap_or_default()
}

/// When the first line of a transcript was written.
fn began(file: &Path) -> Option<jiff::Timestamp> {
    let mut lines = files::Lines::open(file).ok()?;
    let files::Text::Whole(text) = lines.next().ok()??.text else { return None };
    transcript::line::Line::parse(text).ok()?.time
}
