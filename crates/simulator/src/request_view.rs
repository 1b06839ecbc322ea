//! The scripted model's view of a request: its text, without the encoding in which it was sent.
//!
//! Tool results that the provider cleared or deleted are not in it, which is the point of the exercise.

use std::collections::HashMap;

use serde_json::Value;

use crate::cached_prompt::{deleted_references, items, offered};

const REMINDER_OPEN: &str = "<system-reminder>";
const REMINDER_CLOSE: &str = "</system-reminder>";

/// The readable side of a checked request.
#[derive(Debug, Default)]
pub(crate) struct RequestView {
    pub(crate) model: String,
    pub(crate) system: String,
    /// All text of all messages, calls and results included.
    pub(crate) messages: String,
    /// The newest text a user typed.
    pub(crate) user: String,
    /// The results that the last turn brings, if it brings any.
    pub(crate) result: Option<String>,
    /// The tools whose results these are.
    pub(crate) answered: Vec<String>,
    pub(crate) offered: Vec<String>,
}

impl RequestView {
    pub(crate) fn new(body: &Value) -> Self {
        let deleted = deleted_references(body);
        let mut view = Self {
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            system: joined(items(&body["system"]).filter_map(|block| block["text"].as_str())),
            offered: offered(body).map(str::to_owned).collect(),
            ..Self::default()
        };
        let mut called: HashMap<&str, &str> = HashMap::new();
        let mut results = Vec::new();
        let mut typed = String::new();
        let mut speaker = "";
        for turn in items(&body["messages"]) {
            let role = turn["role"].as_str().unwrap_or_default();
            if role == "system" {
                let texts = joined(items(&turn["content"]).filter_map(|block| block["text"].as_str()));
                append(&mut view.messages, &texts);
                continue;
            }
            if role != speaker {
                results.clear();
                view.answered.clear();
                typed.clear();
            }
            speaker = role;
            for block in items(&turn["content"]) {
                let text = match block["type"].as_str().unwrap_or_default() {
                    "tool_use" => {
                        let (id, name) = (block["id"].as_str(), block["name"].as_str().unwrap_or_default());
                        called.extend(id.map(|id| (id, name)));
                        format!("{name} {}", block["input"])
                    }
                    "tool_result" => {
                        let id = block["tool_use_id"].as_str().unwrap_or_default();
                        if deleted.contains(id) {
                            continue;
                        }
                        view.answered.extend(called.get(id).map(|name| (*name).to_owned()));
                        let text = result_text(&block["content"]);
                        results.push(text.clone());
                        text
                    }
                    "text" => {
                        let text = block["text"].as_str().unwrap_or_default();
                        if role == "user" {
                            append(&mut typed, without_reminders(text).trim());
                        }
                        text.to_owned()
                    }
                    "thinking" => block["thinking"].as_str().unwrap_or_default().to_owned(),
                    _ => continue,
                };
                append(&mut view.messages, &text);
            }
            if role == "user" && !typed.is_empty() {
                view.user.clone_from(&typed);
            }
        }
        if speaker == "user" && !results.is_empty() {
            view.result = Some(results.join("\n"));
        }
        view
    }
}

fn result_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        content => joined(items(content).filter_map(|block| block["text"].as_str())),
    }
}

fn joined<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    texts.collect::<Vec<_>>().join("\n")
}

fn append(text: &mut String, more: &str) {
    if more.is_empty() {
        return;
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}

/// The text outside `<system-reminder>` elements; an unclosed one reaches to the end.
fn without_reminders(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once(REMINDER_OPEN) {
        kept.push_str(before);
        rest = inside.split_once(REMINDER_CLOSE).map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_newest_typed_text_is_neither_a_result_nor_a_reminder() {
        let view = RequestView::new(&json!({"messages": [
            {"role": "user", "content": [{"type": "text", "text": "fix it"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "Bash", "input": {"command": "ls"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "main.rs"},
                {"type": "text", "text": "<system-reminder>be careful</system-reminder>"},
            ]},
        ]}));
        assert_eq!(view.user, "fix it");
        assert_eq!(view.result.as_deref(), Some("main.rs"));
        assert_eq!(view.answered, ["Bash"]);
        assert!(view.messages.contains(r#"Bash {"command":"ls"}"#));
    }

    #[test]
    fn results_are_new_only_in_the_last_turn() {
        let view = RequestView::new(&json!({"messages": [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "Bash", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "old"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
            {"role": "user", "content": [{"type": "text", "text": "thanks <system-reminder>x"}]},
        ]}));
        assert_eq!(view.result, None);
        assert!(view.answered.is_empty());
        assert_eq!(view.user, "thanks");
    }
}
