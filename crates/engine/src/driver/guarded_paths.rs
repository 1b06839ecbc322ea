//! Guarded paths that a command made in its sandbox: they stay if writing them would have been allowed, else they are
//! set aside.
//!
//! Nothing is removed: what a command moved into such a path existed before, and belongs to the user.

use std::path::Path;

use futures_util::future::BoxFuture;
use serde_json::json;
use settings::permission::{Approver, PermissionAnswer, Question};
use tokio_util::sync::CancellationToken;
use tools::sandbox::MadePath;
use tools::{Output, Scope, Tool, Write};
use transcript::Block;

use crate::event::Event;
use crate::gate::{Gate, GateSite};
use crate::run::NOT_RUN;

/// Folder within the session folder for paths set aside.
const KEPT: &str = "kept";
/// Bytes of a new file that are shown in a question.
const SHOWN: u64 = 64 * 1024;
/// Number of files of a new folder that are shown.
const SHOWN_FILES: usize = 20;

/// Settles the guarded paths that a command made, and tells the model.
pub(super) async fn settle(
    gate: &mut Gate,
    site: &GateSite<'_>,
    mut output: Output,
    cancel: &CancellationToken,
) -> Output {
    for made in std::mem::take(&mut output.made) {
        let path = &made.path;
        let input = json!({"file_path": path, "content": content(path)});
        let approver = AfterwardsApprover(&*gate.consent.approver);
        let tool: &dyn Tool = &Write;
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => PermissionAnswer::Deny { why: NOT_RUN.to_owned() },
            answer = gate.consent.policy.judge(tool, &input, site.scope, &approver) => answer,
        };
        if let PermissionAnswer::Always(rules) = &answer {
            gate.always(rules);
        }
        let note = match answer {
            PermissionAnswer::Allow | PermissionAnswer::Always(_) | PermissionAnswer::With { .. } => {
                format!("[it made {}, which may stay]", path.display())
            }
            PermissionAnswer::Deny { why } | PermissionAnswer::Unanswered { why } => {
                let became = set_aside(&made, site.scope);
                site.tell(Event::Warning(format!("a command made {}, {became}", path.display())));
                format!("[it made {}, {became}: {why}]", path.display())
            }
        };
        output.content.push(Block::text(note));
    }
    output
}

/// Moves a path to where nothing uses it, and describes the result.
fn set_aside(made: &MadePath, scope: &Scope) -> String {
    match files::exact::set_aside(&made.path, &made.identity, scope.temporary().join(KEPT)) {
        Ok(kept) => format!("which was moved to {}", kept.display()),
        Err(files::Error::NotFound { .. }) => "which is gone already".to_owned(),
        Err(files::Error::Changed { .. }) => "which is another one by now, and stays".to_owned(),
        Err(error) => format!("which could not be moved away ({error})"),
    }
}

/// Content to show in the question: the text of a file, or of each file in a folder.
fn content(path: &Path) -> String {
    let text = |file: files::Snapshot| String::from_utf8_lossy(&file.bytes).into_owned();
    if let Ok(file) = files::read(path, SHOWN) {
        return text(file);
    }
    let Ok(folder) = files::Root::open(path) else { return String::new() };
    let found = folder.walk(|_| true).unwrap_or_default();
    let show = |found: &files::WalkEntry| {
        let inside =
            folder.read(&found.path, SHOWN).map(text).unwrap_or_else(|_| "(it cannot be displayed)".to_owned());
        format!("{}:\n{inside}\n", found.path.display())
    };
    found.iter().take(SHOWN_FILES).map(show).collect()
}

/// An approver that says that the change has already happened.
struct AfterwardsApprover<'a>(&'a dyn Approver);

impl Approver for AfterwardsApprover<'_> {
    fn ask(&self, mut question: Question) -> BoxFuture<'_, PermissionAnswer> {
        if let Question::Call(call) = &mut question {
            call.why =
                format!("a command made it in the sandbox: {}; if you say no, it is moved away and kept", call.why);
        }
        self.0.ask(question)
    }
}
