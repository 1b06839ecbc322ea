//! Keeping notes: a fork brings them up to date beside the work.

use std::path::{Path, PathBuf};
use std::time::Duration;

use context::micro;
use context::notes::{self, Fullness, Purse};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tools::EditInput;
use transcript::window::AutoCompact;
use transcript::{Block, Id, Usage};

use super::Agent;
use crate::error::Error;
use crate::event::Event;
use crate::fork::{Fork, ForkError, ToolPolicy};
use crate::layers::{Fact, rates};

/// The most requests of an update.
const ROUNDS: u32 = 3;
/// The most time for one; an older one counts as stuck.
const PATIENCE: Duration = Duration::from_secs(60);
/// A compaction waits so long for notes that are being written.
const WAIT: Duration = Duration::from_secs(15);
/// What an update is expected to write, in tokens.
const USUAL_OUTPUT: f64 = 700.0;
/// So many tokens before a compaction is due, at the latest, notes are brought up to date for it.
const LEAD_LEAST: u64 = 4_000;
/// Larger notes are not read.
const NOTES_BYTES: u64 = 1_000_000;

/// An update under way.
pub(super) struct Updating {
    task: AbortOnDropHandle<Updated>,
    since: Timestamp,
    covers: Id,
    tokens: u64,
    model: String,
}

/// What came of one.
struct Updated {
    outcome: Result<(), ForkError>,
    usage: Usage,
    /// Whether the file was changed, and whether the section that has to be was not.
    changed: bool,
    left_current_state: bool,
}

impl Agent {
    /// The notes of this session.
    pub fn notes_path(&self) -> PathBuf {
        self.session.path().with_extension("").join("session-memory").join("summary.md")
    }

    /// Begins an update, if one is due and none is under way.
    pub(super) fn keep_notes(&mut self) {
        let can_edit = self.tools.iter().any(|tool| tool.name() == "Edit");
        let on = self.layers.notes && self.layers.auto_compact == AutoCompact::On && can_edit;
        if !on || !self.may_compact() || self.updating.is_some() || !self.session.log().view().open_calls().is_empty() {
            return;
        }
        let view = self.session.log().view();
        let count = view.tally().count();
        let tight = self.notes_are_due_at();
        let rates = rates(&self.layers, self.ttl);
        let purse = Purse {
            session: self.state.spent,
            spent: self.state.notes_spent,
            saved: self.state.notes_saved,
            next: count as f64 * rates.read + USUAL_OUTPUT * rates.output,
            share: self.layers.notes_share,
        };
        let clearable = if self.layers.clear { micro::clearable(view) } else { 0 };
        let now = Fullness { count, clearable, tight };
        if !notes::is_due(&now, &self.state.progress, &purse) {
            return;
        }
        // What the model has not answered yet is not in the cache: it is left for the next time.
        let newest = view.visible().rev().find(|entry| entry.is_reply());
        let end = newest.filter(|entry| entry.calls().next().is_some()).map_or(usize::MAX, |entry| entry.index());
        let covered = view.visible().rev().find(|entry| entry.is_original() && entry.index() < end);
        let covers = covered.map(|entry| entry.line().clone());
        let (Some(parent), Some(covers)) = (self.fork_request(end), covers) else { return };
        let path = self.notes_path();
        let template = self.layers.notes_template.as_deref().unwrap_or(notes::TEMPLATE);
        let Some(text) = open(&path, template) else { return };
        let tokens = |text: &str| view.tally().estimate(Block::text(text).size());
        let prompt = self.layers.notes_prompt.as_deref().unwrap_or(notes::PROMPT);
        let directive = Block::text(notes::prompt(prompt, &text, &path.display().to_string(), tokens));
        let (model, cancel) = (parent.prologue.model.clone(), CancellationToken::new());
        let client = self.model.clone();
        let task = async move { update(client, parent, directive, path, text, cancel).await };
        self.state.progress.ready |= now.needs_compaction();
        self.updating = Some(Updating {
            task: AbortOnDropHandle::new(tokio::spawn(task)),
            since: self.session.world().now(),
            covers,
            tokens: count,
            model,
        });
    }

    /// Where notes are brought up to date for the compaction to come: two rounds before it. What comes after them stays in
    /// view beside them, and every token of it is written again and carried on.
    fn notes_are_due_at(&self) -> u64 {
        let (view, layers) = (self.session.log().view(), &self.layers);
        let newest = view.visible().rev().find(|entry| entry.is_reply()).map_or(0, |entry| entry.index());
        let lead = LEAD_LEAST.max(2 * context::compact::tokens_from(view, newest));
        let threshold = layers.window.threshold(layers.auto_compact);
        threshold.saturating_sub(lead).max(layers.window.warning(layers.auto_compact))
    }

    /// Takes in an update that is over.
    pub(super) async fn take_in_notes(&mut self) -> Result<(), Error> {
        match self.updating.take_if(|updating| updating.task.is_finished()) {
            Some(Updating { task, covers, tokens, model, .. }) => match task.await {
                Ok(updated) => self.took_in(updated, covers, tokens, model),
                Err(_) => Ok(()),
            },
            None => Ok(()),
        }
    }

    fn took_in(&mut self, updated: Updated, covers: Id, tokens: u64, model: String) -> Result<(), Error> {
        self.record(Fact::Side { agent: "notes".to_owned(), model, usage: updated.usage })?;
        let failed = updated.outcome.err().map(|error| error.to_string());
        self.record(Fact::Notes { covers: updated.changed.then_some(covers), tokens })?;
        let (path, usage, left_current_state) = (self.notes_path(), updated.usage, updated.left_current_state);
        (self.listener)(Event::NotesUpdated { path, usage, left_current_state, failed });
        Ok(())
    }

    /// A compaction waits for notes that are being written, unless they are stuck.
    pub(super) async fn wait_for_notes(&mut self) -> Result<(), Error> {
        let now = self.session.world().now();
        let patience = jiff::SignedDuration::try_from(PATIENCE).unwrap_or_default();
        let Some(mut updating) = self.updating.take() else { return Ok(()) };
        if now.duration_since(updating.since) >= patience {
            return Ok(());
        }
        match tokio::time::timeout(WAIT, &mut updating.task).await {
            Ok(Ok(updated)) => self.took_in(updated, updating.covers, updating.tokens, updating.model),
            Ok(Err(_)) => Ok(()),
            Err(_) => {
                self.updating = Some(updating);
                Ok(())
            }
        }
    }

    /// Waits until no notes are being written, for those who have to know what came of them.
    pub async fn settled(&mut self) -> Result<(), Error> {
        self.wait_for_notes().await
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

async fn update(
    model: std::sync::Arc<dyn provider::Model>,
    parent: transcript::Request,
    directive: Block,
    path: PathBuf,
    before: String,
    cancel: CancellationToken,
) -> Updated {
    let now = std::sync::Arc::new(std::sync::Mutex::new(before.clone()));
    let written = now.clone();
    let edit = move |tool: &str, input: &serde_json::Value| {
        let mut now = written.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *now = edited(&now, &path, tool, input)?;
        files::replace(&path, now.as_bytes()).map_err(|error| error.to_string())?;
        Ok("Edited.".to_owned())
    };
    let fork = Fork {
        kind: "notes",
        model,
        parent,
        directive,
        tools: ToolPolicy::Run(Box::new(edit)),
        rounds: ROUNDS,
        patience: PATIENCE,
        most_output: None,
        cancel,
    };
    let (outcome, usage) = match fork.run().await {
        Ok(forked) => (Ok(()), forked.usage),
        Err((error, usage)) => (Err(error), usage),
    };
    let after = now.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    let left_current_state = notes::left_current_state(&before, &after);
    Updated { outcome, usage, changed: after != before, left_current_state }
}

/// The notes after a call, if it is one that may run: an edit of this one file that keeps its form.
fn edited(text: &str, path: &Path, tool: &str, input: &serde_json::Value) -> Result<String, String> {
    let only = || format!("Only Edit on {} runs here.", path.display());
    if tool != "Edit" {
        return Err(only());
    }
    let input: EditInput = serde_json::from_value(input.clone()).map_err(|error| error.to_string())?;
    if Path::new(&input.file_path) != path {
        return Err(only());
    }
    let after = tools::edited(text, &input)?;
    notes::keeps_form(text, &after)?;
    Ok(after)
}
