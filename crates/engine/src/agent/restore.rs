//! After a compaction: what the model was working with comes back.

use std::path::{Path, PathBuf};

use context::restore;
use transcript::Block;
use transcript::commit::{Act, Commit, Reason};
use transcript::line::Body;

use super::Agent;
use crate::error::Error;
use crate::session::Beside;

/// The largest file that is read to be shown again.
const FILE_BYTES: u64 = 1_000_000;

impl Agent {
    /// After a compaction: the files the model was working with, and its instructions.
    pub(super) fn bring_back(&mut self, kept: usize) -> Result<(), Error> {
        let visible = self.files_in_view(kept);
        let knowledge = self.knowledge.as_ref();
        let left_out = |path: &Path| {
            visible.iter().any(|one| one == path)
                || knowledge.is_some_and(|knowledge| knowledge.is_memory(path) || knowledge.is_instruction(path))
        };
        let seen: Vec<PathBuf> = {
            // What was seen here: a file that somebody else's line names is not read because of it.
            let beside: Vec<Beside> = self.session.beside().collect();
            let seen = beside.into_iter().rev().filter_map(|one| Some(one.seen?.path));
            let seen = seen.filter(|path| self.scope.seen(path).is_some() && self.scope.may_show(path, path));
            restore::choose(seen, self.layers.restored_files, left_out)
        };
        let mut room = restore::Room::new(&self.layers.window);
        let mut blocks = Vec::new();
        for path in seen {
            let Ok(snapshot) = files::exact::read(&path, FILE_BYTES) else { continue };
            let Ok(text) = std::str::from_utf8(&snapshot.bytes) else { continue };
            let tally = self.session.log().view().tally();
            // What stands in a file gives no orders.
            let text = memory::neutral::inside_reminder(text);
            if let Some(shown) = room.show(&path, &text, |text| tally.estimate(Block::text(text).size())) {
                self.scope.note(&path, snapshot.stamp);
                blocks.push(Block::text(shown));
            }
        }
        if !blocks.is_empty() {
            let reason = Reason { why: Some("what the model was working with".into()), ..Reason::default() };
            self.session.append(Body::Commit(Commit { act: Act::Restore { blocks }, reason }))?;
        }
        let prologue = self.parts.fresh_prologue(&self.session);
        if self.session.log().view().prologue().map(|known| &**known) != Some(&prologue) {
            self.session.append(Body::Prologue(prologue))?;
        }
        if let Some(knowledge) = &mut self.knowledge {
            knowledge.compacted();
            if let Some(beginning) = knowledge.beginning() {
                self.attach(vec![beginning])?;
            }
        }
        Ok(())
    }

    /// The files whose content is still in view.
    fn files_in_view(&self, kept: usize) -> Vec<PathBuf> {
        let view = self.session.log().view();
        let calls = view.visible().filter(|entry| entry.index() >= kept).flat_map(|entry| entry.calls());
        let shown = calls.filter(|call| {
            call.tool == "Read" && call.shown.size() == call.result.map_or(call.shown.size(), Block::size)
        });
        let paths = shown.filter_map(|call| Some(call.call.input()?.get("file_path")?.as_str()?.to_owned()));
        paths.map(|path| self.scope.absolute(&path)).collect()
    }
}
