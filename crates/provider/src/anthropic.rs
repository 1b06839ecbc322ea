//! The Anthropic Messages API, and servers that speak it.
//!
//! One attempt is: post the body, read the answer's head, turn its events into a reply. Around it, [`crate::retry`]
//! decides what a failed attempt leads to. A stream that is cut before the reply is complete is asked for again with the
//! same bytes; one that is cut after everything but the farewell has come counts as complete.
//!
//! A server that answers `"stream":true` with plain JSON is understood; one that answers with a web page is told apart
//! from one that answers wrongly. Keys live in [`Auth`] and cannot be printed.

pub mod envelope;
mod refusal;
mod reply;
mod wire;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use reqwest::Response;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use transcript::{Reply, Request};

use crate::Model;
use crate::error::{Error, Failure};
use crate::event::{Emit, Event, generate};
use crate::http::{Broken, Patience, Server};
use crate::retry::{Retry, persist};
use crate::sse::{Events, REPLY_LIMIT};
use refusal::{Complaint, EXCERPT};
use reply::Draft;
use wire::{KNOWN, Whole, Wire};

/// Where the API lives if nobody says otherwise.
pub const BASE_URL: &str = "https://api.anthropic.com";

/// The version of the API this client speaks.
const VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

/// The most a `count_tokens` answer may weigh.
const COUNT_LIMIT: usize = 64 << 10;

/// How a request proves whose it is. Debug output does not show the secret.
#[derive(Debug, Clone)]
pub enum Auth {
    /// An API key, sent as `x-api-key`.
    ApiKey(SecretString),
    /// A token, sent as `authorization: Bearer`.
    AuthToken(SecretString),
}

/// Everything a client needs to know.
#[derive(Debug, Clone)]
pub struct Config {
    /// With or without a trailing slash, a path, or `/v1`.
    pub base_url: String,
    /// The key or token.
    pub auth: Auth,
    /// The program's name and version, sent as `user-agent`.
    pub app: String,
    /// How persistent to be.
    pub retry: Retry,
    /// How patient to be.
    pub patience: Patience,
}

impl Config {
    /// The defaults for a server and a key.
    pub fn new(base_url: impl Into<String>, auth: Auth) -> Self {
        let app = concat!("cairn/", env!("CARGO_PKG_VERSION")).to_owned();
        Self { base_url: base_url.into(), auth, app, retry: Retry::default(), patience: Patience::default() }
    }
}

/// A client of the Messages API. Cheap to clone; clones share their connections.
#[derive(Debug, Clone)]
pub struct Anthropic {
    server: Arc<Server>,
    retry: Retry,
}

impl Anthropic {
    /// A client; nothing is contacted yet.
    pub fn new(config: Config) -> Result<Self, Error> {
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-version", VERSION);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let (name, secret, value) = match config.auth {
            Auth::ApiKey(key) => (HeaderName::from_static("x-api-key"), key.clone(), key.expose_secret().to_owned()),
            Auth::AuthToken(token) => (AUTHORIZATION, token.clone(), format!("Bearer {}", token.expose_secret())),
        };
        let value = HeaderValue::from_str(&value);
        let mut value = value.map_err(|_| settings("the key or token contains characters that cannot be sent"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
        let server = Server::new(&config.base_url, &config.app, &headers, secret, config.patience)?;
        Ok(Self { server: Arc::new(server), retry: config.retry })
    }

    /// Sends the request until there is a reply or no hope of one.
    async fn reply(&self, request: &Request, emit: &Emit) -> Result<Reply, Error> {
        let headers = headers(request, "text/event-stream")?;
        let body = envelope::messages(request);
        persist(&self.retry, &body, emit, || self.attempt(headers.clone(), body.clone(), emit)).await
    }

    /// Sends the request once.
    async fn attempt(&self, headers: HeaderMap, body: Bytes, emit: &Emit) -> Result<Reply, Failure> {
        let response = self.server.post("messages", headers, body).await?;
        if !response.status().is_success() {
            return Err(refusal::of_response(&self.server, response).await);
        }
        if is_event_stream(&response) {
            return self.follow(Events::new(self.server.chunks(response)), emit).await;
        }
        let body = self.server.whole(response, REPLY_LIMIT).await.map_err(|broken| self.server.broken(broken))?;
        match body.trim_ascii_start() {
            [b'{', ..] => self.read_whole(&body, emit).await,
            start if start.starts_with(b"event:") || start.starts_with(b"data:") => {
                self.follow(Events::of_whole(body), emit).await
            }
            start => Err(self.server.malformed(self.server.quote(&String::from_utf8_lossy(start), EXCERPT))),
        }
    }

    /// Follows a stream of events to its end.
    async fn follow(&self, mut events: Events, emit: &Emit) -> Result<Reply, Failure> {
        let mut draft = Draft::default();
        let broken = loop {
            let event = match events.next().await {
                Some(Ok(event)) => event,
                Some(Err(broken @ (Broken::Cut(_) | Broken::Idle(_)))) => break broken,
                Some(Err(broken)) => return Err(self.server.broken(broken)),
                None => break Broken::Cut("the stream ended early".into()),
            };
            let Some(data) = event.data.filter(|data| !data.is_empty() && data != "[DONE]") else { continue };
            if event.event.is_some_and(|name| !name.is_empty() && !KNOWN.contains(&name.as_str())) {
                continue;
            }
            let wire = serde_json::from_str(&data).map_err(|error| self.unreadable("an event", &error, &data))?;
            if let Wire::Error(complaint) = &wire {
                return Err(refusal::of_complaint(&self.server, complaint));
            }
            let shown = draft.take(wire).map_err(|wrong| self.server.malformed(wrong))?;
            if let Some(shown) = shown {
                emit.send(shown).await;
            }
            if draft.has_ended() {
                break Broken::Cut("a block of the reply is missing".into());
            }
        };
        draft.finish().ok_or_else(|| self.server.broken(broken))
    }

    /// Reads a reply, or an error, that came as one JSON object.
    async fn read_whole(&self, body: &[u8], emit: &Emit) -> Result<Reply, Failure> {
        if let Ok(complaint) = serde_json::from_slice::<Complaint>(body) {
            return Err(refusal::of_complaint(&self.server, &complaint));
        }
        let whole: Whole = serde_json::from_slice(body)
            .map_err(|error| self.unreadable("the reply", &error, &String::from_utf8_lossy(body)))?;
        let mut draft = Draft::default();
        for event in draft.take_whole(whole).map_err(|wrong| self.server.malformed(wrong))? {
            emit.send(event).await;
        }
        draft.finish().ok_or_else(|| self.server.malformed("the reply is not complete"))
    }

    /// Asks for a count once.
    async fn count(&self, headers: HeaderMap, body: Bytes) -> Result<u64, Failure> {
        #[derive(Deserialize)]
        struct Count {
            input_tokens: u64,
        }
        let response = self.server.post("messages/count_tokens", headers, body).await?;
        if !response.status().is_success() {
            return Err(refusal::of_response(&self.server, response).await);
        }
        let body = self.server.whole(response, COUNT_LIMIT).await.map_err(|broken| self.server.broken(broken))?;
        let count: Count = serde_json::from_slice(&body)
            .map_err(|error| self.unreadable("the count", &error, &String::from_utf8_lossy(&body)))?;
        Ok(count.input_tokens)
    }

    fn unreadable(&self, what: &str, error: &serde_json::Error, text: &str) -> Failure {
        self.server.malformed(format!("{what} cannot be read ({error}): {}", self.server.quote(text, EXCERPT)))
    }
}

impl Model for Anthropic {
    fn stream(&self, request: Request) -> BoxStream<'static, Event> {
        let client = self.clone();
        generate(async move |emit: Emit| {
            let last = match client.reply(&request, &emit).await {
                Ok(reply) => Event::Done(reply),
                Err(error) => Event::Failed(error),
            };
            emit.send(last).await;
        })
    }

    fn count_tokens(&self, request: Request) -> BoxFuture<'static, Result<u64, Error>> {
        let client = self.clone();
        Box::pin(async move {
            let headers = headers(&request, "application/json")?;
            let body = envelope::count(&request);
            persist(&client.retry, &body, &Emit::silent(), || client.count(headers.clone(), body.clone())).await
        })
    }
}

/// The headers that depend on the request.
fn headers(request: &Request, accept: &'static str) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static(accept));
    let betas = &request.prologue.betas;
    if !betas.is_empty() {
        let value = HeaderValue::from_str(&betas.join(","));
        let value = value.map_err(|_| settings(format!("a beta's name cannot be sent: {betas:?}")))?;
        headers.insert("anthropic-beta", value);
    }
    Ok(headers)
}

fn is_event_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream")
}

fn settings(message: impl Into<String>) -> Error {
    Error::Settings { message: message.into() }
}
