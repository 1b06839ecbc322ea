//! The server: the protocol, its administration, and a page for members.
//!
//! It holds no state of its own but counters and rate limits: any number of servers on one database are one service.
//! Requests are bounded in size and time before they are looked at.

mod access;
mod admin;
mod api;
mod connection_slots;
mod issuer;
mod limit;
mod listen;
mod metrics;
mod oidc;
mod page;
mod problem;
mod signature;
mod signing;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;

pub use listen::{HEAD, RunningServer, Tls, listen};
pub use oidc::Issuer;

use crate::store::{RepositoryLimits, Store, Time};
use issuer::IssuerCache;
use limit::Rates;
use metrics::Metrics;
use problem::Problem;

/// Rate of all non-members together, as a multiple of one address's.
const STRANGERS: u32 = 10;

/// Options of a server.
#[derive(Clone)]
pub struct Options {
    /// Limits of a repository.
    pub limits: RepositoryLimits,
    /// The largest body of a request, in bytes.
    pub body_bytes: usize,
    /// Time limit for receiving a body.
    pub body_patience: Duration,
    /// Limit on requests a minute of one member or address.
    pub requests: u32,
    /// Issuer whose accounts can sign in.
    pub issuer: Option<Issuer>,
    /// Address of the server for members, used in links that are handed out.
    pub address: String,
    /// The time.
    pub clock: Arc<dyn Fn() -> Time + Send + Sync>,
}

/// State shared by all requests.
#[derive(Clone)]
struct Service {
    store: Store,
    options: Arc<Options>,
    /// Rates by member, and by address for non-members.
    rates: Arc<Rates>,
    /// Rate of all non-members together.
    strangers: Arc<Rates>,
    issuer_cache: Arc<IssuerCache>,
    metrics: Arc<Metrics>,
}

impl Service {
    fn now(&self) -> Time {
        (self.options.clock)()
    }

    /// The JSON of a body, within the limits of size and time.
    async fn json<T: serde::de::DeserializeOwned>(&self, body: Body) -> Result<T, Problem> {
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
        serde_json::from_slice(&bytes).map_err(|error| Problem::bad(format!("the body is not valid: {error}")))
    }
}

/// The whole service, ready to be listened with.
pub fn service(store: Store, options: Options) -> Router {
    let service = Service {
        store,
        rates: Arc::new(Rates::new(options.requests)),
        strangers: Arc::new(Rates::new(options.requests.saturating_mul(STRANGERS))),
        issuer_cache: Arc::default(),
        metrics: Arc::default(),
        options: Arc::new(options),
    };
    let watched = Router::new().merge(api::routes()).merge(admin::routes()).merge(page::routes()).merge(oidc::routes());
    Router::new()
        .merge(watched.layer(axum::middleware::from_fn_with_state(service.clone(), metrics::count)))
        .route("/health", get(|| async { "ok\n" }))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics::show))
        .with_state(service)
}

/// Readiness: the database answers.
async fn ready(State(service): State<Service>) -> (StatusCode, &'static str) {
    match service.store.is_ready().await {
        true => (StatusCode::OK, "ready\n"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "the database does not answer\n"),
    }
}
