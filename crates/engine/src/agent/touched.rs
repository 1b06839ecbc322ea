//! What comes beside what was said: instructions and memories for what the calls of a reply touched.

use std::path::Path;

use learning::knowledge::{Attached, Knowledge};
use memory::instructions::Loaded;
use session::Error;
use tokio_util::sync::CancellationToken;

use super::Agent;
use crate::event::{Event, Recalled};
use crate::gate::ModelCall;

impl Agent {
    /// What the calls of a reply touched: its instructions are loaded, and the user hears of saved memories.
    pub(super) async fn touched(&mut self, calls: &[ModelCall], cancel: &CancellationToken) -> Result<(), Error> {
        for call in calls {
            self.doing.tools.push(doing(call));
            let known = self.driver.work.tools.iter().find(|known| known.name() == call.tool).cloned();
            let (subject, changes) = match &known {
                Some(tool) => (
                    tool.subject(&call.input, &self.driver.scope),
                    tool.changes(&call.input, &self.driver.scope).is_some(),
                ),
                None => continue,
            };
            let tools::Subject::Path { real, .. } = subject else { continue };
            self.doing.files.push(real.display().to_string());
            let Some(knowledge) = &mut self.knowledge else { continue };
            if knowledge.is_memory(&real) && changes {
                let path = real.clone();
                let is_empty = files::read(&real, 1).is_ok_and(|file| file.bytes.is_empty());
                let event = if is_empty { Event::MemoryForgotten { path } } else { Event::MemorySaved { path } };
                self.driver.tell(event);
                let warned = knowledge.wrote(&real);
                self.attach(warned.into_iter().collect())?;
            }
            let Some(knowledge) = &mut self.knowledge else { continue };
            let touched = knowledge.touched(&real);
            if let Some((files, _)) = &touched {
                self.driver.loaded(files, Some(&real), cancel).await?;
            }
            self.load(touched)?;
            self.ask_about_outside(&real, cancel).await?;
            for note in self.knowledge.as_mut().map(Knowledge::warnings).unwrap_or_default() {
                self.driver.tell(Event::Warning(note));
            }
        }
        let recalled = self.knowledge.as_mut().map(|knowledge| knowledge.does(&self.doing, &self.driver.scope));
        self.attach(recalled.unwrap_or_default())
    }

    /// Puts instruction files beside what was said.
    pub(super) fn load(&mut self, loaded: Option<(Vec<Loaded>, Attached)>) -> Result<(), Error> {
        let Some((files, attached)) = loaded else { return Ok(()) };
        self.driver.tell(Event::InstructionsLoaded { files });
        self.attach(vec![attached])
    }

    /// Puts context beside what was said.
    pub(super) fn attach(&mut self, attached: Vec<Attached>) -> Result<(), Error> {
        let directory = self.knowledge.as_ref().and_then(Knowledge::memory_directory).unwrap_or(Path::new(""));
        let recalled = |one: &Attached| {
            let path = one.beside.memory.as_ref()?.path.clone();
            Some(Recalled { file: directory.join(&path), path, text: one.text.text().to_owned() })
        };
        let memories: Vec<Recalled> = attached.iter().filter_map(recalled).collect();
        for one in attached {
            self.driver.session.inject(&one.text, one.beside)?;
        }
        if !memories.is_empty() {
            self.driver.tell(Event::Recalled { memories });
        }
        Ok(())
    }
}

/// What a call does, in words: the tool's name, and the command it runs.
fn doing(call: &ModelCall) -> String {
    match call.input["command"].as_str() {
        Some(command) => format!("{} {command:.200}", call.tool),
        None => call.tool.clone(),
    }
}
