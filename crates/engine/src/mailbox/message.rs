//! A message, and what it asks for.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The name of a team's lead.
pub const LEAD: &str = "team-lead";

/// The longest id that is taken as it is.
const LONGEST_ID: usize = 64;

/// A message from one agent to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// By this it is known: it enters the recipient's log once.
    pub id: String,
    /// Who sent it.
    pub from: String,
    /// What is said: words, or an object that drives the recipient's life.
    pub text: String,
    /// A few words that stand for it.
    pub summary: Option<String>,
    /// When it was sent, as it is written.
    pub timestamp: String,
}

/// Which messages are heard before which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    /// It is to end.
    Shutdown,
    /// From the lead.
    Lead,
    /// From others.
    Other,
}

/// What a message is, beside its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// Words.
    Text,
    /// The recipient is asked to end.
    ShutdownRequest {
        /// By what the answer names it.
        request: String,
        /// Why.
        reason: String,
    },
    /// Whether one ends who was asked to.
    ShutdownResponse {
        /// Which request it answers.
        request: String,
        /// Whether it ends.
        approve: bool,
        /// Why not.
        reason: String,
    },
    /// A plan that waits for a word.
    PlanRequest {
        /// By what the answer names it.
        request: String,
        /// The plan.
        plan: String,
    },
    /// Whether a plan is approved of.
    PlanResponse {
        /// Which request it answers.
        request: String,
        /// Whether it may be carried out.
        approve: bool,
        /// What to change.
        feedback: String,
    },
    /// A teammate wants to make a call that has to be asked about.
    PermissionRequest {
        /// By what the answer names it.
        request: String,
        /// The tool.
        tool: String,
        /// What it is called with.
        input: Value,
        /// Why it is asked.
        why: String,
    },
    /// What the lead's side says to that.
    PermissionResponse {
        /// Which request it answers.
        request: String,
        /// Whether it may run: with another input, where there is one; or why not.
        answer: Result<Option<Value>, String>,
    },
    /// The sender has nothing to do any more.
    Idle {
        /// What it said last.
        said: String,
        /// The newest message of the lead's that it has heard.
        after: String,
    },
}

impl Message {
    /// A message that is sent now.
    pub fn new(id: impl Into<String>, from: impl Into<String>, text: impl Into<String>, now: Timestamp) -> Self {
        let (id, from, text) = (id.into(), from.into(), text.into());
        Self { id, from, text, summary: None, timestamp: format!("{now:.3}") }
    }

    /// When it is heard, among those that wait.
    pub fn order(&self) -> Order {
        match self.word() {
            Word::ShutdownRequest { .. } => Order::Shutdown,
            _ if self.from == LEAD => Order::Lead,
            _ => Order::Other,
        }
    }

    /// What it is. An object of a kind that is not known is words like any other.
    pub fn word(&self) -> Word {
        let text = self.text.trim_start();
        let object: Option<Value> = text.starts_with('{').then(|| serde_json::from_str(text).ok()).flatten();
        object.and_then(|object| Word::of(&object)).unwrap_or(Word::Text)
    }

    /// As it stands in the file.
    pub(super) fn to_letter(&self) -> Map<String, Value> {
        let mut letter = Map::new();
        letter.insert("id".to_owned(), json!(self.id));
        letter.insert("from".to_owned(), json!(self.from));
        letter.insert("text".to_owned(), json!(self.text));
        letter.insert("timestamp".to_owned(), json!(self.timestamp));
        letter.insert("read".to_owned(), json!(false));
        if let Some(summary) = &self.summary {
            letter.insert("summary".to_owned(), json!(summary));
        }
        letter
    }

    /// What stands in the file. Others write no ids, or such as cannot be taken for one: theirs follows from what they wrote.
    pub(super) fn of(letter: &Map<String, Value>) -> Self {
        let text = |key: &str| letter.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (from, said, timestamp) = (text("from"), text("text"), text("timestamp"));
        let id = match letter.get("id").and_then(Value::as_str) {
            Some(id) if is_plain(id) => id.to_owned(),
            _ => {
                let parts = [&from, &timestamp, &said].map(|part| blake3::hash(part.as_bytes()).to_hex());
                blake3::hash(parts.map(|part| part.to_string()).concat().as_bytes()).to_hex()[..32].to_owned()
            }
        };
        let summary = letter.get("summary").and_then(Value::as_str).map(str::to_owned);
        Self { id, from, text: said, summary, timestamp }
    }
}

/// Whether an id can stand in a log as it is.
fn is_plain(id: &str) -> bool {
    let fine = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '_');
    (1..=LONGEST_ID).contains(&id.len()) && id.chars().all(fine)
}

impl Word {
    /// Whether it is for the programs alone: no model hears of it.
    pub(super) fn is_between_programs(&self) -> bool {
        matches!(self, Self::PermissionRequest { .. } | Self::PermissionResponse { .. })
    }

    /// What an object says. The names of its fields are Claude Code's, which has two ways to write some.
    fn of(object: &Value) -> Option<Self> {
        let text = |keys: &[&str]| {
            let found = keys.iter().find_map(|key| object.get(*key)?.as_str());
            found.unwrap_or_default().to_owned()
        };
        let request = || text(&["requestId", "request_id"]);
        let approve = || ["approve", "approved"].iter().any(|key| object.get(*key) == Some(&Value::Bool(true)));
        Some(match object.get("type")?.as_str()? {
            "shutdown_request" => Self::ShutdownRequest { request: request(), reason: text(&["reason"]) },
            "shutdown_response" => {
                Self::ShutdownResponse { request: request(), approve: approve(), reason: text(&["reason"]) }
            }
            "shutdown_approved" => Self::ShutdownResponse { request: request(), approve: true, reason: String::new() },
            "shutdown_rejected" => {
                Self::ShutdownResponse { request: request(), approve: false, reason: text(&["reason"]) }
            }
            "plan_approval_request" => Self::PlanRequest { request: request(), plan: text(&["plan", "planContent"]) },
            "plan_approval_response" => {
                Self::PlanResponse { request: request(), approve: approve(), feedback: text(&["feedback"]) }
            }
            "permission_request" => Self::PermissionRequest {
                request: request(),
                tool: text(&["tool_name"]),
                input: object.get("input")?.clone(),
                why: text(&["description"]),
            },
            "permission_response" => {
                let input = || object.get("response")?.get("updated_input").filter(|input| input.is_object()).cloned();
                let allowed = object.get("subtype")? == "success";
                Self::PermissionResponse {
                    request: request(),
                    answer: if allowed { Ok(input()) } else { Err(text(&["error"])) },
                }
            }
            "idle_notification" => Self::Idle { said: text(&["said", "summary"]), after: text(&["after"]) },
            _ => return None,
        })
    }

    /// As it is sent.
    pub fn to_text(&self) -> Option<String> {
        Some(
            match self {
                Self::Text => return None,
                Self::ShutdownRequest { request, reason } => {
                    json!({"type": "shutdown_request", "requestId": request, "reason": reason})
                }
                Self::ShutdownResponse { request, approve, reason } => {
                    json!({"type": "shutdown_response", "requestId": request, "approve": approve, "reason": reason})
                }
                Self::PlanRequest { request, plan } => {
                    json!({"type": "plan_approval_request", "requestId": request, "plan": plan})
                }
                Self::PlanResponse { request, approve, feedback } => {
                    json!({"type": "plan_approval_response", "requestId": request, "approve": approve, "feedback": feedback})
                }
                Self::PermissionRequest { request, tool, input, why } => {
                    json!({"type": "permission_request", "request_id": request, "tool_name": tool, "input": input, "description": why})
                }
                Self::PermissionResponse { request, answer: Ok(input) } => {
                    json!({"type": "permission_response", "request_id": request, "subtype": "success", "response": {"updated_input": input}})
                }
                Self::PermissionResponse { request, answer: Err(why) } => {
                    json!({"type": "permission_response", "request_id": request, "subtype": "error", "error": why})
                }
                Self::Idle { said, after } => {
                    json!({"type": "idle_notification", "idleReason": "available", "said": said, "after": after})
                }
            }
            .to_string(),
        )
    }
}
