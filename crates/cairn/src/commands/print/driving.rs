//! The program that drives a session through stdin and stdout, as one who can be asked.
//!
//! A question is a line with an id; the answer is a line that names it. Questions can be open side by side and are
//! answered in any order. One that nobody waits for any more is withdrawn, and an answer to it counts for nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::World;
use engine::permission::{Answer, Approver, Question, Who};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tools::Subject;

use crate::output::Output;

/// What the model is told when the program is gone.
const GONE: &str = "The program that was to answer is gone.";
/// What it is told when the program gives no reason.
const NO: &str = "The user said no.";

/// One who can be asked through lines.
pub(super) struct Driving {
    output: Arc<Output>,
    world: World,
    /// The questions that wait, by their ids; none once nobody answers any more.
    open: Mutex<Option<Waiting>>,
}

type Waiting = HashMap<String, oneshot::Sender<Value>>;

/// What is to follow from a line that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Follows {
    /// Nothing more.
    Nothing,
    /// The turn is to stop.
    Stop,
}

impl Driving {
    /// Through these lines.
    pub(super) fn new(output: Arc<Output>) -> Self {
        Self { output, world: World::real(), open: Mutex::new(Some(Waiting::new())) }
    }

    /// Takes an answer to the question of this id.
    pub(super) fn answered(&self, id: &str, response: Value) -> Follows {
        let stop = response["behavior"] == "deny" && response["interrupt"] == true;
        let waiting = self.open().as_mut().and_then(|open| open.remove(id));
        let heard = waiting.is_some_and(|waiting| waiting.send(response).is_ok());
        if heard && stop { Follows::Stop } else { Follows::Nothing }
    }

    /// No answer comes any more.
    pub(super) fn end(&self) {
        *self.open() = None;
    }

    fn open(&self) -> MutexGuard<'_, Option<Waiting>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Approver for Driving {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let id = self.world.fresh_id().to_string();
            let (reply, answer) = oneshot::channel();
            match self.open().as_mut() {
                Some(open) => open.insert(id.clone(), reply),
                None => return Answer::Unanswered { why: GONE.to_owned() },
            };
            let _asked = Withdrawn { driving: self, id: id.clone() };
            self.output.line(&json!({"type": "control_request", "request_id": id, "request": request(&question)}));
            answer.await.map_or_else(|_| Answer::Unanswered { why: GONE.to_owned() }, |said| understood(&said))
        })
    }

    fn who(&self) -> Who {
        Who::Program
    }
}

/// A question that is withdrawn when nobody waits for it any more and it was not answered.
struct Withdrawn<'a> {
    driving: &'a Driving,
    id: String,
}

impl Drop for Withdrawn<'_> {
    fn drop(&mut self) {
        let open = self.driving.open().as_mut().and_then(|open| open.remove(&self.id));
        if open.is_some() {
            self.driving.output.line(&json!({"type": "control_cancel_request", "request_id": self.id}));
        }
    }
}

/// A question, as Claude Code asks it.
fn request(question: &Question) -> Value {
    let mut request = json!({
        "subtype": "can_use_tool", "tool_name": question.tool, "input": question.input,
        "permission_suggestions": question.suggestions(), "decision_reason": question.why,
        "tool_use_id": question.id,
    });
    if let Subject::Path { named, .. } = &question.subject {
        request["blocked_path"] = json!(named);
    }
    request
}

/// What an answer means. One that cannot be understood is none.
fn understood(said: &Value) -> Answer {
    let list = |key: &str| said[key].as_array().cloned().unwrap_or_default();
    match said["behavior"].as_str() {
        Some("allow") => {
            let input = said.get("updatedInput").filter(|input| input.is_object()).cloned();
            Answer::With { input, permissions: list("updatedPermissions") }
        }
        Some("deny") => Answer::Deny { why: said["message"].as_str().unwrap_or(NO).to_owned() },
        _ => Answer::Unanswered { why: "The answer of the program that was asked cannot be understood.".to_owned() },
    }
}
