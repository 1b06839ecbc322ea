//! Counters for those who run the server, as Prometheus reads them.

use std::collections::BTreeMap;
use std::fmt::Write;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use parking_lot::Mutex;

use super::Service;

/// Number of requests by route, method and status.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    requests: Mutex<BTreeMap<(String, String, u16), u64>>,
}

/// Counts a request and its answer.
pub(super) async fn count(State(service): State<Service>, request: Request, next: Next) -> Response {
    // The route, not the path: paths are as many as clients like.
    let route = request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str).to_owned();
    let method = request.method().to_string();
    let response = next.run(request).await;
    let mut requests = service.metrics.requests.lock();
    *requests.entry((route, method, response.status().as_u16())).or_default() += 1;
    response
}

/// Prints them.
pub(super) async fn show(State(service): State<Service>) -> String {
    let mut text =
        "# HELP cairn_team_requests_total Requests answered.\n# TYPE cairn_team_requests_total counter\n".to_owned();
    let requests = service.metrics.requests.lock();
    for ((route, method, status), count) in requests.iter() {
        let _ = writeln!(
            text,
            "cairn_team_requests_total{{route=\"{route}\",method=\"{method}\",status=\"{status}\"}} {count}"
        ); // writing to a string cannot fail
    }
    text
}
