//! Instruction files that come into view and would bring in files from outside the project: the user is asked once about
//! each, before it is read.

use std::path::Path;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use tools::Subject;

use super::Agent;
use crate::error::Error;
use crate::knowledge::outside::Outside;
use crate::knowledge::{Agreed, Knowledge};
use crate::permission::{Answer, Question};

impl Agent {
    /// Asks about what a touched file brought into view, and loads what is agreed to.
    pub(super) async fn ask_about_outside(&mut self, touched: &Path, cancel: &CancellationToken) -> Result<(), Error> {
        while let Some(outside) = self.knowledge.as_mut().and_then(Knowledge::next_outside) {
            let question = self.about(&outside);
            let answer = tokio::select! {
                biased;
                () = cancel.cancelled() => return Ok(()),
                answer = self.driver.parts.approver.ask(question) => answer,
            };
            let agreed = match answer {
                Answer::Allow | Answer::Always(_) | Answer::With { .. } => Agreed::Yes,
                Answer::Deny { .. } => Agreed::No,
                Answer::Unanswered { .. } => continue,
            };
            if let Some(knowledge) = &mut self.knowledge {
                knowledge.answered(&outside, agreed);
            }
        }
        let agreed = self.knowledge.as_mut().and_then(|knowledge| knowledge.agreed(touched));
        self.load(agreed)
    }

    fn about(&self, outside: &Outside) -> Question {
        let real = outside.real.clone();
        Question {
            id: String::new(),
            tool: outside.claim.place.clone(),
            input: json!({"file_path": real}),
            subject: Subject::Path { named: real.clone(), real },
            directory: self.driver.scope.directory(),
            why: "it would become instructions for the model, and lies outside the project; the answer is kept"
                .to_owned(),
            agent: None,
            spared_by: None,
            always: Vec::new(),
        }
    }
}
