//! A message between agents.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::control_message::ControlMessage;

/// The name of a team's lead.
pub const LEAD: &str = "team-lead";

/// The longest id that is used unchanged.
const LONGEST_ID: usize = 64;

/// A message from one agent to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Identifies the message: it enters the recipient's log once.
    pub id: String,
    /// Name of the sender.
    pub from: String,
    /// Its text: words, or the JSON of a control message.
    pub text: String,
    /// A short summary.
    pub summary: Option<String>,
    /// Time of sending, as written in the file.
    pub timestamp: String,
}

/// Order of delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MessageOrder {
    /// A shutdown request.
    Shutdown,
    /// From the lead.
    Lead,
    /// From others.
    Other,
}

impl Message {
    /// A message sent now.
    pub fn new(id: impl Into<String>, from: impl Into<String>, text: impl Into<String>, now: Timestamp) -> Self {
        let (id, from, text) = (id.into(), from.into(), text.into());
        Self { id, from, text, summary: None, timestamp: format!("{now:.3}") }
    }

    /// Its place in the order of delivery.
    pub fn order(&self) -> MessageOrder {
        match self.word() {
            ControlMessage::ShutdownRequest { .. } => MessageOrder::Shutdown,
            _ if self.from == LEAD => MessageOrder::Lead,
            _ => MessageOrder::Other,
        }
    }

    /// The control message it contains. An object of an unknown kind counts as text.
    pub fn word(&self) -> ControlMessage {
        let text = self.text.trim_start();
        let object: Option<Value> = text.starts_with('{').then(|| serde_json::from_str(text).ok()).flatten();
        object.and_then(|object| ControlMessage::of(&object)).unwrap_or(ControlMessage::Text)
    }

    /// Its entry in the file.
    pub(super) fn to_entry(&self) -> Map<String, Value> {
        let mut entry = Map::new();
        entry.insert("id".to_owned(), json!(self.id));
        entry.insert("from".to_owned(), json!(self.from));
        entry.insert("text".to_owned(), json!(self.text));
        entry.insert("timestamp".to_owned(), json!(self.timestamp));
        entry.insert("read".to_owned(), json!(false));
        if let Some(summary) = &self.summary {
            entry.insert("summary".to_owned(), json!(summary));
        }
        entry
    }

    /// Reads an entry of the file. Other programs write no ids, or invalid ones; then the id is computed from the
    /// content.
    pub(super) fn of(entry: &Map<String, Value>) -> Self {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (from, said, timestamp) = (text("from"), text("text"), text("timestamp"));
        let id = match entry.get("id").and_then(Value::as_str) {
            Some(id) if is_plain(id) => id.to_owned(),
            _ => {
                let parts = [&from, &timestamp, &said].map(|part| blake3::hash(part.as_bytes()).to_hex());
                blake3::hash(parts.map(|part| part.to_string()).concat().as_bytes()).to_hex()[..32].to_owned()
            }
        };
        let summary = entry.get("summary").and_then(Value::as_str).map(str::to_owned);
        Self { id, from, text: said, summary, timestamp }
    }
}

/// True if an id can stand in a log as it is.
fn is_plain(id: &str) -> bool {
    let fine = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '_');
    (1..=LONGEST_ID).contains(&id.len()) && id.chars().all(fine)
}
