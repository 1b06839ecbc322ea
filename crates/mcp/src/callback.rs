//! The end of a login: the browser comes back to this machine with a code.
//!
//! The listener is on loopback only, takes one path and one `state`, and shows nothing that it was sent. Whoever else
//! connects is told so and is not waited for.

use std::fmt;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use url::Url;

/// The path that the browser is sent back to, as in Claude Code.
const PATH: &str = "/callback";
/// The most bytes of a request's head.
const LONGEST_HEAD: usize = 16 << 10;
/// For one request.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most connections at once: browsers open some in advance.
const MOST_CONNECTIONS: usize = 32;

const WELCOME: &str = "Cairn has the answer. You can close this page.";
const REFUSED: &str = "The login did not succeed. You can close this page; Cairn says why.";
const LOST: &str = "There is nothing here.";

/// A port on loopback that waits for the browser.
#[derive(Debug)]
pub struct CallbackListener {
    v4: TcpListener,
    v6: Option<TcpListener>,
    port: u16,
}

/// The address that the browser was sent back to, with the code.
#[derive(Clone, PartialEq, Eq)]
pub struct Callback {
    url: Url,
}

impl CallbackListener {
    /// Listens on the port that a client was registered with, or on any.
    pub async fn bind(port: Option<u16>) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("the port for the browser's callback cannot be opened: {error}");
        let v4 = TcpListener::bind(("127.0.0.1", port.unwrap_or(0))).await.map_err(failed)?;
        let port = v4.local_addr().map_err(failed)?.port();
        // `localhost` may be either; a machine without IPv6 does without.
        let v6 = TcpListener::bind(("::1", port)).await.ok();
        Ok(Self { v4, v6, port })
    }

    /// The address to register and to send the browser back to.
    pub fn redirect_uri(&self) -> String {
        format!("http://localhost:{}{PATH}", self.port)
    }

    /// Waits until the browser comes back with this `state`.
    pub(crate) async fn wait(&self, state: &str) -> Callback {
        let (found, mut callbacks) = mpsc::channel(1);
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                Some(callback) = callbacks.recv() => {
                    // The page is on its way: the browser has to get it before the port closes.
                    let _ = timeout(PATIENCE, connections.join_all()).await;
                    return callback;
                }
                stream = self.accept(), if connections.len() < MOST_CONNECTIONS => {
                    connections.spawn(serve(stream, state.to_owned(), found.clone()));
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }

    async fn accept(&self) -> TcpStream {
        loop {
            let accepted = match &self.v6 {
                Some(v6) => tokio::select! {
                    accepted = self.v4.accept() => accepted,
                    accepted = v6.accept() => accepted,
                },
                None => self.v4.accept().await,
            };
            match accepted {
                Ok((stream, _)) => return stream,
                // Such as too many open files: others have to end first.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }
}

impl Callback {
    /// The address that a user copied from the browser.
    pub fn from_address(text: &str) -> Result<Self, String> {
        let url = Url::parse(text.trim())
            .map_err(|_| "this is not an address: copy all of it from the browser".to_owned())?;
        let callback = Self { url };
        match callback.value("code").or_else(|| callback.value("error")) {
            Some(_) => Ok(callback),
            None => Err("this address has no code in it: copy the one that the browser ended up at".to_owned()),
        }
    }

    pub(crate) fn address(&self) -> &str {
        self.url.as_str()
    }

    pub(crate) fn value(&self, key: &str) -> Option<String> {
        self.url.query_pairs().find(|(name, _)| name == key).map(|(_, value)| value.into_owned())
    }
}

impl fmt::Debug for Callback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callback")
    }
}

/// Answers one request, and passes it on if it is the one that is waited for.
async fn serve(mut stream: TcpStream, state: String, found: mpsc::Sender<Callback>) {
    let Ok(Some(target)) = timeout(PATIENCE, target(&mut stream)).await else { return };
    let callback = Url::parse("http://localhost").and_then(|base| base.join(&target)).ok().map(|url| Callback { url });
    let callback = callback
        .filter(|callback| callback.url.path() == PATH && callback.value("state").is_some_and(|given| given == state));
    let (status, text) = match &callback {
        None => ("404 Not Found", LOST),
        Some(callback) if callback.value("error").is_some() => ("200 OK", REFUSED),
        Some(_) => ("200 OK", WELCOME),
    };
    let page = format!("<!doctype html><meta charset=utf-8><title>Cairn</title><p>{text}");
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
         content-security-policy: default-src 'none'\r\nreferrer-policy: no-referrer\r\ncache-control: no-store\r\n\
         connection: close\r\n\r\n{page}",
        page.len()
    );
    let _ = timeout(PATIENCE, async {
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
    })
    .await;
    if let Some(callback) = callback {
        let _ = found.try_send(callback);
    }
}

/// The target of a GET request.
async fn target(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut chunk = [0; 2048];
        let read = stream.read(&mut chunk).await.ok()?;
        if read == 0 || head.len() + read > LONGEST_HEAD {
            return None;
        }
        head.extend_from_slice(&chunk[..read]);
    }
    let line = head.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    (words.next() == Some("GET")).then(|| words.next().map(str::to_owned)).flatten()
}
