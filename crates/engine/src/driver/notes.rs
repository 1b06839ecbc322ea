//! Notes: a fork updates them in the background, and digests written before results are cleared are added to them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use context::layer::Update;
use context::{Fact, notes_format};
use learning::fork::{Fork, ForkError, ForkResult, ToolPolicy};
use learning::ledger;
use parking_lot::Mutex;
use session::Error;
use tools::EditInput;
use transcript::{Block, Usage, tool_names};

use super::side_work::{self, SideWork, SideWorkResult};
use crate::event::Event;
use crate::live::LiveSession;

/// Limit on requests of an update.
const ROUNDS: u32 = 3;
/// Timeout of an update; an older one counts as stuck.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time for which a compaction waits for notes that are being written.
const WAIT: Duration = Duration::from_secs(15);
/// Largest size of notes that are read, in bytes.
const NOTES_BYTES: u64 = 1_000_000;
/// Kind of this background work.
const KIND: &str = ledger::NOTES;

/// Result of an update.
#[derive(Debug)]
pub(super) struct NotesUpdate {
    outcome: Result<ForkResult, ForkError>,
    usage: Usage,
    model: String,
    update: Update,
    /// True if the file was changed; the next field is true if the section that must be rewritten was not.
    changed: bool,
    left_current_state: bool,
}

impl SideWork {
    /// Starts an update, if none is running.
    pub(super) fn update_notes(&mut self, live: &LiveSession, update: &Update) {
        if self.background.is_running(KIND) || live.out.ledger.allows(KIND).is_err() {
            return;
        }
        let path = live.notes_path();
        let (Some(parent), Some(text)) = (live.fork_request(update.end), current(live)) else { return };
        let tally = live.session.log().view().tally();
        let tokens = |text: &str| tally.estimate(Block::text(text).size());
        let prompt = live.talk.layers.notes_prompt.as_deref().unwrap_or(notes_format::PROMPT);
        let directive = notes_format::prompt(prompt, &text, &path.display().to_string(), tokens);
        let fork = Fork {
            rounds: ROUNDS,
            patience: PATIENCE,
            ..Fork::new(KIND, &live.talk.model, parent, &directive, &live.out.ledger)
        };
        let work = write(fork, path, text, update.clone());
        self.background.start(KIND, PATIENCE * 2, live.session.world().now(), work);
    }

    /// Adds a digest to the notes. While they are being written, or have no section for it, it stays in the log alone.
    pub(super) fn add_to_notes(&self, live: &LiveSession, written: &str) {
        if !live.talk.layers.notes || self.background.is_running(KIND) {
            return;
        }
        if let Some(notes) = current(live).and_then(|notes| notes_format::with_results(&notes, written)) {
            let _ = files::replace(live.notes_path(), notes.as_bytes()); // the digest is in the log all the same
        }
    }

    /// Waits before a compaction for notes that are being written, unless they are stuck.
    pub(super) async fn wait_for_notes(&mut self, live: &mut LiveSession) -> Result<(), Error> {
        match self.background.wait_for(KIND, WAIT, live.session.world().now()).await {
            Some(ended) => side_work::take_in(live, ended),
            None => Ok(()),
        }
    }
}

/// Records the result of an update.
pub(super) fn take_in(live: &mut LiveSession, updated: NotesUpdate) -> Result<(), Error> {
    let NotesUpdate { outcome, usage, model, update, changed, left_current_state } = updated;
    live.record(Fact::Side { agent: KIND.to_owned(), model, usage })?;
    // What was begun and not finished covers nothing.
    let failed = match outcome {
        Ok(forked) => forked.unfinished.map(str::to_owned),
        Err(error) => Some(error.to_string()),
    };
    let covers = (changed && failed.is_none()).then_some(update.covers);
    live.record(Fact::Notes { covers, tokens: update.tokens, ready: update.ready })?;
    live.tell(Event::NotesUpdated { path: live.notes_path(), usage, left_current_state, failed });
    Ok(())
}

/// The current notes, if there are any.
pub(super) fn read(live: &LiveSession) -> Option<String> {
    let snapshot = files::read(live.notes_path(), NOTES_BYTES).ok()?;
    Some(String::from_utf8_lossy(&snapshot.bytes).into_owned())
}

/// The current notes; created from the template if there are none, or if they describe messages that were rewound.
fn current(live: &LiveSession) -> Option<String> {
    let template = live.talk.layers.notes_template.as_deref().unwrap_or(notes_format::TEMPLATE);
    let text = open(&live.notes_path(), template)?;
    if !live.session.state().outdated {
        return Some(text);
    }
    files::replace(live.notes_path(), template.as_bytes()).ok().map(|_| template.to_owned())
}

/// The current notes; created from the template if there are none.
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

/// Runs the fork, which may only edit this one file, within its format.
async fn write(mut fork: Fork, path: PathBuf, before: String, update: Update) -> SideWorkResult {
    let model = fork.parent.prologue.model.clone();
    let now = Arc::new(Mutex::new(before.clone()));
    let written = now.clone();
    let edit = move |tool: &str, input: &serde_json::Value| {
        let mut now = written.lock();
        *now = edited(&now, &path, tool, input)?;
        files::replace(&path, now.as_bytes()).map_err(|error| error.to_string())?;
        Ok("Edited.".to_owned())
    };
    fork.tools = ToolPolicy::Run(Box::new(edit));
    let (outcome, usage) = fork.run().await;
    let after = now.lock().clone();
    let left_current_state = notes_format::left_current_state(&before, &after);
    SideWorkResult::Notes(NotesUpdate { outcome, usage, model, update, changed: after != before, left_current_state })
}

/// The notes after a call, if the call may run: an edit of this one file that keeps its format.
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
    notes_format::keeps_form(text, &after)?;
    Ok(after)
}
