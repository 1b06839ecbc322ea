//! `Remove`: how a dream removes a memory. It says why, and what takes its place, so that the user can judge it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use tools::{Access, Output, Scope, Subject, TypedTool};

use crate::saver::{Removal, Saver};
use crate::saving::{answered, off_the_loop};

/// The name the model calls it by.
pub(super) const NAME: &str = "Remove";

/// Removes a memory, with its line in the index. It has to have been read, and the user can take it back.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RemoveInput {
    /// The file of the memory.
    file_path: String,
    /// The file of the memory that says now what this one said, if one does.
    #[serde(default)]
    replaced_by: Option<String>,
    /// Why it goes, in a sentence for the user, such as `The freeze was over on 2026-11-10.`
    reason: String,
}

/// Removes memories.
pub(super) struct Remove(pub(super) Arc<Saver>);

impl TypedTool for Remove {
    type Input = RemoveInput;
    const NAME: &'static str = NAME;

    fn access(&self, _: &RemoveInput) -> Access {
        Access::Changes
    }

    fn subject(&self, input: &RemoveInput, scope: &Scope) -> Subject {
        scope.subject(&input.file_path)
    }

    fn run(&self, input: RemoveInput, scope: Scope) -> BoxFuture<'static, Output> {
        let saver = self.0.clone();
        let remove = move || {
            answered(&saver, || {
                let subject = scope.subject(&input.file_path);
                let by = input.replaced_by.as_deref().map(str::trim).filter(|path| !path.is_empty());
                // The scope of a call stands for the one file that it is about.
                let other = scope.clone().for_call(&Subject::Whole);
                let replaced_by = by.map(|path| saver.replacement_place(&other.subject(path))).transpose()?;
                let removal = Removal { path: saver.place(&subject)?, replaced_by, reason: input.reason.clone() };
                saver.remove(removal, &scope)
            })
        };
        Box::pin(off_the_loop(remove))
    }
}
