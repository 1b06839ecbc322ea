//! Removed memories that a refused change was to replace: they are put back, and nothing is removed for a change that was
//! refused. It knows a memory by the path that was to replace it and by its words; one that was reworded under another
//! path is not recognised.

use memory::changes::KeptChange;
use memory::similarity;
use tools::Scope;

use super::{CONVERSATION, Saver, description_and_body};

/// The refusal of a change, with its reason.
pub(super) struct SaveRefusal {
    pub(super) why: String,
    /// True if another memory says it already, so that nothing is lost with the change.
    pub(super) is_known: bool,
}

impl From<String> for SaveRefusal {
    fn from(why: String) -> Self {
        Self { why, is_known: false }
    }
}

/// A change that was refused: the memory, if the path was that of one, and the new text.
pub(super) struct RefusedChange {
    path: Option<String>,
    text: String,
    /// True if the memory was changed since. It may not say all that this change would have said.
    is_made: bool,
    /// Memories that were not removed for it, which the model has heard.
    heard: Vec<String>,
}

/// A memory that was removed in this run.
pub(super) struct RemovedMemory {
    pub(super) change: KeptChange,
    pub(super) replaced_by: Option<String>,
    /// True if it was made or changed in this run.
    pub(super) was_saved: bool,
    /// True if its replacement was changed since. That may say the same in other words.
    pub(super) is_replaced: bool,
}

impl RemovedMemory {
    /// True if a change was meant to say what this memory said.
    fn is_in(&self, path: Option<&str>, text: &str) -> bool {
        let by_path = !self.is_replaced && path.is_some_and(|path| self.is_for(path));
        by_path || sentences(&self.body()).any(|sentence| similarity::holds(text, sentence))
    }

    fn is_for(&self, path: &str) -> bool {
        self.change.path == path || self.replaced_by.as_deref() == Some(path)
    }

    fn body(&self) -> String {
        body_of(self.change.before.as_deref().unwrap_or_default())
    }
}

/// The sentences of a text.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split(['.', '!', '?', '\n', '。']).filter(|sentence| sentence.chars().any(char::is_alphanumeric))
}

/// True if a text contains each sentence of another.
fn holds_all(text: &str, other: &str) -> bool {
    sentences(other).all(|sentence| similarity::holds(text, sentence))
}

/// The body of a memory, without its description.
fn body_of(text: &str) -> String {
    memory::Memory::parse("", text.as_bytes(), None, text.len() as u64).body
}

impl Saver {
    /// True if somebody sees each change and can object. Then nothing is put back.
    fn is_watched(&self) -> bool {
        self.author.agent == CONVERSATION
    }

    /// A change was made: what was removed for it has its place.
    pub(super) fn replaced(&self, path: &str, text: &str) {
        let mut gone = self.gone.lock();
        gone.retain(|removed| !holds_all(text, &removed.body()));
        gone.iter_mut().filter(|removed| removed.is_for(path)).for_each(|removed| removed.is_replaced = true);
        let mut unchanged = self.unchanged.lock();
        unchanged.retain(|refused| !holds_all(text, &body_of(&refused.text)));
        let same = unchanged.iter_mut().filter(|refused| refused.path.as_deref() == Some(path));
        same.for_each(|refused| refused.is_made = true);
    }

    /// A change was refused: what was removed for it is put back. Returns what the model is told.
    pub(crate) fn refuse_change(&self, path: Option<&str>, text: &str, scope: &Scope) -> String {
        self.note_refusal(path, text);
        let mut back = self.put_back(|removed| removed.is_in(path, text), Some(scope));
        if let Some(user) = &self.user {
            back.extend(user.put_back(|removed| removed.is_in(None, text), Some(scope)));
        }
        back.iter().map(|path| format!(" {path} was put back, which you removed before.")).collect()
    }

    pub(super) fn note_refusal(&self, path: Option<&str>, text: &str) {
        let mut unchanged = self.unchanged.lock();
        unchanged.push(RefusedChange {
            path: path.map(str::to_owned),
            text: text.to_owned(),
            is_made: false,
            heard: Vec::new(),
        });
    }

    /// The run ended before its time: what was removed for a change that never came is put back.
    pub(crate) fn put_back_unreplaced(&self) {
        self.put_back(|removed| removed.replaced_by.is_some() && !removed.is_replaced, None);
    }

    /// Puts back what was removed in this run, and what was removed in favour of that. Returns the paths.
    fn put_back(&self, is_it: impl Fn(&RemovedMemory) -> bool, scope: Option<&Scope>) -> Vec<String> {
        let mut back: Vec<String> = Vec::new();
        if self.is_watched() {
            return back;
        }
        loop {
            let mut gone = self.gone.lock();
            let follows = |by: &Option<String>| by.as_ref().is_some_and(|by| back.contains(by));
            let Some(at) = gone.iter().position(|removed| is_it(removed) || follows(&removed.replaced_by)) else {
                return back;
            };
            let removed = gone.remove(at);
            drop(gone);
            let path = removed.change.path.clone();
            let mut keep = |change: &KeptChange| self.keep(change);
            // What the user wants forgotten stays removed, and what is there by now stays.
            let Ok(stamp) = self.store.put_back(&removed.change, &mut keep) else { continue };
            if let Some(scope) = scope {
                scope.note(&self.directory.join(&path), stamp);
            }
            let mut tally = self.tally.lock();
            tally.removed.retain(|gone| *gone != path);
            tally.removals.retain(|removal| removal.path != path);
            if removed.was_saved {
                tally.saved.push(path.clone());
            }
            back.push(path);
        }
    }

    /// Fails for a memory that a refused change was to replace, unless the model has heard of that or what replaces the
    /// memory holds its text.
    pub(super) fn is_not_awaited(&self, path: &str, before: &str, replaced_by: Option<&str>) -> Result<(), String> {
        if self.is_watched() {
            return Ok(());
        }
        let body = body_of(before);
        if let Some(by) = replaced_by
            && self.replacement(by).is_some_and(|by| holds_all(&by.body, &body))
        {
            return Ok(());
        }
        let awaited = |refused: &&mut RefusedChange| match (replaced_by, refused.path.as_deref()) {
            _ if refused.heard.iter().any(|heard| heard == path) => false,
            (Some(by), Some(changed)) if by == changed && !refused.is_made => true,
            (_, Some(changed)) if changed == path => false, // a change of the memory itself
            _ => sentences(&body).any(|sentence| similarity::holds(&description_and_body(&refused.text), sentence)),
        };
        let mut unchanged = self.unchanged.lock();
        let Some(refused) = unchanged.iter_mut().find(awaited) else { return Ok(()) };
        refused.heard.push(path.to_owned());
        let by = replaced_by.or(refused.path.as_deref()).unwrap_or("another file");
        Err(format!(
            "{path} was not removed: your change of {by}, which is to replace it, was refused. Remove it only if {by} says \
             all that still matters of it."
        ))
    }
}

#[cfg(test)]
mod tests;
