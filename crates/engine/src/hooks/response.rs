//! Output of a call in the format in which Claude Code reports it to hooks.
//!
//! It is put together from the call, its result and the current file: the tools themselves know nothing of it.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};
use tools::{EditInput, FileChange, Output, Subject};
use transcript::block::Kind;
use transcript::tool_names;

use crate::subagent::{Subagent, SubagentPhase};

/// Largest file that is reported in full, in bytes.
pub(crate) const LARGEST: u64 = 10_000_000;

/// Text of a file before a call changed it; `None` if it did not exist or could not be read.
pub(crate) type TextBefore = Option<String>;

/// Current text of a file.
pub(crate) fn text(path: &Path) -> Option<String> {
    String::from_utf8(files::read(path, LARGEST).ok()?.bytes).ok()
}

/// The tool's output.
pub(crate) fn response(
    tool: &str,
    input: &Value,
    subject: &Subject,
    output: &Output,
    before: &TextBefore,
    took: Duration,
) -> Value {
    let path = match subject {
        Subject::Path { named, real } => Some((named, real)),
        _ => None,
    };
    match (tool, path) {
        (tool_names::READ, Some((named, real))) => read(named, real, input, output),
        (tool_names::WRITE, Some((named, _))) => write(named, input, before),
        (tool_names::EDIT, Some((named, real))) => edit(named, real, input, before),
        (tool_names::BASH, _) => bash(input, output),
        (tool_names::GLOB, _) => glob(output, took),
        (tool_names::GREP, _) => grep(input, output),
        (crate::plan::ask::NAME, _) => json!({"questions": input["questions"], "answers": input["answers"]}),
        _ => json!(output.text()),
    }
}

/// Output of a subagent; for one in the background, the news that it runs.
pub(crate) fn agent(subagent: &Subagent, input: &Value, took: Duration) -> Value {
    let (progress, id, prompt) = (subagent.progress(), &subagent.id, &input["prompt"]);
    let SubagentPhase::Ended(ended) = subagent.phase() else {
        return json!({
            "isAsync": true, "status": "async_launched", "agentId": id, "description": subagent.description,
            "prompt": prompt, "outputFile": subagent.file, "canReadOutputFile": true,
        });
    };
    let used = &ended.usage;
    json!({
        "status": ended.how.status(), "prompt": prompt, "agentId": id, "agentType": subagent.kind,
        "content": [{"type": "text", "text": words(&ended.report)}], "resolvedModel": ended.model,
        "totalDurationMs": took.as_millis() as u64, "totalTokens": used.total(), "totalToolUseCount": progress.calls,
        "usage": {
            "input_tokens": used.input_tokens, "cache_creation_input_tokens": used.cache_creation_input_tokens,
            "cache_read_input_tokens": used.cache_read_input_tokens, "output_tokens": used.output_tokens,
        },
        "canContinueAgent": true,
    })
}

/// A report without its frame.
fn words(report: &str) -> &str {
    let inside = report.split_once('\n').and_then(|(_, rest)| rest.rsplit_once("\n</agent-report>"));
    inside.map_or(report, |(words, _)| words)
}

fn read(named: &Path, real: &Path, input: &Value, output: &Output) -> Value {
    if let Some(block) = output.content.iter().find(|block| matches!(block.kind(), Kind::Image | Kind::Document)) {
        let (source, size) = (&block.value()["source"], files::stamp(real).map_or(0, |stamp| stamp.len));
        return match block.kind() {
            Kind::Image => {
                let file = json!({"base64": source["data"], "type": source["media_type"], "originalSize": size});
                json!({"type": "image", "file": file})
            }
            _ => json!({
                "type": "pdf", "file": {"filePath": named, "base64": source["data"], "originalSize": size},
            }),
        };
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

fn write(named: &Path, input: &Value, before: &TextBefore) -> Value {
    let change = FileChange::of(input);
    let content = change.as_ref().map(|change| change.texts().1).unwrap_or_default();
    let (kind, patch, original) = match before {
        None => ("create", json!([]), Value::Null),
        Some(before) => ("update", patch(before, content), json!(before)),
    };
    json!({
        "type": kind, "filePath": named, "content": content, "structuredPatch": patch, "originalFile": original,
        "userModified": false,
    })
}

fn edit(named: &Path, real: &Path, input: &Value, before: &TextBefore) -> Value {
    let after = text(real).unwrap_or_default();
    let before = before.as_deref().unwrap_or_default();
    let edit: Option<EditInput> = serde_json::from_value(input.clone()).ok();
    let (old, new) = edit.as_ref().map(|edit| (&edit.old_string, &edit.new_string)).unzip();
    json!({
        "filePath": named, "oldString": old, "newString": new,
        "originalFile": before, "structuredPatch": patch(before, &after), "userModified": false,
        "replaceAll": edit.as_ref().is_some_and(|edit| edit.replace_all == Some(true)),
    })
}

fn bash(input: &Value, output: &Output) -> Value {
    let mut told = json!({
        "stdout": printed(&output.text()), "stderr": "", "interrupted": false, "isImage": false,
        "noOutputExpected": false,
    });
    if input["run_in_background"] == true {
        let id = output.summary.rsplit(' ').next().unwrap_or_default();
        (told["stdout"], told["backgroundTaskId"]) = (json!(""), json!(id));
    }
    told
}

/// Output of a command, without leading blank lines and the placeholder for empty output.
fn printed(text: &str) -> &str {
    let blank = text.split_inclusive('\n').take_while(|line| line.trim().is_empty()).map(str::len).sum::<usize>();
    if text == tools::PRINTED_NOTHING { "" } else { &text[blank..] }
}

fn glob(output: &Output, took: Duration) -> Value {
    let found = ListedMatches::of(output);
    json!({
        "filenames": found.lines, "durationMs": took.as_millis() as u64, "numFiles": found.lines.len(),
        "truncated": found.lines.len() < found.total, "totalMatches": found.total, "countIsComplete": true,
    })
}

fn grep(input: &Value, output: &Output) -> Value {
    let found = ListedMatches::of(output);
    let (shown, total) = (found.lines.len(), found.total);
    let mut told = match input["output_mode"].as_str() {
        Some("content") => json!({
            "mode": "content", "numFiles": 0, "filenames": [], "content": found.lines.join("\n"), "numLines": shown,
            "totalLines": total,
        }),
        Some("count") => json!({
            "mode": "count", "numFiles": shown, "filenames": [], "content": found.lines.join("\n"),
            "numMatches": total,
        }),
        _ => json!({
            "mode": "files_with_matches", "filenames": found.lines, "numFiles": shown, "totalFiles": total,
        }),
    };
    if found.is_cut {
        told["appliedLimit"] = json!(shown);
    }
    if let Some(offset @ 1..) = input["offset"].as_u64() {
        told["appliedOffset"] = json!(offset);
    }
    told
}

/// Matches that a search listed, without the tool's remarks.
struct ListedMatches {
    lines: Vec<String>,
    /// Total number, as the tool counted.
    total: usize,
    is_cut: bool,
}

impl ListedMatches {
    fn of(output: &Output) -> Self {
        let text = output.text();
        let (mut rest, mut is_cut) = (text.as_str(), false);
        while let Some((before, remark)) = rest.rsplit_once("\n\n[").filter(|(_, remark)| remark.ends_with(']')) {
            is_cut |= remark.starts_with("cut after");
            rest = before;
        }
        // Where it begins with a remark nothing was found.
        let found = !(rest.starts_with("No files found.") || rest.starts_with("No matches found."));
        let found = found && !rest.starts_with("Offset ");
        let lines: Vec<String> = if found { rest.lines().map(str::to_owned).collect() } else { Vec::new() };
        let number = output.summary.split(|c: char| !c.is_ascii_digit()).find_map(|number| number.parse().ok());
        Self { total: number.unwrap_or_default(), lines, is_cut }
    }
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

    /// HOOK-1: the output of an edit, as recorded from Claude Code.
    #[test]
    fn an_edit_is_told_as_claude_code_tells_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("note.txt");
        files::replace(&path, b"beta\n").unwrap();
        let subject = Subject::Path { named: path.clone(), real: path.clone() };
        let input = json!({"file_path": path, "old_string": "alpha", "new_string": "beta"});
        let took = Duration::from_millis(5);
        let told = response("Edit", &input, &subject, &Output::done("", ""), &Some("alpha\n".into()), took);
        let expected = json!({
            "filePath": path, "oldString": "alpha", "newString": "beta", "originalFile": "alpha\n",
            "structuredPatch": [{
                "oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-alpha", "+beta"],
            }],
            "userModified": false, "replaceAll": false,
        });
        assert_eq!(told, expected);
        let told =
            response("Read", &json!({"file_path": path}), &subject, &Output::done("", ""), &TextBefore::None, took);
        let expected = json!({
            "type": "text",
            "file": {"filePath": path, "content": "beta\n", "numLines": 2, "startLine": 1, "totalLines": 2},
        });
        assert_eq!(told, expected);
    }

    /// HOOK-1: the output of searches without our remarks, as recorded from Claude Code.
    #[test]
    fn searches_are_told_as_claude_code_tells_them() {
        let took = Duration::from_millis(5);
        let told = |tool: &str, input: Value, text: &str, summary: &str| {
            response(tool, &input, &Subject::Whole, &Output::done(text, summary), &TextBefore::None, took)
        };
        let cut = "a:1:x\na:2:x\n\n[cut after 2 lines; more follow: go on with offset 3, or narrow the search]";
        assert_eq!(
            told("Grep", json!({"output_mode": "content", "offset": 1}), cut, "Found 4 lines"),
            json!({"mode": "content", "numFiles": 0, "filenames": [], "content": "a:1:x\na:2:x", "numLines": 2,
                   "totalLines": 4, "appliedLimit": 2, "appliedOffset": 1})
        );
        let counted = "a:40\nb:1\n\n[Found 41 matching lines in 2 files]";
        assert_eq!(
            told("Grep", json!({"output_mode": "count"}), counted, "Found 41 matching lines in 2 files"),
            json!({"mode": "count", "numFiles": 2, "filenames": [], "content": "a:40\nb:1", "numMatches": 41})
        );
        assert_eq!(
            told("Grep", json!({}), "No matches found.", "Found no files"),
            json!({"mode": "files_with_matches", "filenames": [], "numFiles": 0, "totalFiles": 0})
        );
        let many = "a\nb\n\n[the newest 2 of 150 files; use a narrower pattern or path to see others]";
        assert_eq!(
            told("Glob", json!({}), many, "Found 150 files"),
            json!({"filenames": ["a", "b"], "durationMs": 5, "numFiles": 2, "truncated": true, "totalMatches": 150,
                   "countIsComplete": true})
        );
        for (text, stdout) in [("The command succeeded and printed nothing.", ""), ("\n \na\n\nb", "a\n\nb")] {
            assert_eq!(told("Bash", json!({}), text, "")["stdout"], stdout);
        }
    }
}
