//! Files that the user changes by hand while a session runs: instructions are read again and shown anew with the next
//! message, if the model was shown them; memories are ranked as they are now.

use std::path::{Path, PathBuf};

use memory::instructions::{LoadedInstruction, Reason, changed};
use session::LineMeta;
use transcript::{Injected, Purpose};

use super::{AttachedText, Knowledge};

impl Knowledge {
    /// Records that the user has changed or created a file.
    pub fn edited_by_hand(&mut self, path: &Path) {
        if self.is_memory(path) {
            self.recall.edited(path, self.instructions.working_directory(), self.world.now());
        }
        self.by_hand.push(path.to_owned());
    }

    /// Changed instructions for the model; none of those it was not shown yet.
    pub fn changed_by_hand(&mut self) -> Option<(Vec<LoadedInstruction>, AttachedText)> {
        let mut paths = std::mem::take(&mut self.by_hand);
        paths.retain(|path| !self.is_memory(path));
        if paths.is_empty() {
            return None;
        }
        self.instructions.reload(Reason::SessionStart);
        if self.attached.is_empty() {
            return None; // all of it stands at the beginning, which is still to come
        }
        for path in &paths {
            if !self.instructions.files.iter().any(|file| file.path == *path) {
                self.instructions.touched(path); // one of a folder that was touched before
            }
        }
        let files = self.instructions.files.iter().filter(|file| paths.contains(&file.path)).cloned();
        let files: Vec<LoadedInstruction> = files.collect();
        paths.retain(|path| files.iter().all(|file| file.path != *path));
        let shown: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
        self.attached.extend(shown.iter().cloned());
        let text = Injected::new(Purpose::Instructions, &changed(&files, &paths));
        Some((files, AttachedText { text, meta: LineMeta { instructions: shown, ..LineMeta::default() } }))
    }
}
