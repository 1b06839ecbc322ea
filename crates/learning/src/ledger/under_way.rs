//! A request that is under way: what is known of it stands in the ledger from its beginning on, whatever becomes of it.
//!
//! A process that is killed leaves what the provider said when the reply began. One that stops the request, or meets an
//! error in the middle, adds what had come by then. Where the provider answers and says nothing of what it read before the
//! end, as some servers do, what was sent is estimated.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use provider::{Event, Model};
use transcript::tokens::rough;
use transcript::{Prologue, Request, Usage};

use super::{BegunRequest, Ledger};

/// About so many bytes are a token of output; where a stream is stopped, that is near enough.
pub const BYTES_PER_TOKEN: u64 = 4;

impl Ledger {
    /// Makes a request, passes on its events, and writes down what it uses. Where nobody hears its end, and the provider has
    /// answered without saying what it read, that is estimated.
    pub fn ask(
        self: &Arc<Self>,
        kind: &'static str,
        model: &Arc<dyn Model>,
        request: Request,
    ) -> BoxStream<'static, Event> {
        let (name, sent) = (Some(request.prologue.model.clone()), request.clone());
        self.counted(kind, name, Some(sent), model.stream(request))
    }

    /// Passes on the events of a request, and writes down what it uses. `model` is the name it stands under, where that is
    /// another than the provider says.
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
    /// What was sent, where it is to be estimated.
    sent: Option<Request>,
    begun: Option<(BegunRequest, Usage)>,
    /// How much of the reply has come.
    bytes: u64,
    state: RequestState,
}

/// How far a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestState {
    /// Nothing has come back: whether it is paid for, nobody knows.
    Unanswered,
    /// The provider has begun to answer.
    Answered,
    /// It has come to an end that is written down, or costs nothing.
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

    /// Nobody hears its end.
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

/// What a request reads, in tokens, as far as that can be told without the provider.
fn estimated(request: &Request) -> u64 {
    let Prologue { system, tools, .. } = &*request.prologue;
    let said = request.messages.iter().flat_map(|message| &message.blocks);
    let text: u64 = system.iter().chain(said).map(rough).sum();
    let tools = tools.iter().map(|tool| tool.name.len() + tool.description.len() + tool.input_schema.to_string().len());
    text + tools.sum::<usize>() as u64 / BYTES_PER_TOKEN
}

/// What a reply used that broke off after so many bytes; nothing where the provider did not say what it began with.
pub fn broken_off(begun: Usage, bytes: u64) -> Usage {
    let output = if begun.total() == 0 { 0 } else { begun.output_tokens.max(bytes / BYTES_PER_TOKEN) };
    Usage { output_tokens: output, ..begun }
}
