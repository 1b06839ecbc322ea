//! The program that drives a session through stdin and stdout, as one who can be asked and has hooks of its own.
//!
//! A question is a line with an id; the answer is a line that names it. Questions can be open side by side and are
//! answered in any order. One that nobody waits for any more is withdrawn, and an answer to it counts for nothing.

use std::collections::HashMap;
use std::sync::Arc;

use engine::hooks::{CallbackReply, HookCallbacks};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use session::World;
use settings::permission::{Approver, PermissionAnswer, Question, Respondent};
use tokio::sync::oneshot;
use tools::Subject;

use crate::output::Output;

/// Text for the model when the program is gone.
const GONE: &str = "The program that was to answer is gone.";
/// Text for the model when the program gives no reason.
const NO: &str = "The user said no.";

/// One who can be asked through lines.
pub(super) struct SdkHost {
    output: Arc<Output>,
    world: World,
    /// The questions that wait, by their ids; none once nobody answers any more.
    open: Mutex<Option<PendingResponses>>,
}

/// The program's response, or its error.
pub(super) type Response = Result<Value, String>;

type PendingResponses = HashMap<String, oneshot::Sender<Response>>;

/// The effect of a line that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerEffect {
    /// Nothing more.
    Nothing,
    /// The turn is to stop.
    Stop,
}

impl SdkHost {
    /// Through these lines.
    pub(super) fn new(output: Arc<Output>) -> Self {
        Self { output, world: World::real(), open: Mutex::new(Some(PendingResponses::new())) }
    }

    /// Takes an answer to the question of this id.
    pub(super) fn answered(&self, id: &str, response: Response) -> AnswerEffect {
        let stop = response.as_ref().is_ok_and(|said| said["behavior"] == "deny" && said["interrupt"] == true);
        let waiting = self.open.lock().as_mut().and_then(|open| open.remove(id));
        let heard = waiting.is_some_and(|waiting| waiting.send(response).is_ok());
        if heard && stop { AnswerEffect::Stop } else { AnswerEffect::Nothing }
    }

    /// No answer comes any more.
    pub(super) fn end(&self) {
        *self.open.lock() = None;
    }

    /// Asks, and waits for what is answered; nothing once nobody answers any more.
    pub(super) async fn send_request(&self, request: Value) -> Option<Response> {
        let id = self.world.fresh_id().to_string();
        let (reply, answer) = oneshot::channel();
        self.open.lock().as_mut()?.insert(id.clone(), reply);
        let _asked = WithdrawnQuestion { driving: self, id: id.clone() };
        self.output.line(&json!({"type": "control_request", "request_id": id, "request": request}));
        answer.await.ok()
    }
}

impl Approver for SdkHost {
    fn ask(&self, question: Question) -> BoxFuture<'_, PermissionAnswer> {
        Box::pin(async move {
            match self.send_request(request(&question)).await {
                Some(said) => understood(&said.unwrap_or_default()),
                None => PermissionAnswer::Unanswered { why: GONE.to_owned() },
            }
        })
    }

    fn respondent(&self) -> Respondent {
        Respondent::Program
    }
}

impl HookCallbacks for SdkHost {
    fn call_back(&self, id: &str, input: &Value, call: Option<&str>) -> BoxFuture<'_, CallbackReply> {
        let mut request = json!({"subtype": "hook_callback", "callback_id": id, "input": input});
        if let Some(call) = call {
            request["tool_use_id"] = json!(call);
        }
        Box::pin(async move {
            match self.send_request(request).await {
                Some(Ok(said)) => CallbackReply::Answered(said),
                Some(Err(why)) => CallbackReply::Failed(why),
                None => CallbackReply::Gone,
            }
        })
    }
}

/// A question that is withdrawn when nobody waits for it any more and it was not answered.
struct WithdrawnQuestion<'a> {
    driving: &'a SdkHost,
    id: String,
}

impl Drop for WithdrawnQuestion<'_> {
    fn drop(&mut self) {
        let open = self.driving.open.lock().as_mut().and_then(|open| open.remove(&self.id));
        if open.is_some() {
            self.driving.output.line(&json!({"type": "control_cancel_request", "request_id": self.id}));
        }
    }
}

/// A question, as Claude Code asks it.
fn request(question: &Question) -> Value {
    let mut request = json!({
        "subtype": "can_use_tool", "tool_name": question.asker(), "decision_reason": question.why(),
        "permission_suggestions": [], "tool_use_id": "",
    });
    match question {
        Question::Call(call) => {
            (request["input"], request["tool_use_id"]) = (call.input.clone(), json!(call.id));
            request["permission_suggestions"] = json!(call.suggestions());
            if let Subject::Path { named, .. } = &call.subject {
                request["blocked_path"] = json!(named);
            }
            if let Some(agent) = &call.agent {
                request["agent_id"] = json!(agent);
            }
        }
        // There is no request of its own for these; no tool has such a name.
        Question::Sender(sender) => request["input"] = json!({"message": sender.message}),
        Question::Include(include) => {
            request["input"] = json!({"file_path": include.file});
            request["blocked_path"] = json!(include.file);
        }
        Question::Server(asked) => request["input"] = json!({"message": asked.message()}),
    }
    request
}

/// The meaning of an answer. An invalid one counts as no answer.
fn understood(said: &Value) -> PermissionAnswer {
    let list = |key: &str| said[key].as_array().cloned().unwrap_or_default();
    match said["behavior"].as_str() {
        Some("allow") => {
            let input = said.get("updatedInput").filter(|input| input.is_object()).cloned();
            PermissionAnswer::With { input, permissions: list("updatedPermissions") }
        }
        Some("deny") => PermissionAnswer::Deny { why: said["message"].as_str().unwrap_or(NO).to_owned() },
        _ => PermissionAnswer::Unanswered {
            why: "The program that was asked sent an answer that is not valid.".to_owned(),
        },
    }
}
