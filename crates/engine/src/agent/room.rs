//! Making room before a request: the layers, the cheapest first.

use context::breaks::{Cause, Declared};
use context::compact;
use context::micro;
use provider::Error as ProviderError;
use tokio_util::sync::CancellationToken;
use transcript::commit::{Act, Commit, Reason, Trigger};
use transcript::line::Body;
use transcript::{Reply, Request};

use super::Agent;
use super::compact::Occasion;
use crate::error::Error;
use crate::event::Event;
use crate::layers::{Fact, MOST_ATTEMPTS, MOST_FAILURES, cost, rates};

/// Whether the next request can be sent.
pub(super) enum Room {
    /// It can.
    Enough,
    /// It cannot, and this is why.
    None(String),
    /// The user stopped it.
    Cancelled,
}

impl Agent {
    /// Makes room for the next request.
    pub(super) async fn make_room(&mut self, cancel: &CancellationToken) -> Result<Room, Error> {
        self.take_in_notes().await?;
        self.spill()?;
        let cleared = self.clear()?;
        let count = self.session.log().view().tally().count();
        if let Some(why) = self.alone_too_large() {
            return Ok(Room::None(why));
        }
        let due = compact::is_due(count, &self.layers.window, self.layers.auto_compact);
        let cheaper = || compact::pays(self.session.log().view(), &self.state.pace, rates(&self.layers, self.ttl));
        // Right after clearing, the cache holds little of what a summary would have to read.
        let economy = self.layers.when == micro::When::Economy && self.may_compact() && !cleared;
        let occasion = match economy.then(cheaper).flatten() {
            _ if due => Some(Occasion::Due),
            Some(sum) => Some(Occasion::Cheaper(sum)),
            None => None,
        };
        if let Some(occasion) = occasion {
            if self.may_compact() && !self.try_to_compact(&occasion, cancel).await? {
                return Ok(Room::Cancelled);
            }
            self.last_resort()?;
        }
        self.keep_notes();
        Ok(self.blocked())
    }

    /// Whether a compaction may still be tried by itself.
    pub(super) fn may_compact(&self) -> bool {
        self.state.failures < MOST_FAILURES && self.state.attempts < MOST_ATTEMPTS
    }

    /// One attempt; says false when the user stopped it.
    pub(super) async fn try_to_compact(
        &mut self,
        occasion: &Occasion,
        cancel: &CancellationToken,
    ) -> Result<bool, Error> {
        match self.attempt(occasion, cancel).await? {
            super::compact::Attempt::Made => {}
            super::compact::Attempt::Cancelled => return Ok(false),
            super::compact::Attempt::Failed(why) => self.compaction_failed(why)?,
        }
        Ok(true)
    }

    pub(super) fn compaction_failed(&mut self, why: String) -> Result<(), Error> {
        (self.listener)(Event::CompactionFailed { why: why.clone() });
        self.record(Fact::CompactionFailed { why })?;
        if self.state.failures >= MOST_FAILURES && !self.state.told {
            self.record(Fact::CompactionStopped)?;
            (self.listener)(Event::Warning(format!(
                "{MOST_FAILURES} compactions in a row failed: none will be tried by itself any more. /compact still works."
            )));
        }
        Ok(())
    }

    /// Clears old results, if that is worth it; says whether it was.
    fn clear(&mut self) -> Result<bool, Error> {
        let now = self.session.world().now();
        let idle = self.state.replied_at.map(|at| now.duration_since(at));
        let situation = self.layers.situation(idle, &self.state.pace, self.ttl);
        let Some(clear) = micro::decide(self.session.log().view(), &situation) else { return Ok(false) };
        let (results, freed) = (clear.results.len(), clear.freed);
        let act = Act::Clear { results: clear.results, trigger: Trigger::Auto, digest: None };
        let reason =
            Reason { freed: Some(freed), changes_from: Some(clear.changes_from), why: Some(clear.why.clone()) };
        self.session.append(Body::Commit(Commit { act, reason }))?;
        (self.listener)(Event::Cleared { results, freed, why: clear.why });
        Ok(true)
    }

    /// The newest commit changes what was sent, on purpose, for a reason its kind does not tell.
    pub(super) fn declare(&mut self, what: &str) {
        let commit = self.session.log().lines().last().and_then(|line| line.id.clone());
        self.state.detector.declare(Declared { commit, what: what.to_owned() });
    }

    /// Commits since the last reply, whoever made them, that change what was sent.
    fn declare_commits(&mut self) {
        let lines = self.session.log().lines();
        for line in lines.get(self.state.accounted..).unwrap_or_default() {
            if let Body::Commit(commit) = &line.body
                && changes_what_was_sent(&commit.act)
            {
                let what = commit.act.name().to_owned();
                self.state.detector.declare(Declared { commit: line.id.clone(), what });
            }
        }
        self.state.accounted = lines.len();
    }

    /// Writes a fact into the log, and takes it in.
    pub(super) fn record(&mut self, fact: Fact) -> Result<(), Error> {
        let rates = rates(&self.layers, self.ttl);
        self.state.learn(&fact, rates);
        self.session.note(&serde_json::to_value(fact).unwrap_or_default())
    }

    /// A reply came: what it cost, and whether the cache held.
    pub(super) fn account(&mut self, request: Request, reply: &Reply) -> Result<(), Error> {
        let now = self.session.world().now();
        let calls = reply.blocks.iter().filter(|block| matches!(block.kind(), transcript::block::Kind::ToolUse { .. }));
        let cost = cost(Some(&reply.usage), rates(&self.layers, self.ttl));
        self.state.replied(Some(now), true, calls.count(), cost);
        if reply.remarks.cleared_results > 0 {
            let act = Act::ServerEdit { cleared_results: reply.remarks.cleared_results };
            let (freed, why) = (Some(reply.remarks.cleared_tokens), Some("the provider left them out".to_owned()));
            self.session.append(Body::Commit(Commit { act, reason: Reason { freed, changes_from: None, why } }))?;
        }
        self.declare_commits();
        let Some(broke) = self.state.detector.answered(request, &reply.usage, self.ttl, now) else { return Ok(()) };
        let (expected, read, declared) = (broke.expected, broke.read, broke.is_declared());
        (self.listener)(Event::CacheBroke(broke.clone()));
        let told = reply.remarks.cache_miss.as_ref().map(|told| format!(" (the provider says: {told})"));
        let cause = broke.cause.to_string() + &told.unwrap_or_default();
        let commit = match broke.cause {
            Cause::Commit { commit, .. } => commit,
            _ => None,
        };
        self.record(Fact::CacheBreak { expected, read, cause, declared, commit })
    }

    /// What stands before the messages, where that alone is more than the window holds.
    fn alone_too_large(&self) -> Option<String> {
        let prologue = self.session.log().view().prologue()?;
        let tokens = self.session.log().view().tally().of_prologue(prologue);
        let window = self.layers.window.effective;
        (tokens >= window).then(|| {
            format!(
                "the system prompt and the tools alone have about {tokens} tokens, and the window holds {window}: offer \
                 fewer tools, shorten the system prompt, or choose a model with a larger window"
            )
        })
    }

    /// With nothing that makes room by itself, a full window is the user's to empty.
    fn blocked(&self) -> Room {
        let (layers, count) = (&self.layers, self.session.log().view().tally().count());
        let by_itself = layers.reactive || layers.auto_compact == transcript::window::AutoCompact::On;
        if by_itself || !layers.window.fill(count, layers.auto_compact).at_blocking_limit {
            return Room::Enough;
        }
        let why = format!("the window is full ({count} tokens), and compaction is off: make room with /compact");
        Room::None(why)
    }

    /// The provider found the request too long: says whether it is worth sending again.
    pub(super) async fn react(&mut self, error: &ProviderError, cancel: &CancellationToken) -> Result<bool, Error> {
        if !self.layers.reactive || self.state.reacted {
            return Ok(false);
        }
        if let ProviderError::MediaTooLarge { place, .. } = error {
            // As often as there are pictures to leave out.
            return self.leave_out_media(*place);
        }
        let ProviderError::Overflow { tokens, limit, .. } = error else { return Ok(false) };
        self.state.reacted = true;
        if let Some(limit) = limit.filter(|limit| *limit < self.layers.window.size) {
            // The server knows its window better than the table.
            let reply = self.layers.window.size - self.layers.window.effective;
            self.layers.window = transcript::window::Window { size: limit, effective: limit - reply.min(limit / 3) };
        }
        let count = self.session.log().view().tally().count();
        let gap = tokens.zip(*limit).map(|(tokens, limit)| tokens.saturating_sub(limit));
        let occasion = Occasion::TooLong { over: gap.unwrap_or(count / 5) };
        if self.state.attempts < MOST_ATTEMPTS && !self.try_to_compact(&occasion, cancel).await? {
            return Ok(false);
        }
        if self.session.log().view().tally().count() >= count {
            self.cover_without_summary("the provider refused the request as too long, and no summary could be made")?;
        }
        Ok(self.session.log().view().tally().count() < count)
    }

    /// Where no compaction worked and the window is full, what is covered is only named: the words of the user stay, and
    /// History shows the rest.
    fn last_resort(&mut self) -> Result<(), Error> {
        let count = self.session.log().view().tally().count();
        if self.layers.window.fill(count, self.layers.auto_compact).at_blocking_limit {
            self.cover_without_summary("the window is full, and no summary could be made")?;
        }
        Ok(())
    }
}

/// Whether a commit of this kind changes bytes that may have been sent. What goes to disk does so before it is sent.
fn changes_what_was_sent(act: &Act) -> bool {
    match act {
        Act::Clear { .. }
        | Act::Snip { .. }
        | Act::Collapse { .. }
        | Act::Strip { .. }
        | Act::Rewind { .. }
        | Act::Compact { .. }
        | Act::ServerEdit { .. }
        | Act::Undo { .. } => true,
        Act::Spill { .. } | Act::CacheEdit { .. } | Act::Restore { .. } => false,
    }
}
