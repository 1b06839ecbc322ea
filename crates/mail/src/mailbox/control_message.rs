//! Control messages: requests and answers that drive the life of teammates, and those between their programs.
//!
//! The objects are Claude Code's, field for field where it has them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Kind of a message, with its fields.
#[derive(Debug, Clone, PartialEq)]
pub enum ControlMessage {
    /// Plain text.
    Text,
    /// The recipient is asked to end.
    ShutdownRequest {
        /// Id of the request, which the answer repeats.
        request: String,
        /// The reason.
        reason: String,
    },
    /// Answer to a shutdown request.
    ShutdownResponse {
        /// Id of the request.
        request: String,
        /// True if the sender shuts down.
        approve: bool,
        /// The reason for staying.
        reason: String,
    },
    /// A plan that waits for approval.
    PlanRequest {
        /// Id of the request, which the answer repeats.
        request: String,
        /// The plan.
        plan: String,
        /// The file it is kept in.
        file: String,
    },
    /// Answer to a plan.
    PlanResponse {
        /// Id of the request.
        request: String,
        /// True if the plan may be carried out.
        approve: bool,
        /// Requested changes.
        feedback: String,
    },
    /// A teammate's question for permission.
    PermissionRequest {
        /// Id of the request, which the answer repeats.
        request: String,
        /// The tool, or the sender or file that `about` names.
        tool: String,
        /// Input of the call.
        input: Value,
        /// The reason it is asked.
        why: String,
        /// Rules that could be added for good, in Claude Code's format.
        suggestions: Vec<Value>,
        /// Subject of the question.
        about: TeammateQuestion,
    },
    /// Answer of the lead's side to a permission request.
    PermissionResponse {
        /// Id of the request.
        request: String,
        /// The answer.
        answer: LeadAnswer,
    },
    /// The recipient is to stop its current work and stay.
    Interrupt,
    /// The sender has nothing left to do.
    Idle {
        /// The reason.
        rest: IdleReason,
        /// The sender's last text.
        last_text: String,
        /// Id of the newest message it received, by sender.
        heard: BTreeMap<String, String>,
        /// Id of the newest message by which it gave others work since it was last idle, by recipient.
        handed: BTreeMap<String, String>,
    },
    /// The sender's current activity, in a few words.
    Progress {
        /// The label.
        label: String,
    },
    /// A task was assigned to the recipient.
    Assigned {
        /// Its number.
        task: String,
        /// Its subject.
        subject: String,
        /// Its description.
        description: String,
    },
}

/// Answer of the lead's side to a teammate.
#[derive(Debug, Clone, PartialEq)]
pub enum LeadAnswer {
    /// Allowed, with a changed input if there is one.
    Allowed(Option<Value>),
    /// Denied, with the reason.
    Denied(String),
    /// Nobody answered, with the reason.
    Unanswered(String),
}

/// Subject of a teammate's question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TeammateQuestion {
    /// A call.
    #[default]
    Call,
    /// Receiving messages from a new sender; `tool` names the sender.
    Sender,
    /// Including a file from outside the project; `tool` names the including file.
    Include,
}

/// Reason for having nothing to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IdleReason {
    /// All work is done.
    #[default]
    Available,
    /// It was interrupted.
    Interrupted,
    /// Something went wrong.
    Failed,
}

impl ControlMessage {
    /// True if the message is only for the programs; no model sees it.
    pub(super) fn is_between_programs(&self) -> bool {
        match self {
            Self::PermissionRequest { .. }
            | Self::PermissionResponse { .. }
            | Self::Interrupt
            | Self::Progress { .. } => true,
            Self::Idle { rest, .. } => *rest == IdleReason::Interrupted,
            _ => false,
        }
    }

    /// Reads a control message from an object. The field names are Claude Code's, which has two spellings of some.
    pub(super) fn of(object: &Value) -> Option<Self> {
        let text = |keys: &[&str]| {
            let found = keys.iter().find_map(|key| object.get(*key)?.as_str());
            found.unwrap_or_default().to_owned()
        };
        let messages = |key: &str| {
            let named = object.get(key).and_then(Value::as_object).into_iter().flatten();
            named.filter_map(|(name, id)| Some((name.clone(), id.as_str()?.to_owned()))).collect()
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
            "plan_approval_request" => Self::PlanRequest {
                request: request(),
                plan: text(&["planContent", "plan"]),
                file: text(&["planFilePath"]),
            },
            "plan_approval_response" => {
                Self::PlanResponse { request: request(), approve: approve(), feedback: text(&["feedback"]) }
            }
            "permission_request" => Self::PermissionRequest {
                request: request(),
                tool: text(&["tool_name"]),
                input: object.get("input")?.clone(),
                why: text(&["description"]),
                suggestions: object["permission_suggestions"].as_array().cloned().unwrap_or_default(),
                about: serde_json::from_value(object["about"].clone()).unwrap_or_default(),
            },
            "permission_response" => {
                let input = || object.get("response")?.get("updated_input").filter(|input| input.is_object()).cloned();
                let answer = match (object.get("subtype")?.as_str(), object.get("unanswered")) {
                    (Some("success"), _) => LeadAnswer::Allowed(input()),
                    (_, Some(Value::Bool(true))) => LeadAnswer::Unanswered(text(&["error"])),
                    _ => LeadAnswer::Denied(text(&["error"])),
                };
                Self::PermissionResponse { request: request(), answer }
            }
            "interrupt" => Self::Interrupt,
            "idle_notification" => Self::Idle {
                rest: serde_json::from_value(object["idleReason"].clone()).unwrap_or_default(),
                last_text: text(&["result", "failureReason", "summary"]),
                heard: messages("heard"),
                handed: messages("handed"),
            },
            "progress" => Self::Progress { label: text(&["label"]) },
            "task_assignment" => Self::Assigned {
                task: text(&["taskId"]),
                subject: text(&["subject"]),
                description: text(&["description"]),
            },
            _ => return None,
        })
    }

    /// The message as text, in Claude Code's format with our additions; none for plain text.
    pub fn to_text(&self, from: &str, now: Timestamp) -> Option<String> {
        let mut object = match self {
            Self::Text => return None,
            Self::ShutdownRequest { request, reason } => {
                json!({"type": "shutdown_request", "requestId": request, "reason": reason})
            }
            Self::ShutdownResponse { request, approve: true, .. } => {
                json!({"type": "shutdown_approved", "requestId": request})
            }
            Self::ShutdownResponse { request, approve: false, reason } => {
                json!({"type": "shutdown_rejected", "requestId": request, "reason": reason})
            }
            Self::PlanRequest { request, plan, file } => {
                json!({"type": "plan_approval_request", "requestId": request, "planContent": plan, "planFilePath": file})
            }
            Self::PlanResponse { request, approve, feedback } => {
                json!({"type": "plan_approval_response", "requestId": request, "approved": approve, "feedback": feedback})
            }
            Self::PermissionRequest { request, tool, input, why, suggestions, about } => {
                let mut object = json!({
                    "type": "permission_request", "request_id": request, "agent_id": from, "tool_name": tool,
                    "tool_use_id": request, "description": why, "input": input, "permission_suggestions": suggestions,
                });
                if *about != TeammateQuestion::Call {
                    object["about"] = json!(about);
                }
                object
            }
            Self::PermissionResponse { request, answer: LeadAnswer::Allowed(input) } => {
                let response = input.as_ref().map_or_else(|| json!({}), |input| json!({"updated_input": input}));
                json!({"type": "permission_response", "request_id": request, "subtype": "success", "response": response})
            }
            Self::PermissionResponse { request, answer: LeadAnswer::Unanswered(why) } => json!({
                "type": "permission_response", "request_id": request, "subtype": "error", "error": why,
                "unanswered": true,
            }),
            Self::PermissionResponse { request, answer: LeadAnswer::Denied(why) } => {
                json!({"type": "permission_response", "request_id": request, "subtype": "error", "error": why})
            }
            Self::Interrupt => json!({"type": "interrupt"}),
            Self::Progress { label } => json!({"type": "progress", "label": label}),
            Self::Idle { rest, last_text, heard, handed } => {
                json!({
                    "type": "idle_notification", "idleReason": rest, "result": last_text, "heard": heard, "handed": handed,
                })
            }
            Self::Assigned { task, subject, description } => json!({
                "type": "task_assignment", "taskId": task, "subject": subject, "description": description,
                "assignedBy": from,
            }),
        };
        let names_its_sender = !matches!(self, Self::PermissionRequest { .. } | Self::PermissionResponse { .. });
        if names_its_sender {
            object["timestamp"] = json!(format!("{now:.3}"));
        }
        if names_its_sender && !matches!(self, Self::PlanResponse { .. } | Self::Assigned { .. }) {
            object["from"] = json!(from);
        }
        Some(object.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MSG-3: what is sent is understood, field for field.
    #[test]
    fn a_word_is_understood_as_it_was_sent() {
        let (request, reason) = (|| "r-1".to_owned(), || "why".to_owned());
        let words = [
            ControlMessage::ShutdownRequest { request: request(), reason: reason() },
            ControlMessage::ShutdownResponse { request: request(), approve: true, reason: String::new() },
            ControlMessage::ShutdownResponse { request: request(), approve: false, reason: reason() },
            ControlMessage::PlanRequest { request: request(), plan: "1. go".to_owned(), file: "/p.md".to_owned() },
            ControlMessage::PlanResponse { request: request(), approve: true, feedback: reason() },
            ControlMessage::PermissionRequest {
                request: request(),
                tool: "Bash".to_owned(),
                input: json!({"command": "ls"}),
                why: reason(),
                suggestions: vec![json!({"type": "setMode"})],
                about: TeammateQuestion::Call,
            },
            ControlMessage::PermissionRequest {
                request: request(),
                tool: "CLAUDE.md".to_owned(),
                input: json!({"file_path": "/x.md"}),
                why: reason(),
                suggestions: Vec::new(),
                about: TeammateQuestion::Include,
            },
            ControlMessage::PermissionResponse { request: request(), answer: LeadAnswer::Allowed(None) },
            ControlMessage::PermissionResponse {
                request: request(),
                answer: LeadAnswer::Allowed(Some(json!({"command": "ls -l"}))),
            },
            ControlMessage::PermissionResponse { request: request(), answer: LeadAnswer::Denied(reason()) },
            ControlMessage::PermissionResponse { request: request(), answer: LeadAnswer::Unanswered(reason()) },
            ControlMessage::Interrupt,
            ControlMessage::Idle {
                rest: IdleReason::Interrupted,
                last_text: reason(),
                heard: BTreeMap::from([("team-lead".to_owned(), request())]),
                handed: BTreeMap::from([("anna".to_owned(), request())]),
            },
            ControlMessage::Progress { label: "Reading the tests".to_owned() },
            ControlMessage::Assigned { task: "3".to_owned(), subject: "it".to_owned(), description: reason() },
        ];
        for word in words {
            let text = word.to_text("scout", Timestamp::UNIX_EPOCH).unwrap();
            assert_eq!(ControlMessage::of(&serde_json::from_str(&text).unwrap()), Some(word), "{text}");
        }
    }

    /// MSG-3: what Claude Code 2.1 writes is understood.
    #[test]
    fn what_claude_code_writes_is_understood() {
        let of = |object: Value| ControlMessage::of(&object).unwrap();
        let idle = json!({
            "type": "idle_notification", "from": "a", "timestamp": "t", "idleReason": "available", "summary": "done",
        });
        assert!(
            matches!(of(idle), ControlMessage::Idle { rest: IdleReason::Available, last_text, .. } if last_text == "done")
        );
        let plan = json!({
            "type": "plan_approval_request", "from": "a", "timestamp": "t", "planFilePath": "/p", "planContent": "x",
            "requestId": "r",
        });
        assert!(matches!(of(plan), ControlMessage::PlanRequest { plan, .. } if plan == "x"));
        let assigned = json!({
            "type": "task_assignment", "taskId": "4", "subject": "s", "description": "d", "assignedBy": "team-lead",
            "timestamp": "t",
        });
        assert!(matches!(of(assigned), ControlMessage::Assigned { task, .. } if task == "4"));
        let answer = json!({
            "type": "permission_response", "request_id": "r", "subtype": "success", "tool_use_id": "t",
            "response": {"updated_input": {"command": "ls"}, "permission_updates": []},
        });
        assert!(matches!(of(answer), ControlMessage::PermissionResponse { answer: LeadAnswer::Allowed(Some(_)), .. }));
        assert_eq!(ControlMessage::of(&json!({"type": "mode_set_request", "mode": "bypassPermissions"})), None);
    }
}
