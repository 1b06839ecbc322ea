//! Write and Edit of an agent that nobody watches: whole memories, through the one way to remember.
//!
//! To the model they are the tools it knows. What exists has to have been read and be unchanged since; an empty text removes
//! a memory. Every refusal says what would be right.

use std::sync::Arc;

use files::Stamp;
use futures_util::future::BoxFuture;
use memory::Error;
use tools::{Access, EditInput, Output, Scope, Subject, Typed, WriteInput};
use transcript::tool_names;

use super::Restricted;

/// The largest memory that is edited.
const LIMIT: u64 = 1024 * 1024;

/// Writes memories.
pub(super) struct Write(pub(super) Arc<Restricted>);

/// Edits memories.
pub(super) struct Edit(pub(super) Arc<Restricted>);

impl Typed for Write {
    type Input = WriteInput;
    const NAME: &'static str = tool_names::WRITE;

    fn access(&self, _: &WriteInput) -> Access {
        Access::Changes
    }

    fn subject(&self, input: &WriteInput, scope: &Scope) -> Subject {
        scope.subject(&input.file_path)
    }

    fn run(&self, input: WriteInput, scope: Scope) -> BoxFuture<'static, Output> {
        let restricted = self.0.clone();
        let save = move || {
            let subject = scope.subject(&input.file_path);
            restricted.answered(|| restricted.save(&subject, |_| Ok(input.content.clone()), &scope))
        };
        Box::pin(off_the_loop(save))
    }
}

impl Typed for Edit {
    type Input = EditInput;
    const NAME: &'static str = tool_names::EDIT;

    fn access(&self, _: &EditInput) -> Access {
        Access::Changes
    }

    fn subject(&self, input: &EditInput, scope: &Scope) -> Subject {
        scope.subject(&input.file_path)
    }

    fn run(&self, input: EditInput, scope: Scope) -> BoxFuture<'static, Output> {
        let restricted = self.0.clone();
        let save = move || {
            let subject = scope.subject(&input.file_path);
            let text = |before: Option<&str>| match before {
                None if input.old_string.is_empty() => Ok(input.new_string.clone()),
                None => Err("There is no such memory. Write makes a new one.".to_owned()),
                Some(before) => tools::edited(before, &input),
            };
            restricted.answered(|| restricted.save(&subject, text, &scope))
        };
        Box::pin(off_the_loop(save))
    }
}

impl Restricted {
    /// What is answered to a write.
    fn answered(&self, save: impl FnOnce() -> Result<String, String>) -> Output {
        match save() {
            Ok(said) => Output::done(&said, said.clone()),
            Err(why) => {
                self.refused(Access::Changes);
                Output::failed(why)
            }
        }
    }

    /// Saves what becomes of a memory, whose text before is given.
    fn save(
        &self,
        subject: &Subject,
        text: impl FnOnce(Option<&str>) -> Result<String, String>,
        scope: &Scope,
    ) -> Result<String, String> {
        let path = self.place(subject)?;
        let file = self.directory.join(&path);
        let seen = scope.seen(&file);
        let before = self.before(&path, seen.as_ref())?;
        let text = text(before.as_deref())?;
        if before.is_some() && text.trim().is_empty() {
            return self.discard(&path, seen.as_ref());
        }
        self.within_limits(&path, text.len())?;
        if self.ground.injected.is_echoed_by(&said(&text), &before.as_deref().map(said).unwrap_or_default()) {
            return Err(format!(
                "{path} was not saved: it says again what was put before you (a file, a memory, a tool's output), and no \
                 memory is made from that. Keep only what the user said, or what came out of the work, in your own words."
            ));
        }
        let mut keep = |change: &_| self.keep(change);
        let revised = self.store.revise(&path, &text, seen.as_ref(), &self.origin(), Some(&self.tree), &mut keep);
        let revised = revised.map_err(|error| advice(&error))?;
        scope.note(&file, revised.stamp);
        let mut tally = self.tally.lock();
        tally.bytes += text.len();
        if !tally.saved.contains(&path) {
            tally.saved.push(path.clone());
        }
        let warnings: String = revised.saved.warnings.iter().map(|warning| format!("\n{warning}")).collect();
        Ok(format!("Saved {path}, and its line in the index.{warnings}"))
    }

    /// What a memory says, if it is what was read.
    fn before(&self, path: &str, seen: Option<&Stamp>) -> Result<Option<String>, String> {
        let file = match self.store.root().read(path, LIMIT) {
            Err(files::Error::NotFound { .. }) => return Ok(None),
            file => file.map_err(|error| format!("{error}."))?,
        };
        let same = seen.is_some_and(|seen| seen.same_content(&file.stamp));
        let unread = || match seen {
            Some(_) => advice(&files::Error::Changed { path: self.directory.join(path) }.into()),
            None => advice(&Error::Unseen { path: path.to_owned() }),
        };
        let text = String::from_utf8(file.bytes).map_err(|_| format!("{path} is not UTF-8 text; it stays as it is."));
        if same { text.map(Some) } else { Err(unread()) }
    }

    fn discard(&self, path: &str, seen: Option<&Stamp>) -> Result<String, String> {
        let most = self.ground.limits.removed;
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

    fn within_limits(&self, path: &str, bytes: usize) -> Result<(), String> {
        let (tally, limits) = (self.tally.lock(), self.ground.limits);
        if tally.bytes + bytes > limits.bytes {
            return Err(format!(
                "{path} was not saved: at most {} bytes are written in one run. Stop here.",
                limits.bytes
            ));
        }
        if tally.saved.len() >= limits.files && !tally.saved.iter().any(|saved| saved == path) {
            return Err(format!("{path} was not saved: at most {} memories are written in one run.", limits.files));
        }
        Ok(())
    }
}

/// What a memory says: its description and its text.
fn said(text: &str) -> String {
    let memory = memory::Memory::parse("", text.as_bytes(), None, text.len() as u64);
    format!("{}\n{}", memory.description.unwrap_or_default(), memory.body)
}

/// An error, with what to do about it.
fn advice(error: &Error) -> String {
    let hint = match error {
        Error::Secret { .. } => "Write where it is kept, never the secret itself",
        Error::Known { .. } => "Read that one, and change it if something is new",
        Error::Unseen { .. } => "Read it before you change it",
        Error::Files(files::Error::Changed { .. }) => "Read it again, then decide anew",
        Error::Files(files::Error::Linked { .. }) => "Links are not followed",
        _ => return format!("{error}."),
    };
    format!("{error}. {hint}.")
}

/// Runs work that waits for the disk where it holds up nobody.
async fn off_the_loop(work: impl FnOnce() -> Output + Send + 'static) -> Output {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Output::failed("It broke down, and nothing was saved."))
}
