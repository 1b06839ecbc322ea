//! Routes, admission, and the form of every answer.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use axum::routing::{get, post};
use bytes::Bytes;
use serde_json::{Value, json};

use super::{ServerState, answer};
use crate::ids::request_id;
use crate::models;
use crate::refusal::Refusal;

/// The largest body, as documented.
const MOST_BODY_BYTES: usize = 32 * 1024 * 1024;

/// A request that has been let in.
pub(super) struct Arrival {
    pub(super) id: String,
    pub(super) betas: Vec<String>,
    pub(super) bytes: Bytes,
}

pub(super) fn router(shared: Arc<ServerState>) -> Router {
    Router::new()
        .route("/", get(health))
        .route("/health", get(health))
        .route("/report", get(report))
        .route("/v1/models", get(list_models))
        .route("/v1/models/{id}", get(one_model))
        .route("/v1/messages", post(messages))
        .route("/v1/messages/count_tokens", post(count_tokens))
        .fallback(not_found)
        .method_not_allowed_fallback(wrong_method)
        .with_state(shared)
}

async fn health(State(shared): State<Arc<ServerState>>) -> Response<Body> {
    ok(&next_id(&shared), &json!({"status": "ok"}))
}

async fn report(State(shared): State<Arc<ServerState>>) -> Response<Body> {
    let report = shared.state.lock().report.clone();
    ok(&next_id(&shared), &json!(report))
}

async fn messages(State(shared): State<Arc<ServerState>>, request: Request) -> Response<Body> {
    match arrive(&shared, request).await {
        Ok(arrival) => answer::message(&shared, arrival).await,
        Err((id, refusal)) => refuse(&id, &refusal),
    }
}

async fn count_tokens(State(shared): State<Arc<ServerState>>, request: Request) -> Response<Body> {
    match arrive(&shared, request).await {
        Ok(arrival) => match answer::count(&shared, &arrival) {
            Ok(count) => ok(&arrival.id, &count),
            Err(refusal) => refuse(&arrival.id, &refusal),
        },
        Err((id, refusal)) => refuse(&id, &refusal),
    }
}

async fn list_models(State(shared): State<Arc<ServerState>>, headers: HeaderMap) -> Response<Body> {
    let id = next_id(&shared);
    if let Err(refusal) = let_in(&headers) {
        return refuse(&id, &refusal);
    }
    let all: Vec<Value> = models::all().iter().map(|model| describe(model.name, model)).collect();
    let (first, last) = (all.first().map(|model| &model["id"]), all.last().map(|model| &model["id"]));
    ok(&id, &json!({"data": all, "has_more": false, "first_id": first, "last_id": last}))
}

async fn one_model(
    State(shared): State<Arc<ServerState>>,
    headers: HeaderMap,
    Path(name): Path<String>,
) -> Response<Body> {
    let id = next_id(&shared);
    if let Err(refusal) = let_in(&headers) {
        return refuse(&id, &refusal);
    }
    match models::find(&name) {
        Some(model) => ok(&id, &describe(&name, &model)),
        None => refuse(&id, &Refusal::new(404, format!("model: {name}"))),
    }
}

fn describe(name: &str, model: &models::Model) -> Value {
    json!({
        "type": "model",
        "id": name,
        "display_name": name,
        "created_at": "2026-01-01T00:00:00Z",
        "lifecycle": "active",
        "max_input_tokens": model.window,
        "max_tokens": model.longest_reply,
    })
}

async fn not_found(State(shared): State<Arc<ServerState>>) -> Response<Body> {
    refuse(&next_id(&shared), &Refusal::new(404, "Not found"))
}

async fn wrong_method(State(shared): State<Arc<ServerState>>) -> Response<Body> {
    refuse(&next_id(&shared), &Refusal::new(405, "Method Not Allowed"))
}

fn next_id(shared: &ServerState) -> String {
    let mut state = shared.state.lock();
    state.received += 1;
    request_id(shared.seed, state.received)
}

/// Reads a request that may enter.
async fn arrive(shared: &ServerState, request: Request) -> Result<Arrival, (String, Refusal)> {
    let id = next_id(shared);
    let (head, body) = request.into_parts();
    let admitted = let_in(&head.headers).and_then(|()| has_version(&head.headers));
    if let Err(refusal) = admitted {
        return Err((id, refusal));
    }
    match to_bytes(body, MOST_BODY_BYTES).await {
        Ok(bytes) => Ok(Arrival { id, betas: betas(&head.headers), bytes }),
        Err(_) => Err((id, Refusal::new(413, "Request exceeds the maximum size"))),
    }
}

/// Any key will do, but there must be one, and not the word `invalid`.
fn let_in(headers: &HeaderMap) -> Result<(), Refusal> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text("authorization").and_then(|value| value.strip_prefix("Bearer "));
    match text("x-api-key").or(bearer).map(str::trim) {
        None | Some("") => Err(Refusal::new(401, "x-api-key header is required")),
        Some("invalid") => Err(Refusal::new(401, "invalid x-api-key")),
        Some(_) => Ok(()),
    }
}

fn has_version(headers: &HeaderMap) -> Result<(), Refusal> {
    match headers.contains_key("anthropic-version") {
        true => Ok(()),
        false => Err(Refusal::invalid("anthropic-version: header is required")),
    }
}

fn betas(headers: &HeaderMap) -> Vec<String> {
    headers
        .get_all("anthropic-beta")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|beta| beta.trim().to_owned())
        .collect()
}

/// 200 with a JSON body.
pub(super) fn ok(id: &str, body: &Value) -> Response<Body> {
    respond(id, 200, "application/json", Body::from(body.to_string()))
}

/// An error in the provider's shape.
pub(super) fn refuse(id: &str, refusal: &Refusal) -> Response<Body> {
    let mut response = respond(id, refusal.status, "application/json", Body::from(refusal.body(id).to_string()));
    if let Some(seconds) = refusal.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

pub(super) fn respond(id: &str, status: u16, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert("request-id", id);
    }
    response
}
