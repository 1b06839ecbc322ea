//! Runs the layers: writes each decision, and does the work it needs.

use context::due::MOST_FAILURES;
use context::layer::{Decision, LayerChange, Need};
use context::list::LIST;
use context::notes::saved_by_notes;
use context::summary_text::{self, HistorySource};
use context::{CompactionReach, Fact, LayerRole, Occasion, Situation, digest, restore};
use jiff::Timestamp;
use learning::knowledge::Knowledge;
use session::Error;
use tokio_util::sync::CancellationToken;
use transcript::Block;
use transcript::commit::{Act, Extent};
use transcript::line::{Body, TextSource};
use transcript::view::{ItemState, View};
use transcript::window::AutoCompact;

use super::Driver;
use super::side_work::NeedResult;
use crate::event::Event;
use crate::live::LiveSession;
use crate::servers::LoadedTools;

/// Room for the next request.
pub(crate) enum RequestRoom {
    /// It can be sent.
    Enough,
    /// It cannot be sent, for this reason.
    None(String),
    /// The user stopped it.
    Cancelled,
}

/// Result of a walk through the layers.
#[derive(Default)]
pub(super) struct WalkResult {
    /// The layers that acted.
    pub(super) done: Vec<LayerRole>,
    /// Reason why a summary failed.
    pub(super) failed: Option<String>,
    pub(super) cancelled: bool,
    compaction: Option<Compaction>,
    /// The summary that now stands for the conversation.
    summary: String,
    /// Decision of the hooks on a compaction, once they were asked.
    hooks: Option<Result<(), String>>,
}

/// Source of a layer's decision. A compaction without a summary only lists ids, and does not count as a success.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DecisionSource {
    Itself,
    Answer,
}

/// A compaction that was written.
#[derive(Clone, Copy)]
struct Compaction {
    made: HistorySource,
    /// True if everything before it is gone, and with it the attachments there.
    from_the_start: bool,
    by: DecisionSource,
    before: u64,
}

/// State of a walk: occasion, start, and the layers that acted.
struct WalkState<'a> {
    occasion: &'a Occasion,
    now: Timestamp,
    done: &'a [LayerRole],
}

impl Driver {
    /// Runs the layers at the end of a turn.
    pub(crate) async fn turn_ends(
        &mut self,
        knowledge: &mut Option<Knowledge>,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        self.walk(&Occasion::End, knowledge, cancel).await?;
        self.live.tell_news();
        Ok(())
    }

    /// Makes room for the next request.
    pub(crate) async fn make_room(
        &mut self,
        knowledge: &mut Option<Knowledge>,
        cancel: &CancellationToken,
    ) -> Result<RequestRoom, Error> {
        if let Some(why) = self.alone_too_large() {
            return Ok(RequestRoom::None(why));
        }
        let walked = self.walk(&Occasion::Request, knowledge, cancel).await?;
        Ok(if walked.cancelled { RequestRoom::Cancelled } else { self.blocked() })
    }

    /// Compacts at the user's request.
    pub(crate) async fn compact(
        &mut self,
        instructions: Option<String>,
        reach: CompactionReach,
        knowledge: &mut Option<Knowledge>,
        cancel: &CancellationToken,
    ) -> Result<Result<(), String>, Error> {
        // A summary, and what was brought back after it, would only be summarised again.
        let is_new =
            |view: &View| view.visible().any(|entry| matches!(entry.state(), ItemState::UserText | ItemState::Reply));
        if !is_new(self.live.session.log().view()) {
            return Ok(Err("there is nothing to compact".to_owned()));
        }
        let walked = self.walk(&Occasion::UserRequest { instructions, reach }, knowledge, cancel).await?;
        Ok(match walked {
            WalkResult { hooks: Some(Err(why)), .. } => Err(format!("a hook prevents it: {why}")),
            _ if walked.cancelled => Err("stopped".to_owned()),
            _ if walked.done.contains(&LayerRole::Compaction) => Ok(()),
            _ => Err(walked.failed.unwrap_or_else(|| "there is nothing to summarise".to_owned())),
        })
    }

    /// Reports results that were needed after they had been cleared.
    fn tell_regrets(&mut self) {
        let figures = self.live.clearing_figures();
        if figures.regrets > self.reported_regrets {
            self.reported_regrets = figures.regrets;
            self.live.tell(Event::Regretted { figures });
        }
    }

    /// Asks each layer in turn.
    pub(super) async fn walk(
        &mut self,
        occasion: &Occasion,
        knowledge: &mut Option<Knowledge>,
        cancel: &CancellationToken,
    ) -> Result<WalkResult, Error> {
        self.side.take_in_ended(&mut self.live).await?;
        self.tell_regrets();
        let window = (self.live.talk.layers.window.size, self.live.talk.layers.window.effective);
        if self.live.session.state().window != Some(window) {
            self.live.record(Fact::Window { window })?;
        }
        let now = self.live.session.world().now();
        let mut walked = WalkResult::default();
        let mut told = false;
        for layer in LIST {
            let place = WalkState { occasion, now, done: &walked.done };
            let mut by = if matches!(occasion, Occasion::Provided { .. }) {
                DecisionSource::Answer
            } else {
                DecisionSource::Itself
            };
            let change = match self.look(&place, |view, now| layer.decide(view, now)) {
                Decision::Nothing => continue,
                _ if layer.role() == LayerRole::Compaction
                    && !self.may_compact(occasion, &mut walked.hooks, cancel).await? =>
                {
                    continue;
                }
                Decision::Commit(change) => change,
                Decision::Need(need) => {
                    by = DecisionSource::Answer;
                    if layer.role() == LayerRole::Compaction && !std::mem::replace(&mut told, true) {
                        self.live.tell(Event::Compacting { tokens: self.live.session.log().view().tally().count() });
                    }
                    let (live, cache) = (&mut self.live, &mut self.cache);
                    let carried = self.side.carry_out((live, cache), &need, knowledge.as_ref(), cancel).await?;
                    let answer = match carried {
                        NeedResult::Answer(answer) => answer,
                        NeedResult::Started => continue,
                        NeedResult::Cancelled => {
                            walked.cancelled = true;
                            return Ok(walked);
                        }
                    };
                    match self.look(&place, |view, now| layer.answered(view, now, &answer)) {
                        Ok(change) => change,
                        Err(why) => {
                            if let (LayerRole::Compaction, Need::Write(_)) = (layer.role(), &need) {
                                self.compaction_failed(why.clone())?;
                                walked.failed = Some(why);
                            }
                            continue;
                        }
                    }
                }
            };
            self.put(change, by, now, &mut walked)?;
            walked.done.push(layer.role());
            if let (LayerRole::Collapse, Some(knowledge)) = (layer.role(), knowledge.as_mut()) {
                knowledge.remember(&self.live.session); // what went with the span may come again
            }
        }
        if let Some(compaction) = walked.compaction.take() {
            self.compacted(compaction, occasion, knowledge)?;
            self.after_compaction(occasion, &walked.summary, cancel).await?;
            if let Some(knowledge) = knowledge.as_ref().filter(|_| compaction.from_the_start) {
                let files = knowledge.instructions().files.clone();
                self.loaded(&files, None, cancel).await?;
            }
        } else if !walked.done.is_empty() {
            self.list_agents()?; // a span that gave way may have held the list
        }
        Ok(walked)
    }

    /// Returns whether hooks allow a compaction; they are asked once.
    async fn may_compact(
        &mut self,
        occasion: &Occasion,
        hook_answer: &mut Option<Result<(), String>>,
        cancel: &CancellationToken,
    ) -> Result<bool, Error> {
        if hook_answer.is_none() {
            let now = self.gate_compaction(occasion, cancel).await?;
            if let Err(why) = &now {
                self.live.tell(Event::Warning(format!("a hook prevents the compaction: {why}")));
            }
            *hook_answer = Some(now);
        }
        Ok(*hook_answer == Some(Ok(())))
    }

    fn look<T>(&self, place: &WalkState<'_>, look: impl FnOnce(&View, &Situation<'_>) -> T) -> T {
        let notes = self.live.notes_path().display().to_string();
        let limit = |name: &str| self.live.work.limit_of(name);
        let situation = Situation {
            occasion: place.occasion,
            now: place.now,
            layers: &self.live.talk.layers,
            ttl: self.live.talk.ttl,
            state: self.live.session.state(),
            notes: &notes,
            limit: &limit,
            done: place.done,
        };
        look(self.live.session.log().view(), &situation)
    }

    /// Writes a layer's decision, and tells of it.
    fn put(
        &mut self,
        change: LayerChange,
        by: DecisionSource,
        now: Timestamp,
        walked: &mut WalkResult,
    ) -> Result<(), Error> {
        let before = self.live.session.log().view().tally().count();
        let (act, reason) = (change.commit.act.clone(), change.commit.reason.clone());
        self.live.session.append(Body::Commit(change.commit))?;
        let (freed, why) = (reason.freed.unwrap_or_default(), reason.why.unwrap_or_default());
        match act {
            Act::Spill { replacements } => self.live.tell(Event::Spilled { results: replacements.len(), freed }),
            Act::Collapse { first, last, .. } => {
                let view = self.live.session.log().view();
                let items = view.item_of(&first).zip(view.item_of(&last));
                let messages = items.map_or(0, |(first, last)| view.entries(first..last + 1).count());
                self.live.tell(Event::Collapsed { messages, freed });
            }
            Act::Snip { uuids, .. } => self.live.tell(Event::Snipped { messages: uuids.len(), freed }),
            Act::Clear { results, digest, .. } => {
                if let Some(written) = digest.as_deref().and_then(digest::written) {
                    self.side.add_to_notes(&self.live, written);
                }
                self.live.tell(Event::Cleared { results: results.len(), freed, why });
            }
            Act::CacheEdit { results, .. } => self.live.tell(Event::Cleared { results: results.len(), freed, why }),
            Act::Compact { extent, .. } => {
                let text = change.summary.unwrap_or_default();
                walked.summary.clone_from(&text);
                let made = summary_text::made_of(&text).unwrap_or(HistorySource::Summary);
                self.live
                    .session
                    .append(Body::User { blocks: vec![Block::text(text)], source: TextSource::Summary })?;
                if made == HistorySource::Notes {
                    let saved = self.look(&WalkState { occasion: &Occasion::Request, now, done: &[] }, |_, now| {
                        saved_by_notes(before, now)
                    });
                    self.live.record(Fact::NotesUsed { saved: saved as u64 })?;
                }
                let from_the_start = !matches!(extent, Extent::Span { .. });
                let before = walked.compaction.as_ref().map_or(before, |earlier| earlier.before);
                walked.compaction = Some(Compaction { made, by, from_the_start, before });
            }
            Act::Restore { blocks } => {
                for (path, stamp) in std::mem::take(&mut self.side.read) {
                    if restore::shows(&blocks, &path) {
                        self.live.scope.note(&path, stamp);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Completes a compaction: recomputes the prologue, reads instructions again, and records whether it freed enough.
    fn compacted(
        &mut self,
        compaction: Compaction,
        occasion: &Occasion,
        knowledge: &mut Option<Knowledge>,
    ) -> Result<(), Error> {
        if compaction.from_the_start {
            let LiveSession { prompt, talk, work, session, .. } = &self.live;
            let loaded = LoadedTools::after_compaction(session, &work.tools, work.servers.as_ref());
            let prologue = prompt.prologue(talk, work, session, (None, loaded));
            if self.live.session.log().view().prologue().map(|known| &**known) != Some(&prologue) {
                self.live.session.append(Body::Prologue(prologue))?;
            }
            if let Some(knowledge) = knowledge {
                knowledge.compacted();
                if let Some(beginning) = knowledge.beginning() {
                    self.live.session.inject(&beginning.text, beginning.meta)?;
                }
            }
        }
        self.list_agents()?;
        let (after, threshold) = (self.live.session.log().view().tally().count(), self.live.talk.layers.threshold());
        self.live.tell(Event::Compacted { made: compaction.made, before: compaction.before, after });
        if after > threshold && !matches!(occasion, Occasion::UserRequest { .. }) {
            self.compaction_failed(format!(
                "it helped, but {after} tokens are still more than the {threshold} that are allowed"
            ))?;
        } else if compaction.by == DecisionSource::Answer {
            self.live.record(Fact::CompactionMade { tokens: after })?;
        }
        Ok(())
    }

    fn compaction_failed(&mut self, why: String) -> Result<(), Error> {
        self.live.tell(Event::CompactionFailed { why: why.clone() });
        self.live.record(Fact::CompactionFailed { why })?;
        if self.live.session.state().failures >= MOST_FAILURES && !self.live.session.state().is_reported {
            self.live.record(Fact::CompactionStopped)?;
            self.live.tell(Event::Warning(format!(
                "{MOST_FAILURES} compactions in a row failed: none will be tried by itself any more. /compact still works."
            )));
        }
        Ok(())
    }

    /// Error if system prompt and tools alone exceed the window.
    fn alone_too_large(&self) -> Option<String> {
        let prologue = self.live.session.log().view().prologue()?;
        let tokens = self.live.session.log().view().tally().of_prologue(prologue);
        let window = self.live.talk.layers.window.effective;
        (tokens >= window).then(|| {
            format!(
                "the system prompt and the tools alone have about {tokens} tokens, and the window holds {window}: offer \
                 fewer tools, shorten the system prompt, or choose a model with a larger window"
            )
        })
    }

    /// Blocks the request if the window is full and no layer may make room by itself.
    fn blocked(&self) -> RequestRoom {
        let (layers, count) = (&self.live.talk.layers, self.live.session.log().view().tally().count());
        let by_itself = layers.reactive || layers.collapse || layers.auto_compact == AutoCompact::On;
        if by_itself || !layers.window.fill(count, layers.auto_compact).at_blocking_limit {
            return RequestRoom::Enough;
        }
        RequestRoom::None(format!(
            "the window is full ({count} tokens), and compaction is off: make room with /compact"
        ))
    }
}
