//! Compaction: notes or a summary take the place of what was said, and the model's tools for the work come back.

use std::time::Duration;

use context::compact::{self, Made};
use context::notes;
use tokio_util::sync::CancellationToken;
use transcript::commit::{Act, Commit, Extent, Reason, Trigger};
use transcript::line::{Body, Source};
use transcript::mark::mark_answered;
use transcript::view::Stands;
use transcript::{Block, Id, Request};

use super::Agent;
use super::shorten::shortened;
use crate::error::Error;
use crate::event::Event;
use crate::fork::{Fork, ForkError, Forked, ToolPolicy};
use crate::layers::{Fact, rates};

/// A summary is waited for so long.
const PATIENCE: Duration = Duration::from_secs(300);
/// A summariser whose request is too long gets a shorter one, so many times.
const SHORTENED: u32 = 3;
/// What a summary would have had at least, in tokens, where notes took its place.
const SUMMARY_OUTPUT: f64 = 1_000.0;
/// Who asks for a compaction gets a summary where notes would take out less than this part of what is there.
const ASKED_PART: u64 = 8;
/// After a refusal, this part of the window is left for the summariser's instructions and answer.
const SPARE_PART: u64 = 20;
/// Larger notes are not read.
const NOTES_BYTES: u64 = 1_000_000;

/// Why there is a compaction.
#[derive(Debug, Clone, PartialEq)]
pub enum Occasion {
    /// The window asks for it.
    Due,
    /// It is cheaper than carrying on; the sum.
    Cheaper(String),
    /// The user asks for it.
    Asked {
        /// What the user wants of the summary.
        instructions: Option<String>,
        /// What is covered.
        part: Part,
    },
    /// The provider refused a request.
    TooLong {
        /// So many tokens were too many.
        over: u64,
    },
}

/// How much a compaction covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Everything,
    /// From a message on: what precedes it stays, in the cache too.
    From(Id),
    /// What precedes a message.
    UpTo(Id),
}

/// What came of an attempt.
pub(super) enum Attempt {
    Made,
    Failed(String),
    Cancelled,
}

/// What takes the place of what.
struct Plan {
    made: Made,
    extent: Extent,
    /// The items that are covered.
    covered: std::ops::Range<usize>,
    summary: String,
}

impl Agent {
    /// Compacts because the user asks for it.
    pub async fn compact(
        &mut self,
        instructions: Option<String>,
        part: Part,
        cancel: &CancellationToken,
    ) -> Result<Result<(), String>, Error> {
        let view = self.session.log().view();
        // A summary, and what was brought back after it, would only be summarised again.
        if !view.visible().any(|entry| matches!(entry.stands(), Stands::Said | Stands::Reply)) {
            return Ok(Err("there is nothing to compact".to_owned()));
        }
        match self.attempt(&Occasion::Asked { instructions, part }, cancel).await? {
            Attempt::Made => Ok(Ok(())),
            Attempt::Cancelled => Ok(Err("stopped".to_owned())),
            Attempt::Failed(why) => {
                self.compaction_failed(why.clone())?;
                Ok(Err(why))
            }
        }
    }

    /// One attempt: notes, and if that does not do, a summary.
    pub(super) async fn attempt(&mut self, occasion: &Occasion, cancel: &CancellationToken) -> Result<Attempt, Error> {
        let before = self.session.log().view().tally().count();
        (self.listener)(Event::Compacting { tokens: before });
        let plan = match self.plan_from_notes(occasion).await? {
            Some(plan) => plan,
            None => match self.plan_from_summary(occasion, cancel).await? {
                Ok(plan) => plan,
                Err(ForkError::Cancelled) => return Ok(Attempt::Cancelled),
                Err(error) => return Ok(Attempt::Failed(error.to_string())),
            },
        };
        let made = plan.made;
        self.put_in_place(plan, occasion, before)?;
        let after = self.session.log().view().tally().count();
        (self.listener)(Event::Compacted { made, before, after });
        let threshold = self.layers.window.threshold(self.layers.auto_compact);
        if after > threshold && !matches!(occasion, Occasion::Asked { .. }) {
            return Ok(Attempt::Failed(format!(
                "it helped, but {after} tokens are still more than the {threshold} that are allowed"
            )));
        }
        Ok(Attempt::Made)
    }

    /// The notes as a summary, where they will do.
    async fn plan_from_notes(&mut self, occasion: &Occasion) -> Result<Option<Plan>, Error> {
        let wished = match occasion {
            Occasion::Due | Occasion::Cheaper(_) => true,
            Occasion::Asked { instructions, part } => instructions.is_none() && *part == Part::Everything,
            Occasion::TooLong { .. } => false,
        };
        if !(wished && self.layers.notes && self.layers.notes_compact) {
            return Ok(None);
        }
        self.wait_for_notes().await?;
        let (view, window) = (self.session.log().view(), &self.layers.window);
        let covered = self.state.covered.as_ref().and_then(|line| view.item_of(line));
        let path = self.notes_path();
        let (Some(covered), Ok(snapshot)) = (covered, files::read(&path, NOTES_BYTES)) else { return Ok(None) };
        let text = String::from_utf8_lossy(&snapshot.bytes);
        if notes::is_empty(&text) {
            return Ok(None);
        }
        let kept = compact::kept_beside_notes(view, covered, window);
        let tokens = |text: &str| view.tally().estimate(Block::text(text).size());
        let most = window.threshold(self.layers.auto_compact) / 4;
        let summary = notes::for_summary(&text, &path.display().to_string(), most, tokens);
        let kept_tokens = compact::tokens_from(view, kept);
        let left =
            view.prologue().map_or(0, |prologue| view.tally().of_prologue(prologue)) + tokens(&summary) + kept_tokens;
        let most = match occasion {
            Occasion::Asked { .. } => view.tally().count() - view.tally().count() / ASKED_PART,
            _ => u64::MAX,
        };
        let enough = left < window.warning(self.layers.auto_compact) && left <= most;
        let Some(extent) = self.extent_before(kept).filter(|_| enough) else {
            return Ok(None);
        };
        Ok(Some(Plan { made: Made::Notes, extent, covered: 0..kept, summary }))
    }

    fn extent_before(&self, kept: usize) -> Option<Extent> {
        let view = self.session.log().view();
        if kept == 0 {
            return None;
        }
        Some(match view.line_of(kept) {
            Some(line) => Extent::Before(line.clone()),
            None => Extent::Everything,
        })
    }

    /// A summary by a fork of the conversation.
    async fn plan_from_summary(
        &mut self,
        occasion: &Occasion,
        cancel: &CancellationToken,
    ) -> Result<Result<Plan, ForkError>, Error> {
        let failed = |what| Ok(Err(ForkError::Nothing(what)));
        let Some((extent, covered)) = self.extent_of(occasion) else { return failed("there is nothing to summarise") };
        let instructions = match occasion {
            Occasion::Asked { instructions, .. } => instructions.as_deref(),
            _ => None,
        };
        let directive = Block::text(compact::prompt(instructions));
        // What stays need not be summarised; nor does it have to be sent.
        let Some(mut parent) = self.fork_request(covered.end) else { return failed("the session has no prologue") };
        let mut tries = 0;
        let forked = loop {
            let fork = Fork {
                kind: "compact",
                model: self.model.clone(),
                parent: parent.clone(),
                directive: directive.clone(),
                tools: ToolPolicy::Deny,
                rounds: 2,
                patience: PATIENCE,
                most_output: Some(compact::SUMMARY_TOKENS),
                cancel: cancel.child_token(),
            };
            match self.accounted(fork).await? {
                Err(ForkError::Provider(provider::Error::Overflow { tokens, limit, .. })) if tries < SHORTENED => {
                    let gap = tokens.zip(limit).map(|(tokens, limit)| tokens.saturating_sub(limit));
                    parent = shortened(&parent, gap, self.session.log().view().tally());
                }
                Err(ForkError::Provider(provider::Error::MediaTooLarge { .. })) if tries < SHORTENED => {
                    parent = shortened(&parent, Some(0), self.session.log().view().tally());
                }
                outcome => break outcome,
            }
            tries += 1;
        };
        let forked = match forked {
            Ok(forked) => forked,
            Err(error) => return Ok(Err(error)),
        };
        let view = self.session.log().view();
        let tokens = |text: &str| view.tally().estimate(Block::text(text).size());
        match compact::summary_in(&forked.text, &self.layers.window, tokens) {
            Some(summary) => Ok(Ok(Plan { made: Made::Summary, extent, covered, summary })),
            None => failed("the model wrote no summary"),
        }
    }

    /// What is covered, as the occasion asks for it.
    fn extent_of(&self, occasion: &Occasion) -> Option<(Extent, std::ops::Range<usize>)> {
        let (view, window) = (self.session.log().view(), &self.layers.window);
        let before = |kept: Option<usize>| {
            let kept = kept.unwrap_or(view.len());
            Some((self.extent_before(kept)?, 0..kept))
        };
        match occasion {
            Occasion::Cheaper(_) => before(compact::young_from(view)),
            Occasion::Due => before(compact::unanswered_from(view, window)),
            Occasion::Asked { part: Part::Everything, .. } => before(None),
            Occasion::Asked { part: Part::UpTo(line), .. } => before(Some(view.item_of(line)?)),
            Occasion::Asked { part: Part::From(line), .. } => {
                let (first, last) =
                    (line.clone(), view.visible().rev().find(|entry| entry.is_original())?.line().clone());
                let covered = view.item_of(&first)?..view.item_of(&last)? + 1;
                Some((Extent::Span { first, last }, covered))
            }
            Occasion::TooLong { over } => {
                let count = view.tally().count();
                let too_much = count.saturating_sub(window.warning(self.layers.auto_compact)).max(*over);
                let (first, last) = compact::span_back(view, too_much, over + window.size / SPARE_PART)?;
                let covered = view.item_of(&first)?..view.item_of(&last)? + 1;
                Some((Extent::Span { first, last }, covered))
            }
        }
    }

    /// What the parent would send of the items before one, with breakpoints only where its cache is.
    pub(super) fn fork_request(&self, end: usize) -> Option<Request> {
        let view = self.session.log().view();
        let prologue = view.prologue()?.clone();
        let messages = view.messages_before(end);
        let marks = mark_answered(&prologue, &messages, view.seams().answered, self.ttl);
        Some(Request { prologue, messages, marks })
    }

    /// Runs a fork and writes down what it used.
    async fn accounted(&mut self, fork: Fork) -> Result<Result<Forked, ForkError>, Error> {
        let (kind, model) = (fork.kind, fork.parent.prologue.model.clone());
        let (outcome, usage) = match fork.run().await {
            Ok(forked) => (Ok(forked.clone()), forked.usage),
            Err((error, usage)) => (Err(error), usage),
        };
        self.record(Fact::Side { agent: kind.to_owned(), model, usage })?;
        Ok(outcome)
    }

    /// Writes a compaction, and brings back what the model works with.
    fn put_in_place(&mut self, plan: Plan, occasion: &Occasion, before: u64) -> Result<(), Error> {
        let view = self.session.log().view();
        // A summary tells of what tools said, too; what looks like a reminder in it is none.
        let summary = memory::neutral::quoted(&plan.summary);
        let text = compact::framed(plan.made, &summary, view, plan.covered.clone(), &self.layers.window);
        let why = match occasion {
            Occasion::Due => "the window was full".to_owned(),
            Occasion::Cheaper(sum) => sum.clone(),
            Occasion::Asked { .. } => "the user asked for it".to_owned(),
            Occasion::TooLong { .. } => "the provider refused the request as too long".to_owned(),
        };
        let trigger = if matches!(occasion, Occasion::Asked { .. }) { Trigger::Manual } else { Trigger::Auto };
        self.cover(plan.extent, &plan.covered, trigger, before, why, &text)?;
        if plan.made == Made::Notes {
            let rates = rates(&self.layers, self.ttl);
            let saved = before as f64 * rates.read + SUMMARY_OUTPUT * rates.output;
            self.record(Fact::NotesUsed { saved: saved as u64 })?;
        }
        self.bring_back(plan.covered.end)
    }

    /// Covers a part of the conversation with a text.
    fn cover(
        &mut self,
        extent: Extent,
        covered: &std::ops::Range<usize>,
        trigger: Trigger,
        pre_tokens: u64,
        why: String,
        text: &str,
    ) -> Result<(), Error> {
        let changes_from = self.session.log().view().line_of(covered.start).cloned();
        let reason = Reason { freed: None, changes_from, why: Some(why) };
        let act = Act::Compact { extent, trigger, pre_tokens };
        self.session.append(Body::Commit(Commit { act, reason }))?;
        self.session.append(Body::User { blocks: vec![Block::text(text)], source: Source::Summary })?;
        self.state.compacted(self.session.log().view().tally().count());
        Ok(())
    }

    /// Where no summary can be had: what is covered is named, and the newest rounds stay if they fit.
    pub(super) fn cover_without_summary(&mut self, why: &str) -> Result<(), Error> {
        let (view, window) = (self.session.log().view(), &self.layers.window);
        let before = view.tally().count();
        let fits = |kept: &usize| compact::tokens_from(view, *kept) < window.threshold(self.layers.auto_compact) / 2;
        let kept = compact::young_from(view).filter(fits).or_else(|| compact::unanswered_from(view, window));
        let kept = kept.unwrap_or(view.len());
        let Some(extent) = self.extent_before(kept) else { return Ok(()) };
        let summary = "[There is no summary. Below is what the user said, and what was done; History shows the rest.]";
        let text = compact::framed(Made::Summary, summary, view, 0..kept, window);
        self.cover(extent, &(0..kept), Trigger::Auto, before, why.to_owned(), &text)?;
        let after = self.session.log().view().tally().count();
        (self.listener)(Event::Compacted { made: Made::Summary, before, after });
        self.bring_back(kept)
    }
}
