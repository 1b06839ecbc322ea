//! Guarded paths that a command made in its sandbox: they stay if writing them would have been allowed, or are removed.

use std::path::Path;

use futures_util::future::BoxFuture;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tools::{Output, Scope, Tool, Write};
use transcript::Block;

use super::Driver;
use crate::agent::NOT_RUN;
use crate::permission::{Answer, Approver, Question};
use crate::sandbox::within;

/// How much of a new file is shown in a question.
const SHOWN: u64 = 64 * 1024;
/// How many files of a new folder.
const SHOWN_FILES: usize = 20;

impl Driver {
    /// Settles what becomes of the guarded paths that a command made, and tells the model.
    pub(super) async fn settle_made(
        &mut self,
        mut output: Output,
        scope: &Scope,
        cancel: &CancellationToken,
    ) -> Output {
        for path in std::mem::take(&mut output.made) {
            let input = json!({"file_path": path, "content": content(&path)});
            let approver = Aware(&*self.parts.approver);
            let tool: &dyn Tool = &Write;
            let answer = tokio::select! {
                biased;
                () = cancel.cancelled() => Answer::Deny { why: NOT_RUN.to_owned() },
                answer = self.parts.policy.judge(tool, &input, scope, &approver) => answer,
            };
            if let Answer::Always(rules) = &answer {
                self.always(rules);
            }
            let note = match answer {
                Answer::Allow | Answer::Always(_) | Answer::With { .. } => {
                    format!("[it made {}, which may stay]", path.display())
                }
                Answer::Deny { why } | Answer::Unanswered { why } => {
                    format!("[it made {}, {}: {why}]", path.display(), removed(&path, scope))
                }
            };
            output.content.push(Block::text(note));
        }
        output
    }
}

/// Removes a path from the working directory it lies in, and says what came of it.
fn removed(path: &Path, scope: &Scope) -> String {
    let Some((directory, inside)) = within(path, &scope.directories()) else {
        return "which is outside of the working directories and stays".to_owned();
    };
    match files::Root::open(&directory).and_then(|root| root.remove_tree(&inside)) {
        Ok(()) => "which was removed again".to_owned(),
        Err(error) => format!("which could not be removed ({error})"),
    }
}

/// What was made, to be read before the answer: the text of a file, or of each in a folder.
fn content(path: &Path) -> String {
    let text = |file: files::Snapshot| String::from_utf8_lossy(&file.bytes).into_owned();
    if let Ok(file) = files::read(path, SHOWN) {
        return text(file);
    }
    let Ok(folder) = files::Root::open(path) else { return String::new() };
    let found = folder.walk(|_| true).unwrap_or_default();
    let show = |found: &files::Found| {
        let inside = folder.read(&found.path, SHOWN).map(text).unwrap_or_else(|_| "(it cannot be shown)".to_owned());
        format!("{}:\n{inside}\n", found.path.display())
    };
    found.iter().take(SHOWN_FILES).map(show).collect()
}

/// The one who is asked, told that it has happened already.
struct Aware<'a>(&'a dyn Approver);

impl Approver for Aware<'_> {
    fn ask(&self, mut question: Question) -> BoxFuture<'_, Answer> {
        question.why = format!("a command made it in the sandbox: {}; if you say no, it is removed", question.why);
        self.0.ask(question)
    }
}
