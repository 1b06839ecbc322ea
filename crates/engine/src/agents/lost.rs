//! Subagents whose report never arrived, because the session ended before they did.
//!
//! For each reported subagent the log holds the length of its transcript at that time. One whose transcript is longer,
//! or that never reported, is lost: model and user are told once, when the session resumes, and its usage is recorded.

use std::path::Path;

use serde::{Deserialize, Serialize};
use session::subagent_files::{PastSubagent, started};
use session::{STOPPED, Session, SubagentMeta, savings};
use transcript::block::Kind;
use transcript::line::{Body, Line, Writer};
use transcript::{Id, Usage};

use super::subagent_report::{data, launched};

/// Log entry: a subagent was heard of.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename = "agent-heard")]
pub(crate) struct HeardAgent {
    pub(crate) id: String,
    /// Length of its transcript at its end.
    pub(crate) bytes: u64,
}

/// A lost subagent.
pub(crate) struct LostAgent {
    pub(crate) past: PastSubagent,
    /// Length of its transcript.
    pub(crate) bytes: u64,
    /// Its unrecorded usage: purpose, model and tokens.
    pub(crate) used: Vec<(String, String, Usage)>,
    /// True if the log has its end all the same, so that only its usage is unrecorded.
    pub(crate) is_reported: bool,
}

impl LostAgent {
    /// Notification for the model.
    pub(crate) fn notification(&self) -> String {
        let PastSubagent { id, description, file, .. } = &self.past;
        format!(
            "<task-id>{id}</task-id>\n<status>lost</status>\n<summary>The agent \"{}\" is lost: the \
             session ended before it did.</summary>\n<result>\nIt will not report. What it had done by then is in {}; a \
             message to {id} continues it.\n</result>",
            data(description),
            file.display()
        )
    }

    /// Warning for the user.
    pub(crate) fn warning(&self) -> String {
        let PastSubagent { id, kind, description, .. } = &self.past;
        format!(
            "the agent {} ({}, {id}) was at work when this session ended; its report is lost",
            data(description),
            data(kind)
        )
    }
}

/// Length of a transcript; 0 if there is none.
pub(super) fn length(transcript: &Path) -> u64 {
    files::Lines::open(transcript).and_then(|lines| lines.file_len()).unwrap_or_default()
}

/// The lost subagents of a session.
pub(crate) fn lost(session: &Session) -> Vec<LostAgent> {
    let all = started(session.path());
    let own = all.iter().filter(|past| is_of(past, session.path()));
    let heard: Vec<HeardAgent> = if all.is_empty() { Vec::new() } else { session.noted().collect() };
    let lost = own.filter_map(|past| {
        let (bytes, known) = (length(&past.file), heard.iter().filter(|heard| heard.id == past.id));
        let from = known.map(|heard| heard.bytes).max();
        // One that went on may have been told of again before the program ended, and only not been noted.
        let lines = session.log().lines();
        let noted = lines.iter().rposition(|line| heard_in(line).is_some_and(|heard| heard.id == past.id));
        let is_reported = is_reported_in(&lines[noted.map_or(0, |at| at + 1)..], past);
        let is_lost = from.map_or(!is_reported, |heard| bytes > heard);
        let used = is_lost.then(|| used(&all, past, from.unwrap_or_default()))??;
        Some(LostAgent { past: past.clone(), bytes, used, is_reported })
    });
    lost.collect()
}

/// Returns whether a subagent was started directly from a transcript.
fn is_of(past: &PastSubagent, transcript: &Path) -> bool {
    past.file.parent() == Some(&session::child::subagents_folder(transcript))
}

/// Returns whether the log has a subagent's end although nothing records that it was heard of: the program ended in
/// between, or another program wrote the lines.
fn is_reported_in(lines: &[Line], past: &PastSubagent) -> bool {
    let call = SubagentMeta::read(&past.file).tool_use_id;
    let named = format!("<task-id>{}</task-id>", past.id);
    let launched = launched(&past.id);
    let blocks = lines.iter().filter_map(|line| match &line.body {
        Body::User { blocks, .. } => Some(blocks),
        _ => None,
    });
    blocks.flatten().any(|block| match block.kind() {
        Kind::ToolResult { id, .. } if call.as_deref() == Some(id) => {
            let text = block.result_text();
            text != STOPPED && !text.starts_with(&launched)
        }
        Kind::Text => block.as_text().is_some_and(|text| text.contains(&named)),
        _ => false,
    })
}

/// Usage of a subagent, and of those it lost itself, after a given length of its transcript; `None` if another program
/// wrote it.
fn used(all: &[PastSubagent], past: &PastSubagent, from: u64) -> Option<Vec<(String, String, Usage)>> {
    let part = files::Lines::open(&past.file).and_then(|lines| lines.part(from..u64::MAX));
    let Ok(mut part) = part else { return Some(Vec::new()) }; // it had not begun
    let mut lines: Vec<Line> = Vec::new();
    while let Ok(Some(line)) = part.next() {
        if let files::Text::Whole(text) = line.text {
            lines.extend(Line::parse(text));
        }
    }
    if lines.iter().any(|line| line.id.is_some() && line.writer == Writer::Other) {
        return None;
    }
    let mut replies: Vec<(&Id, &str, Usage)> = Vec::new();
    for line in &lines {
        let Body::Assistant { id, model, usage, .. } = &line.body else { continue };
        replies.retain(|(known, ..)| *known != id); // several lines can be of one
        replies.push((id, model, usage.unwrap_or_default()));
    }
    let mut used: Vec<(String, String, Usage)> = Vec::new();
    for (_, model, usage) in replies {
        match used.iter_mut().find(|(_, known, _)| known == model) {
            Some((.., sum)) => *sum += usage,
            None => used.push((past.kind.clone(), model.to_owned(), usage)),
        }
    }
    let below = |who: &str| format!("{}: {who}", past.kind);
    used.extend(savings::of_forks(&lines).into_iter().map(|(who, model, usage)| (below(&who), model, usage)));
    let heard: Vec<String> = lines.iter().filter_map(heard_in).map(|heard| heard.id).collect();
    for lost in all.iter().filter(|other| is_of(other, &past.file) && !heard.contains(&other.id)) {
        let of_it = self::used(all, lost, 0).into_iter().flatten();
        used.extend(of_it.map(|(who, model, usage)| (below(&who), model, usage)));
    }
    Some(used)
}

fn heard_in(line: &Line) -> Option<HeardAgent> {
    match &line.body {
        Body::Meta(meta) => serde_json::from_str(meta.get()).ok(),
        _ => None,
    }
}
