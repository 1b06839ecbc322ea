//! Asking the model: one request, its stream, and the reply in the log.

use context::{Fact, LayerRole, Occasion};
use futures_util::StreamExt;
use learning::knowledge::Knowledge;
use learning::ledger;
use learning::ledger::broken_off;
use session::Error;
use tokio_util::sync::CancellationToken;
use transcript::block::Kind;
use transcript::line::Body;
use transcript::{Block, Id, Purpose, Reply, StopReason, Usage};

use super::Driver;
use super::walk::Room;
use crate::event::Event;
use crate::run::NOT_RUN;

/// What the log says where the user stopped a turn.
const INTERRUPTED: &str = "[The user interrupted this turn.]";

/// How a reply ends whose provider compacted and waits.
fn paused() -> StopReason {
    StopReason::Other("compaction".to_owned())
}

/// What came of a request.
pub(crate) enum Replied {
    Whole(Reply),
    Cancelled,
    Failed(provider::Error),
    NoRoom(String),
}

/// Under which name the use of replies stands that did not come to their end.
const BROKEN_OFF: &str = "interrupted";

/// What was heard of a reply so far.
#[derive(Default)]
struct Heard {
    whole: Vec<Block>,
    text: String,
    /// The model that answers, and what the provider said that it has used when it began.
    begun: Option<(String, Usage)>,
    /// How much has come of it, in bytes.
    bytes: u64,
}

impl Heard {
    fn blocks(self) -> Vec<Block> {
        let rest = (!self.text.trim().is_empty()).then(|| Block::text(&self.text));
        self.whole.into_iter().chain(rest).collect()
    }
}

impl Driver {
    /// Makes room and asks the model; where the provider finds the request too long, makes more room and asks again.
    pub(crate) async fn ask(
        &mut self,
        round: u32,
        knowledge: &mut Option<Knowledge>,
        cancel: &CancellationToken,
    ) -> Result<Replied, Error> {
        match self.make_room(knowledge, cancel).await? {
            Room::Enough => {}
            Room::None(why) => return Ok(Replied::NoRoom(why)),
            Room::Cancelled => {
                self.interrupt(Vec::new())?;
                return Ok(Replied::Cancelled);
            }
        }
        loop {
            match self.call_model(round, cancel).await? {
                Replied::Failed(error) if self.react(&error, knowledge, cancel).await? => {}
                Replied::Whole(reply) => match reply.blocks.iter().find_map(Block::compaction) {
                    Some(summary) if self.provided(&summary, knowledge, cancel).await? && reply.stop == paused() => {}
                    _ => return Ok(Replied::Whole(reply)),
                },
                Replied::Failed(_) if cancel.is_cancelled() => {
                    self.interrupt(Vec::new())?;
                    return Ok(Replied::Cancelled);
                }
                replied => return Ok(replied),
            }
        }
    }

    /// The provider compacted by itself: says whether its summary took the place of what was said.
    async fn provided(
        &mut self,
        summary: &str,
        knowledge: &mut Option<Knowledge>,
        cancel: &CancellationToken,
    ) -> Result<bool, Error> {
        let summary = super::carry::quoted(summary);
        let walked = self.walk(&Occasion::Provided { summary }, knowledge, cancel).await?;
        Ok(walked.done.contains(&LayerRole::Compaction))
    }

    /// Sends the view and passes on what comes back.
    async fn call_model(&mut self, round: u32, cancel: &CancellationToken) -> Result<Replied, Error> {
        let Some(request) = self.request() else {
            let message = "the session has no prologue".to_owned();
            return Ok(Replied::Failed(provider::Error::Settings { message }));
        };
        let tokens = self.session.log().view().tally().count();
        if let Some(latest) = &self.lineage.latest {
            latest.sent(&request, self.session.world().now());
        }
        self.tell(Event::RequestSent { round, tokens });
        let mut events = self.out.ledger.count(self.kind(), None, self.talk.model.stream(request.clone()));
        let mut heard = Heard::default();
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
                    return Ok(Replied::Cancelled);
                }
                None => {
                    self.account_for_broken_off(&mut heard)?;
                    let (host, cause) = ("the model".to_owned(), "the stream ended without an end".to_owned());
                    return Ok(Replied::Failed(provider::Error::Cut { host, cause }));
                }
                Some(provider::Event::Done(reply)) => {
                    self.write_reply(&reply)?;
                    if reply.stop != StopReason::ModelContextWindowExceeded {
                        self.turn_begins(); // a further refusal may be answered by making room again
                    }
                    self.account(request, &reply)?;
                    self.tell(Event::Replied { reply: reply.clone() });
                    return Ok(Replied::Whole(reply));
                }
                Some(provider::Event::Failed(error)) => {
                    self.account_for_broken_off(&mut heard)?;
                    return Ok(Replied::Failed(error));
                }
                Some(provider::Event::Restarted) => {
                    self.account_for_broken_off(&mut heard)?;
                    heard = Heard::default();
                    self.tell(Event::Restarted);
                }
                Some(event) => self.pass_on(event, &mut heard),
            }
        }
    }

    /// A reply that had begun does not come to its end: it is paid for all the same.
    fn account_for_broken_off(&mut self, heard: &mut Heard) -> Result<(), Error> {
        let Some((model, begun)) = heard.begun.take().filter(|(_, usage)| usage.total() > 0) else { return Ok(()) };
        let usage = broken_off(begun, heard.bytes);
        self.record(Fact::Side { agent: BROKEN_OFF.to_owned(), model, usage })
    }

    /// Under which kind of work its requests stand in the ledger.
    fn kind(&self) -> &'static str {
        if self.lineage.sent.is_some() { ledger::AGENT } else { ledger::CONVERSATION }
    }

    fn pass_on(&self, event: provider::Event, heard: &mut Heard) {
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
        self.tell(event);
    }

    fn write_reply(&mut self, reply: &Reply) -> Result<(), Error> {
        self.session.append(Body::Assistant {
            id: Id::from(&reply.id),
            model: reply.model.clone(),
            blocks: reply.blocks.clone(),
            // Of a reply that is a summary alone nothing was counted.
            usage: Some(reply.usage).filter(|usage| usage.total() > 0),
            stop: Some(reply.stop.clone()),
        })?;
        Ok(())
    }

    /// The user stopped the turn: what was heard of the reply is kept, calls it did not get to make are not.
    pub(crate) fn interrupt(&mut self, heard: Vec<Block>) -> Result<(), Error> {
        let heard: Vec<Block> =
            heard.into_iter().filter(|block| !matches!(block.kind(), Kind::ToolUse { .. })).collect();
        if heard.iter().any(|block| *block.kind() == Kind::Text) {
            let id = self.session.world().fresh_id();
            let model = self.session.log().view().prologue().map(|known| known.model.clone()).unwrap_or_default();
            let stop = Some(StopReason::Other("interrupted".into()));
            self.session.append(Body::Assistant { id, model, blocks: heard, usage: None, stop })?;
        }
        self.answer_open_calls(NOT_RUN)?;
        self.inject(Purpose::Interrupted, INTERRUPTED)
    }
}
