//! A request under way: its known usage is in the ledger from its beginning on, whatever becomes of it.
//!
//! A process that is killed leaves the usage that the provider reported when the reply began. One that stops the
//! request, or meets an error in the middle, adds what had come by then. If the provider answers and does not report
//! its input before the end, as some servers do, the input is estimated.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use provider::{Event, Model};
use transcript::tokens::rough;
use transcript::{Prologue, Request, Usage};

use super::{BegunRequest, Ledger};

/// Approximate bytes per token of output; precise enough for a stopped stream.
pub const BYTES_PER_TOKEN: u64 = 4;

impl Ledger {
    /// Makes a request, passes on its events, and records its usage. If its end is not received, and the provider has
    /// answered without reporting its input, that is estimated.
    pub fn ask(
        self: &Arc<Self>,
        kind: &'static str,
        model: &Arc<dyn Model>,
        request: Request,
    ) -> BoxStream<'static, Event> {
        let (name, sent) = (Some(request.prologue.model.clone()), request.clone());
        self.counted(kind, name, Some(sent), model.stream(request))
    }

    /// Passes on the events of a request, and records its usage. `model` is the name to record, if it differs from the
    /// provider's.
    pub fn count(
        self: &Arc<Self>,
        kind: &'static str,
        model: Option<&str>,
        events: BoxStream<'static, Event>,
    ) -> BoxStream<'static, Event> {
        self.counted(kind, model.map(str::to_owned), None, events)
    }

    fn counted(
        self: &Arc<Self>,
        kind: &'static str,
        model: Option<String>,
        sent: Option<Request>,
        mut events: BoxStream<'static, Event>,
    ) -> BoxStream<'static, Event> {
        let ledger = self.clone();
        let mut under_way =
            RequestUnderWay { ledger, kind, model, sent, begun: None, bytes: 0, state: RequestState::Unanswered };
        let next = move |context: &mut Context<'_>| {
            let polled = events.poll_next_unpin(context);
            match &polled {
                Poll::Ready(Some(event)) => under_way.hear(event),
                Poll::Ready(None) => under_way.breaks_off(),
                Poll::Pending => {}
            }
            polled
        };
        stream::poll_fn(next).boxed()
    }
}

struct RequestUnderWay {
    ledger: Arc<Ledger>,
    kind: &'static str,
    model: Option<String>,
    /// The request, if its input is to be estimated.
    sent: Option<Request>,
    begun: Option<(BegunRequest, Usage)>,
    /// Bytes of the reply so far.
    bytes: u64,
    state: RequestState,
}

/// State of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestState {
    /// Nothing has come back: nobody knows whether it is charged.
    Unanswered,
    /// The provider has begun to answer.
    Answered,
    /// It has ended and is recorded, or costs nothing.
    Over,
}

impl RequestUnderWay {
    fn hear(&mut self, event: &Event) {
        self.state = match event {
            Event::Done(_) | Event::Failed(_) => RequestState::Over,
            Event::Retrying { .. } | Event::Restarted => RequestState::Unanswered,
            _ => RequestState::Answered,
        };
        match event {
            Event::Started { model, usage, .. } => {
                self.breaks_off();
                if usage.total() > 0 {
                    let model = self.model.as_deref().unwrap_or(model);
                    self.begun = Some((self.ledger.begin(self.kind, model, usage), *usage));
                }
            }
            Event::Done(reply) => {
                let model = self.model.as_deref().unwrap_or(&reply.model);
                match self.begun.take() {
                    Some((begun, _)) => self.ledger.end(begun, &reply.usage),
                    None => self.ledger.record(self.kind, model, &reply.usage),
                }
            }
            Event::Restarted | Event::Failed(_) => self.breaks_off(),
            Event::Text(text) | Event::Thinking(text) | Event::ToolInput { partial_json: text, .. } => {
                self.bytes += text.len() as u64;
            }
            Event::Block(_) | Event::Retrying { .. } => {}
        }
    }

    fn breaks_off(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if let Some((begun, usage)) = self.begun.take() {
            self.ledger.break_off(begun, &broken_off(usage, bytes));
            self.state = RequestState::Over;
        }
    }

    /// Records a request whose end nobody receives.
    fn dropped(&mut self) {
        let bytes = self.bytes;
        self.breaks_off();
        if self.state == RequestState::Answered
            && let (Some(sent), Some(model)) = (&self.sent, &self.model)
        {
            let (input_tokens, output_tokens) = (estimated(sent), bytes / BYTES_PER_TOKEN);
            let usage = Usage { input_tokens, output_tokens, ..Usage::default() };
            let begun = self.ledger.begin(self.kind, model, &usage);
            self.ledger.break_off(begun, &usage);
        }
    }
}

impl Drop for RequestUnderWay {
    fn drop(&mut self) {
        self.dropped();
    }
}

/// Estimated input of a request, in tokens.
fn estimated(request: &Request) -> u64 {
    let Prologue { system, tools, .. } = &*request.prologue;
    let said = request.messages.iter().flat_map(|message| &message.blocks);
    let text: u64 = system.iter().chain(said).map(rough).sum();
    let tools = tools.iter().map(|tool| tool.name.len() + tool.description.len() + tool.input_schema.to_string().len());
    text + tools.sum::<usize>() as u64 / BYTES_PER_TOKEN
}

/// Usage of a reply that broke off after so many bytes; none if the provider did not report its input.
pub fn broken_off(begun: Usage, bytes: u64) -> Usage {
    let output = if begun.total() == 0 { 0 } else { begun.output_tokens.max(bytes / BYTES_PER_TOKEN) };
    Usage { output_tokens: output, ..begun }
}
