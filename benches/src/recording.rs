//! A long session as Claude Code would have recorded it, generated.
//!
//! Real files are mostly not what the model sees: of their bytes 18 % are model-visible, 43 % are the side field
//! `toolUseResult`, and the rest is headers, usage, snapshots and the progress of subagents. Lines are 700 bytes to
//! 60 KB long. Of tool results 6.5 % are over 8 KB, and these hold more than half of all bytes. The session is compacted
//! whenever its context is full.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};

use crate::prose::Prose;

/// How long the file is.
const BYTES: usize = 100_000_000;

/// Changes when what is generated does, so that an older file is not taken for it.
const EDITION: u32 = 1;

/// What the model sees before it is compacted: 150,000 tokens.
const VISIBLE_BYTES: usize = 450_000;

/// The file, generated unless it is there.
pub(crate) fn file(place: &Path) -> Result<PathBuf> {
    let path = place.join(format!("recording-{EDITION}.jsonl"));
    if !path.exists() {
        let unfinished = path.with_extension("unfinished");
        let mut recording = Recording::new(BufWriter::new(File::create(&unfinished)?));
        while recording.written < BYTES {
            recording.round()?;
        }
        recording.out.flush()?;
        std::fs::rename(unfinished, &path)?;
        recording.describe();
    }
    Ok(path)
}

/// A file being written.
struct Recording<W: Write> {
    out: W,
    prose: Prose,
    /// The newest line of the conversation.
    tip: Value,
    /// Bytes written in all, and of these what the model sees and what tools returned beside it.
    written: usize,
    visible: usize,
    beside: usize,
    /// What was visible in all at the last compaction.
    compacted: usize,
}

impl<W: Write> Recording<W> {
    fn new(out: W) -> Self {
        Self { out, prose: Prose::default(), tip: Value::Null, written: 0, visible: 0, beside: 0, compacted: 0 }
    }

    fn describe(&self) {
        let share = |bytes: usize| 100.0 * bytes as f64 / self.written as f64;
        eprintln!(
            "recorded {} MB: {:.0} % model-visible, {:.0} % toolUseResult",
            self.written / 1_000_000,
            share(self.visible),
            share(self.beside)
        );
    }

    /// What the user asks now and then, a reply in two lines, what went on meanwhile, and the result of its call.
    fn round(&mut self) -> Result<()> {
        if self.visible - self.compacted > VISIBLE_BYTES {
            self.compact()?;
        }
        if self.tip.is_null() || self.prose.below(20) == 0 {
            self.snapshot()?;
            let text = self.prose.words(200);
            self.say("user", json!({"role": "user", "content": text}), json!({}))?;
        }
        let (reply, call, tool) = (self.prose.hex(24), self.prose.hex(24), self.tool());
        let text = self.prose.words(240);
        self.reply(&reply, json!({"type": "text", "text": text}))?;
        let call = format!("toolu_{call}");
        self.reply(&reply, json!({"type": "tool_use", "id": call, "name": tool.name, "input": tool.input}))?;
        for _ in 0..self.prose.below(3) {
            self.progress(&call)?;
        }
        self.beside += tool.beside.to_string().len();
        let result = json!({"tool_use_id": call, "type": "tool_result", "content": tool.result, "is_error": false});
        let side = json!({"toolUseResult": tool.beside, "sourceToolAssistantUUID": self.tip});
        self.say("user", json!({"role": "user", "content": [result]}), side)
    }

    fn tool(&mut self) -> Tool {
        let path = format!("/home/user/work/project/internal/{}.go", self.prose.hex(8));
        let bytes = match self.prose.below(1_000) {
            ..65 => self.prose.between(8_000, 28_000),
            _ => self.prose.between(100, 1_500),
        };
        let text = self.prose.code(bytes);
        match self.prose.below(8) {
            0..3 => {
                let file = json!({"filePath": path, "content": text, "numLines": 90, "startLine": 1, "totalLines": 90});
                let numbered: Vec<String> =
                    text.lines().enumerate().map(|(at, line)| format!("{:6}→{line}", at + 1)).collect();
                Tool {
                    name: "Read",
                    input: json!({"file_path": path}),
                    result: numbered.join("\n"),
                    beside: json!({"type": "text", "file": file}),
                }
            }
            3..5 => {
                let (old, new) = (self.prose.code(180), self.prose.code(220));
                let size = self.prose.between(1_000, 26_000);
                let patch: Vec<String> = old.lines().map(|line| format!("-{line}")).collect();
                Tool {
                    name: "Edit",
                    input: json!({"file_path": path, "old_string": old, "new_string": new}),
                    result: format!("The file {path} has been updated successfully."),
                    beside: json!({
                        "filePath": path, "oldString": old, "newString": new, "originalFile": self.prose.code(size),
                        "structuredPatch": [{"oldStart": 6, "oldLines": 6, "newStart": 6, "newLines": 7, "lines": patch}],
                        "userModified": false, "replaceAll": false,
                    }),
                }
            }
            5 => Tool {
                name: "Grep",
                input: json!({"pattern": "func .*error", "path": path, "output_mode": "content"}),
                beside: json!({"mode": "content", "numFiles": 0, "filenames": [], "content": text, "numLines": 9}),
                result: text,
            },
            _ => Tool {
                name: "Bash",
                input: json!({"command": "go test ./... 2>&1 | tail -50", "description": "Run all tests"}),
                beside: json!({"stdout": text, "stderr": "", "interrupted": false, "isImage": false}),
                result: text,
            },
        }
    }

    fn reply(&mut self, id: &str, block: Value) -> Result<()> {
        let (written, read) = (self.prose.between(100, 3_000), self.visible - self.compacted);
        let usage = json!({
            "input_tokens": 3, "cache_creation_input_tokens": written, "cache_read_input_tokens": 18_000 + read / 3,
            "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
            "output_tokens": 190, "service_tier": "standard",
        });
        let message = json!({
            "model": "claude-opus-4-5-20251101", "id": format!("msg_{id}"), "type": "message", "role": "assistant",
            "content": [block], "stop_reason": null, "stop_sequence": null, "usage": usage,
        });
        let request = json!({"requestId": format!("req_{}", self.prose.hex(24))});
        self.say("assistant", message, request)
    }

    /// A subagent reads a file, or a command prints: recorded beside the conversation.
    fn progress(&mut self, call: &str) -> Result<()> {
        let bytes = if self.prose.below(20) == 0 { 24_000 } else { 700 };
        let result = json!({"type": "tool_result", "tool_use_id": call, "content": self.prose.code(bytes)});
        let message = json!({"type": "user", "message": {"role": "user", "content": [result]}, "uuid": self.uuid()});
        let data =
            json!({"message": message, "normalizedMessages": [], "type": "agent_progress", "agentId": "a1979ad"});
        let tip = self.tip.clone();
        self.line("progress", json!({"data": data, "toolUseID": "agent_msg", "parentToolUseID": call}))?;
        self.tip = tip;
        Ok(())
    }

    fn snapshot(&mut self) -> Result<()> {
        let files: Vec<String> = (0..12).map(|_| self.prose.hex(40)).collect();
        let snapshot = json!({"messageId": self.uuid(), "trackedFileBackups": files, "timestamp": TIME});
        self.put(&json!({"type": "file-history-snapshot", "snapshot": snapshot, "isSnapshotUpdate": false}))
    }

    fn compact(&mut self) -> Result<()> {
        self.compacted = self.visible;
        let last = self.tip.take();
        let metadata = json!({"trigger": "auto", "preTokens": 167_000});
        let content = "Conversation compacted";
        let boundary = json!({
            "logicalParentUuid": last, "subtype": "compact_boundary", "content": content, "compactMetadata": metadata,
        });
        self.line("system", boundary)?;
        let text = self.prose.words(11_000);
        let side = json!({"isVisibleInTranscriptOnly": true, "isCompactSummary": true});
        self.say("user", json!({"role": "user", "content": text}), side)
    }

    fn say(&mut self, kind: &str, message: Value, side: Value) -> Result<()> {
        self.visible += message["content"].to_string().len();
        let mut fields = json!({"message": message});
        extend(&mut fields, side);
        self.line(kind, fields)
    }

    /// A line with its header, as the newest of the conversation.
    fn line(&mut self, kind: &str, fields: Value) -> Result<()> {
        let uuid = Value::String(self.uuid());
        let mut line = json!({
            "parentUuid": self.tip, "isSidechain": false, "userType": "external", "cwd": "/home/user/work/project",
            "sessionId": "0442a060-edc3-4307-bddb-11a2951fd1a1", "version": "2.1.25", "gitBranch": "main",
            "slug": "witty-purring-knuth", "type": kind,
        });
        extend(&mut line, fields);
        extend(&mut line, json!({"uuid": uuid, "timestamp": TIME}));
        self.tip = uuid;
        self.put(&line)
    }

    fn put(&mut self, line: &Value) -> Result<()> {
        let text = line.to_string();
        self.written += text.len() + 1;
        Ok(writeln!(self.out, "{text}")?)
    }

    fn uuid(&mut self) -> String {
        [8, 4, 4, 4, 12].map(|digits| self.prose.hex(digits)).join("-")
    }
}

/// When everything was said.
const TIME: &str = "2026-01-30T10:32:41.650Z";

/// What a tool was asked, what it answered, and what is recorded beside.
struct Tool {
    name: &'static str,
    input: Value,
    result: String,
    beside: Value,
}

fn extend(object: &mut Value, more: Value) {
    if let (Value::Object(object), Value::Object(more)) = (object, more) {
        object.extend(more);
    }
}
