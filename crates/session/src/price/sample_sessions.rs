//! Recorded sessions for tests, as Claude Code writes them.

use serde_json::{Value, json};
use transcript::line::Line;

/// The model that answers.
pub(super) const MODEL: &str = "claude-sonnet-4-5";
/// Tokens before the messages.
pub(super) const PROLOGUE: u64 = 20_000;

/// A session that is being recorded. Every token of text has 3.3 bytes, so that the record says what the estimate says.
#[derive(Debug)]
pub(super) struct Sample {
    lines: Vec<Value>,
    /// Seconds since it began.
    pub(super) seconds: i64,
    /// Tokens of the next request.
    pub(super) context: u64,
    replies: usize,
    calls: usize,
}

impl Default for Sample {
    fn default() -> Self {
        Self { lines: Vec::new(), seconds: 0, context: PROLOGUE, replies: 0, calls: 0 }
    }
}

/// A text of about so many tokens that says something of its own.
pub(super) fn text(tokens: u64, about: &str) -> String {
    let mut text = String::new();
    while (text.len() as f64) < tokens as f64 * 3.3 {
        let line = text.lines().count();
        text.push_str(&format!("line {line} of {about} says something\n"));
    }
    text
}

impl Sample {
    pub(super) fn wait(&mut self, minutes: i64) {
        self.seconds += minutes * 60;
    }

    fn push(&mut self, kind: &str, message: &Value, more: &Value) {
        let time = jiff::Timestamp::from_second(1_770_000_000 + self.seconds).unwrap();
        let parent = self.lines.iter().rev().find_map(|line| line["uuid"].as_str().map(str::to_owned));
        let mut line = json!({
            "type": kind, "uuid": format!("line-{}", self.lines.len()), "parentUuid": parent,
            "timestamp": time.to_string(), "sessionId": "sample", "version": "2.1.0", "message": message,
        });
        if let (Some(line), Some(more)) = (line.as_object_mut(), more.as_object()) {
            line.extend(more.clone());
        }
        self.lines.push(line);
        self.seconds += 1;
    }

    fn grow(&mut self, bytes: usize, per_token: f64) {
        self.context += (bytes as f64 / per_token).ceil() as u64;
    }

    pub(super) fn say(&mut self, words: &str) {
        self.push("user", &json!({"role": "user", "content": words}), &json!({}));
        self.grow(words.len(), 3.3);
    }

    /// A reply in one line for each block, all with the same id and usage. Gives the id of each call.
    pub(super) fn reply(&mut self, words: &str, calls: &[(&str, Value)]) -> Vec<String> {
        self.replies += 1;
        let (id, context) = (format!("msg-{}", self.replies), self.context);
        let usage = json!({"input_tokens": 0, "cache_creation_input_tokens": context, "output_tokens": 100});
        let mut blocks = vec![json!({"type": "text", "text": words})];
        let mut ids = Vec::new();
        self.grow(words.len(), 3.3);
        for (tool, input) in calls {
            self.calls += 1;
            let call = format!("call-{}", self.calls);
            blocks.push(json!({"type": "tool_use", "id": call, "name": tool, "input": input}));
            self.grow(input.to_string().len(), 3.3);
            ids.push(call);
        }
        for block in blocks {
            let message = json!({"role": "assistant", "id": id, "model": MODEL, "content": [block], "usage": usage});
            self.push("assistant", &message, &json!({}));
        }
        ids
    }

    pub(super) fn result(&mut self, call: &str, result: &str) {
        let block = json!({"type": "tool_result", "tool_use_id": call, "content": [{"type": "text", "text": result}]});
        self.push("user", &json!({"role": "user", "content": [block]}), &json!({}));
        self.grow(result.len(), 3.0);
    }

    /// One round: a call and its result.
    pub(super) fn round(&mut self, tool: &str, input: Value, result: &str) {
        let call = self.reply("I look.", &[(tool, input)]).remove(0);
        self.result(&call, result);
    }

    /// Reads a file of so many tokens, whose text tells of the file.
    pub(super) fn read(&mut self, path: &str, tokens: u64) {
        self.round("Read", json!({"file_path": path}), &text(tokens, path));
    }

    /// Replaces one line of a file.
    pub(super) fn edit(&mut self, path: &str, line: usize) {
        let old = format!("line {line} of {path} says something");
        self.round("Edit", json!({"file_path": path, "old_string": old, "new_string": "other"}), "done");
    }

    /// The program that records it compacts by itself.
    pub(super) fn compact(&mut self) {
        self.push(
            "system",
            &Value::Null,
            &json!({"subtype": "compact_boundary", "compactMetadata": {"trigger": "auto"}}),
        );
        let summary = json!({"role": "user", "content": "So far this was done."});
        self.push("user", &summary, &json!({"isCompactSummary": true}));
        self.context = PROLOGUE + 10;
    }

    /// A line of a conversation next to this one.
    pub(super) fn beside(&mut self, id: &str, usage: &Value) {
        let content = json!([{"type": "text", "text": "elsewhere"}]);
        let message = json!({"role": "assistant", "id": id, "model": MODEL, "content": content, "usage": usage});
        self.push("assistant", &message, &json!({"isSidechain": true}));
        self.lines.last_mut().unwrap()["uuid"] = json!(null);
    }

    pub(super) fn lines(&self) -> Vec<Line> {
        self.lines.iter().map(|line| Line::parse(line.to_string().as_bytes()).unwrap()).collect()
    }
}
