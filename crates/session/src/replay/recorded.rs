//! The recorded decisions of the layers before a request, and the answers they got.

use context::layer::LayerChange;
use context::spill;
use context::summary_text::{self, HistorySource};
use transcript::commit::{Act, Commit, Trigger};
use transcript::line::{Body, Line, TextSource};
use transcript::{Block, Id};

use crate::session::DROPPED;

/// True if layers made a commit; else the user or the provider did. What a compaction brings back is its maker's.
pub(super) fn is_by_layers(commit: &Commit, after_one_by_hand: bool) -> bool {
    match &commit.act {
        Act::Spill { .. } | Act::Clear { trigger: Trigger::Auto, .. } | Act::Compact { trigger: Trigger::Auto, .. } => {
            true
        }
        Act::Collapse { .. } | Act::CacheEdit { .. } => true,
        Act::Snip { .. } => commit.reason.why.as_deref() != Some(DROPPED),
        Act::Restore { .. } => !after_one_by_hand,
        _ => false,
    }
}

/// The decisions of the layers before one request.
#[derive(Default)]
pub(super) struct RecordedRound {
    /// Their acts in order, each with the summary that follows it.
    pub(super) acts: Vec<(Act, Option<String>)>,
    /// The digest before a clearing, if there was one.
    pub(super) digest: Option<Option<String>>,
    /// The restored files.
    pub(super) restore: Option<LayerChange>,
    names: Vec<(Act, Id)>,
}

impl RecordedRound {
    /// Reads it off the lines up to the next request, refusal, or word of the user.
    pub(super) fn of(rest: &[Line]) -> Self {
        let mut round = Self::default();
        let mut by_hand = false;
        for line in rest {
            match &line.body {
                Body::Assistant { .. } | Body::User { source: TextSource::Direct, .. } => break,
                Body::Meta(_) if matches!(context::Fact::of(line), Some(context::Fact::Refused { .. })) => break,
                Body::User { blocks, source: TextSource::Summary } if !by_hand => {
                    if let Some((Act::Compact { .. }, summary @ None)) = round.acts.last_mut() {
                        *summary = blocks.iter().find_map(Block::as_text);
                    }
                }
                Body::Commit(commit) if is_by_layers(commit, by_hand) => round.take(line, commit),
                Body::Commit(commit) => by_hand |= matches!(commit.act, Act::Compact { .. }),
                _ => {}
            }
        }
        round
    }

    fn take(&mut self, line: &Line, commit: &Commit) {
        match &commit.act {
            Act::Clear { digest, .. } => self.digest = Some(digest.clone()),
            Act::Restore { .. } => self.restore = Some(LayerChange::of(commit.clone())),
            _ => {}
        }
        self.names.extend(line.id.clone().map(|id| (commit.act.clone(), id)));
        self.acts.push((commit.act.clone(), None));
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        self.acts.iter().filter_map(|(act, summary)| match act {
            Act::Collapse { summary, .. } => Some(summary.as_str()),
            _ => summary.as_deref(),
        })
    }

    /// A summary that was written.
    pub(super) fn summary(&self) -> Option<&str> {
        self.texts().find(|text| summary_text::made_of(text) != Some(HistorySource::Notes))
    }

    /// Notes that took the place of one.
    pub(super) fn notes(&self) -> Option<&str> {
        self.texts().find(|text| summary_text::made_of(text) == Some(HistorySource::Notes))
    }

    /// The file to which a result was spilled.
    pub(super) fn place_of(&self, id: &str) -> Option<Result<String, String>> {
        self.acts.iter().find_map(|(act, _)| match act {
            Act::Spill { replacements } => {
                let one = replacements.iter().find(|one| one.call.id == id)?;
                Some(spill::place_in(&one.replacement))
            }
            _ => None,
        })
    }

    /// The name that a commit has in the record.
    pub(super) fn name_of(&self, act: &Act) -> Option<Id> {
        self.names.iter().find(|(known, _)| known == act).map(|(_, id)| id.clone())
    }
}
