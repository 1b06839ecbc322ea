//! One server: how it is reached, how long it may be silent, and what its failures mean.
//!
//! Redirects are not followed and nothing but the configured host (or the user's proxy on the way to it) is contacted.
//! A server on this machine is reached without the proxy. Every text of the server's that ends up in an error goes
//! through [`Server::quote`], which hides the key.

mod post;

use std::error::Error as _;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{RequestBuilder, Response, Url};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::timeout;

use crate::error::{Error, FailedAttempt, NextAttempt};

pub use post::{HttpAnswer, post};

/// Length of the shortest secret. Shorter keys are placeholder words for servers without keys, which may appear in
/// their answers.
const SHORTEST_KEY: usize = 8;
/// Default name and version of the program.
pub(crate) const APP: &str = concat!("cairn/", env!("CARGO_PKG_VERSION"));

/// Characters of a text from outside the API that an error repeats.
pub(crate) const EXCERPT: usize = 200;

const V4_HERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const V6_HERE: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 0);

/// Time limits of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For a connection, TLS included.
    pub connect: Duration,
    /// For the first byte of an answer: a server may read a long prompt, or write the whole reply, before it sends
    /// anything.
    pub answer: Duration,
    /// For the next byte of an answer that has begun. A healthy server sends pings.
    pub idle: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { connect: Duration::from_secs(20), answer: Duration::from_secs(300), idle: Duration::from_secs(90) }
    }
}

/// A server and the way to it.
#[derive(Debug)]
pub(crate) struct Server {
    client: reqwest::Client,
    base: Url,
    host: String,
    secret: SecretString,
    patience: Patience,
    /// True once a part of an answer could be read.
    has_spoken: AtomicBool,
}

/// Unexpected end of a body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyFault {
    #[error("{0}")]
    Cut(String),
    #[error("silent for {} s", .0.as_secs_f32())]
    Idle(Duration),
    #[error("{what} of more than {} MB", limit >> 20)]
    TooLarge { what: &'static str, limit: usize },
    #[error("{0}")]
    NotEvents(String),
}

impl Server {
    /// A server at a base URL, with the headers every request carries and the secret that is among them. `root` makes
    /// the API's root, with a slash at its end, of the path that the base URL has.
    pub(crate) fn new(
        base_url: &str,
        root: fn(&str) -> String,
        app: &str,
        headers: &HeaderMap,
        secret: SecretString,
        patience: Patience,
    ) -> Result<Self, Error> {
        let mut base =
            Url::parse(base_url.trim()).map_err(|error| settings(format!("the base URL is not a URL: {error}")))?;
        let Some(name) = base.host_str().filter(|_| matches!(base.scheme(), "http" | "https")) else {
            return Err(settings("the base URL must begin with http:// or https://"));
        };
        if !base.username().is_empty() || base.password().is_some() {
            return Err(settings("the base URL must not contain a user name or password; use the key or token"));
        }
        let host = base.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"));
        let _ = rustls::crypto::ring::default_provider().install_default(); // it may be so already
        let builder = || {
            let builder = reqwest::Client::builder()
                .user_agent(app)
                .default_headers(headers.clone())
                .redirect(reqwest::redirect::Policy::none())
                .retry(reqwest::retry::never())
                .referer(false)
                .connect_timeout(patience.connect);
            match is_loopback(name) {
                // Whatever the resolver says, `localhost` is this machine (RFC 6761). Port 0 stands for the URL's own.
                true => builder.no_proxy().resolve_to_addrs(name, &[V4_HERE, V6_HERE]),
                false => builder,
            }
        };
        // A machine without certificates can still speak plain HTTP.
        let plain = || builder().tls_certs_only([]).build();
        let client = match base.scheme() {
            "http" if is_loopback(name) => plain(),
            "http" => builder().build().or_else(|_| plain()),
            _ => builder().build(),
        };
        let client =
            client.map_err(|error| settings(format!("the HTTP client could not be set up: {}", deepest(&error))))?;
        let path = root(base.path().trim_end_matches('/'));
        base.set_path(&path);
        Ok(Self { client, base, host, secret, patience, has_spoken: AtomicBool::new(false) })
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Posts JSON to a path below the API's root and waits for the answer's head.
    pub(crate) async fn post(&self, path: &str, headers: HeaderMap, body: Bytes) -> Result<Response, FailedAttempt> {
        tracing::debug!(host = self.host, path, bytes = body.len(), "request");
        self.send(self.client.post(self.url(path)).headers(headers).body(body)).await
    }

    /// Gets what is at a path below the API's root; `../` leads out of it.
    pub(crate) async fn get(&self, path: &str) -> Result<Response, FailedAttempt> {
        self.send(self.client.get(self.url(path))).await
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, FailedAttempt> {
        match timeout(self.patience.answer, request.send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(self.unsent(&error)),
            Err(_) => Err(self.broken(BodyFault::Idle(self.patience.answer))),
        }
    }

    /// A body's chunks as they come; silence is an error.
    pub(crate) fn chunks(&self, response: Response) -> BoxStream<'static, Result<Bytes, BodyFault>> {
        let idle = self.patience.idle;
        let state = (response, self.patience.answer);
        let chunks = stream::try_unfold(state, move |(mut response, patience)| async move {
            match timeout(patience, response.chunk()).await {
                Ok(Ok(chunk)) => Ok(chunk.map(|chunk| (chunk, (response, idle)))),
                Ok(Err(error)) => Err(BodyFault::Cut(deepest(&error))),
                Err(_) => Err(BodyFault::Idle(patience)),
            }
        });
        chunks.boxed()
    }

    /// A whole body of at most `limit` bytes.
    pub(crate) async fn whole(&self, response: Response, limit: usize) -> Result<Bytes, BodyFault> {
        let mut chunks = self.chunks(response);
        let mut body = Vec::new();
        while let Some(chunk) = chunks.next().await.transpose()? {
            if body.len() + chunk.len() > limit {
                return Err(BodyFault::TooLarge { what: "a reply", limit });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.into())
    }

    /// At least the first `limit` bytes of a body, or as much as there is: for messages about it.
    pub(crate) async fn beginning(&self, response: Response, limit: usize) -> Vec<u8> {
        let mut chunks = self.chunks(response);
        let mut body = Vec::new();
        while body.len() < limit
            && let Some(Ok(chunk)) = chunks.next().await
        {
            body.extend_from_slice(&chunk);
        }
        body
    }

    /// A server's words, fit for an error: without the key, without control characters, cut to `limit` characters.
    pub(crate) fn quote(&self, words: &str, limit: usize) -> String {
        let secret = self.secret.expose_secret();
        let words = if secret.len() < SHORTEST_KEY { words.to_owned() } else { words.replace(secret, "***") };
        let mut quoted: String =
            words.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(limit).collect();
        if words.trim().chars().nth(limit).is_some() {
            quoted.push('…');
        }
        quoted
    }

    /// Records that it speaks the protocol: a part of an answer could be read.
    pub(crate) fn has_spoken(&self) {
        self.has_spoken.store(true, Ordering::Relaxed);
    }

    /// An answer, or a part of one, that makes no sense. From a server that has spoken the protocol it was damaged on
    /// the way, and is asked for again; from any other it is another protocol.
    pub(crate) fn garbled(&self, message: impl Into<String>) -> FailedAttempt {
        if self.has_spoken.load(Ordering::Relaxed) {
            return FailedAttempt::restart(Error::Cut { host: self.host.clone(), cause: message.into() });
        }
        self.malformed(message)
    }

    /// An answer that is not the protocol, and will not be the next time.
    pub(crate) fn malformed(&self, message: impl Into<String>) -> FailedAttempt {
        FailedAttempt::give_up(Error::Malformed { host: self.host.clone(), message: message.into() })
    }

    /// An answer, or a part of one, that is not the JSON it should be.
    pub(crate) fn unreadable(&self, what: &str, error: &serde_json::Error, text: &str) -> FailedAttempt {
        self.garbled(format!("{what} cannot be read ({error}): {}", self.quote(text, EXCERPT)))
    }

    /// The failed attempt for a body that broke off.
    pub(crate) fn broken(&self, broken: BodyFault) -> FailedAttempt {
        let host = self.host.clone();
        match broken {
            BodyFault::Cut(cause) => FailedAttempt::restart(Error::Cut { host, cause }),
            BodyFault::Idle(silence) => FailedAttempt::restart(Error::Idle { host, silence }),
            BodyFault::NotEvents(_) => self.garbled(broken.to_string()),
            BodyFault::TooLarge { .. } => self.malformed(broken.to_string()),
        }
    }

    /// The failed attempt for a request without an answer.
    fn unsent(&self, error: &reqwest::Error) -> FailedAttempt {
        let (host, cause) = (self.host.clone(), deepest(error));
        if error.is_builder() {
            return FailedAttempt::give_up(settings(cause));
        }
        if causes(error).any(|cause| cause.downcast_ref().is_some_and(hyper::Error::is_parse)) {
            return self.garbled(format!("its answer is not HTTP ({cause})"));
        }
        if !error.is_connect() {
            return FailedAttempt::restart(Error::Cut { host, cause });
        }
        // A certificate that is not trusted now will not be in a second either.
        let untrusted = causes(error).any(|cause| cause.downcast_ref().is_some_and(is_untrusted));
        let then = if untrusted { NextAttempt::GiveUp } else { NextAttempt::Retry(None) };
        FailedAttempt { error: Error::Unreachable { host, cause }, then }
    }

    fn url(&self, path: &str) -> Url {
        // Our own paths always join; a base that cannot be one was refused long before.
        self.base.join(path).unwrap_or_else(|_| self.base.clone())
    }
}

/// An error for settings that do not work; nothing was sent.
pub(crate) fn settings(message: impl Into<String>) -> Error {
    Error::Settings { message: message.into() }
}

/// A secret as a header's value, which no log shows.
pub(crate) fn secret_header(value: &str) -> Result<HeaderValue, Error> {
    let value = HeaderValue::from_str(value);
    let mut value = value.map_err(|_| settings("the key or token contains characters that cannot be sent"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// A token as the value of `authorization`.
pub(crate) fn bearer(token: &SecretString) -> Result<HeaderValue, Error> {
    secret_header(&format!("Bearer {}", token.expose_secret()))
}

/// True if a URL's host is this machine.
pub(crate) fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// True if a certificate is not trusted. TLS reports that as invalid data, wrapped in other IO errors, which do not
/// count themselves as causes.
fn is_untrusted(error: &io::Error) -> bool {
    let inner = || error.get_ref()?.downcast_ref::<io::Error>();
    error.kind() == io::ErrorKind::InvalidData || inner().is_some_and(is_untrusted)
}

fn causes<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// The innermost cause: the layers above it say "error sending request" and the like.
fn deepest(error: &reqwest::Error) -> String {
    let cause = error.source().and_then(|source| causes(source).last());
    cause.map_or_else(|| "the connection failed".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(base_url: &str) -> Result<Server, Error> {
        server_with_key(base_url, "sk-secret")
    }

    fn server_with_key(base_url: &str, key: &str) -> Result<Server, Error> {
        Server::new(base_url, |path| format!("{path}/api/"), "test", &HeaderMap::new(), key.into(), Patience::default())
    }

    #[test]
    fn paths_lie_below_the_root_and_may_lead_out_of_it() {
        for (base, path, url) in [
            ("http://localhost:1", "messages", "http://localhost:1/api/messages"),
            (" http://localhost:1/proxy// ", "messages", "http://localhost:1/proxy/api/messages"),
            ("http://localhost:1/proxy", "../props", "http://localhost:1/proxy/props"),
        ] {
            assert_eq!(server(base).unwrap().url(path).as_str(), url);
        }
    }

    #[test]
    fn a_base_url_that_cannot_work_is_refused_without_repeating_its_password() {
        for base in ["", "api.example.com", "localhost:8080", "ftp://example.com", "http://me:hush@localhost"] {
            let error = server(base).map(|_| ()).unwrap_err();
            assert!(matches!(error, Error::Settings { .. }), "{base}: {error}");
            assert!(!error.to_string().contains("hush"));
        }
    }

    #[test]
    fn this_machine_is_recognised() {
        for host in ["localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "[::1]", "[::ffff:127.0.0.1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["example.com", "localhost.example.com", "10.0.0.1", "[::2]", "0.0.0.0"] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn neither_debug_nor_a_quotation_shows_the_key() {
        let server = server("http://localhost:1").unwrap();
        assert!(!format!("{server:?}").contains("sk-secret"));
        assert_eq!(server.quote("bad key\nsk-secret!", 200), "bad key ***!");
        assert_eq!(server.quote("äöü and more", 3), "äöü…");
        assert_eq!(server.quote("äöü", 3), "äöü");
    }

    #[test]
    fn a_key_that_is_a_common_word_leaves_the_words_of_others_alone() {
        for key in ["", "x", "none", "local"] {
            let server = server_with_key("http://localhost:1", key).unwrap();
            assert_eq!(server.quote("none of the local models fits", 200), "none of the local models fits", "{key}");
        }
    }
}
