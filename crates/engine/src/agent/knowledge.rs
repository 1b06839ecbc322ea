//! Knowledge of an agent beyond the conversation: instructions and memories that are attached as it hears and does
//! things.

use std::path::Path;

use learning::knowledge::{AttachedText, IncludeConsent, Knowledge, UserMessage};
use memory::instructions::LoadedInstruction;
use memory::rank::WorkAtHand;
use session::Error;
use settings::permission::{IncludeQuestion, PermissionAnswer, Question};
use tokio_util::sync::CancellationToken;
use transcript::tool_names;

use crate::driver::{Driver, MemoryChange};
use crate::event::{Event, RecalledMemory};
use crate::gate::ModelCall;
use crate::live::LiveSession;

/// Knowledge of an agent.
#[derive(Default)]
pub(super) struct AgentKnowledge {
    /// Instruction files and memory, if it has any.
    pub(super) knowledge: Option<Knowledge>,
    /// Files touched and tools used in this turn, which decide what is recalled.
    pub(super) doing: WorkAtHand,
    /// Tools used in the turn before, each once.
    recent_tools: Vec<String>,
}

impl AgentKnowledge {
    /// Starts a turn: the work of the one before becomes the recent work.
    pub(super) fn turn_begins(&mut self) {
        let done = std::mem::take(&mut self.doing);
        if done.tools.is_empty() {
            return;
        }
        self.recent_tools.clear();
        for tool in done.tools.iter().filter_map(|tool| tool.split_whitespace().next()) {
            if !self.recent_tools.iter().any(|known| known == tool) {
                self.recent_tools.push(tool.to_owned());
            }
        }
    }

    /// Attaches what is relevant to a message of the user.
    pub(super) fn recall_for(&mut self, text: &str, live: &mut LiveSession) -> Result<(), Error> {
        let Some(knowledge) = &mut self.knowledge else { return Ok(()) };
        let said = UserMessage { message: text, doing: &self.doing, recent_tools: &self.recent_tools };
        let recalled = knowledge.recall_for(&said, &live.scope);
        self.attach(recalled, live)
    }

    /// Attaches what has to precede a message: files edited by hand, and the opening of a session.
    pub(super) fn begin(&mut self, live: &mut LiveSession) -> Result<(), Error> {
        let Some(knowledge) = &mut self.knowledge else { return Ok(()) };
        knowledge.remember(&live.session);
        let by_hand = knowledge.changed_by_hand();
        self.load(by_hand, live)?;
        let beginning = self.knowledge.as_mut().and_then(Knowledge::beginning);
        self.attach(beginning, live)
    }

    /// Loads the instructions for files that the calls of a reply touched, and tells the user about saved memories.
    pub(super) async fn touched(
        &mut self,
        calls: &[ModelCall],
        driver: &mut Driver,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        for call in calls {
            self.doing.tools.push(doing(call));
            let scope = &driver.live.scope;
            let Some(tool) = driver.live.work.tools.iter().find(|known| known.name() == call.tool) else { continue };
            let (subject, changes) = (tool.subject(&call.input, scope), tool.changes(&call.input, scope).is_some());
            let tools::Subject::Path { real, .. } = subject else { continue };
            self.doing.files.push(real.display().to_string());
            let Some(knowledge) = &mut self.knowledge else { continue };
            if call.tool == tool_names::READ && knowledge.is_memory(&real) {
                let age = knowledge.age_of(&real);
                self.attach(age, &mut driver.live)?;
            }
            let Some(knowledge) = &mut self.knowledge else { continue };
            if changes && knowledge.is_memory(&real) {
                let warned = knowledge.wrote(&real);
                self.attach(warned, &mut driver.live)?;
            }
            let touched = self.knowledge.as_mut().and_then(|knowledge| knowledge.touched(&real));
            if let Some((files, _)) = &touched {
                driver.loaded(files, Some(&real), cancel).await?;
            }
            self.load(touched, &mut driver.live)?;
            self.ask_about_outside(&real, driver, cancel).await?;
            for note in self.knowledge.as_mut().map(Knowledge::warnings).unwrap_or_default() {
                driver.live.tell(Event::Warning(note));
            }
        }
        for change in std::mem::take(&mut driver.memory_changes) {
            driver.live.tell(match change {
                MemoryChange::Saved(path) => Event::MemorySaved { path },
                MemoryChange::Removed(path) => Event::MemoryForgotten { path },
            });
        }
        let recalled = self.knowledge.as_mut().map(|knowledge| knowledge.does(&self.doing, &driver.live.scope));
        self.attach(recalled.unwrap_or_default(), &mut driver.live)
    }

    /// Asks about files outside the project that a touched file would bring into view, once each and before they are
    /// read, and loads those the user agrees to.
    async fn ask_about_outside(
        &mut self,
        touched: &Path,
        driver: &mut Driver,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        while let Some(outside) = self.knowledge.as_mut().and_then(Knowledge::next_outside) {
            let (place, file) = (outside.claim.place.clone(), outside.real.clone());
            let question = Question::Include(IncludeQuestion { place, file, teammate: None });
            let answer = tokio::select! {
                biased;
                () = cancel.cancelled() => return Ok(()),
                answer = driver.gate.consent.approver.ask(question) => answer,
            };
            let agreed = match answer {
                PermissionAnswer::Allow | PermissionAnswer::Always(_) | PermissionAnswer::With { .. } => {
                    IncludeConsent::Yes
                }
                PermissionAnswer::Deny { .. } => IncludeConsent::No,
                PermissionAnswer::Unanswered { .. } => continue,
            };
            if let Some(knowledge) = &mut self.knowledge {
                knowledge.answered(&outside, agreed);
            }
        }
        let agreed = self.knowledge.as_mut().and_then(|knowledge| knowledge.agreed(touched));
        self.load(agreed, &mut driver.live)
    }

    /// Attaches instruction files.
    fn load(
        &self,
        loaded: Option<(Vec<LoadedInstruction>, AttachedText)>,
        live: &mut LiveSession,
    ) -> Result<(), Error> {
        let Some((files, attached)) = loaded else { return Ok(()) };
        live.tell(Event::InstructionsLoaded { files });
        self.attach([attached], live)
    }

    /// Attaches context.
    pub(super) fn attach(
        &self,
        attached: impl IntoIterator<Item = AttachedText>,
        live: &mut LiveSession,
    ) -> Result<(), Error> {
        let directory = self.knowledge.as_ref().and_then(Knowledge::memory_directory).unwrap_or(Path::new(""));
        let mut memories = Vec::new();
        for AttachedText { text, meta } in attached {
            if let Some(memory) = &meta.memory {
                let (path, file) = (memory.path.clone(), directory.join(&memory.path));
                memories.push(RecalledMemory { file, path, text: text.text().to_owned() });
            }
            live.session.inject(&text, meta)?;
        }
        if !memories.is_empty() {
            live.tell(Event::Recalled { memories });
        }
        Ok(())
    }
}

/// Describes a call: the tool's name, and the command it runs.
fn doing(call: &ModelCall) -> String {
    match call.input["command"].as_str() {
        Some(command) => format!("{} {command:.200}", call.tool),
        None => call.tool.clone(),
    }
}
