//! Lines of a server that are too long: dropped without being kept, and answered in the server's place.
//!
//! rmcp drops such a line, but then whoever waits for it waits on. This reader passes everything on and, after an
//! oversized line, adds an error for the request that the line answered, if its beginning or end shows the request's id.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use serde_json::{Deserializer, Value, json};
use tokio::io::{AsyncRead, ReadBuf};

/// Bytes of a line's beginning and end that are searched for the id. Servers write it first or last.
const SEARCHED: usize = 512;
/// JSON-RPC code for an internal error.
const INTERNAL: i32 = -32603;
/// Words by which the error is recognised again.
pub(super) const TOO_LONG: &str = "the answer is larger than this client takes";

/// A reader that notices lines of more than `most` bytes.
pub(super) struct OversizedLines<R> {
    inner: R,
    most: usize,
    length: usize,
    head: Vec<u8>,
    tail: Vec<u8>,
    pending: Vec<u8>,
}

impl<R> OversizedLines<R> {
    pub(super) fn new(inner: R, most: usize) -> Self {
        Self { inner, most, length: 0, head: Vec::new(), tail: Vec::new(), pending: Vec::new() }
    }

    /// Takes note of bytes that pass. After an oversized line: the position behind it and the error that follows.
    fn notice(&mut self, bytes: &[u8]) -> Option<(usize, Vec<u8>)> {
        let mut start = 0;
        while let Some(end) = bytes[start..].iter().position(|byte| *byte == b'\n').map(|at| start + at) {
            self.keep(&bytes[start..end]);
            let oversized = self.length + 1 > self.most;
            let error = oversized.then(|| self.error()).flatten();
            self.length = 0;
            self.head.clear();
            self.tail.clear();
            start = end + 1;
            if let Some(error) = error {
                return Some((start, error));
            }
        }
        self.keep(&bytes[start..]);
        None
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.length += bytes.len();
        let missing = SEARCHED.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..missing]);
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(SEARCHED)..]);
        let surplus = self.tail.len().saturating_sub(SEARCHED);
        self.tail.drain(..surplus);
    }

    fn error(&self) -> Option<Vec<u8>> {
        let id = id_after(&self.head, Search::First).or_else(|| id_after(&self.tail, Search::Last))?;
        let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": INTERNAL, "message": TOO_LONG}});
        Some(format!("{error}\n").into_bytes())
    }
}

#[derive(Clone, Copy)]
enum Search {
    First,
    Last,
}

/// The number or text that stands after a key `id`.
fn id_after(bytes: &[u8], search: Search) -> Option<Value> {
    const KEY: &[u8] = b"\"id\"";
    let mut windows = bytes.windows(KEY.len());
    let at = match search {
        Search::First => windows.position(|window| window == KEY),
        Search::Last => windows.rposition(|window| window == KEY),
    }?;
    let rest = bytes[at + KEY.len()..].trim_ascii_start().strip_prefix(b":")?;
    let id = Deserializer::from_slice(rest).into_iter::<Value>().next()?.ok()?;
    (id.is_number() || id.is_string()).then_some(id)
}

impl<R: AsyncRead + Unpin> AsyncRead for OversizedLines<R> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.pending.is_empty() {
            let before = buf.filled().len();
            ready!(Pin::new(&mut this.inner).poll_read(cx, buf))?;
            let read = buf.filled()[before..].to_vec();
            let Some((end, error)) = this.notice(&read) else { return Poll::Ready(Ok(())) };
            buf.set_filled(before + end);
            this.pending = error;
            // What came after the line was not noticed yet.
            let mut rest = &read[end..];
            while let Some((end, error)) = this.notice(rest) {
                this.pending.extend_from_slice(&rest[..end]);
                this.pending.extend(error);
                rest = &rest[end..];
            }
            this.pending.extend_from_slice(rest);
            return Poll::Ready(Ok(()));
        }
        let part = this.pending.len().min(buf.remaining());
        buf.put_slice(&this.pending[..part]);
        this.pending.drain(..part);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    async fn through(text: &str, most: usize) -> String {
        let mut read = String::new();
        OversizedLines::new(text.as_bytes(), most).read_to_string(&mut read).await.unwrap();
        read
    }

    /// MCP-1: an answer that is too long becomes an error for its own request, wherever the id stands in it.
    #[tokio::test]
    async fn an_oversized_answer_is_an_error_of_its_request() {
        let long = "x".repeat(2000);
        for line in [
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"text":"{long}"}}}}"#),
            format!(r#"{{"result":{{"text":"{long}"}},"jsonrpc":"2.0", "id" : 7}}"#),
        ] {
            let read = through(&format!("{{\"a\":1}}\n{line}\n{{\"b\":2}}\n{line}\n"), 1000).await;
            let lines: Vec<&str> = read.lines().collect();
            assert_eq!(lines.len(), 6, "{lines:?}");
            for at in [2, 5] {
                let error: Value = serde_json::from_str(lines[at]).unwrap();
                assert_eq!((&error["id"], &error["error"]["message"]), (&json!(7), &json!(TOO_LONG)));
            }
            assert_eq!((lines[0], lines[3]), (r#"{"a":1}"#, r#"{"b":2}"#));
        }
    }

    #[tokio::test]
    async fn other_lines_pass_as_they_are() {
        for text in ["", "\n\n", "{\"id\":1}\n", "no newline", &"y".repeat(5000)] {
            assert_eq!(through(text, 1000).await, text);
        }
        let nameless = format!("{}\n", "z".repeat(2000));
        assert_eq!(through(&nameless, 1000).await, nameless);
    }
}
