//! The network between a member and the server: requests and answers are cut, stalled, doubled, or arrive when nobody waits
//! for them any more.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http;
use futures_util::future::BoxFuture;
use futures_util::stream;
use parking_lot::Mutex;
use reqwest::{Body, Response};
use team::client::Transport;

use super::laws::TeamLaws;
use super::server::{Answer, TeamServer};
use crate::it::chance::Chance;
use crate::it::disk::StormDisk;

/// Longer than any client waits.
const FOREVER: Duration = Duration::from_secs(31);

/// Everything between the members and the server.
pub(crate) struct Network {
    pub(crate) server: TeamServer,
    pub(crate) chance: Chance,
    pub(crate) is_calm: bool,
    /// Requests that are on their way though nobody waits for them.
    pub(crate) late: Vec<(usize, http::Request<Vec<u8>>)>,
}

/// What one member's client sends through.
#[derive(Clone)]
pub(crate) struct StormWire {
    pub(crate) member: usize,
    pub(crate) network: Arc<Mutex<Network>>,
    pub(crate) laws: Arc<Mutex<TeamLaws>>,
    pub(crate) disk: Arc<Mutex<StormDisk>>,
}

/// What becomes of a request.
enum Fate {
    Answered,
    /// The request never arrives.
    CutBefore,
    /// It arrives, and its answer does not.
    CutAfter,
    /// It arrives when its sender has given up.
    Late,
    /// It arrives twice.
    Doubled,
    /// A half of the answer arrives.
    HalfAnswered,
    /// Something in between says that it cannot.
    Unavailable,
}

impl Network {
    fn fate(&mut self) -> Fate {
        if self.is_calm {
            return Fate::Answered;
        }
        match self.chance.below(60) {
            0..=2 => Fate::CutBefore,
            3..=5 => Fate::CutAfter,
            6..=7 => Fate::Late,
            8..=9 => Fate::Doubled,
            10..=11 => Fate::HalfAnswered,
            12 => Fate::Unavailable,
            _ => Fate::Answered,
        }
    }

    /// A request arrives.
    pub(crate) fn deliver(
        &mut self,
        member: usize,
        request: &http::Request<Vec<u8>>,
        laws: &Mutex<TeamLaws>,
    ) -> Answer {
        let answer = self.server.call(request.clone());
        let mut laws = laws.lock();
        laws.tell(format!("{member}: {} {}", request.method(), answer.status));
        if request.method() == http::Method::PUT && answer.status.is_success() {
            laws.accepts(member, &serde_json::from_slice(request.body()).unwrap());
        }
        answer
    }
}

impl Transport for StormWire {
    fn exchange(&self, request: reqwest::Request) -> BoxFuture<'static, Result<Response, String>> {
        let wire = self.clone();
        let mut sent = http::Request::builder().method(request.method()).uri(request.url().as_str());
        for (name, value) in request.headers() {
            sent = sent.header(name, value);
        }
        let body = request.body().and_then(Body::as_bytes).unwrap_or_default().to_vec();
        Box::pin(wire.carry(sent.body(body).unwrap()))
    }
}

impl StormWire {
    async fn carry(self, request: http::Request<Vec<u8>>) -> Result<Response, String> {
        self.steps().await;
        let fate = self.network.lock().fate();
        let deliver = || self.network.lock().deliver(self.member, &request, &self.laws);
        let cut = || Err("the connection was cut".to_owned());
        let answer = match fate {
            Fate::Answered => deliver(),
            Fate::CutBefore => return cut(),
            Fate::CutAfter => {
                deliver();
                self.steps().await;
                return cut();
            }
            Fate::Late => {
                self.network.lock().late.push((self.member, request));
                tokio::time::sleep(FOREVER).await;
                return Err("it took too long".to_owned());
            }
            Fate::Doubled => {
                deliver();
                deliver()
            }
            Fate::HalfAnswered => {
                let answer = deliver();
                let half = answer.body[..answer.body.len() / 2].to_vec();
                let broken = vec![Ok(half), Err(std::io::Error::other("cut"))];
                let body = Body::wrap_stream(stream::iter(broken));
                self.steps().await;
                return Ok(response(answer, body));
            }
            Fate::Unavailable => {
                let (status, headers) = (http::StatusCode::SERVICE_UNAVAILABLE, http::HeaderMap::new());
                Answer { status, headers, body: Vec::new() }
            }
        };
        self.steps().await;
        let body = Body::from(answer.body.clone());
        Ok(response(answer, body))
    }

    /// Others come first for a while. Who is killed meanwhile never goes on.
    async fn steps(&self) {
        let steps = if self.network.lock().is_calm { 1 } else { self.network.lock().chance.below(4) };
        for _ in 0..steps {
            Step(false).await;
        }
        if self.disk.lock().is_dead() {
            std::future::pending::<()>().await;
        }
    }
}

fn response(answer: Answer, body: Body) -> Response {
    let mut response = http::Response::new(body);
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    Response::from(response)
}

/// One step: whoever decides what happens next may let others go first.
struct Step(bool);

impl Future for Step {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}
