//! One request and its answer, whatever the dialect.
//!
//! One attempt is: post the body, read the answer's head, turn its events into a reply. Around it, [`crate::retry`]
//! decides what a failed attempt leads to. A stream that is cut before the reply is complete is asked for again with the
//! same bytes, and so is one that is garbled; one that is cut after everything but the farewell has come counts as complete.
//!
//! A server that answers a request for a stream with plain JSON is understood; one that answers with a web page is told
//! apart from one that answers wrongly. What the events mean is a [`ReplyDraft`]'s business: each dialect brings its own.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use transcript::Reply;

use crate::error::{Error, FailedAttempt, ReplyStart};
use crate::event::{Emit, Event, generate};
use crate::http::{BodyFault, EXCERPT, Server};
use crate::refusal::{self, Complaint};
use crate::retry::{Retry, persist};
use crate::sse::{Events, REPLY_LIMIT};

/// A reply in the making, in one dialect. It does no IO.
pub(crate) trait ReplyDraft: Send {
    /// The beginning of the answer to a request with this body.
    fn of(request: &[u8]) -> Self;

    /// Takes an event of the stream; gives what the caller should see of it.
    fn read_event(&mut self, name: Option<&str>, data: &str) -> Result<Vec<Event>, AnswerFault>;

    /// Takes a whole reply that came as one JSON object, with the events a stream of it would have had.
    fn read_whole(&mut self, body: &[u8]) -> Result<Vec<Event>, AnswerFault>;

    /// True if the server has marked the end of the reply.
    fn has_ended(&self) -> bool;

    /// The reply, if nothing of it is missing.
    fn finish(self) -> Option<Reply>;
}

/// Problem with a piece of an answer.
#[derive(Debug)]
pub(crate) enum AnswerFault {
    /// An error reported by the server.
    Complaint(Box<Complaint>),
    /// Invalid JSON.
    Unreadable(serde_json::Error),
    /// It makes no sense at its position.
    Nonsense(String),
}

impl From<serde_json::Error> for AnswerFault {
    fn from(error: serde_json::Error) -> Self {
        Self::Unreadable(error)
    }
}

/// A request, ready to be sent as often as it takes.
pub(crate) struct Exchange {
    pub(crate) server: Arc<Server>,
    pub(crate) retry: Retry,
    pub(crate) path: &'static str,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// The events of an exchange, which is prepared when they are first asked for.
pub(crate) fn stream<D: ReplyDraft>(
    prepare: impl FnOnce() -> Result<Exchange, Error> + Send + 'static,
) -> BoxStream<'static, Event> {
    generate(async move |emit: Emit| {
        let reply = match prepare() {
            Ok(exchange) => persist(&exchange.retry, &exchange.body, &emit, || exchange.attempt::<D>(&emit)).await,
            Err(error) => Err(error),
        };
        emit.send(reply.map_or_else(Event::Failed, Event::Done)).await;
    })
}

impl Exchange {
    /// Sends the request once and waits for the head of an answer that is no refusal.
    pub(crate) async fn send(&self) -> Result<Response, FailedAttempt> {
        let response = self.server.post(self.path, self.headers.clone(), self.body.clone()).await?;
        match response.status().is_success() {
            true => Ok(response),
            false => Err(refusal::of_response(&self.server, response).await),
        }
    }

    async fn attempt<D: ReplyDraft>(&self, emit: &Emit) -> Result<Reply, FailedAttempt> {
        let response = self.send().await?;
        if is_event_stream(&response) {
            return self.follow::<D>(Events::new(self.server.chunks(response)), emit).await;
        }
        let body = self.server.whole(response, REPLY_LIMIT).await.map_err(|broken| self.server.broken(broken))?;
        match body.trim_ascii_start() {
            [b'{', ..] => self.read::<D>(&body, emit).await,
            start if start.starts_with(b"event:") || start.starts_with(b"data:") => {
                self.follow::<D>(Events::of_whole(body), emit).await
            }
            start => Err(self.server.garbled(self.server.quote(&String::from_utf8_lossy(start), EXCERPT))),
        }
    }

    /// Follows a stream of events to its end.
    async fn follow<D: ReplyDraft>(&self, mut events: Events, emit: &Emit) -> Result<Reply, FailedAttempt> {
        let mut draft = D::of(&self.body);
        let mut begun = ReplyStart::No;
        let broken = loop {
            let event = match events.next().await {
                Some(Ok(event)) => event,
                Some(Err(broken @ (BodyFault::Cut(_) | BodyFault::Idle(_)))) => break broken,
                Some(Err(broken)) => return Err(self.server.broken(broken)),
                None => break BodyFault::Cut("the stream ended early".into()),
            };
            let Some(data) = event.data.filter(|data| !data.is_empty()) else { continue };
            let name = event.event.filter(|name| !name.is_empty());
            let shown = match draft.read_event(name.as_deref(), &data) {
                Ok(shown) => shown,
                Err(wrong) => return Err(self.wrong("an event", wrong, &data).after(begun)),
            };
            if !shown.is_empty() {
                begun = ReplyStart::Yes;
                self.server.has_spoken();
            }
            for event in shown {
                emit.send(event).await;
            }
            if draft.has_ended() {
                break BodyFault::Cut("a part of the reply is missing".into());
            }
        };
        draft.finish().ok_or_else(|| self.server.broken(broken))
    }

    /// Reads a reply, or an error, that came as one JSON object.
    async fn read<D: ReplyDraft>(&self, body: &[u8], emit: &Emit) -> Result<Reply, FailedAttempt> {
        let wrong = |wrong| self.wrong("the reply", wrong, &String::from_utf8_lossy(body));
        if let Ok(complaint) = serde_json::from_slice::<Complaint>(body) {
            return Err(wrong(AnswerFault::Complaint(Box::new(complaint))));
        }
        let mut draft = D::of(&self.body);
        let shown = draft.read_whole(body).map_err(wrong)?;
        self.server.has_spoken();
        for event in shown {
            emit.send(event).await;
        }
        draft.finish().ok_or_else(|| self.server.garbled("the reply is not complete"))
    }

    fn wrong(&self, what: &str, wrong: AnswerFault, text: &str) -> FailedAttempt {
        match wrong {
            AnswerFault::Complaint(complaint) => refusal::of_complaint(&self.server, &complaint),
            AnswerFault::Unreadable(error) => self.server.unreadable(what, &error, text),
            AnswerFault::Nonsense(message) => self.server.garbled(message),
        }
    }
}

fn is_event_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream")
}
