//! Questions that servers ask in the middle of a call, put to the person at the terminal.
//!
//! They go the way of permission questions, so that a person is asked one thing at a time. Where there is no person, servers
//! are told that nobody can be asked.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::{Elicitation, ElicitationAnswer, ElicitationRequest};
use serde_json::{Map, Value};
use settings::permission::{Approver, PermissionAnswer, Question, Respondent};

/// A person who can be asked by servers.
struct AskedPerson(Arc<dyn Approver>);

/// The way to the person, if there is one.
pub fn elicitation(approver: &Arc<dyn Approver>) -> Option<Arc<dyn Elicitation>> {
    (approver.respondent() == Respondent::Person)
        .then(|| Arc::new(AskedPerson(approver.clone())) as Arc<dyn Elicitation>)
}

impl Elicitation for AskedPerson {
    fn ask(&self, request: ElicitationRequest) -> BoxFuture<'static, ElicitationAnswer> {
        let approver = self.0.clone();
        async move { answer(approver.ask(Question::Server(Box::new(request))).await) }.boxed()
    }
}

fn answer(said: PermissionAnswer) -> ElicitationAnswer {
    match said {
        PermissionAnswer::With { input: Some(Value::Object(values)), .. } => ElicitationAnswer::Accept(values),
        PermissionAnswer::Allow | PermissionAnswer::Always(_) | PermissionAnswer::With { .. } => {
            ElicitationAnswer::Accept(Map::new())
        }
        PermissionAnswer::Deny { .. } => ElicitationAnswer::Decline,
        PermissionAnswer::Unanswered { .. } => ElicitationAnswer::Cancel,
    }
}
