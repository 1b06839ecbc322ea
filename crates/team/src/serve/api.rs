//! The protocol: reading and writing the entries of a repository.

use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::header::{ETAG, IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;

use super::Service;
use super::problem::Problem;
use super::signing::Signed;
use crate::folder;
use crate::protocol::{Details, HistoryQuestion, KNOWN_PATH, PATH, Write};
use crate::repository::Repository;
use crate::store::{Action, Level, Member};

/// So much of why something was refused is written down.
const REASON: usize = 500;

pub(super) fn routes() -> Router<Service> {
    Router::new().route(PATH, get(read).put(write)).route(KNOWN_PATH, post(known))
}

/// What is asked for.
#[derive(Debug, Deserialize)]
struct Asked {
    repo: String,
    #[serde(default)]
    view: Option<String>,
    #[serde(default)]
    since: u64,
    /// About so many bytes of texts in one answer.
    #[serde(default)]
    part: Option<u64>,
    /// The version up to which the reader was told whose texts were overwritten.
    #[serde(default)]
    told: Option<u64>,
}

/// The entries, their checksums, or nothing new.
async fn read(
    State(service): State<Service>,
    Query(asked): Query<Asked>,
    headers: HeaderMap,
    signed: Signed,
) -> Result<Response, Problem> {
    let repository: Repository = asked.repo.parse().map_err(crate::Error::from)?;
    service.may(&signed.member, &repository, Level::Read).await?;
    let nothing = || Problem::missing("nothing was written to this repository yet");
    let state = service.store.state(&repository).await?.filter(|state| state.version > 0).ok_or_else(nothing)?;
    let tag = tag(&state.checksum);
    if named(&headers, &IF_NONE_MATCH).is_some_and(|known| known == state.checksum) {
        return Ok((StatusCode::NOT_MODIFIED, tag).into_response());
    }
    if asked.view.as_deref() == Some("hashes") {
        return Ok((tag, Json(service.store.hashes(&repository).await?.ok_or_else(nothing)?)).into_response());
    }
    let part = asked.part.unwrap_or(u64::MAX);
    let mut snapshot = service.store.read_part(&repository, asked.since, part).await?.ok_or_else(nothing)?;
    if let Some(told) = asked.told {
        snapshot.content.overwritten = service.store.overwritten(&repository, &signed.member, told).await?;
    }
    Ok((super::api::tag(&snapshot.checksum), Json(snapshot)).into_response())
}

/// Which texts the history knows.
async fn known(
    State(service): State<Service>,
    Query(asked): Query<Asked>,
    signed: Signed,
    body: Body,
) -> Result<Response, Problem> {
    let repository: Repository = asked.repo.parse().map_err(crate::Error::from)?;
    service.may(&signed.member, &repository, Level::Read).await?;
    let question: HistoryQuestion = service.json(body).await?;
    Ok(Json(service.store.known(&repository, &question, &service.options.limits).await?).into_response())
}

/// Puts and deletes entries, if the repository still is what the writer thinks.
async fn write(
    State(service): State<Service>,
    Query(asked): Query<Asked>,
    headers: HeaderMap,
    signed: Signed,
    body: Body,
) -> Result<Response, Problem> {
    let repository: Repository = asked.repo.parse().map_err(crate::Error::from)?;
    service.may(&signed.member, &repository, Level::Write).await?;
    let expected = named(&headers, &IF_MATCH);
    let written = async {
        let write: Write = service.json(body).await?;
        service.put(&signed.member, &repository, &write, expected.as_deref()).await
    };
    match written.await {
        Ok(written) => Ok((tag(&written.checksum), Json(written)).into_response()),
        Err(problem) => {
            service.note_refusal(&signed.member, &repository, &problem).await?;
            Err(problem)
        }
    }
}

impl Service {
    /// Writes entries, unless one of them holds a secret.
    pub(super) async fn put(
        &self,
        member: &Member,
        repository: &Repository,
        write: &Write,
        expected: Option<&str>,
    ) -> Result<crate::protocol::Written, Problem> {
        let found = |text: &String| folder::secret(text).map(str::to_owned);
        let secrets =
            write.entries.iter().chain(&write.kept).filter_map(|(key, text)| Some((key.to_string(), found(text)?)));
        let refused: std::collections::BTreeMap<String, String> = secrets.collect();
        if !refused.is_empty() {
            let told: Vec<String> = refused.iter().map(|(key, rule)| format!("{key}: {rule}")).collect();
            let told = told.join(", ");
            let details = Details { error_code: "team_memory_secret".to_owned(), refused, ..Details::default() };
            return Err(Problem::bad(format!("nothing was written: secrets were found ({told})")).with(details));
        }
        Ok(self.store.write(repository, member, write, expected, &self.options.limits, self.now()).await?)
    }

    /// Writes down what was refused and why, for the admins of the repository and for who tried.
    pub(super) async fn note_refusal(
        &self,
        member: &Member,
        repository: &Repository,
        problem: &Problem,
    ) -> Result<(), Problem> {
        if matches!(problem.status, StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE) {
            let why: String = problem.message.chars().take(REASON).collect();
            self.store.note(&member.name, Action::Refused, Some(repository), &why, self.now()).await?;
        }
        Ok(())
    }

    /// The JSON of a body, within the limits of size and time.
    pub(super) async fn json<T: serde::de::DeserializeOwned>(&self, body: Body) -> Result<T, Problem> {
        let read = axum::body::to_bytes(body, self.options.body_bytes);
        let bytes = tokio::time::timeout(self.options.body_patience, read)
            .await
            .map_err(|_| Problem::new(StatusCode::REQUEST_TIMEOUT, "timeout_error", "the body did not arrive in time"))?
            .map_err(|_| {
                let most = self.options.body_bytes;
                Problem::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "request_too_large",
                    format!("a request has at most {most} bytes"),
                )
            })?;
        serde_json::from_slice(&bytes)
            .map_err(|error| Problem::bad(format!("the body is not what is expected: {error}")))
    }
}

/// The name of a state, as a header.
pub(super) fn tag(checksum: &str) -> [(HeaderName, String); 1] {
    [(ETAG, format!("\"{checksum}\""))]
}

/// The state a header names, if it names one.
fn named(headers: &HeaderMap, header: &HeaderName) -> Option<String> {
    let value = headers.get(header)?.to_str().ok()?.trim();
    if value == "*" {
        return None;
    }
    let value = value.strip_prefix("W/").unwrap_or(value);
    Some(value.trim_matches('"').to_owned())
}
