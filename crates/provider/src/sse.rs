//! Events out of bytes, with bounds.
//!
//! The grammar (BOM, CRLF, comments, characters split between chunks) is the `sse-stream` crate's. This module adds what
//! a parser cannot know: how much one event and one reply may weigh before the server is taken for broken, so that no
//! server can fill our memory. It does not know what the events mean.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use sse_stream::{Sse, SseByteStream};

use crate::http::BodyFault;

/// Size limit of one event, far above the largest block a model writes. Exact up to one network chunk.
const EVENT_LIMIT: usize = 8 << 20;

/// Size limit of a whole reply. A delta of one token takes about 120 bytes on the wire, so this is room for half a
/// million tokens of output.
pub(crate) const REPLY_LIMIT: usize = 64 << 20;

/// A server's events, one by one.
pub(crate) struct Events {
    events: SseByteStream<BoxStream<'static, Result<Bytes, BodyFault>>>,
    /// Bytes that came in since the last event came out.
    pending: Arc<AtomicUsize>,
}

impl Events {
    /// Events of a body that is still coming in.
    pub(crate) fn new(chunks: BoxStream<'static, Result<Bytes, BodyFault>>) -> Self {
        let pending = Arc::new(AtomicUsize::new(0));
        let weighed = {
            let pending = Arc::clone(&pending);
            let mut total = 0;
            chunks.map(move |chunk| {
                let chunk = chunk?;
                total += chunk.len();
                if total > REPLY_LIMIT {
                    return Err(BodyFault::TooLarge { what: "a reply", limit: REPLY_LIMIT });
                }
                if pending.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len() > EVENT_LIMIT {
                    return Err(BodyFault::TooLarge { what: "an event", limit: EVENT_LIMIT });
                }
                Ok(chunk)
            })
        };
        Self { events: SseByteStream::new(weighed.boxed()), pending }
    }

    /// Events of a body that is already here.
    pub(crate) fn of_whole(body: Bytes) -> Self {
        const SLICE: usize = 64 << 10;
        let starts = (0..body.len()).step_by(SLICE);
        let slices = starts.map(move |start| Ok(body.slice(start..body.len().min(start + SLICE))));
        Self::new(stream::iter(slices).boxed())
    }

    /// The next event; none when the body has ended properly.
    pub(crate) async fn next(&mut self) -> Option<Result<Sse, BodyFault>> {
        let event = self.events.next().await?;
        self.pending.store(0, Ordering::Relaxed);
        Some(event.map_err(|error| match error {
            sse_stream::Error::Body(cause) => match cause.downcast::<BodyFault>() {
                Ok(broken) => *broken,
                Err(other) => BodyFault::Cut(other.to_string()),
            },
            other => BodyFault::NotEvents(other.to_string()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn data(chunks: Vec<Vec<u8>>) -> Vec<Result<String, BodyFault>> {
        let chunks = stream::iter(chunks.into_iter().map(|chunk| Ok(Bytes::from(chunk))));
        let mut events = Events::new(chunks.boxed());
        let mut seen = Vec::new();
        while let Some(event) = events.next().await {
            seen.push(event.map(|event| event.data.unwrap_or_default()));
        }
        seen
    }

    #[tokio::test]
    async fn any_split_of_the_bytes_gives_the_same_events() {
        let body =
            "\u{feff}: hi\r\nevent: a\r\ndata: grüße\r\n\r\n:ping\n\ndata: 漢\ndata: 字\n\nevent: cut\ndata: lost";
        let expected = vec![Ok("grüße".to_owned()), Ok("漢\n字".to_owned())];
        for size in 1..body.len() {
            let chunks = body.as_bytes().chunks(size).map(<[u8]>::to_vec).collect();
            assert_eq!(data(chunks).await, expected, "chunks of {size}");
        }
    }

    #[tokio::test]
    async fn an_event_without_end_is_refused() {
        let chunks = (0..1000).map(|_| vec![b'x'; 64 << 10]);
        let seen = data(std::iter::once(b"data: ".to_vec()).chain(chunks).collect()).await;
        assert_eq!(seen, [Err(BodyFault::TooLarge { what: "an event", limit: EVENT_LIMIT })]);
    }

    #[tokio::test]
    async fn events_without_end_are_refused() {
        let event = [b"data: ".to_vec(), vec![b'x'; 1 << 20], b"\n\n".to_vec()].concat();
        let seen = data(vec![event; 70]).await;
        assert_eq!(seen.len(), 64);
        assert_eq!(seen.last(), Some(&Err(BodyFault::TooLarge { what: "a reply", limit: REPLY_LIMIT })));
    }

    #[tokio::test]
    async fn bytes_that_are_no_text_are_refused() {
        let seen = data(vec![b"data: \xff\xfe\n\n".to_vec()]).await;
        assert!(matches!(seen[..], [Err(BodyFault::NotEvents(_))]), "{seen:?}");
    }

    #[tokio::test]
    async fn a_whole_body_gives_the_same_events() {
        let mut events = Events::of_whole(Bytes::from("data: 1\n\n".repeat(20_000)));
        let mut count = 0;
        while events.next().await.transpose().unwrap().is_some() {
            count += 1;
        }
        assert_eq!(count, 20_000);
    }
}
