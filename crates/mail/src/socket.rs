//! A message to another session by its socket: a line each way. Who listens is the binary's matter.
//!
//! What is acknowledged stands in the other session's mailbox, on the disk; one whose answer was lost is sent again under
//! the same id.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use crate::mailbox::{MailError, Message};

/// How long the other side may take to put one message on its disk.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a peer may take to send one message, which is a line on this machine: whoever is slower means no message.
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

/// What the other side says.
#[derive(Debug, Serialize, Deserialize)]
struct Receipt {
    /// Why it was not taken; nothing where it was.
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

/// How long a peer is waited for.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Until a message of it has come whole.
    pub comes: Duration,
    /// Until it has taken an answer.
    pub taken: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { comes: PROMPTLY, taken: PATIENCE }
    }
}

/// Takes the messages that come through a connection: each is acknowledged when `take` has it on the disk.
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
