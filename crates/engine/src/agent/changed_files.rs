//! Notices of files that changed after the model had read or written them: by the user, another program, or a command.
//!
//! They come with the user's next words, once for each change. Only names are told: what a file says now, the model reads
//! if it needs to.

use std::collections::HashMap;
use std::path::PathBuf;

use session::Error;
use transcript::Purpose;

use crate::live::LiveSession;

/// The most files that are named at once; a change of branch changes hundreds.
const MOST_NAMED: usize = 20;

/// The notices of a session.
#[derive(Debug, Default)]
pub(super) struct ChangedFiles {
    /// The content, as the model knew it, whose change was told.
    reported: HashMap<PathBuf, blake3::Hash>,
}

impl ChangedFiles {
    /// Names the files that changed since the model saw them, where that was not told yet.
    pub(super) fn tell(&mut self, live: &mut LiveSession) -> Result<(), Error> {
        let mut changed = live.scope.changed_files();
        changed.retain(|(path, known)| self.reported.insert(path.clone(), known.hash) != Some(known.hash));
        if changed.is_empty() {
            return Ok(());
        }
        let line = |path: &PathBuf| {
            let gone = if path.exists() { "" } else { " (gone)" };
            // A name is what somebody chose, on one line.
            let name = live.scope.shown(path).replace(char::is_control, " ");
            format!("- {}{gone}", memory::quoting::quoted(&name))
        };
        let mut lines: Vec<String> = changed.iter().take(MOST_NAMED).map(|(path, _)| line(path)).collect();
        if changed.len() > MOST_NAMED {
            lines.push(format!("- and {} more", changed.len() - MOST_NAMED));
        }
        let text = format!(
            "These files have changed since you read or wrote them. The change may be the user's: keep it. Read a file again \
             before you rely on it.\n{}",
            lines.join("\n")
        );
        live.inject(Purpose::ChangedFiles, &text)
    }
}
