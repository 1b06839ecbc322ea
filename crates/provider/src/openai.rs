//! Chat completions as OpenAI defined them and many servers speak them: llama.cpp, Ollama, vLLM, LM Studio and others on
//! this machine, and most hosted ones.
//!
//! The protocol is a common tongue with many accents, so this client is strict in what it sends and patient in what it
//! reads. `envelope` tells a conversation of blocks as chat messages, `wire` names what comes back, `calls` and `reply`
//! put it together, `discover` finds servers on this machine. Sending, following the stream and trying again are
//! `exchange`'s, which every client shares.
//!
//! What the protocol has no word for is left out: signed thinking, cache breakpoints, betas, documents, and counting
//! tokens beforehand: [`Model::count_tokens`] always answers [`Error::Unsupported`], and the caller has to estimate.

mod calls;
mod discover;
mod envelope;
mod reply;
mod wire;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use transcript::Request;

use crate::Model;
use crate::error::Error;
use crate::event::Event;
use crate::exchange::{self, Exchange};
use crate::http::{Patience, Server, bearer};
use crate::retry::Retry;
use reply::Draft;

pub use discover::{DiscoveredServer, Kind, QUICK, USUAL, discover};
pub use envelope::completions;

/// The server's name for the limit on output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputLimit {
    /// `max_tokens`: every server but OpenAI's own understands it.
    MaxTokens,
    /// `max_completion_tokens`: the only one that OpenAI's newer models accept.
    MaxCompletionTokens,
}

impl OutputLimit {
    fn name(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

/// Configuration of a client.
#[derive(Debug, Clone)]
pub struct Config {
    /// The API's root, such as `http://127.0.0.1:11434/v1`. Where its path names no version, `/v1` is added.
    pub base_url: String,
    /// The key, sent as `authorization: Bearer`. Servers on this machine rarely want one.
    pub key: Option<SecretString>,
    /// The program's name and version, sent as `user-agent`.
    pub app: String,
    /// Limits on attempts and waits.
    pub retry: Retry,
    /// Time limits of the connection.
    pub patience: Patience,
    /// The server's name for the limit on output.
    pub output_limit: OutputLimit,
}

impl Config {
    /// The defaults for a server and a key.
    pub fn new(base_url: impl Into<String>, key: Option<SecretString>) -> Self {
        let base_url = base_url.into();
        let is_openai = base_url.trim().starts_with("https://api.openai.com");
        Self {
            output_limit: if is_openai { OutputLimit::MaxCompletionTokens } else { OutputLimit::MaxTokens },
            base_url,
            key,
            app: crate::http::APP.to_owned(),
            retry: Retry::default(),
            patience: Patience::default(),
        }
    }
}

/// A client of a chat completions server. Cheap to clone; clones share their connections.
#[derive(Debug, Clone)]
pub struct OpenAi {
    server: Arc<Server>,
    retry: Retry,
    output_limit: OutputLimit,
}

impl OpenAi {
    /// A client; nothing is contacted yet.
    pub fn new(config: Config) -> Result<Self, Error> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let key = config.key.filter(|key| !key.expose_secret().is_empty());
        if let Some(key) = &key {
            headers.insert(AUTHORIZATION, bearer(key)?);
        }
        let key = key.unwrap_or_default();
        let server = Server::new(&config.base_url, root, &config.app, &headers, key, config.patience)?;
        Ok(Self { server: Arc::new(server), retry: config.retry, output_limit: config.output_limit })
    }
}

impl Model for OpenAi {
    fn stream(&self, request: Request) -> BoxStream<'static, Event> {
        let client = self.clone();
        exchange::stream::<Draft>(move || {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
            let body = completions(&request, client.output_limit);
            Ok(Exchange { server: client.server, retry: client.retry, path: "chat/completions", headers, body })
        })
    }

    /// Always an error: no two servers share an endpoint for it.
    fn count_tokens(&self, _: Request) -> BoxFuture<'static, Result<u64, Error>> {
        let error = Error::Unsupported { host: self.server.host().to_owned(), what: "count tokens beforehand" };
        Box::pin(async { Err(error) })
    }
}

/// A base URL may name the server, the API's root, or the whole endpoint. Where no version is in its path, it is 1.
fn root(path: &str) -> String {
    let path = path.strip_suffix("/chat/completions").unwrap_or(path);
    let is_version = |segment: &str| matches!(segment.as_bytes(), [b'v', b'0'..=b'9', ..]);
    if path.split('/').any(is_version) { format!("{path}/") } else { format!("{path}/v1/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_is_understood_with_and_without_path_and_version() {
        for (path, wanted) in [
            ("", "/v1/"),
            ("/v1", "/v1/"),
            ("/v1/chat/completions", "/v1/"),
            ("/openai", "/openai/v1/"),
            ("/api/paas/v4", "/api/paas/v4/"),
            ("/v1beta/openai", "/v1beta/openai/"),
            ("/vault", "/vault/v1/"),
        ] {
            assert_eq!(root(path), wanted);
        }
    }

    #[test]
    fn the_limit_has_the_name_the_server_knows() {
        assert_eq!(Config::new("https://api.openai.com/v1", None).output_limit, OutputLimit::MaxCompletionTokens);
        assert_eq!(Config::new("http://127.0.0.1:8080", None).output_limit, OutputLimit::MaxTokens);
    }
}
