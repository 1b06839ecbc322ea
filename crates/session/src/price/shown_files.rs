//! Files as a record shows them: what a session would see that reads one again.
//!
//! A file's text is what was last read or written of it, with the edits since. Where only parts were read, it is these parts.
//! What commands did to it is not known.

use std::collections::HashMap;

use serde_json::Value;
use transcript::block::Kind;
use transcript::line::{Body, Line};
use transcript::{Block, Id, tool_names};

/// Names of the argument with the file.
const PATH: [&str; 3] = ["file_path", "path", "notebook_path"];

/// The files that a record shows.
#[derive(Debug, Default)]
pub(super) struct ShownFiles {
    by_path: HashMap<String, Vec<FileCall>>,
}

/// A call that read or changed a file.
#[derive(Debug)]
struct FileCall {
    /// The request whose reply made it.
    request: usize,
    call: Block,
    result: Block,
}

impl ShownFiles {
    /// Takes in lines, and says in each what was seen there, as a session of ours does.
    pub(super) fn of(lines: &mut [Line]) -> Self {
        let mut files = Self::default();
        let mut replies = 0;
        let mut newest: Option<Id> = None;
        let mut calls: HashMap<String, (usize, Block)> = HashMap::new();
        for line in lines {
            match &line.body {
                Body::Assistant { id, blocks, .. } => {
                    if newest.as_ref() != Some(id) {
                        newest = Some(id.clone());
                        replies += 1;
                    }
                    for block in blocks {
                        if let Kind::ToolUse { id, .. } = block.kind() {
                            calls.insert(id.to_string(), (replies - 1, block.clone()));
                        }
                    }
                }
                Body::User { blocks, .. } => {
                    for block in blocks {
                        let Kind::ToolResult { id, failed: false } = block.kind() else { continue };
                        let Some((request, call)) = calls.remove(&**id) else { continue };
                        let Some(path) = path_of(&call) else { continue };
                        let seen = serde_json::json!({"seen": {"path": path}});
                        line.extra = line.extra.take().or_else(|| serde_json::value::to_raw_value(&seen).ok());
                        let result = block.clone();
                        files.by_path.entry(path).or_default().push(FileCall { request, call, result });
                    }
                }
                _ => {}
            }
        }
        files
    }

    /// The text of a file before a request, as far as it is known.
    pub(super) fn text_before(&self, path: &str, request: usize) -> Option<String> {
        let calls = self.by_path.get(path)?;
        let mut parts: Vec<(Value, String)> = Vec::new();
        for one in calls.iter().take_while(|one| one.request < request) {
            let Kind::ToolUse { name, .. } = one.call.kind() else { continue };
            let input = one.call.input().unwrap_or_default();
            let text = |key: &str| input[key].as_str().unwrap_or_default().to_owned();
            match &**name {
                tool_names::READ => {
                    let part = (input["offset"].clone(), unnumbered(&one.result.result_text()));
                    let is_whole = part.0.is_null() && input["limit"].is_null();
                    parts.retain(|(offset, _)| !is_whole && *offset != part.0);
                    parts.push(part);
                }
                tool_names::WRITE => parts = vec![(Value::Null, text("content"))],
                _ => {
                    let edits = input["edits"].as_array().map_or(std::slice::from_ref(&input), Vec::as_slice);
                    for edit in edits {
                        let text = |key: &str| edit[key].as_str().unwrap_or_default();
                        let (old, new) = (text("old_string"), text("new_string"));
                        let times = if edit["replace_all"] == true { usize::MAX } else { 1 };
                        for (_, part) in parts.iter_mut().filter(|_| !old.is_empty()) {
                            *part = part.replacen(old, new, times);
                        }
                    }
                }
            }
        }
        let parts: Vec<String> = parts.into_iter().map(|(_, part)| part).collect();
        Some(parts.join("\n")).filter(|text| !text.trim().is_empty())
    }
}

/// The file that a call reads or changes.
fn path_of(call: &Block) -> Option<String> {
    let Kind::ToolUse { name, .. } = call.kind() else { return None };
    let is_of_file = [tool_names::READ, tool_names::WRITE, tool_names::EDIT, "MultiEdit"].contains(&&**name);
    let input = is_of_file.then(|| call.input())??;
    PATH.iter().find_map(|key| input[key].as_str().map(str::to_owned))
}

/// A text without the numbers that tools put before its lines.
fn unnumbered(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(|line| &line[super::edited::number_of(line)..]).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::sample_sessions::Sample;
    use super::*;
    use serde_json::json;

    /// PRICE-1: a file is what was last read or written of it, with the edits since; parts stand beside one another; what comes
    /// later is not known before.
    #[test]
    fn a_file_is_what_was_shown_of_it_with_the_edits_since() {
        let mut sample = Sample::default();
        sample.say("Mend it.");
        sample.round("Read", json!({"file_path": "/a", "offset": 1, "limit": 2}), "     1\tone\n     2\ttwo");
        sample.round("Read", json!({"file_path": "/a", "offset": 8, "limit": 1}), "     8\teight");
        sample.round("Edit", json!({"file_path": "/a", "old_string": "two", "new_string": "zwei"}), "done");
        sample.round("Read", json!({"file_path": "/a"}), "     1\tone\n     2\tzwei");
        sample.round("Write", json!({"file_path": "/a", "content": "new"}), "done");
        sample.round("Bash", json!({"command": "cat /b"}), "something");
        let mut lines = sample.lines();
        let files = ShownFiles::of(&mut lines);
        let known = |request| files.text_before("/a", request);
        assert_eq!(known(0), None);
        assert_eq!(known(2).as_deref(), Some("one\ntwo\neight"));
        assert_eq!(known(3).as_deref(), Some("one\nzwei\neight"));
        assert_eq!(known(4).as_deref(), Some("one\nzwei"), "read whole");
        assert_eq!(known(9).as_deref(), Some("new"));
        assert_eq!(files.text_before("/b", 9), None);
        assert_eq!(lines.iter().filter(|line| line.extra.is_some()).count(), 5, "what was seen is said");
    }
}
