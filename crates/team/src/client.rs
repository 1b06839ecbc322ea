//! The client's side of the protocol: one request at a time, bounded in time and size, tried again where that can help.

use std::time::Duration;

use futures_util::StreamExt;
use reqwest::header::{ETAG, IF_MATCH, IF_NONE_MATCH};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde::de::DeserializeOwned;

use crate::protocol::{Failure, Hashes, PATH, Snapshot, TOO_MANY_ENTRIES, Write, Written};
use crate::repository::Repository;

/// A request may take so long.
const PATIENCE: Duration = Duration::from_secs(30);
/// Where the server fails, so many more tries, each after twice the wait.
const RETRIES: u32 = 3;
/// The first wait.
const WAIT: Duration = Duration::from_millis(500);
/// The largest answer that is read. A repository at its limits is far smaller in practice.
const ANSWER_BYTES: usize = 64 * 1024 * 1024;
/// The most entries that are taken from a server: far more than anybody keeps, and few enough for a folder.
const MOST_ENTRIES: usize = 5_000;

/// A server, and the repository that is kept there.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    server: Url,
    token: String,
    repository: Repository,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({}, {})", self.server, self.repository)
    }
}

/// Why a request came to nothing, by what can be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// Somebody was first: read again, and decide again.
    #[error("somebody else wrote first")]
    Conflict,
    /// The repository is full.
    #[error("the server keeps at most {most} entries of a repository")]
    TooMany {
        /// The most.
        most: u64,
    },
    /// Nothing helps but the user: a bad token, no right, an entry that is refused.
    #[error("{server} says no ({status}): {message}")]
    Permanent {
        /// Who.
        server: String,
        /// The status.
        status: u16,
        /// In the server's words.
        message: String,
    },
    /// It may work later.
    #[error("{server} cannot be used now: {message}")]
    Later {
        /// Who.
        server: String,
        /// Why.
        message: String,
    },
}

/// What a read found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// What the reader has is what is there.
    Unchanged,
    /// There is nothing yet.
    Empty,
    /// This, and the name of this state.
    Changed(Box<Snapshot>),
}

impl Client {
    /// A client for a server's address (`https://team.example.org`), a token and a repository.
    pub fn new(server: &str, token: &str, repository: Repository) -> Result<Self, Trouble> {
        let bad =
            |message: &str| Trouble::Permanent { server: server.to_owned(), status: 0, message: message.to_owned() };
        let address = Url::parse(server.trim()).map_err(|_| bad("that is no address"))?;
        let host = address.host_str().unwrap_or_default();
        let is_here = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
        // A token in plain HTTP could be read on the way.
        if address.scheme() != "https" && !(address.scheme() == "http" && is_here) {
            return Err(bad("the address must begin with https://, or be on this machine"));
        }
        let builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .timeout(PATIENCE)
            .user_agent(concat!("cairn/", env!("CARGO_PKG_VERSION")));
        let builder = if is_here { builder.no_proxy() } else { builder };
        let http = builder.build().map_err(|error| bad(&format!("no HTTP client can be made: {error}")))?;
        Ok(Self { http, server: address, token: token.trim().to_owned(), repository })
    }

    /// The repository.
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// The entries, if they are not what `known` names; those that changed after a version, where the server can tell.
    pub async fn read(&self, known: Option<&str>, since: u64) -> Result<Read, Trouble> {
        let since = since.to_string();
        let query: Vec<(&str, &str)> = if since == "0" { Vec::new() } else { vec![("since", &since)] };
        let response = self
            .send(|| {
                let request = self.request(Method::GET, &query);
                match known {
                    Some(known) => request.header(IF_NONE_MATCH, format!("\"{known}\"")),
                    None => request,
                }
            })
            .await?;
        match response.status() {
            StatusCode::NOT_MODIFIED => Ok(Read::Unchanged),
            StatusCode::NOT_FOUND => Ok(Read::Empty),
            _ => {
                let snapshot: Snapshot = self.answer(response).await?;
                if snapshot.content.entries.len() > MOST_ENTRIES {
                    return Err(self.later(format!("it has more than {MOST_ENTRIES} entries of this repository")));
                }
                Ok(Read::Changed(Box::new(snapshot)))
            }
        }
    }

    /// Checksums alone; none if there is nothing yet.
    pub async fn hashes(&self) -> Result<Option<Hashes>, Trouble> {
        let response = self.send(|| self.request(Method::GET, &[("view", "hashes")])).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        self.answer(response).await.map(Some)
    }

    /// Writes, if the repository still is what `known` names. Gives the name of the state it then has.
    pub async fn write(&self, write: &Write, known: &str) -> Result<Written, Trouble> {
        let response =
            self.send(|| self.request(Method::PUT, &[]).header(IF_MATCH, format!("\"{known}\"")).json(write)).await?;
        let tag =
            response.headers().get(ETAG).and_then(|tag| tag.to_str().ok()).map(|tag| tag.trim_matches('"').to_owned());
        let mut written: Written = self.answer(response).await?;
        written.checksum = tag.unwrap_or(written.checksum);
        Ok(written)
    }

    fn request(&self, method: Method, query: &[(&str, &str)]) -> RequestBuilder {
        let mut address = self.server.clone();
        address.set_path(&format!("{}{PATH}", self.server.path().trim_end_matches('/')));
        address.query_pairs_mut().append_pair("repo", self.repository.as_str()).extend_pairs(query);
        self.http.request(method, address).bearer_auth(&self.token)
    }

    /// Sends a request, again where the server itself failed.
    async fn send(&self, request: impl Fn() -> RequestBuilder) -> Result<Response, Trouble> {
        let mut wait = WAIT;
        for retry in 0.. {
            let failed = match request().send().await {
                Ok(response) if !is_passing(response.status()) => return self.judged(response).await,
                Ok(response) => format!("it answered {}", response.status()),
                Err(error) => without_address(error),
            };
            if retry == RETRIES {
                return Err(self.later(failed));
            }
            // Members that were cut off together do not come back together.
            tokio::time::sleep(wait.mul_f64(0.5 + part() / 2.0)).await;
            wait *= 2;
        }
        Err(self.later("it did not answer".to_owned()))
    }

    /// An answer that can be used, or what is wrong.
    async fn judged(&self, response: Response) -> Result<Response, Trouble> {
        let status = response.status();
        if status.is_success() || matches!(status, StatusCode::NOT_MODIFIED | StatusCode::NOT_FOUND) {
            return Ok(response);
        }
        if matches!(status, StatusCode::PRECONDITION_FAILED | StatusCode::CONFLICT) {
            return Err(Trouble::Conflict);
        }
        let body = self.body(response).await.unwrap_or_default();
        let failure: Option<Failure> = serde_json::from_slice(&body).ok();
        let details = failure.as_ref().and_then(|failure| failure.error.details.clone()).unwrap_or_default();
        if details.error_code == TOO_MANY_ENTRIES
            && let Some(most) = details.max_entries
        {
            return Err(Trouble::TooMany { most });
        }
        let message = failure.map_or_else(|| status.to_string(), |failure| failure.error.message);
        Err(Trouble::Permanent { server: self.name(), status: status.as_u16(), message })
    }

    async fn answer<T: DeserializeOwned>(&self, response: Response) -> Result<T, Trouble> {
        let body = self.body(response).await?;
        serde_json::from_slice(&body).map_err(|error| self.later(format!("its answer is not of the protocol: {error}")))
    }

    /// A body, read as far as the limit.
    async fn body(&self, response: Response) -> Result<Vec<u8>, Trouble> {
        let mut body = Vec::new();
        let mut parts = response.bytes_stream();
        while let Some(part) = parts.next().await {
            let part = part.map_err(|error| self.later(without_address(error)))?;
            if body.len() + part.len() > ANSWER_BYTES {
                return Err(self.later(format!("its answer has more than {} MB", ANSWER_BYTES >> 20)));
            }
            body.extend_from_slice(&part);
        }
        Ok(body)
    }

    fn later(&self, message: String) -> Trouble {
        Trouble::Later { server: self.name(), message }
    }

    fn name(&self) -> String {
        self.server.host_str().unwrap_or("the server").to_owned()
    }
}

/// Some part of the whole, another each time.
pub(crate) fn part() -> f64 {
    f64::from(uuid::Uuid::new_v4().as_bytes()[0]) / 255.0
}

/// Whether the same request may work later.
fn is_passing(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

/// The address has the repository's name in it, which is no help in a message.
fn without_address(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
