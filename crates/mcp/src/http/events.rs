//! Event streams of a bounded size: an event that grows too long ends its stream.

use std::io;

use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use sse_stream::{Error, Sse, SseStream};

use super::HttpFault;

/// The events of a response.
pub(super) fn events(response: reqwest::Response, most: usize) -> BoxStream<'static, Result<Sse, Error>> {
    let mut size = EventSize::default();
    let bytes = response.bytes_stream().map_err(|error| io::Error::other(HttpFault::of(&error)));
    let bounded = bytes.map(move |chunk| {
        let chunk = chunk?;
        match size.after(&chunk) > most {
            true => Err(io::Error::other(HttpFault::TooLarge)),
            false => Ok(chunk),
        }
    });
    // What follows an event that is too long cannot be read any more.
    let mut is_over = false;
    let until_error = bounded.take_while(move |chunk| {
        let goes_on = !is_over;
        is_over = chunk.is_err();
        std::future::ready(goes_on)
    });
    SseStream::from_bytes_stream(until_error).boxed()
}

/// Size of the event that is being read: bytes since the last empty line.
#[derive(Debug, Default)]
struct EventSize {
    event: usize,
    line: usize,
    after_return: bool,
}

impl EventSize {
    /// The largest size up to the end of a chunk.
    fn after(&mut self, chunk: &[u8]) -> usize {
        let mut largest = self.event;
        for byte in chunk {
            self.event += 1;
            largest = largest.max(self.event);
            match byte {
                b'\n' if self.after_return => {}
                b'\n' | b'\r' => {
                    if self.line == 0 {
                        self.event = 0;
                    }
                    self.line = 0;
                }
                _ => self.line += 1,
            }
            self.after_return = *byte == b'\r';
        }
        largest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_an_event_begins_anew_at_an_empty_line() {
        for end in ["\n\n", "\r\n\r\n", "\r\r"] {
            let mut size = EventSize::default();
            let event = format!("data: 12345{end}");
            for _ in 0..100 {
                assert!(size.after(event.as_bytes()) <= event.len() + 1, "{end:?}");
            }
            assert!(size.after(&[b'x'; 50]) >= 50);
            assert!(size.after(b"\ndata: y\ndata: z") > 60);
        }
    }
}
