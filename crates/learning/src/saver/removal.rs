//! Removing memories: for a reason, and in favour of nothing that does not say what they said.

use files::Stamp;
use serde::{Deserialize, Serialize};
use tools::Scope;

use super::{Saver, advice};

/// A memory that was removed, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Removal {
    /// The memory.
    pub path: String,
    /// The memory that says now what it said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<String>,
    /// Why it went.
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
            && (by == path || memory::Memory::read(self.store.root(), by).is_err())
        {
            return Err(format!("{path} was not removed: {by}, which is to replace it, is no other memory here."));
        }
        if let Some(by) = replaced_by
            && self.unchanged.lock().remove(by)
        {
            return Err(format!(
                "{path} was not removed: your change of {by}, which is to replace it, was refused. Remove it only if {by} \
                 says all that still matters of it."
            ));
        }
        let seen = scope.seen(&self.directory.join(path));
        let before = self.before(path, seen.as_ref())?;
        self.may_change(path, before.as_deref())?;
        let said = self.discard(path, seen.as_ref())?;
        self.tally.lock().removals.push(removal);
        Ok(said)
    }

    pub(super) fn discard(&self, path: &str, seen: Option<&Stamp>) -> Result<String, String> {
        let most = self.limits.removed;
        if self.tally.lock().removed.len() >= most {
            return Err(format!("{path} was not removed: at most {most} memories are removed in one run."));
        }
        let mut keep = |change: &_| self.keep(change);
        self.store.discard(path, seen, &mut keep).map_err(|error| advice(&error))?;
        let mut tally = self.tally.lock();
        tally.removed.push(path.to_owned());
        tally.saved.retain(|saved| saved != path);
        Ok(format!("Removed {path}, and its line in the index."))
    }
}
