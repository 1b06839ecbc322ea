//! Earlier input, of this and other sessions, in the file that Claude Code keeps for it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// The most entries.
const OFFERED: usize = 500;
/// The most bytes read from the end of the file.
const TAIL: u64 = 1_000_000;

/// Entries of this project, oldest first, and where one is in them.
#[derive(Debug)]
pub(crate) struct PromptHistory {
    file: PathBuf,
    project: PathBuf,
    entries: Vec<String>,
    at: Option<usize>,
    draft: String,
}

impl PromptHistory {
    /// Reads the end of `<config>/history.jsonl`. A file that cannot be read is an empty history.
    pub(crate) fn load(config: &Path, project: &Path) -> Self {
        let file = config.join("history.jsonl");
        let start = files::stamp(&file).map_or(0, |stamp| stamp.len.saturating_sub(TAIL));
        let bytes = files::read_range(&file, start, TAIL).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let mut entries: Vec<String> = Vec::new();
        for line in text.lines() {
            let Ok(entry) = serde_json::from_str::<Value>(line) else { continue };
            if entry["project"].as_str().map(Path::new) == Some(project)
                && let Some(display) = entry["display"].as_str()
                && entries.last().is_none_or(|last| last != display)
            {
                entries.push(display.to_owned());
            }
        }
        entries.drain(..entries.len().saturating_sub(OFFERED));
        Self { file, project: project.to_owned(), entries, at: None, draft: String::new() }
    }

    /// True if nothing was ever typed in this project.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an entry, also to the file. That it cannot be written is no reason to stop.
    pub(crate) fn add(&mut self, text: &str, session: &str, now: jiff::Timestamp) {
        self.at = None;
        if text.trim().is_empty() || self.entries.last().is_some_and(|last| last == text) {
            return;
        }
        self.entries.push(text.to_owned());
        let entry = json!({
            "display": text, "pastedContents": {}, "timestamp": now.as_millisecond(),
            "project": self.project, "sessionId": session,
        });
        if let Ok(mut log) = files::Log::open(&self.file, "cairn") {
            let _ = log.append(format!("{entry}\n").as_bytes());
        }
    }

    /// The entry before the one shown; `now` is what stands in the editor.
    pub(crate) fn older(&mut self, now: &str) -> Option<String> {
        let at = match self.at {
            None => {
                self.draft = now.to_owned();
                self.entries.len().checked_sub(1)?
            }
            Some(at) => at.checked_sub(1)?,
        };
        self.at = Some(at);
        self.entries.get(at).cloned()
    }

    /// The entry after the one shown; after the newest, what was being written.
    pub(crate) fn newer(&mut self) -> Option<String> {
        let at = self.at? + 1;
        if at >= self.entries.len() {
            self.at = None;
            return Some(std::mem::take(&mut self.draft));
        }
        self.at = Some(at);
        self.entries.get(at).cloned()
    }

    /// All entries, the newest first, each once.
    pub(crate) fn newest_first(&self) -> Vec<String> {
        let mut seen = std::collections::HashSet::new();
        self.entries.iter().rev().filter(|entry| seen.insert(entry.as_str())).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_comes_back_also_in_another_session() {
        let config = tempfile::tempdir().unwrap();
        let project = Path::new("/project");
        let mut history = PromptHistory::load(config.path(), project);
        for text in ["cargo test", "hello", "hello", "cargo doc"] {
            history.add(text, "s", jiff::Timestamp::UNIX_EPOCH);
        }
        PromptHistory::load(config.path(), Path::new("/other")).add("elsewhere", "s", jiff::Timestamp::UNIX_EPOCH);
        let mut history = PromptHistory::load(config.path(), project);
        let older = [history.older("draft"), history.older(""), history.older(""), history.older("")];
        assert_eq!(older.map(Option::unwrap_or_default), ["cargo doc", "hello", "cargo test", ""]);
        let newer = [history.newer(), history.newer(), history.newer(), history.newer()];
        assert_eq!(newer.map(Option::unwrap_or_default), ["hello", "cargo doc", "draft", ""]);
    }

    #[test]
    fn every_entry_is_offered_once_and_the_newest_first() {
        let config = tempfile::tempdir().unwrap();
        let mut history = PromptHistory::load(config.path(), Path::new("/project"));
        for text in ["cargo test", "hello", "cargo test"] {
            history.add(text, "s", jiff::Timestamp::UNIX_EPOCH);
        }
        assert_eq!(history.newest_first(), ["cargo test", "hello"]);
    }
}
