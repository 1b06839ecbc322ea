//! One request to `/v1/messages`, from its bytes to its reply.

use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::http::Response;
use bytes::Bytes;
use futures_util::stream;
use serde_json::{Value, json};

use super::routes::{Arrival, ok, refuse, respond};
use super::{ServerState, until_closed};
use crate::cache::{CachePlan, Split};
use crate::cached_prompt::Prompt;
use crate::check;
use crate::edits::{self, Compaction};
use crate::faults::{Fault, too_long};
use crate::ids::Ids;
use crate::models::{self, Model};
use crate::refusal::Refusal;
use crate::report::RequestLine;
use crate::request_view::RequestView;
use crate::script::render::{self, Frame, Reply};
use crate::stream::{Envelope, error_event, events, message as whole_message};

/// A request that passed the checks.
struct CheckedRequest {
    /// In its long form, after its own context management.
    body: Value,
    ids: Ids,
    model: Model,
    prompt: Prompt,
    applied: Option<Value>,
    /// Input tokens before context management.
    original_tokens: u64,
    window: u64,
}

/// `POST /v1/messages/count_tokens`.
pub(super) fn count(shared: &ServerState, arrival: &Arrival) -> Result<Value, Refusal> {
    let asked = understand(shared, arrival, AnswerPurpose::Count)?;
    let mut count = json!({"input_tokens": asked.prompt.tokens()});
    if asked.applied.is_some() {
        count["context_management"] = json!({"original_input_tokens": asked.original_tokens});
    }
    Ok(count)
}

/// `POST /v1/messages`.
pub(super) async fn message(shared: &ServerState, arrival: Arrival) -> Response<Body> {
    let number = {
        let mut state = shared.state.lock();
        state.asked += 1;
        state.keep(arrival.bytes.clone(), shared.options.keep_requests);
        state.asked
    };
    let mut line = RequestLine { index: number, status: 200, betas: arrival.betas.clone(), ..RequestLine::default() };
    let answered = match understand(shared, &arrival, AnswerPurpose::Reply) {
        Ok(asked) => {
            line.model.clone_from(&asked.prompt.model);
            line.agent = agent(&asked.body);
            reply(shared, asked, &arrival.id, &mut line).await
        }
        Err(refusal) => {
            line.model = named_model(&arrival.bytes);
            Err(refusal)
        }
    };
    match answered {
        Ok(response) => response,
        Err(refusal) => {
            line.status = refusal.status;
            line.error = Some(refusal.message.clone());
            shared.state.lock().report.add(line);
            refuse(&arrival.id, &refusal)
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum AnswerPurpose {
    Reply,
    Count,
}

fn named_model(bytes: &[u8]) -> String {
    let body: Value = serde_json::from_slice(bytes).unwrap_or_default();
    body["model"].as_str().unwrap_or_default().to_owned()
}

/// Checks a request and lays it out.
fn understand(shared: &ServerState, arrival: &Arrival, purpose: AnswerPurpose) -> Result<CheckedRequest, Refusal> {
    let body: Value = serde_json::from_slice(&arrival.bytes)
        .map_err(|problem| Refusal::invalid(format!("The request body is not valid JSON: {problem}")))?;
    let name = check::model_name(&body)?;
    let model = models::find(name).ok_or_else(|| Refusal::new(404, format!("model: {name}")))?;
    let ids = Ids::new(shared.seed, &arrival.bytes);
    let context = check::Context {
        betas: &arrival.betas,
        cache_edits: shared.options.cache_edits,
        ids: &ids,
        longest_reply: model.longest_reply,
        system_messages: model.takes_system_messages(),
        counting: purpose == AnswerPurpose::Count,
    };
    let mut body = check::request(body, &context)?;
    let original_tokens = Prompt::new(&body, shared.counter).tokens();
    let applied = edits::apply(&mut body, shared.counter);
    let prompt = Prompt::new(&body, shared.counter);
    let window = shared.window.unwrap_or(model.window);
    if purpose == AnswerPurpose::Reply && prompt.tokens() > window {
        return Err(too_long(prompt.tokens(), window));
    }
    Ok(CheckedRequest { body, ids, model, prompt, applied, original_tokens, window })
}

/// The kind of agent, when the user id is a JSON object that says it.
fn agent(body: &Value) -> Option<String> {
    let user: Value = serde_json::from_str(body["metadata"]["user_id"].as_str()?).ok()?;
    Some(user["agent"].as_str()?.to_owned())
}

/// Lets a fault strike or a rule reply, and accounts for it.
async fn reply(
    shared: &ServerState,
    asked: CheckedRequest,
    id: &str,
    line: &mut RequestLine,
) -> Result<Response<Body>, Refusal> {
    let view = RequestView::new(&asked.body);
    let tokens = asked.prompt.tokens();
    let (fault, reply, plan) = {
        let mut state = shared.state.lock();
        let fault = state.faults.strike(line.index, &view);
        line.fault = fault.as_ref().map(Fault::label);
        if let Some(refusal) = fault.as_ref().and_then(|fault| fault.refusal(tokens, asked.window)) {
            return Err(refusal);
        }
        let frame = Frame {
            body: &asked.body,
            ids: &asked.ids,
            counter: shared.counter,
            room: asked.window.saturating_sub(tokens),
            default_thinking: shared.default_thinking.as_deref(),
        };
        let compaction = Compaction::of(&asked.body, tokens);
        let summary_view = compaction.as_ref().map(|compaction| RequestView::new(&compaction.body));
        let mut reply = match state.chooser.choose(summary_view.as_ref().unwrap_or(&view)) {
            Some(choice) => {
                line.rule = Some(choice.rule.name.clone());
                render::render(&frame, &choice)?
            }
            None => render::fallback(&frame, &state.chooser.rule_names())?,
        };
        if let Some(compaction) = compaction {
            let summary = reply.compact();
            if !compaction.pauses {
                let mut body = asked.body.clone();
                body["messages"] = json!([{"role": "user", "content": [{"type": "text", "text": summary}]}]);
                let frame = Frame { body: &body, ..frame };
                let next = match state.chooser.choose(&RequestView::new(&body)) {
                    Some(choice) => render::render(&frame, &choice)?,
                    None => render::fallback(&frame, &state.chooser.rule_names())?,
                };
                reply.go_on(next, Prompt::new(&body, shared.counter).tokens());
            }
        }
        let plan = state.cache.plan(&asked.prompt, asked.model.least_cached, shared.watch.now());
        (fault.unwrap_or_default(), reply, plan)
    };
    if fault.delay_ms > 0 {
        tokio::time::sleep(Duration::from_millis(fault.delay_ms)).await;
    }
    Ok(begin(shared, asked, id, line, &fault, &reply, &plan))
}

/// The reply begins: the cache learns of it, and the report.
fn begin(
    shared: &ServerState,
    asked: CheckedRequest,
    id: &str,
    line: &mut RequestLine,
    fault: &Fault,
    reply: &Reply,
    plan: &CachePlan,
) -> Response<Body> {
    let streams = asked.body["stream"] == true;
    let allowed = if streams { fault.cut_after } else { fault.cut_after.map(|_| 0) };
    let sent = if fault.stall { Some(allowed.unwrap_or(0)) } else { allowed };
    line.input = plan.split;
    line.output = reply.output_tokens;
    line.price = price(shared, &asked.prompt.model, asked.model, plan.split, reply.output_tokens);
    let diagnostics = {
        let mut state = shared.state.lock();
        if sent != Some(0) {
            state.cache.begin(plan, shared.watch.now());
        }
        let previous = asked.body["diagnostics"]["previous_message_id"].as_str();
        let diagnostics = previous.map(|previous| state.trails.diagnose(&asked.prompt, previous));
        let user = asked.body["metadata"]["user_id"].as_str();
        line.broke = state.trails.follow(asked.prompt, user, &reply.id);
        state.report.add(std::mem::take(line));
        diagnostics
    };
    let envelope = Envelope { split: plan.split, context_management: asked.applied, diagnostics };
    let mut parts: Vec<StreamPart> = if streams {
        events(reply, &envelope).into_iter().map(|event| StreamPart::Send(Bytes::from(event))).collect()
    } else if sent.is_none() {
        return ok(id, &whole_message(reply, &envelope));
    } else {
        Vec::new()
    };
    if let Some(sent) = sent {
        parts.truncate(sent);
        parts.push(match fault.error() {
            _ if fault.stall => StreamPart::Stall,
            Some(refusal) => StreamPart::Send(Bytes::from(error_event(&refusal.body(id)))),
            None => StreamPart::Cut,
        });
    }
    let pause = Duration::from_millis(fault.slow_ms_per_event);
    let content_type = if streams { "text/event-stream; charset=utf-8" } else { "application/json" };
    respond(id, 200, content_type, body_of(parts, pause, shared))
}

fn price(shared: &ServerState, name: &str, model: Model, split: Split, output: u64) -> f64 {
    shared.options.prices.get(name).copied().unwrap_or(model.price).of(split, output)
}

/// One step of a streamed body.
#[derive(Debug, Clone)]
enum StreamPart {
    Send(Bytes),
    /// Drop the connection.
    Cut,
    /// Send nothing more until the server closes.
    Stall,
}

fn body_of(parts: Vec<StreamPart>, pause: Duration, shared: &ServerState) -> Body {
    let closed = shared.closed.clone();
    let start = (parts.into_iter(), closed);
    Body::from_stream(stream::unfold(start, move |(mut parts, closed)| async move {
        let part = parts.next()?;
        if pause.is_zero() {
            // Lets what was sent leave before a cut can overtake it.
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(pause).await;
        }
        let sent = match part {
            StreamPart::Send(bytes) => Ok(bytes),
            StreamPart::Cut => Err(io::Error::from(io::ErrorKind::ConnectionAborted)),
            StreamPart::Stall => {
                until_closed(closed.clone()).await;
                Err(io::Error::from(io::ErrorKind::ConnectionAborted))
            }
        };
        Some((sent, (parts, closed)))
    }))
}
