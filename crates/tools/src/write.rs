//! Write: a whole file, new or in place of one that was read.
//!
//! An existing file is overwritten only if its current state was seen: read before, and unchanged since. The new
//! content appears at once or not at all, at the path that was judged: a symlink put there meanwhile is not followed.

use std::path::{Path, PathBuf};

use files::Error;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use transcript::tool_names;

use crate::read::{WHOLE, explain};
use crate::run_calls::off_the_loop;
use crate::scope::Scope;
use crate::show;
use crate::subject::{Access, Subject};
use crate::tool::{Output, TypedTool};

/// Writes a whole file, making its directories where they are missing.
///
/// A file that exists must have been read before and be unchanged since. To change a part of a file, use Edit.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteInput {
    /// Its absolute path.
    pub file_path: String,
    /// Its whole new content.
    pub content: String,
}

/// Writes files.
#[derive(Debug, Clone, Copy)]
pub struct Write;

impl TypedTool for Write {
    type Input = WriteInput;
    const NAME: &'static str = tool_names::WRITE;
    const ACCESS: Access = Access::Changes;

    fn subject(&self, input: &WriteInput, scope: &Scope) -> Subject {
        scope.subject(&input.file_path)
    }

    fn changes(&self, input: &WriteInput, scope: &Scope) -> Option<PathBuf> {
        Some(scope.place(&input.file_path).1)
    }

    fn run(&self, input: WriteInput, scope: Scope) -> BoxFuture<'static, Output> {
        Box::pin(off_the_loop(move || {
            let (named, real) = scope.place(&input.file_path);
            write(&named, &real, &input.content, &scope).unwrap_or_else(|error| Output::failed(refusal(&error, &scope)))
        }))
    }
}

fn write(named: &Path, real: &Path, content: &str, scope: &Scope) -> Result<Output, Error> {
    let lines = show::count(show::lines(content), "line");
    let shown = named.display();
    let before = match files::exact::read(real, WHOLE) {
        Ok(before) => before,
        Err(Error::NotFound { .. }) => {
            scope.note(real, files::exact::create_new(real, content.as_bytes())?);
            return Ok(Output::done(format!("Created {shown} with {lines}."), format!("Created, {lines}"))
                .with_changed(named)
                .with_rewrite("", content));
        }
        Err(error) => return Err(error),
    };
    let Some(seen) = scope.seen(real) else {
        return Ok(Output::failed(format!("{shown} exists and has not been read. Read it before writing it.")));
    };
    let written = files::exact::replace_unchanged(real, content.as_bytes(), &seen)?;
    scope.note(real, written);
    let before = String::from_utf8_lossy(&before.bytes);
    let lines_before = show::lines(&before);
    Ok(Output::done(format!("Updated {shown}: {lines}, before {lines_before}."), format!("Updated, {lines}"))
        .with_changed(named)
        .with_rewrite(&before, content))
}

/// Error text for a file that could not be written.
pub(crate) fn refusal(error: &Error, scope: &Scope) -> String {
    match error {
        Error::Changed { path } => {
            format!("{} changed since it was read. Read it again, then decide anew.", path.display())
        }
        Error::Linked { .. } => format!("{error}. Nothing was changed."),
        Error::TooLarge { .. } => format!("{error}. Change it with Bash."),
        _ => explain(error, scope),
    }
}
