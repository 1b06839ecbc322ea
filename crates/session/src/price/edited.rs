//! The text that edits replace: is it in view when the model writes the edit?
//!
//! An edit names text of a file word for word. Where that text has left the view, the model reads the file again. Looked
//! at are the lines of the replaced text as they stand in the file; of everything else that was said only those lines
//! matter, so that long sessions cost little. A line that was never shown is not missed: nothing took it away.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;
use transcript::Block;
use transcript::block::Kind;
use transcript::line::{Body, Line};

/// Names of tools that replace text of a file.
const EDITING_TOOLS: [&str; 4] = ["Edit", "edit", "MultiEdit", "NotebookEdit"];
/// Names of the argument with the text that is replaced.
const OLD_TEXT: [&str; 4] = ["old_string", "oldText", "old_str", "old_source"];
/// Names of the argument with the file.
const PATH: [&str; 3] = ["file_path", "path", "notebook_path"];

/// A line of a file, as far as lines are compared.
type LineHash = u64;

/// One edit of a file.
#[derive(Debug, Clone)]
pub(super) struct FileEdit {
    /// The file's path.
    pub(super) path: String,
    /// The lines it replaces.
    lines: Vec<LineHash>,
}

impl FileEdit {
    /// The edits that a reply's block makes; none of them without a text that is replaced.
    pub(super) fn of(block: &Block) -> Vec<Self> {
        let Kind::ToolUse { name, .. } = block.kind() else { return Vec::new() };
        if !EDITING_TOOLS.contains(&&**name) {
            return Vec::new();
        }
        let input = block.input().unwrap_or_default();
        let text = |value: &Value, keys: &[&str]| {
            keys.iter().find_map(|key| value.get(key)?.as_str()).unwrap_or_default().to_owned()
        };
        let path = text(&input, &PATH);
        let parts = input.get("edits").and_then(Value::as_array).map_or(std::slice::from_ref(&input), Vec::as_slice);
        let edit = |part: &Value| {
            let lines: Vec<LineHash> = file_lines(&text(part, &OLD_TEXT)).map(hash).collect();
            (!lines.is_empty()).then(|| Self { path: path.clone(), lines })
        };
        parts.iter().filter_map(edit).collect()
    }
}

/// The lines of a conversation's blocks that some edit replaces.
#[derive(Debug, Default)]
pub(super) struct EditedText {
    wanted: HashSet<LineHash>,
    /// By where the block's bytes lie: blocks are shared, never copied.
    by_block: HashMap<usize, Vec<LineHash>>,
}

impl EditedText {
    pub(super) fn of<'e>(lines: &[Line], edits: impl Iterator<Item = &'e FileEdit>) -> Self {
        let wanted: HashSet<LineHash> = edits.flat_map(|edit| edit.lines.iter().copied()).collect();
        let mut text = Self { wanted, by_block: HashMap::new() };
        if text.wanted.is_empty() {
            return text;
        }
        for line in lines {
            let (Body::User { blocks, .. } | Body::Assistant { blocks, .. } | Body::Attachment { blocks }) = &line.body
            else {
                continue;
            };
            for block in blocks {
                let lines = text.lines_in(block);
                text.by_block.insert(place(block), lines);
            }
        }
        text
    }

    /// The lines in a block that some edit replaces.
    fn lines_of(&self, block: &Block) -> std::borrow::Cow<'_, [LineHash]> {
        match self.by_block.get(&place(block)) {
            _ if self.wanted.is_empty() => Vec::new().into(),
            Some(lines) => lines.as_slice().into(),
            None => self.lines_in(block).into(), // made on the way: a summary, a digest, a file read again
        }
    }

    fn lines_in(&self, block: &Block) -> Vec<LineHash> {
        file_lines(&plain_text(block)).map(hash).filter(|line| self.wanted.contains(line)).collect()
    }
}

/// The visible part of the text that edits replace.
#[derive(Debug)]
pub(super) struct TextInView<'a> {
    text: &'a EditedText,
    /// Number of times that a line is in view.
    counts: HashMap<LineHash, u32>,
    /// The block that showed a line last, in view or not.
    shown_by: HashMap<LineHash, Block>,
}

impl<'a> TextInView<'a> {
    pub(super) fn new(text: &'a EditedText) -> Self {
        Self { text, counts: HashMap::new(), shown_by: HashMap::new() }
    }

    /// Blocks come into view. Gives the lines by which they are to leave it.
    pub(super) fn enter<'b>(&mut self, blocks: impl Iterator<Item = &'b Block>) -> Vec<u64> {
        let mut entered = Vec::new();
        for block in blocks {
            for &line in &*self.text.lines_of(block) {
                *self.counts.entry(line).or_default() += 1;
                self.shown_by.insert(line, block.clone());
                entered.push(line);
            }
        }
        entered
    }

    /// Lines leave the view.
    pub(super) fn leave(&mut self, lines: &[u64]) {
        for line in lines {
            if let Some(count) = self.counts.get_mut(line) {
                *count = count.saturating_sub(1);
            }
        }
    }

    /// The text that has to be read again for an edit, if it was in view before and is not now: the whole file, or the
    /// text that showed it if the file is not known.
    pub(super) fn missing(&self, edit: &FileEdit, file: impl FnOnce() -> Option<String>) -> Option<String> {
        let is_missing = |line: &&LineHash| self.counts.get(line).is_some_and(|count| *count == 0);
        let missing = edit.lines.iter().find(is_missing)?;
        let file = file().filter(|text| file_lines(text).any(|line| hash(line) == *missing));
        file.or_else(|| self.shown_by.get(missing).map(plain_text))
    }
}

/// All text in a block: what is said, what a tool returned, the texts in a call.
fn plain_text(block: &Block) -> String {
    match block.kind() {
        Kind::Text => block.as_text().unwrap_or_default(),
        Kind::ToolResult { .. } => block.result_text(),
        Kind::ToolUse { .. } => {
            let mut text = String::new();
            strings(&block.input().unwrap_or_default(), &mut text);
            text
        }
        _ => String::new(),
    }
}

/// The strings in a value, each on lines of its own.
fn strings(value: &Value, into: &mut String) {
    match value {
        Value::String(text) => {
            into.push_str(text);
            into.push('\n');
        }
        Value::Array(parts) => parts.iter().for_each(|part| strings(part, into)),
        Value::Object(parts) => parts.values().for_each(|part| strings(part, into)),
        _ => {}
    }
}

/// The lines of a text as they stand in a file: without the numbers that tools put before them, and without blanks around.
pub fn file_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(|line| line[number_of(line)..].trim()).filter(|line| !line.is_empty())
}

/// Length in bytes of the line number that a tool put before a line.
pub(super) fn number_of(line: &str) -> usize {
    let number = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
    match number.strip_prefix('→').or_else(|| number.strip_prefix('\t')) {
        Some(rest) if number.len() < line.trim_start().len() => line.len() - rest.len(),
        _ => 0,
    }
}

fn hash(line: &str) -> LineHash {
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    hasher.finish()
}

fn place(block: &Block) -> usize {
    block.json().as_ptr() as usize
}
