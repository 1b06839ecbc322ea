//! Removing memories: with a reason, and never in favour of a memory that does not say what they said.

use std::path::Path;

use files::Stamp;
use memory::Memory;
use memory::changes::KeptChange;
use serde::{Deserialize, Serialize};
use tools::{Scope, Subject};

use super::{RemovedMemory, Saver, advice};

/// A removed memory, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Removal {
    /// The memory.
    pub path: String,
    /// The memory that takes its place; one of the user's shelf by its whole path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<String>,
    /// The reason.
    pub reason: String,
}

impl Saver {
    /// Removes a memory, for a reason.
    pub(crate) fn remove(&self, removal: Removal, scope: &Scope) -> Result<String, String> {
        let Removal { path, replaced_by, reason } = &removal;
        if reason.trim().is_empty() {
            return Err(format!("{path} was not removed: say in `reason` why it goes."));
        }
        if let Some(by) = replaced_by
            && (by == path || self.replacement(by).is_none())
        {
            return Err(format!("{path} was not removed: {by}, which is to replace it, is no other memory here."));
        }
        let seen = scope.seen(&self.directory.join(path));
        let before = self.before(path, seen.as_ref())?;
        self.may_change(path, before.as_deref())?;
        self.is_not_awaited(path, before.as_deref().unwrap_or_default(), replaced_by.as_deref())?;
        let said = self.discard(path, seen.as_ref(), replaced_by.clone())?;
        self.tally.lock().removals.push(removal);
        Ok(said)
    }

    /// The memory that a replacement's path names: one of this directory, or by its whole path one of the user's shelf.
    pub(crate) fn replacement_place(&self, subject: &Subject) -> Result<String, String> {
        let on_shelf = self.user_shelf.as_ref().and_then(|shelf| shelf.place(subject));
        on_shelf.map_or_else(|| self.place(subject), Ok)
    }

    /// The memory that is to replace another.
    pub(super) fn replacement(&self, by: &str) -> Option<Memory> {
        let on_shelf = self.user_shelf.as_ref().and_then(|shelf| shelf.read(by));
        on_shelf.or_else(|| Memory::read(self.store.root(), by).ok())
    }

    pub(super) fn discard(
        &self,
        path: &str,
        seen: Option<&Stamp>,
        replaced_by: Option<String>,
    ) -> Result<String, String> {
        let most = self.limits.removed;
        if self.tally.lock().removed.len() >= most {
            return Err(format!("{path} was not removed: at most {most} memories are removed in one run."));
        }
        let mut kept = None;
        let mut keep = |change: &KeptChange| {
            kept = Some(change.clone());
            self.keep(change)
        };
        self.store.discard(path, seen, &mut keep).map_err(|error| advice(&error))?;
        // The user's shelf says it already, so that no change of this run is awaited.
        let is_replaced = replaced_by.as_ref().is_some_and(|by| Path::new(by).is_absolute());
        let mut tally = self.tally.lock();
        let was_saved = tally.saved.iter().any(|saved| saved == path);
        self.gone.lock().extend(kept.map(|change| RemovedMemory { change, replaced_by, was_saved, is_replaced }));
        tally.removed.push(path.to_owned());
        tally.saved.retain(|saved| saved != path);
        Ok(format!("Removed {path}, and its line in the index."))
    }
}
