//! The client's side of the protocol: one request at a time, bounded in time and size, retried where that can help.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use reqwest::header::{ETAG, IF_MATCH, IF_NONE_MATCH};
use reqwest::{Method, Request, RequestBuilder, Response, StatusCode, Url};
use serde::de::DeserializeOwned;

use crate::checksum::Checksums;
use crate::error::RequestTrouble;
use crate::key::EntryKey;
use crate::protocol::{
    EntryWrite, ErrorBody, Hashes, HistoryAnswer, HistoryQuestion, KNOWN_PATH, PATH, TOO_MANY_ENTRIES, WriteAnswer,
};
use crate::repository::Repository;
use crate::sync_run::{ReadResult, SyncServer};

/// Time limit of a request.
const PATIENCE: Duration = Duration::from_secs(30);
/// Retries after a failure of the server, each after twice the wait.
const RETRIES: u32 = 3;
/// The first wait.
const WAIT: Duration = Duration::from_millis(500);
/// Size of the parts asked for, if the server supports parts.
const PART_BYTES: usize = 8 * 1024 * 1024;
/// Limit on all that is taken from a server: a thousand entries of 250,000 bytes, and a fifth more.
const ALL_BYTES: usize = 300_000_000;
/// The largest answer that is read.
const ANSWER_BYTES: usize = 64 * 1024 * 1024;
/// Limit on entries taken from a server: far more than anybody keeps, and few enough for a folder.
const MOST_ENTRIES: usize = 5_000;

/// Number of texts asked about at once.
const QUESTIONS: usize = 1_000;

/// Sends a request to the server and returns its answer: over the network, or in a test without one.
pub trait Transport: Send + Sync {
    /// Sends a request. An error says why no answer came.
    fn exchange(&self, request: Request) -> BoxFuture<'static, Result<Response, String>>;
}

impl Transport for reqwest::Client {
    fn exchange(&self, request: Request) -> BoxFuture<'static, Result<Response, String>> {
        let answer = self.execute(request);
        Box::pin(async { answer.await.map_err(without_address) })
    }
}

/// A builder of HTTP clients, for which TLS is ring's.
pub fn http() -> reqwest::ClientBuilder {
    let _ = rustls::crypto::ring::default_provider().install_default(); // it may be so already
    reqwest::Client::builder()
}

/// A server, and the repository that is kept there.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    wire: Arc<dyn Transport>,
    server: Url,
    token: String,
    repository: Repository,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({}, {})", self.server, self.repository)
    }
}

impl Client {
    /// A client for a server's address (`https://team.example.org`), a token and a repository.
    pub fn new(server: &str, token: &str, repository: Repository) -> Result<Self, RequestTrouble> {
        let bad = |message: &str| RequestTrouble::Permanent {
            server: server.to_owned(),
            status: 0,
            message: message.to_owned(),
        };
        let address = Url::parse(server.trim()).map_err(|_| bad("that is not an address"))?;
        let host = address.host_str().unwrap_or_default();
        let is_here = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
        // A token in plain HTTP could be read on the way.
        if address.scheme() != "https" && !(address.scheme() == "http" && is_here) {
            return Err(bad("the address must begin with https://, or be on this machine"));
        }
        let builder = http()
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .timeout(PATIENCE)
            .user_agent(concat!("cairn/", env!("CARGO_PKG_VERSION")));
        let builder = if is_here { builder.no_proxy() } else { builder };
        let http = builder.build().map_err(|error| bad(&format!("the HTTP client could not be set up: {error}")))?;
        let (wire, token) = (Arc::new(http.clone()), token.trim().to_owned());
        Ok(Self { http, wire, server: address, token, repository })
    }

    /// The same client over another transport.
    pub fn over(mut self, wire: Arc<dyn Transport>) -> Self {
        self.wire = wire;
        self
    }

    /// The repository.
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// The entries, if their state is not `known`; only those changed after a version, if the server supports that.
    pub async fn read(&self, known: Option<&str>, since: u64) -> Result<ReadResult, RequestTrouble> {
        self.read_in_parts(known, since, None).await
    }

    /// The same, in parts if the server supports them: a repository may be larger than one answer.
    async fn read_in_parts(
        &self,
        known: Option<&str>,
        since: u64,
        overwritten_since: Option<u64>,
    ) -> Result<ReadResult, RequestTrouble> {
        let mut all = match self.read_part(known, since, overwritten_since).await? {
            ReadResult::Changed(first) => first,
            other => return Ok(other),
        };
        let mut bytes = 0;
        while let Some(until) = all.until.take() {
            bytes += all.content.entries.values().map(String::len).sum::<usize>();
            if bytes > ALL_BYTES {
                return Err(self.later(format!("it has more than {} MB of this repository", ALL_BYTES >> 20)));
            }
            // What changed meanwhile comes with a later part, which counts.
            let ReadResult::Changed(next) = self.read_part(None, until, overwritten_since).await? else { break };
            let before = std::mem::replace(&mut all, next).content;
            all.content.add_earlier(before);
        }
        if all.content.entries.len() > MOST_ENTRIES {
            return Err(self.later(format!("it has more than {MOST_ENTRIES} entries of this repository")));
        }
        Ok(ReadResult::Changed(all))
    }

    async fn read_part(
        &self,
        known: Option<&str>,
        since: u64,
        overwritten_since: Option<u64>,
    ) -> Result<ReadResult, RequestTrouble> {
        let mut query = vec![("part", PART_BYTES.to_string())];
        query.extend(Some(since).filter(|since| *since > 0).map(|since| ("since", since.to_string())));
        query.extend(overwritten_since.map(|version| ("told", version.to_string())));
        let query: Vec<(&str, &str)> = query.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let response = self
            .send(|| {
                let request = self.request(Method::GET, PATH, &query);
                match known {
                    Some(known) => request.header(IF_NONE_MATCH, format!("\"{known}\"")),
                    None => request,
                }
            })
            .await?;
        match response.status() {
            StatusCode::NOT_MODIFIED => Ok(ReadResult::Unchanged),
            StatusCode::NOT_FOUND => Ok(ReadResult::Empty),
            _ => Ok(ReadResult::Changed(Box::new(self.answer(response).await?))),
        }
    }

    /// The texts that the history knows; none if the server cannot say.
    async fn ask_history(&self, texts: Vec<(EntryKey, String)>) -> Result<Option<HistoryAnswer>, RequestTrouble> {
        let question = HistoryQuestion { entries: texts.into_iter().collect() };
        let response = match self.send(|| self.request(Method::POST, KNOWN_PATH, &[]).json(&question)).await {
            Ok(response) if response.status() == StatusCode::NOT_FOUND => return Ok(None),
            Ok(response) => response,
            // Other servers do not know the question.
            Err(RequestTrouble::Refused { .. }) => return Ok(None),
            Err(RequestTrouble::Permanent { status: 405 | 501, .. }) => return Ok(None),
            Err(trouble) => return Err(trouble),
        };
        self.answer(response).await.map(Some)
    }

    /// Checksums alone; none if there is nothing yet.
    pub async fn hashes(&self) -> Result<Option<Hashes>, RequestTrouble> {
        let response = self.send(|| self.request(Method::GET, PATH, &[("view", "hashes")])).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        self.answer(response).await.map(Some)
    }

    /// Writes, if the repository's state still is `known`. Returns its new state.
    pub async fn write(&self, write: &EntryWrite, known: &str) -> Result<WriteAnswer, RequestTrouble> {
        let response = self
            .send(|| self.request(Method::PUT, PATH, &[]).header(IF_MATCH, format!("\"{known}\"")).json(write))
            .await?;
        let tag =
            response.headers().get(ETAG).and_then(|tag| tag.to_str().ok()).map(|tag| tag.trim_matches('"').to_owned());
        let mut written: WriteAnswer = self.answer(response).await?;
        written.checksum = tag.unwrap_or(written.checksum);
        Ok(written)
    }

    fn request(&self, method: Method, path: &str, query: &[(&str, &str)]) -> RequestBuilder {
        let mut address = self.server.clone();
        address.set_path(&format!("{}{path}", self.server.path().trim_end_matches('/')));
        address.query_pairs_mut().append_pair("repo", self.repository.as_str()).extend_pairs(query);
        self.http.request(method, address).bearer_auth(&self.token)
    }

    /// Sends a request, and retries after a failure of the server.
    async fn send(&self, request: impl Fn() -> RequestBuilder) -> Result<Response, RequestTrouble> {
        let mut wait = WAIT;
        for retry in 0.. {
            let request = request().build().map_err(|error| self.later(without_address(error)))?;
            let failed = match self.wire.exchange(request).await {
                Ok(response) if !is_passing(response.status()) => return self.judged(response).await,
                Ok(response) => format!("it answered {}", response.status()),
                Err(why) => why,
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

    /// A usable answer, or the trouble it stands for.
    async fn judged(&self, response: Response) -> Result<Response, RequestTrouble> {
        let status = response.status();
        if status.is_success() || matches!(status, StatusCode::NOT_MODIFIED | StatusCode::NOT_FOUND) {
            return Ok(response);
        }
        if matches!(status, StatusCode::PRECONDITION_FAILED | StatusCode::CONFLICT) {
            return Err(RequestTrouble::Conflict);
        }
        let body = self.body(response).await.unwrap_or_default();
        let failure: Option<ErrorBody> = serde_json::from_slice(&body).ok();
        let details = failure.as_ref().and_then(|failure| failure.error.details.clone()).unwrap_or_default();
        if details.error_code == TOO_MANY_ENTRIES
            && let Some(most) = details.max_entries
        {
            return Err(RequestTrouble::TooMany { most });
        }
        let message = failure.map_or_else(|| status.to_string(), |failure| failure.error.message);
        if matches!(status.as_u16(), 400 | 413 | 422) {
            let (status, refused) = (status.as_u16(), details.refused);
            return Err(RequestTrouble::Refused { server: self.name(), status, message, refused });
        }
        Err(RequestTrouble::Permanent { server: self.name(), status: status.as_u16(), message })
    }

    async fn answer<T: DeserializeOwned>(&self, response: Response) -> Result<T, RequestTrouble> {
        let body = self.body(response).await?;
        serde_json::from_slice(&body).map_err(|error| self.later(format!("its answer is not of the protocol: {error}")))
    }

    /// A body, read up to the limit.
    async fn body(&self, response: Response) -> Result<Vec<u8>, RequestTrouble> {
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

    fn later(&self, message: String) -> RequestTrouble {
        RequestTrouble::Later { server: self.name(), message }
    }

    fn name(&self) -> String {
        self.server.host_str().unwrap_or("the server").to_owned()
    }
}

impl SyncServer for Client {
    async fn read(
        &self,
        known: Option<&str>,
        since: u64,
        overwritten_since: Option<u64>,
    ) -> Result<ReadResult, RequestTrouble> {
        self.read_in_parts(known, since, overwritten_since).await
    }

    async fn known(&self, texts: &Checksums) -> Result<Option<HistoryAnswer>, RequestTrouble> {
        let mut all = HistoryAnswer::default();
        let texts: Vec<(EntryKey, String)> = texts.iter().map(|(key, text)| (key.clone(), text.clone())).collect();
        for some in texts.chunks(QUESTIONS) {
            let Some(mut answer) = self.ask_history(some.to_vec()).await? else { return Ok(None) };
            all.checksum = answer.checksum;
            all.known.append(&mut answer.known);
            all.put_back.append(&mut answer.put_back);
            all.trimmed.append(&mut answer.trimmed);
        }
        Ok(Some(all))
    }

    async fn write(&self, write: &EntryWrite, known: &str) -> Result<WriteAnswer, RequestTrouble> {
        Client::write(self, write, known).await
    }
}

/// A random number from 0 to 1.
pub(crate) fn part() -> f64 {
    f64::from(uuid::Uuid::new_v4().as_bytes()[0]) / 255.0
}

/// True if the same request may succeed later.
fn is_passing(status: StatusCode) -> bool {
    (status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED) || status == StatusCode::TOO_MANY_REQUESTS
}

/// The error without the address, which contains the repository's name and is no help in a message.
fn without_address(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
