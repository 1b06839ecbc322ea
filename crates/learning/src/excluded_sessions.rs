//! Sessions that nothing is learnt from, whoever would learn: those that were private for a while, and those that
//! touched or worked in what the user excluded.
//!
//! A session is judged by its file alone, ours and Claude Code's alike, line by line. Agents that look through
//! transcripts see nothing of an excluded one: neither its file nor what is next to it. Whatever its subagents touched
//! counts as touched by it.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use files::{Glance, Lines, Text};
use parking_lot::Mutex;
use serde_json::Value;
use session::child::SubagentMeta;
use transcript::Purpose;

use crate::exclusions::Exclusions;

/// The excluded sessions, each judged when it is asked for.
pub(crate) struct ExcludedSessions {
    /// Folders of sessions, links followed.
    folders: Vec<PathBuf>,
    exclusions: Exclusions,
    /// The project's directory, for lines without a directory of their own.
    project: PathBuf,
    known: Mutex<HashMap<PathBuf, (Glance, bool)>>,
}

impl ExcludedSessions {
    pub(crate) fn new(folders: Vec<PathBuf>, exclusions: Exclusions, project: PathBuf) -> Self {
        Self { folders, exclusions, project, known: Mutex::default() }
    }

    /// The user's exclusions.
    pub(crate) fn exclusions(&self) -> &Exclusions {
        &self.exclusions
    }

    /// True if a file is an excluded session, or is next to one.
    pub(crate) fn has(&self, path: &Path) -> bool {
        let Some(session) = self.folders.iter().find_map(|folder| session(folder, path)) else { return false };
        let judge = || self.is_apart(&session).unwrap_or(true) || self.subagents_touched(&session, |_| true);
        self.judged(&session, judge)
    }

    /// True if a subagent started by one of these calls, or by one of its own subagents, touched what is excluded.
    pub(crate) fn sent_out_to_it(&self, session: &Path, calls: &HashSet<&str>) -> bool {
        self.subagents_touched(session, |meta| meta.tool_use_id.as_deref().is_some_and(|call| calls.contains(call)))
    }

    fn subagents_touched(&self, session: &Path, counts: impl Fn(&SubagentMeta) -> bool) -> bool {
        if self.exclusions.is_empty() {
            return false;
        }
        let all: Vec<(String, SubagentMeta, PathBuf)> = session::subagent_files::past(session)
            .into_iter()
            .map(|child| (child.id, SubagentMeta::read(&child.file), child.file))
            .collect();
        let mut meant: HashSet<&str> = all.iter().filter(|(_, meta, _)| counts(meta)).map(|(id, ..)| &**id).collect();
        loop {
            let below =
                |meta: &SubagentMeta| meta.parent_agent_id.as_deref().is_some_and(|parent| meant.contains(parent));
            let new = all.iter().filter(|(id, meta, _)| !meant.contains(&**id) && below(meta));
            let more: Vec<&str> = new.map(|(id, ..)| &**id).collect();
            if more.is_empty() {
                break;
            }
            meant.extend(more);
        }
        let mut children = all.iter().filter(|(id, ..)| meant.contains(&**id));
        children.any(|(_, _, path)| self.judged(path, || self.is_apart(path).unwrap_or(true)))
    }

    /// The judgement about a file, kept until the file changes; false if there is no file.
    fn judged(&self, file: &Path, judge: impl FnOnce() -> bool) -> bool {
        let Some(glance) = files::glance(file) else { return false };
        if let Some((seen, apart)) = self.known.lock().get(file)
            && *seen == glance
        {
            return *apart;
        }
        let apart = judge();
        self.known.lock().insert(file.to_owned(), (glance, apart));
        apart
    }

    fn is_apart(&self, session: &Path) -> Result<bool, files::Error> {
        let mut lines = Lines::open(session)?;
        while let Some(line) = lines.next()? {
            let Text::Whole(text) = line.text else { continue };
            let looks = !self.exclusions.is_empty() || memchr::memmem::find(text, b"\"private\"").is_some();
            let Some(line) = looks.then(|| serde_json::from_slice::<Value>(text).ok()).flatten() else { continue };
            if line["type"] == "meta" && line["meta"]["kind"] == "private" && line["meta"]["on"] == true {
                return Ok(true);
            }
            if !self.exclusions.is_empty() && self.is_line_excluded(&line) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_line_excluded(&self, line: &Value) -> bool {
        let worked = line["cwd"].as_str().map(PathBuf::from).filter(|path| path.is_absolute());
        if worked.as_ref().is_some_and(|worked| self.exclusions.holds(worked)) {
            return true;
        }
        let directory = worked.as_deref().unwrap_or(&self.project);
        let content = &line["message"]["content"];
        let of_type = |block: &Value, all: &[&str]| all.iter().any(|one| block["type"] == *one);
        let mut blocks = content.as_array().into_iter().flatten();
        blocks.any(|block| {
            of_type(block, &["tool_use"]) && self.exclusions.touched_by(&block["input"], directory)
                || of_type(block, &["tool_result"]) && self.exclusions.shown_in(&text_of(&block["content"]), directory)
                || of_type(block, &["image", "document"]) && self.exclusions.named_in(&text_of(content), directory)
        }) || beside(line).is_some_and(|text| self.exclusions.shown_beside(&text, directory))
    }
}

/// The text of a line that came with a message: a file that it names, a command of the user's own, a report.
fn beside(line: &Value) -> Option<String> {
    let content = text_of(&line["message"]["content"]);
    match serde_json::from_value::<Purpose>(line["cairn"]["injected"].clone()) {
        Ok(purpose) => purpose.shows_others().then_some(content),
        Err(_) if line["type"] == "attachment" => Some(strings(&line["attachment"])),
        Err(_) => content.contains("<bash-").then_some(content),
    }
}

/// All texts in a value.
fn strings(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(strings).collect::<Vec<_>>().join("\n"),
        Value::Object(all) => all.values().map(strings).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

/// The text of a result: plain, or in blocks.
fn text_of(content: &Value) -> String {
    match content.as_str() {
        Some(text) => text.to_owned(),
        None => {
            let texts = content.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}

/// The session a path in a folder of sessions belongs to. Memories lie there too, and belong to none.
fn session(folder: &Path, path: &Path) -> Option<PathBuf> {
    let first = path.strip_prefix(folder).ok()?.components().next()?.as_os_str().to_str()?;
    let id = first.split_once(".jsonl").map_or(first, |(id, _)| id);
    Some(folder.join(format!("{id}.jsonl")))
}
