//! Keeping notes: a fork brings them up to date beside the work, and what is written down before results are cleared is
//! added to them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use context::layer::Update;
use context::{Fact, form};
use learning::fork::{Fork, ForkError, ToolPolicy};
use learning::ledger;
use parking_lot::Mutex;
use session::Error;
use tokio_util::sync::CancellationToken;
use tools::EditInput;
use transcript::{Block, Usage, tool_names};

use super::{Driver, Ended};
use crate::event::Event;

/// The most requests of an update.
const ROUNDS: u32 = 3;
/// The most time for one; an older one counts as stuck.
const PATIENCE: Duration = Duration::from_secs(60);
/// A compaction waits so long for notes that are being written.
const WAIT: Duration = Duration::from_secs(15);
/// Larger notes are not read.
const NOTES_BYTES: u64 = 1_000_000;
/// This kind of work in the background.
const KIND: &str = ledger::NOTES;

/// What came of an update.
#[derive(Debug)]
pub(super) struct Updated {
    outcome: Result<(), ForkError>,
    usage: Usage,
    model: String,
    update: Update,
    /// Whether the file was changed, and whether the section that has to be was not.
    changed: bool,
    left_current_state: bool,
}

impl Driver {
    /// Begins an update, if none is under way.
    pub(super) fn update_notes(&mut self, update: &Update) {
        if self.background.is_running(KIND) || self.out.ledger.allows(KIND).is_err() {
            return;
        }
        let path = self.notes_path();
        let (Some(parent), Some(text)) = (self.fork_request(update.end), self.open_notes()) else { return };
        let tally = self.session.log().view().tally();
        let tokens = |text: &str| tally.estimate(Block::text(text).size());
        let prompt = self.talk.layers.notes_prompt.as_deref().unwrap_or(form::PROMPT);
        let directive = Block::text(form::prompt(prompt, &text, &path.display().to_string(), tokens));
        let model = parent.prologue.model.clone();
        let fork = Fork {
            kind: KIND,
            model: self.talk.model.clone(),
            parent,
            directive,
            tools: ToolPolicy::Deny,
            rounds: ROUNDS,
            patience: PATIENCE,
            most_output: None,
            budget: None,
            ledger: self.out.ledger.clone(),
            cancel: CancellationToken::new(),
        };
        let work = write(fork, path, text, model, update.clone());
        self.background.start(KIND, PATIENCE * 2, self.session.world().now(), work);
    }

    /// The notes as they are; made from the template where there are none, or where they tell of what was taken back.
    fn open_notes(&self) -> Option<String> {
        let template = self.talk.layers.notes_template.as_deref().unwrap_or(form::TEMPLATE);
        let text = open(&self.notes_path(), template)?;
        if !self.session.state().outdated {
            return Some(text);
        }
        files::replace(self.notes_path(), template.as_bytes()).ok().map(|_| template.to_owned())
    }

    /// The notes as they are, if there are any.
    pub(super) fn read_notes(&self) -> Option<String> {
        let snapshot = files::read(self.notes_path(), NOTES_BYTES).ok()?;
        Some(String::from_utf8_lossy(&snapshot.bytes).into_owned())
    }

    /// Adds what was written down to the notes. While somebody is writing them, or where they have no place for it, it
    /// stands in the log alone.
    pub(super) fn add_to_notes(&self, written: &str) {
        if !self.talk.layers.notes || self.background.is_running(KIND) {
            return;
        }
        if let Some(notes) = self.open_notes().and_then(|notes| form::with_results(&notes, written)) {
            let _ = files::replace(self.notes_path(), notes.as_bytes()); // the digest is in the log all the same
        }
    }

    /// Takes in what came of an update.
    pub(super) fn updated_notes(&mut self, updated: Updated) -> Result<(), Error> {
        let Updated { outcome, usage, model, update, changed, left_current_state } = updated;
        self.record(Fact::Side { agent: KIND.to_owned(), model, usage })?;
        // What was begun and not finished covers nothing.
        let covers = (changed && outcome.is_ok()).then_some(update.covers);
        let failed = outcome.err().map(|error| error.to_string());
        self.record(Fact::Notes { covers, tokens: update.tokens, ready: update.ready })?;
        self.tell(Event::NotesUpdated { path: self.notes_path(), usage, left_current_state, failed });
        Ok(())
    }

    /// A compaction waits for notes that are being written, unless they are stuck.
    pub(crate) async fn wait_for_notes(&mut self) -> Result<(), Error> {
        let now = self.session.world().now();
        match self.background.wait_for(KIND, WAIT, now).await {
            Some(ended) => self.took_in(ended),
            None => Ok(()),
        }
    }
}

/// The notes as they are; made from the template where there are none.
fn open(path: &Path, template: &str) -> Option<String> {
    match files::read(path, NOTES_BYTES) {
        Ok(snapshot) => String::from_utf8(snapshot.bytes).ok(),
        Err(files::Error::NotFound { .. }) => {
            let folder = files::Root::create(path.parent()?).ok()?;
            folder.create_new(path.file_name()?.to_str()?, template.as_bytes(), 0o600).ok()?;
            Some(template.to_owned())
        }
        Err(_) => None,
    }
}

/// Runs the fork; all it may do is edit this one file, in its form.
async fn write(mut fork: Fork, path: PathBuf, before: String, model: String, update: Update) -> Ended {
    let now = Arc::new(Mutex::new(before.clone()));
    let written = now.clone();
    let edit = move |tool: &str, input: &serde_json::Value| {
        let mut now = written.lock();
        *now = edited(&now, &path, tool, input)?;
        files::replace(&path, now.as_bytes()).map_err(|error| error.to_string())?;
        Ok("Edited.".to_owned())
    };
    fork.tools = ToolPolicy::Run(Box::new(edit));
    let (outcome, usage) = match fork.run().await {
        Ok(forked) => (Ok(()), forked.usage),
        Err((error, usage)) => (Err(error), usage),
    };
    let after = now.lock().clone();
    let left_current_state = form::left_current_state(&before, &after);
    Ended::Notes(Updated { outcome, usage, model, update, changed: after != before, left_current_state })
}

/// The notes after a call, if it is one that may run: an edit of this one file that keeps its form.
fn edited(text: &str, path: &Path, tool: &str, input: &serde_json::Value) -> Result<String, String> {
    let only = || format!("Only Edit on {} runs here.", path.display());
    if tool != tool_names::EDIT {
        return Err(only());
    }
    let input: EditInput = serde_json::from_value(input.clone()).map_err(|error| error.to_string())?;
    if Path::new(&input.file_path) != path {
        return Err(only());
    }
    let after = tools::edited(text, &input)?;
    form::keeps_form(text, &after)?;
    Ok(after)
}
