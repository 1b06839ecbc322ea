//! A server made of bytes: it sends what a test tells it to, in the pieces a test tells it to, and keeps what it was sent.
//!
//! It is as rude as a test needs. What a *correct* server does is the simulator's business.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// One thing the server does with a connection.
#[derive(Clone)]
pub(crate) enum Step {
    /// Sends bytes at once.
    Send(Vec<u8>),
    /// Sends them one by one.
    Trickle(Vec<u8>),
    /// Sends the same bytes until the client has had enough.
    Pour(Vec<u8>),
    /// Sends nothing more and keeps the connection open until the client closes it.
    Stall,
    /// Closes the connection in the middle of things.
    Reset,
}

/// What the server does with one connection; then it closes it.
pub(crate) type Answer = Vec<Step>;

/// A request as it came in.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    pub(crate) fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }
}

/// A listening server. Dropping it ends it.
pub(crate) struct Server {
    pub(crate) url: String,
    received: Arc<Mutex<Vec<Received>>>,
    /// How many clients have hung up on a stall.
    hung_up: watch::Receiver<usize>,
    task: JoinHandle<()>,
}

impl Server {
    /// Gives the answers in turn; the last one again and again.
    pub(crate) async fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let received = Arc::new(Mutex::new(Vec::new()));
        let (hang_up, hung_up) = watch::channel(0);
        let log = Arc::clone(&received);
        let task = tokio::spawn(async move {
            for turn in 0.. {
                let Ok((mut stream, _)) = listener.accept().await else { return };
                let answer = answers[turn.min(answers.len() - 1)].clone();
                let (log, hang_up) = (Arc::clone(&log), hang_up.clone());
                tokio::spawn(async move {
                    if let Some(request) = read(&mut stream).await {
                        log.lock().unwrap().push(request);
                    }
                    for step in answer {
                        if perform(step, &mut stream, &hang_up).await.is_err() {
                            return;
                        }
                    }
                    let _ = stream.shutdown().await;
                });
            }
        });
        Self { url, received, hung_up, task }
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// Waits until a client has hung up on a stall.
    pub(crate) async fn is_hung_up_on(&mut self) {
        self.hung_up.wait_for(|count| *count > 0).await.unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An address where nobody listens.
pub(crate) async fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

async fn perform(step: Step, stream: &mut TcpStream, hang_up: &watch::Sender<usize>) -> std::io::Result<()> {
    match step {
        Step::Send(bytes) => stream.write_all(&bytes).await?,
        Step::Trickle(bytes) => {
            stream.set_nodelay(true)?;
            for byte in bytes {
                stream.write_all(&[byte]).await?;
                stream.flush().await?;
                tokio::task::yield_now().await;
            }
        }
        Step::Pour(bytes) => loop {
            stream.write_all(&bytes).await?;
        },
        Step::Stall => {
            let mut rest = [0; 64];
            while matches!(stream.read(&mut rest).await, Ok(1..)) {}
            hang_up.send_modify(|count| *count += 1);
        }
        Step::Reset => {
            // Closing with a zero linger discards what is unsent and resets the connection.
            stream.set_zero_linger()?;
            return Err(std::io::ErrorKind::ConnectionReset.into());
        }
    }
    Ok(())
}

async fn read(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    loop {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let received = Received { head, body: String::new() };
            let length: usize = received.header("content-length").unwrap_or("0").parse().ok()?;
            let mut body = bytes.split_off(end + 4);
            while body.len() < length {
                if stream.read_buf(&mut body).await.ok()? == 0 {
                    return None;
                }
            }
            return Some(Received { body: String::from_utf8(body).ok()?, ..received });
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// A text in pieces of a few characters, as servers send it.
pub(crate) fn pieces(text: &str) -> Vec<String> {
    text.chars().collect::<Vec<char>>().chunks(4).map(|piece| piece.iter().collect()).collect()
}

/// The head of an answer whose body ends when the connection does.
pub(crate) fn head(status: u16, headers: &[(&str, &str)]) -> Vec<u8> {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("HTTP/1.1 {status} Whatever\r\nconnection: close\r\n{headers}\r\n").into_bytes()
}

/// A whole answer.
pub(crate) fn whole(status: u16, headers: &[(&str, &str)], body: &str) -> Answer {
    let length = body.len().to_string();
    let mut headers = headers.to_vec();
    headers.push(("content-length", &length));
    vec![Step::Send([head(status, &headers), body.as_bytes().to_vec()].concat())]
}

/// The head of an event stream.
pub(crate) fn stream_head() -> Vec<u8> {
    head(200, &[("content-type", "text/event-stream; charset=utf-8")])
}

/// An event stream of these events.
pub(crate) fn stream(events: &[String]) -> Answer {
    vec![Step::Send([stream_head(), events.concat().into_bytes()].concat())]
}

/// One chunk of a chunked body, without the end that would make the body whole.
pub(crate) fn cut_chunk(events: &[String]) -> Answer {
    let body = events.concat();
    let head = head(200, &[("content-type", "text/event-stream"), ("transfer-encoding", "chunked")]);
    vec![Step::Send([head, format!("{:x}\r\n{body}\r\n", body.len()).into_bytes()].concat())]
}

/// Long enough for a slow machine, never reached by a passing test.
pub(crate) const PLENTY: Duration = Duration::from_secs(30);
