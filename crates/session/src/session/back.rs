//! Taking back, and dropping, by hand: commits like all others.

use std::collections::HashSet;

use transcript::Id;
use transcript::commit::{Act, Commit, Reason};
use transcript::line::{Body, Line, TextSource};
use transcript::view::ViewEntry;
use transcript::window::Window;

use super::Session;
use super::line_meta::meta_of;
use crate::error::Error;

/// Why messages are dropped that the user wants dropped.
pub(crate) const DROPPED: &str = "the user dropped it";

fn is_restore(line: &Line) -> bool {
    matches!(&line.body, Body::Commit(Commit { act: Act::Restore { .. }, .. }))
}

impl Session {
    /// Takes back a commit: the view is again what it would be without it. Refused where that would not fit the window.
    pub fn undo(&mut self, commit: &Id, window: &Window) -> Result<(), Error> {
        if !self.log.view().counts(commit) {
            return Err(Error::NothingToUndo { commit: commit.to_string() });
        }
        let body = Body::Commit(Commit { act: Act::Undo { commit: commit.clone() }, reason: Reason::default() });
        // Tried on a copy: what does not fit is never written.
        let mut trial = self.log.clone();
        trial.append(Line::new(self.world.fresh_id(), trial.tip().cloned(), self.world.now(), body.clone()));
        let (tokens, before) = (trial.view().tally().count(), self.log.view().tally().count());
        if tokens > window.effective && tokens > before {
            return Err(Error::WouldNotFit { tokens, window: window.effective });
        }
        // First what it brought back: the newest decision is then the one that was asked for, and can be undone again.
        for restored in self.restored_after(commit) {
            let act = Act::Undo { commit: restored };
            self.append(Body::Commit(Commit { act, reason: Reason::default() }))?;
        }
        self.append(body)?;
        Ok(())
    }

    /// Texts that a compaction restored: after undoing it they would be there twice.
    fn restored_after(&self, compaction: &Id) -> Vec<Id> {
        let lines = self.log.lines();
        let Some(at) = lines.iter().position(|line| line.id.as_ref() == Some(compaction)) else { return Vec::new() };
        let is_compaction =
            |line: &Line| matches!(&line.body, Body::Commit(one) if matches!(one.act, Act::Compact { .. }));
        if !is_compaction(&lines[at]) {
            return Vec::new();
        }
        let until_next = lines[at + 1..].iter().take_while(|line| {
            !is_compaction(line)
                && !matches!(line.body, Body::Assistant { .. } | Body::User { source: TextSource::Direct, .. })
        });
        let restored = until_next.filter(|line| is_restore(line)).filter_map(|line| line.id.clone());
        restored.filter(|id| self.log.view().counts(id)).collect()
    }

    /// Drops what was said before a line from the view; a marker stands there. The newest reply and all after it stay,
    /// and so do instructions. Says how many messages were dropped.
    pub fn snip_before(&mut self, line: &Id) -> Result<usize, Error> {
        let view = self.log.view();
        let newest = view.visible().rev().find(|entry| entry.is_reply()).map_or(0, |entry| entry.index());
        let end = view.item_of(line).unwrap_or(0).min(newest);
        let (mut instructions, mut attached) = (HashSet::new(), HashSet::new());
        for line in self.log.lines().iter().filter(|line| matches!(line.body, Body::Attachment { .. })) {
            attached.extend(&line.id);
            if meta_of(line).is_some_and(|beside| !beside.instructions.is_empty() || beside.agents.is_some()) {
                instructions.extend(&line.id);
            }
        }
        let goes =
            |entry: &ViewEntry<'_>| entry.is_original() && entry.index() < end && !instructions.contains(entry.line());
        let dropped: Vec<_> = view.visible().filter(goes).collect();
        let (Some(first), Some(last)) = (dropped.first(), dropped.last()) else { return Ok(0) };
        let count = dropped.iter().filter(|entry| !attached.contains(entry.line())).count();
        if count == 0 {
            return Ok(0);
        }
        let uuids = dropped.iter().map(|entry| entry.line().clone()).collect();
        let freed = view.tally().estimate(dropped.iter().map(|entry| entry.size()).sum());
        let marker = format!(
            "[{count} messages were dropped here as the user wished. The History tool shows them: {} … {}]",
            first.line(),
            last.line()
        );
        let why = Some(DROPPED.to_owned());
        let reason = Reason { freed: Some(freed), changes_from: None, why };
        self.append(Body::Commit(Commit { act: Act::Snip { uuids, marker }, reason }))?;
        Ok(count)
    }

    /// The newest commit that counts and can be taken back. What a compaction brings back is a part of it.
    pub fn newest_commit(&self) -> Option<Id> {
        // What a compaction brought back goes with it.
        let commits = self.log.lines().iter().rev();
        let commits = commits.filter(|line| matches!(&line.body, Body::Commit(_)) && !is_restore(line));
        let counting = commits.filter_map(|line| line.id.as_ref()).find(|id| self.log.view().counts(id));
        counting.cloned()
    }
}
