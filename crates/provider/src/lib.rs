//! Talking to a model over the network: one trait, two clients.
//!
//! A [`Model`] takes a [`Request`] and answers with a stream of [`Event`]s. Everything that can go wrong is one of those
//! events: a caller needs no second path for errors, and a stream that has begun always ends in [`Event::Done`] or
//! [`Event::Failed`]. Dropping the stream drops the connection, which is how a reply is cancelled.
//!
//! ```no_run
//! use futures_util::StreamExt;
//! use provider::{Event, Model};
//! # async fn ask(model: &dyn Model, request: transcript::Request) -> Option<transcript::Reply> {
//! let mut events = model.stream(request);
//! while let Some(event) = events.next().await {
//!     match event {
//!         Event::Done(reply) => return Some(reply),
//!         Event::Failed(error) => eprintln!("{error}"),
//!         _ => {}
//!     }
//! }
//! # None
//! # }
//! ```
//!
//! What this crate refuses to do: read the environment, the clock or a file; contact any host but the one it was given;
//! send the same conversation in other bytes the second time; keep anything between two requests.
//!
//! [`anthropic`] speaks the Messages API, in which blocks travel as they are; [`openai`] speaks chat completions, into
//! which they are translated. Under both lie the parts they share: `exchange` (one request and its answer), [`retry`]
//! (when to try again), `http` (one server, its time-outs and its failures), `sse` (events out of bytes, bounded),
//! `refusal` and `overflow` (what servers mean by their errors).

pub mod anthropic;
mod error;
mod event;
mod exchange;
mod http;
pub mod openai;
mod overflow;
mod refusal;
pub mod retry;
#[cfg(test)]
mod sample;
mod sse;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use transcript::Request;

pub use error::Error;
pub use event::{Event, INVALID_INPUT, invalid_input};
pub use http::{HttpAnswer, Patience, post};
pub use retry::Retry;

/// A model that answers requests.
pub trait Model: Send + Sync {
    /// Streams one reply. Nothing is sent before the stream is polled; dropping it cancels the request.
    fn stream(&self, request: Request) -> BoxStream<'static, Event>;

    /// Number of tokens in the request, counted by the provider. Cache breakpoints do not matter here. A provider that
    /// does not count answers [`Error::Unsupported`].
    fn count_tokens(&self, request: Request) -> BoxFuture<'static, Result<u64, Error>>;

    /// True if its requests can tell the provider to drop results from its cache.
    fn edits_cache(&self) -> bool {
        false
    }

    /// Support for a search of the web that the provider makes by itself.
    fn web_search(&self) -> ProviderSearch {
        ProviderSearch::Never
    }
}

/// Support for the provider's own search of the web.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderSearch {
    /// The provider is known to offer it.
    Offered,
    /// The provider speaks the protocol that has it, and may or may not offer it.
    Unknown,
    /// The protocol has none.
    Never,
}
