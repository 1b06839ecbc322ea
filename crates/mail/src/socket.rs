//! A message to another session by its socket: a line each way. Listening is the binary's part.
//!
//! An acknowledged message is in the other session's mailbox, on disk; one whose acknowledgement was lost is sent again
//! with the same id.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use crate::mailbox::{MailError, Message};

/// Time limit for the other side to put one message on its disk.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time limit for a peer to send one message, a line on this machine; a slower peer is sending no message.
const PROMPTLY: Duration = Duration::from_secs(2);
/// The longest line: a message may be a tenth of this, and quoting makes it longer.
const LONGEST: u64 = 1_000_000;

/// A message on its way.
#[derive(Debug, Serialize, Deserialize)]
struct SocketMessage {
    id: String,
    from: String,
    text: String,
    summary: Option<String>,
    timestamp: String,
}

/// Reply of the other side.
#[derive(Debug, Serialize, Deserialize)]
struct Receipt {
    /// The reason it was rejected; none if it was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Sends a message to a session.
pub async fn send(path: &Path, message: &Message) -> Result<(), MailError> {
    let failed = |why: String| MailError::Socket { path: path.to_owned(), why };
    let exchange = async {
        let mut stream = BufReader::new(UnixStream::connect(path).await?);
        let Message { id, from, text, summary, timestamp } = message.clone();
        let mut line = serde_json::to_vec(&SocketMessage { id, from, text, summary, timestamp })?;
        line.push(b'\n');
        stream.write_all(&line).await?;
        let mut answer = Vec::new();
        stream.take(LONGEST).read_until(b'\n', &mut answer).await?;
        Ok::<_, std::io::Error>(serde_json::from_slice::<Receipt>(&answer)?)
    };
    match tokio::time::timeout(PATIENCE, exchange).await {
        Ok(Ok(Receipt { error: None })) => Ok(()),
        Ok(Ok(Receipt { error: Some(why) })) => Err(failed(why)),
        Ok(Err(error)) => Err(failed(error.to_string())),
        Err(_) => Err(failed(format!("no answer within {} s", PATIENCE.as_secs()))),
    }
}

/// Time limits for a peer.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// For receiving one whole message.
    pub comes: Duration,
    /// For sending it an answer.
    pub taken: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { comes: PROMPTLY, taken: PATIENCE }
    }
}

/// Receives the messages of a connection: each is acknowledged once `take` has put it on disk.
pub async fn receive(
    stream: UnixStream,
    patience: Patience,
    mut take: impl FnMut(&Message) -> Result<(), MailError>,
) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        let mut limited = (&mut stream).take(LONGEST);
        if tokio::time::timeout(patience.comes, limited.read_until(b'\n', &mut line)).await?? == 0 {
            return Ok(());
        }
        let mut is_message = true;
        let error = match serde_json::from_slice::<SocketMessage>(&line) {
            Ok(SocketMessage { id, from, text, summary, timestamp }) => {
                let taken = take(&Message { id, from, text, summary, timestamp });
                taken.err().map(|error| error.to_string())
            }
            Err(error) => {
                is_message = false;
                Some(format!("no message: {error}"))
            }
        };
        let mut answer = serde_json::to_vec(&Receipt { error })?;
        answer.push(b'\n');
        tokio::time::timeout(patience.taken, stream.write_all(&answer)).await??;
        if !is_message {
            return Ok(()); // whoever it is, it is no session
        }
    }
}
