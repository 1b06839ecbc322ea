//! Instruction files that come into view and would bring in files from outside the project: the user is asked once about
//! each, before it is read.

use std::path::Path;

use learning::knowledge::{Agreed, Knowledge};
use session::Error;
use settings::permission::{Answer, IncludeQuestion, Question};
use tokio_util::sync::CancellationToken;

use super::Agent;

impl Agent {
    /// Asks about what a touched file brought into view, and loads what is agreed to.
    pub(super) async fn ask_about_outside(&mut self, touched: &Path, cancel: &CancellationToken) -> Result<(), Error> {
        while let Some(outside) = self.knowledge.as_mut().and_then(Knowledge::next_outside) {
            let (place, file) = (outside.claim.place.clone(), outside.real.clone());
            let question = Question::Include(IncludeQuestion { place, file, teammate: None });
            let answer = tokio::select! {
                biased;
                () = cancel.cancelled() => return Ok(()),
                answer = self.driver.gate.consent.approver.ask(question) => answer,
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
}
