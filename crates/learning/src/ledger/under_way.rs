//! A request that is under way: what is known of it stands in the ledger from its beginning on, whatever becomes of it.
//!
//! A process that is killed leaves what the provider said when the reply began. One that stops the request, or meets an
//! error in the middle, adds what had come by then.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use provider::Event;
use transcript::Usage;

use super::{Begun, Ledger};

/// About so many bytes are a token of output; where a stream is stopped, that is near enough.
pub const BYTES_PER_TOKEN: u64 = 4;

impl Ledger {
    /// Passes on the events of a request, and writes down what it uses. `model` is the name it stands under, where that is
    /// another than the provider says.
    pub fn count(
        self: &Arc<Self>,
        kind: &'static str,
        model: Option<&str>,
        events: BoxStream<'static, Event>,
    ) -> BoxStream<'static, Event> {
        let model = model.map(str::to_owned);
        let mut under_way = UnderWay { ledger: self.clone(), kind, model, begun: None, bytes: 0 };
        events.inspect(move |event| under_way.hear(event)).boxed()
    }
}

struct UnderWay {
    ledger: Arc<Ledger>,
    kind: &'static str,
    model: Option<String>,
    begun: Option<(Begun, Usage)>,
    /// How much of the reply has come.
    bytes: u64,
}

impl UnderWay {
    fn hear(&mut self, event: &Event) {
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
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.breaks_off();
    }
}

/// What a reply used that broke off after so many bytes; nothing where the provider did not say what it began with.
pub fn broken_off(begun: Usage, bytes: u64) -> Usage {
    let output = if begun.total() == 0 { 0 } else { begun.output_tokens.max(bytes / BYTES_PER_TOKEN) };
    Usage { output_tokens: output, ..begun }
}
