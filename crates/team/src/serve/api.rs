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
use super::access::Access;
use super::problem::Problem;
use super::signing::SignedInMember;
use crate::protocol::{HistoryQuestion, KNOWN_PATH, PATH};
use crate::store::Level;

pub(super) fn routes() -> Router<Service> {
    Router::new().route(PATH, get(read).put(write)).route(KNOWN_PATH, post(known))
}

/// Query parameters.
#[derive(Debug, Deserialize)]
struct EntriesQuery {
    repo: String,
    view: Option<String>,
    #[serde(default)]
    since: u64,
    /// Approximate size of the texts in one answer, in bytes.
    part: Option<u64>,
    /// The version up to which the reader was told of overwritten texts.
    told: Option<u64>,
}

/// The entries, their checksums, or nothing new.
async fn read(
    State(service): State<Service>,
    Query(asked): Query<EntriesQuery>,
    headers: HeaderMap,
    signed: SignedInMember,
) -> Result<Response, Problem> {
    let repository = &Access::check(&service, &signed.member, &asked.repo, Level::Read).await?.repository;
    let nothing = || Problem::missing("nothing was written to this repository yet");
    let state =
        service.store.entries().state(repository).await?.filter(|state| state.version > 0).ok_or_else(nothing)?;
    let known = tag(&state.checksum);
    if named(&headers, &IF_NONE_MATCH).is_some_and(|named| named == state.checksum) {
        return Ok((StatusCode::NOT_MODIFIED, known).into_response());
    }
    if asked.view.as_deref() == Some("hashes") {
        return Ok(
            (known, Json(service.store.entries().hashes(repository).await?.ok_or_else(nothing)?)).into_response()
        );
    }
    let part = asked.part.unwrap_or(u64::MAX);
    let mut snapshot = service.store.entries().read_part(repository, asked.since, part).await?.ok_or_else(nothing)?;
    if let Some(told) = asked.told {
        snapshot.content.overwritten = service.store.history().overwritten(repository, &signed.member, told).await?;
    }
    Ok((tag(&snapshot.checksum), Json(snapshot)).into_response())
}

/// The texts that the history knows.
async fn known(
    State(service): State<Service>,
    Query(asked): Query<EntriesQuery>,
    signed: SignedInMember,
    body: Body,
) -> Result<Response, Problem> {
    let access = Access::check(&service, &signed.member, &asked.repo, Level::Read).await?;
    let question: HistoryQuestion = service.json(body).await?;
    Ok(Json(service.store.history().known(&access.repository, &question, &service.options.limits).await?)
        .into_response())
}

/// Writes and deletes entries, if the repository's state still is the one the writer names.
async fn write(
    State(service): State<Service>,
    Query(asked): Query<EntriesQuery>,
    headers: HeaderMap,
    signed: SignedInMember,
    body: Body,
) -> Result<Response, Problem> {
    let access = Access::check(&service, &signed.member, &asked.repo, Level::Write).await?;
    let expected = named(&headers, &IF_MATCH);
    let written = async { access.write(&service.json(body).await?, expected.as_deref()).await };
    let written = access.recorded(written.await).await?;
    Ok((tag(&written.checksum), Json(written)).into_response())
}

/// A header with the name of a state.
fn tag(checksum: &str) -> [(HeaderName, String); 1] {
    [(ETAG, format!("\"{checksum}\""))]
}

/// The state that a header names, if any.
fn named(headers: &HeaderMap, header: &HeaderName) -> Option<String> {
    let value = headers.get(header)?.to_str().ok()?.trim();
    if value == "*" {
        return None;
    }
    let value = value.strip_prefix("W/").unwrap_or(value);
    Some(value.trim_matches('"').to_owned())
}
