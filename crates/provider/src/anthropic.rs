//! The Anthropic Messages API, and servers that speak it.
//!
//! [`envelope`] writes the request, `wire` names what comes back, `reply` puts it together. Sending, following the stream
//! and trying again are `exchange`'s, which every client shares. Keys live in [`Auth`] and cannot be printed.

pub mod envelope;
mod reply;
mod wire;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use transcript::Request;

use crate::error::{Error, FailedAttempt};
use crate::event::{Emit, Event};
use crate::exchange::{self, Exchange};
use crate::http::{APP, Patience, Server, bearer, secret_header, settings};
use crate::retry::{Retry, persist};
use crate::{Model, ProviderSearch};
use reply::Draft;

/// Default base URL of the API.
pub const BASE_URL: &str = "https://api.anthropic.com";

/// The version of the API this client speaks.
const VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

/// Size limit of a `count_tokens` answer, in bytes.
const COUNT_LIMIT: usize = 64 << 10;

/// Credentials of a request. Debug output does not show the secret.
#[derive(Debug, Clone)]
pub enum Auth {
    /// An API key, sent as `x-api-key`.
    ApiKey(SecretString),
    /// A token, sent as `authorization: Bearer`.
    AuthToken(SecretString),
}

/// Configuration of a client.
#[derive(Debug, Clone)]
pub struct Config {
    /// With or without a trailing slash, a path, or `/v1`.
    pub base_url: String,
    /// The key or token.
    pub auth: Auth,
    /// The program's name and version, sent as `user-agent`.
    pub app: String,
    /// Limits on attempts and waits.
    pub retry: Retry,
    /// Time limits of the connection.
    pub patience: Patience,
}

impl Config {
    /// The defaults for a server and a key.
    pub fn new(base_url: impl Into<String>, auth: Auth) -> Self {
        let app = APP.to_owned();
        Self { base_url: base_url.into(), auth, app, retry: Retry::default(), patience: Patience::default() }
    }
}

/// A client of the Messages API. Cheap to clone; clones share their connections.
#[derive(Debug, Clone)]
pub struct Anthropic {
    server: Arc<Server>,
    retry: Retry,
    /// True if it is the provider's own host, which is known to search.
    searches: bool,
}

impl Anthropic {
    /// A client; nothing is contacted yet.
    pub fn new(config: Config) -> Result<Self, Error> {
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-version", VERSION);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let secret = match config.auth {
            Auth::ApiKey(key) => {
                headers.insert(HeaderName::from_static("x-api-key"), secret_header(key.expose_secret())?);
                key
            }
            Auth::AuthToken(token) => {
                headers.insert(AUTHORIZATION, bearer(&token)?);
                token
            }
        };
        let server = Server::new(&config.base_url, root, &config.app, &headers, secret, config.patience)?;
        let searches = config.base_url.trim_end_matches('/').trim_end_matches("/v1") == BASE_URL;
        Ok(Self { server: Arc::new(server), retry: config.retry, searches })
    }

    fn exchange(&self, path: &'static str, headers: HeaderMap, body: Bytes) -> Exchange {
        Exchange { server: Arc::clone(&self.server), retry: self.retry, path, headers, body }
    }
}

impl Model for Anthropic {
    fn stream(&self, request: Request) -> BoxStream<'static, Event> {
        let client = self.clone();
        exchange::stream::<Draft>(move || {
            let headers = headers(&request, "text/event-stream")?;
            Ok(client.exchange("messages", headers, envelope::messages(&request)))
        })
    }

    fn edits_cache(&self) -> bool {
        true
    }

    fn web_search(&self) -> ProviderSearch {
        if self.searches { ProviderSearch::Offered } else { ProviderSearch::Unknown }
    }

    fn count_tokens(&self, request: Request) -> BoxFuture<'static, Result<u64, Error>> {
        let client = self.clone();
        Box::pin(async move {
            let headers = headers(&request, "application/json")?;
            let exchange = client.exchange("messages/count_tokens", headers, envelope::count(&request));
            persist(&client.retry, &exchange.body, &Emit::silent(), || count(&exchange)).await
        })
    }
}

/// Asks for a count once.
async fn count(exchange: &Exchange) -> Result<u64, FailedAttempt> {
    #[derive(Deserialize)]
    struct Count {
        input_tokens: u64,
    }
    let response = exchange.send().await?;
    let server = &exchange.server;
    let body = server.whole(response, COUNT_LIMIT).await.map_err(|broken| server.broken(broken))?;
    let count: Count = serde_json::from_slice(&body)
        .map_err(|error| server.unreadable("the count", &error, &String::from_utf8_lossy(&body)))?;
    Ok(count.input_tokens)
}

/// The base URL may end in a slash, in a path of its own, and in the version.
fn root(path: &str) -> String {
    format!("{}/v1/", path.strip_suffix("/v1").unwrap_or(path))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_is_understood_with_and_without_path_and_version() {
        for (path, wanted) in [("", "/v1/"), ("/v1", "/v1/"), ("/proxy", "/proxy/v1/"), ("/v1/proxy", "/v1/proxy/v1/")]
        {
            assert_eq!(root(path), wanted);
        }
    }
}
