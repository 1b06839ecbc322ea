//! What a call gave, in the form in which Claude Code tells hooks of it.
//!
//! It is put together from the call, its result and the file as it is: the tools themselves know nothing of it.

use std::path::Path;

use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};
use tools::{Output, Subject};
use transcript::block::Kind;

/// The largest file that is told of whole.
pub(crate) const LARGEST: u64 = 10_000_000;

/// A file before a call changed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Before {
    /// It was not there, or could not be read.
    None,
    /// It held this.
    Text(String),
}

impl Before {
    /// What a file holds now.
    pub(crate) fn read(path: &Path) -> Self {
        text(path).map_or(Self::None, Self::Text)
    }
}

fn text(path: &Path) -> Option<String> {
    String::from_utf8(files::read(path, LARGEST).ok()?.bytes).ok()
}

/// What the tool gave.
pub(crate) fn response(tool: &str, input: &Value, subject: &Subject, output: &Output, before: &Before) -> Value {
    let path = match subject {
        Subject::Path { named, real } => Some((named, real)),
        _ => None,
    };
    match (tool, path) {
        ("Read", Some((named, real))) => read(named, real, input, output),
        ("Write", Some((named, _))) => write(named, input, before),
        ("Edit", Some((named, real))) => edit(named, real, input, before),
        ("Bash", _) => bash(input, output),
        ("Glob", _) => glob(output),
        ("Grep", _) => grep(input, output),
        _ => json!(output.text()),
    }
}

fn read(named: &Path, real: &Path, input: &Value, output: &Output) -> Value {
    if let Some(kind) =
        output.content.iter().map(|block| block.kind()).find(|kind| matches!(kind, Kind::Image | Kind::Document))
    {
        let kind = if *kind == Kind::Image { "image" } else { "pdf" };
        return json!({"type": kind, "file": {"filePath": named}});
    }
    let whole = text(real).unwrap_or_default();
    // As Claude Code counts: a last newline begins a line.
    let lines: Vec<&str> = whole.split('\n').collect();
    let start = input["offset"].as_u64().unwrap_or(1).max(1) as usize;
    let most = input["limit"].as_u64().map_or(2_000, |limit| limit as usize);
    let shown: Vec<&str> = lines.iter().skip(start - 1).take(most).copied().collect();
    json!({
        "type": "text",
        "file": {
            "filePath": named, "content": shown.join("\n"), "numLines": shown.len(), "startLine": start,
            "totalLines": lines.len(),
        },
    })
}

fn write(named: &Path, input: &Value, before: &Before) -> Value {
    let content = input["content"].as_str().unwrap_or_default();
    let (kind, patch, original) = match before {
        Before::None => ("create", json!([]), Value::Null),
        Before::Text(before) => ("update", patch(before, content), json!(before)),
    };
    json!({
        "type": kind, "filePath": named, "content": content, "structuredPatch": patch, "originalFile": original,
        "userModified": false,
    })
}

fn edit(named: &Path, real: &Path, input: &Value, before: &Before) -> Value {
    let after = text(real).unwrap_or_default();
    let before = match before {
        Before::Text(before) => before.as_str(),
        Before::None => "",
    };
    json!({
        "filePath": named, "oldString": input["old_string"], "newString": input["new_string"],
        "originalFile": before, "structuredPatch": patch(before, &after), "userModified": false,
        "replaceAll": input["replace_all"] == true,
    })
}

fn bash(input: &Value, output: &Output) -> Value {
    let mut told = json!({
        "stdout": output.text(), "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false,
    });
    if input["run_in_background"] == true {
        let id = output.summary.rsplit(' ').next().unwrap_or_default();
        (told["stdout"], told["backgroundTaskId"]) = (json!(""), json!(id));
    }
    told
}

fn glob(output: &Output) -> Value {
    let files = lines(output);
    json!({"filenames": files, "numFiles": files.len(), "truncated": output.text().ends_with(']')})
}

fn grep(input: &Value, output: &Output) -> Value {
    let found = lines(output);
    match input["output_mode"].as_str() {
        Some("content") => {
            json!({"mode": "content", "numFiles": 0, "filenames": [], "content": output.text(), "numLines": found.len()})
        }
        Some("count") => {
            json!({"mode": "count", "numFiles": found.len(), "filenames": [], "content": output.text()})
        }
        _ => json!({
            "mode": "files_with_matches", "filenames": found, "numFiles": found.len(), "totalFiles": found.len(),
        }),
    }
}

/// The lines of a result that are no remark of the tool's.
fn lines(output: &Output) -> Vec<String> {
    let text = output.text();
    let told = |line: &&str| !line.is_empty() && !line.starts_with('[') && !line.starts_with("No ");
    text.lines().filter(told).map(str::to_owned).collect()
}

/// The hunks of a change.
fn patch(before: &str, after: &str) -> Value {
    let diff = TextDiff::from_lines(before, after);
    let hunk = |group: &Vec<similar::DiffOp>| -> Option<Value> {
        let (first, last) = (group.first()?, group.last()?);
        let (old, new) = (first.old_range().start..last.old_range().end, first.new_range().start..last.new_range().end);
        let lines: Vec<String> = group
            .iter()
            .flat_map(|op| diff.iter_changes(op))
            .map(|change| {
                let sign = match change.tag() {
                    ChangeTag::Delete => '-',
                    ChangeTag::Insert => '+',
                    ChangeTag::Equal => ' ',
                };
                format!("{sign}{}", change.value().trim_end_matches(['\n', '\r']))
            })
            .collect();
        Some(json!({
            "oldStart": old.start + 1, "oldLines": old.len(), "newStart": new.start + 1, "newLines": new.len(),
            "lines": lines,
        }))
    };
    Value::Array(diff.grouped_ops(3).iter().filter_map(hunk).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HOOK-1: what an edit gave, as it was recorded of Claude Code.
    #[test]
    fn an_edit_is_told_as_claude_code_tells_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("note.txt");
        files::replace(&path, b"beta\n").unwrap();
        let subject = Subject::Path { named: path.clone(), real: path.clone() };
        let input = json!({"file_path": path, "old_string": "alpha", "new_string": "beta"});
        let told = response("Edit", &input, &subject, &Output::done("", ""), &Before::Text("alpha\n".into()));
        let expected = json!({
            "filePath": path, "oldString": "alpha", "newString": "beta", "originalFile": "alpha\n",
            "structuredPatch": [{
                "oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-alpha", "+beta"],
            }],
            "userModified": false, "replaceAll": false,
        });
        assert_eq!(told, expected);
        let told = response("Read", &json!({"file_path": path}), &subject, &Output::done("", ""), &Before::None);
        let expected = json!({
            "type": "text",
            "file": {"filePath": path, "content": "beta\n", "numLines": 2, "startLine": 1, "totalLines": 2},
        });
        assert_eq!(told, expected);
    }
}
