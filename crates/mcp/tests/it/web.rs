//! A web server on loopback that a function plays.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct WebRequest {
    pub(crate) method: String,
    /// The path with its query.
    pub(crate) target: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl WebRequest {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    /// The method of the message of the protocol that it carries.
    pub(crate) fn message(&self) -> String {
        self.json()["method"].as_str().unwrap_or_default().to_owned()
    }

    /// A value of its form.
    pub(crate) fn form(&self, key: &str) -> Option<String> {
        url::form_urlencoded::parse(self.body.as_bytes())
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.into_owned())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// Answer of a server.
#[derive(Debug, Clone, Default)]
pub(crate) struct WebAnswer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// Bytes that follow the body without having been announced.
    pub(crate) filler: usize,
}

impl WebAnswer {
    pub(crate) fn new(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    pub(crate) fn json(value: &Value) -> Self {
        Self { body: value.to_string().into_bytes(), ..Self::new(200) }.with("content-type", "application/json")
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

/// A running server, until it is dropped.
pub(crate) struct WebServer {
    pub(crate) address: String,
    requests: Arc<Mutex<Vec<WebRequest>>>,
    task: JoinHandle<()>,
}

impl WebServer {
    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<WebRequest> {
        self.requests.lock().clone()
    }

    /// Messages of the protocol so far, by their method.
    pub(crate) fn messages(&self) -> Vec<String> {
        self.requests().iter().filter(|request| request.method == "POST").map(WebRequest::message).collect()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Starts a server at any port. The function gets its address beside each request.
pub(crate) async fn serve<F, A>(answer: F) -> WebServer
where
    F: Fn(String, WebRequest) -> A + Send + Sync + 'static,
    A: Future<Output = WebAnswer> + Send,
{
    serve_at("127.0.0.1:0", answer).await
}

/// Starts a server at an address that another one may have had.
pub(crate) async fn serve_at<F, A>(at: &str, answer: F) -> WebServer
where
    F: Fn(String, WebRequest) -> A + Send + Sync + 'static,
    A: Future<Output = WebAnswer> + Send,
{
    let listener = TcpListener::bind(at).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let requests = Arc::new(Mutex::new(Vec::new()));
    let (answer, heard, own) = (Arc::new(answer), requests.clone(), address.clone());
    let task = tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let (answer, heard, own) = (answer.clone(), heard.clone(), own.clone());
            connections.spawn(async move {
                let _ = one(stream, |request: WebRequest| {
                    heard.lock().push(request.clone());
                    answer(own, request)
                })
                .await;
            });
        }
    });
    WebServer { address, requests, task }
}

async fn one<A: Future<Output = WebAnswer>>(
    mut stream: TcpStream,
    answer: impl FnOnce(WebRequest) -> A,
) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let (head, length) = loop {
        let mut chunk = [0; 8192];
        let read = stream.read(&mut chunk).await?;
        if read == 0 {
            return Ok(());
        }
        bytes.extend_from_slice(&chunk[..read]);
        let Some(end) = bytes.windows(4).position(|end| end == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let length =
            head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
        if bytes.len() >= end + 4 + length.unwrap_or(0) {
            break (head, end + 4);
        }
    };
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let headers =
        lines.filter_map(|line| line.split_once(": ")).map(|(name, value)| (name.to_lowercase(), value.to_owned()));
    let request = WebRequest {
        method: words.next().unwrap_or_default(),
        target: words.next().unwrap_or_default(),
        headers: headers.collect(),
        body: String::from_utf8_lossy(&bytes[length..]).into_owned(),
    };
    let answer = answer(request).await;
    let mut text = format!("HTTP/1.1 {} x\r\nconnection: close\r\n", answer.status);
    for (name, value) in &answer.headers {
        text += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{text}\r\n").as_bytes()).await?;
    stream.write_all(&answer.body).await?;
    for _ in 0..answer.filler / 65536 {
        stream.write_all(&[b'x'; 65536]).await?;
    }
    stream.shutdown().await
}
