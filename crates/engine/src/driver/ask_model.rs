//! Asks the model: one request, its stream, and the reply in the log. A request that is too long for the provider is
//! shortened and sent again, once until the model has replied.

use context::{Fact, LayerRole, Occasion};
use futures_util::StreamExt;
use learning::knowledge::Knowledge;
use learning::ledger::{self, broken_off};
use provider::Error as ProviderError;
use session::Error;
use tokio_util::sync::CancellationToken;
use transcript::block::Kind;
use transcript::line::Body;
use transcript::window::Window;
use transcript::{Block, Id, Purpose, Reply, Role, StopReason, Usage};

use super::Driver;
use super::media::without_large;
use super::run_layers::RequestRoom;
use crate::event::Event;
use crate::run::NOT_RUN;

/// If the provider does not say by how much a request is too long, one in this many parts of the conversation is.
const OVER_PART: u64 = 5;
/// If the window turns out smaller, a reply gets at most one in this many parts of it.
const REPLY_PART: u64 = 3;
/// Message after a reply that ended because the window was full: a request ends with the user.
const CUT_OFF: &str = "[The reply was cut off: the window was full. There is room now; go on.]";
/// Log text for a turn that the user stopped.
const INTERRUPTED: &str = "[The user interrupted this turn.]";

/// Stop reason of a reply whose provider has compacted and waits.
fn paused() -> StopReason {
    StopReason::Other("compaction".to_owned())
}

/// Result of a request.
pub(crate) enum ReplyResult {
    Whole(Reply),
    Cancelled,
    Failed(provider::Error),
    NoRoom(String),
}

/// Ledger name for replies that did not finish.
const BROKEN_OFF: &str = "interrupted";

/// The part of a reply received so far.
#[derive(Default)]
struct PartialReply {
    whole: Vec<Block>,
    text: String,
    /// The model that answers, and the usage that the provider reported at its start.
    begun: Option<(String, Usage)>,
    /// Bytes received.
    bytes: u64,
}

impl PartialReply {
    fn blocks(self) -> Vec<Block> {
        let rest = (!self.text.trim().is_empty()).then(|| Block::text(&self.text));
        self.whole.into_iter().chain(rest).collect()
    }
}

impl Driver {
    /// Makes room and asks the model; if the provider finds the request too long, makes more room and asks again.
    pub(crate) async fn ask(
        &mut self,
        round: u32,
        knowledge: &mut Option<Knowledge>,
        cancel: &CancellationToken,
    ) -> Result<ReplyResult, Error> {
        match self.make_room(knowledge, cancel).await? {
            RequestRoom::Enough => {}
            RequestRoom::None(why) => return Ok(ReplyResult::NoRoom(why)),
            RequestRoom::Cancelled => {
                self.interrupt(Vec::new())?;
                return Ok(ReplyResult::Cancelled);
            }
        }
        loop {
            match self.call_model(round, cancel).await? {
                ReplyResult::Failed(error) if self.react(&error, knowledge, cancel).await? => {}
                ReplyResult::Whole(reply) => match reply.blocks.iter().find_map(Block::compaction) {
                    Some(summary) if self.provided(&summary, knowledge, cancel).await? && reply.stop == paused() => {}
                    _ => return Ok(ReplyResult::Whole(reply)),
                },
                ReplyResult::Failed(_) if cancel.is_cancelled() => {
                    self.interrupt(Vec::new())?;
                    return Ok(ReplyResult::Cancelled);
                }
                replied => return Ok(replied),
            }
        }
    }

    /// Takes in the provider's own compaction; returns whether its summary replaced the conversation.
    async fn provided(
        &mut self,
        summary: &str,
        knowledge: &mut Option<Knowledge>,
        cancel: &CancellationToken,
    ) -> Result<bool, Error> {
        let summary = super::side_work::quoted(summary);
        let walked = self.walk(&Occasion::Provided { summary }, knowledge, cancel).await?;
        Ok(walked.done.contains(&LayerRole::Compaction))
    }

    /// Sends the view and passes the reply's events on.
    async fn call_model(&mut self, round: u32, cancel: &CancellationToken) -> Result<ReplyResult, Error> {
        let Some(request) = self.live.request() else {
            let message = "the session has no prologue".to_owned();
            return Ok(ReplyResult::Failed(provider::Error::Settings { message }));
        };
        let tokens = self.live.session.log().view().tally().count();
        if let Some(latest) = &self.live.lineage.latest {
            latest.sent(&request, self.live.session.world().now());
        }
        self.live.tell(Event::RequestSent { round, tokens });
        let mut events = self.live.out.ledger.count(self.kind(), None, self.live.talk.model.stream(request.clone()));
        let mut heard = PartialReply::default();
        loop {
            let event = tokio::select! {
                biased;
                () = cancel.cancelled() => None,
                event = events.next() => event,
            };
            match event {
                None if cancel.is_cancelled() => {
                    self.account_for_broken_off(&mut heard)?;
                    self.interrupt(heard.blocks())?;
                    return Ok(ReplyResult::Cancelled);
                }
                None => {
                    self.account_for_broken_off(&mut heard)?;
                    let (host, cause) = ("the model".to_owned(), "the stream ended early".to_owned());
                    return Ok(ReplyResult::Failed(provider::Error::Cut { host, cause }));
                }
                Some(provider::Event::Done(reply)) => {
                    self.write_reply(&reply)?;
                    if reply.stop != StopReason::ModelContextWindowExceeded {
                        self.turn_begins(); // a further refusal may be answered by making room again
                    }
                    self.cache.answered(&mut self.live, request, &reply)?;
                    self.live.tell(Event::Replied { reply: reply.clone() });
                    return Ok(ReplyResult::Whole(reply));
                }
                Some(provider::Event::Failed(error)) => {
                    self.account_for_broken_off(&mut heard)?;
                    return Ok(ReplyResult::Failed(error));
                }
                Some(provider::Event::Restarted) => {
                    self.account_for_broken_off(&mut heard)?;
                    heard = PartialReply::default();
                    self.live.tell(Event::Restarted);
                }
                Some(event) => self.pass_on(event, &mut heard),
            }
        }
    }

    /// Records the usage of a reply that began but did not finish: it is paid for all the same.
    fn account_for_broken_off(&mut self, heard: &mut PartialReply) -> Result<(), Error> {
        let Some((model, begun)) = heard.begun.take().filter(|(_, usage)| usage.total() > 0) else { return Ok(()) };
        let usage = broken_off(begun, heard.bytes);
        self.live.record(Fact::Side { agent: BROKEN_OFF.to_owned(), model, usage })
    }

    /// Kind of work under which its requests stand in the ledger.
    fn kind(&self) -> &'static str {
        if self.live.lineage.sent.is_some() { ledger::AGENT } else { ledger::CONVERSATION }
    }

    fn pass_on(&self, event: provider::Event, heard: &mut PartialReply) {
        let event = match event {
            provider::Event::Started { model, usage, .. } => {
                heard.begun = Some((model, usage));
                return;
            }
            provider::Event::Text(text) => {
                heard.bytes += text.len() as u64;
                heard.text.push_str(&text);
                Event::Text(text)
            }
            provider::Event::Block(block) => {
                heard.text.clear();
                heard.whole.push(block);
                return;
            }
            provider::Event::Thinking(text) => {
                heard.bytes += text.len() as u64;
                Event::Thinking(text)
            }
            provider::Event::ToolInput { name, partial_json, .. } => {
                heard.bytes += partial_json.len() as u64;
                Event::CallWriting { tool: name }
            }
            provider::Event::Retrying { attempt, after, why } => {
                Event::Retrying { attempt, after, why: why.to_string() }
            }
            provider::Event::Restarted | provider::Event::Done(_) | provider::Event::Failed(_) => return,
        };
        self.live.tell(event);
    }

    fn write_reply(&mut self, reply: &Reply) -> Result<(), Error> {
        self.live.session.append(Body::Assistant {
            id: Id::from(&reply.id),
            model: reply.model.clone(),
            blocks: reply.blocks.clone(),
            // Of a reply that is a summary alone nothing was counted.
            usage: Some(reply.usage).filter(|usage| usage.total() > 0),
            stop: Some(reply.stop.clone()),
        })?;
        Ok(())
    }

    /// Logs a turn that the user stopped: the received part of the reply is kept, calls it did not get to make are not.
    pub(crate) fn interrupt(&mut self, heard: Vec<Block>) -> Result<(), Error> {
        let heard: Vec<Block> =
            heard.into_iter().filter(|block| !matches!(block.kind(), Kind::ToolUse { .. })).collect();
        if heard.iter().any(|block| *block.kind() == Kind::Text) {
            let id = self.live.session.world().fresh_id();
            let model = self.live.session.log().view().prologue().map(|known| known.model.clone()).unwrap_or_default();
            let stop = Some(StopReason::Other("interrupted".into()));
            self.live.session.append(Body::Assistant { id, model, blocks: heard, usage: None, stop })?;
        }
        self.live.answer_open_calls(NOT_RUN)?;
        self.live.inject(Purpose::Interrupted, INTERRUPTED)
    }

    /// Reacts to a provider's refusal; returns whether it is worth sending again.
    pub(super) async fn react(
        &mut self,
        error: &ProviderError,
        knowledge: &mut Option<Knowledge>,
        cancel: &CancellationToken,
    ) -> Result<bool, Error> {
        if !self.live.talk.layers.reactive {
            return Ok(false);
        }
        if let ProviderError::MediaTooLarge { place, .. } = error {
            // As often as there are pictures to leave out.
            return self.leave_out_media(*place);
        }
        let ProviderError::Overflow { tokens, limit, .. } = error else { return Ok(false) };
        if self.reacted {
            return Ok(false);
        }
        let window = &mut self.live.talk.layers.window;
        if let Some(limit) = limit.filter(|limit| *limit < window.size) {
            // The server knows its window better than the table.
            let reply = window.size - window.effective;
            *window = Window { size: limit, effective: limit - reply.min(limit / REPLY_PART) };
        }
        let count = self.live.session.log().view().tally().count();
        let gap = tokens.zip(*limit).map(|(tokens, limit)| tokens.saturating_sub(limit));
        let over = gap.unwrap_or(count / OVER_PART);
        let window = self.live.talk.layers.window;
        self.live.record(Fact::Refused { over, window: (window.size, window.effective) })?;
        let occasion = Occasion::Refused { over };
        let walked = self.walk(&occasion, knowledge, cancel).await?;
        // What was staged goes first, and may be enough; there is no more of it then.
        self.reacted = !walked.done.contains(&LayerRole::Collapse);
        Ok(!walked.cancelled && self.live.session.log().view().tally().count() < count)
    }

    /// Makes room after a reply that ended because the window is full; returns whether that worked.
    pub(crate) async fn overflowed(
        &mut self,
        knowledge: &mut Option<Knowledge>,
        cancel: &CancellationToken,
    ) -> Result<bool, Error> {
        let message = "the reply did not fit the window".to_owned();
        let error = ProviderError::Overflow { tokens: None, limit: None, message };
        let room = self.react(&error, knowledge, cancel).await?;
        let newest = self.live.session.log().view().blocks().last().map(|(_, role, _)| role);
        if room && newest == Some(Role::Assistant) {
            self.live.inject(Purpose::CutOff, CUT_OFF)?;
        }
        Ok(room)
    }

    /// Removes images and documents from view that are too large for the provider. Returns whether there were any.
    fn leave_out_media(&mut self, place: Option<(usize, usize)>) -> Result<bool, Error> {
        let commits = without_large(self.live.session.log().view(), place);
        let any = !commits.is_empty();
        for commit in commits {
            self.live.session.append(Body::Commit(commit))?;
            self.cache.declare(&self.live.session, "media");
        }
        if any {
            let text = "a picture or document was too large for the provider and is left out";
            self.live.tell(Event::Warning(text.into()));
        }
        Ok(any)
    }
}
