//! One request and its answer: time limits, cancelling, and rounds in which the server asks for more.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientRequest, ElicitRequestParams,
    ElicitationAction, ErrorData, GetPromptRequest, GetPromptRequestParams, InputRequest, InputRequiredResult,
    InputResponses, ReadResourceRequest, ReadResourceRequestParams, RequestId, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use super::client_side::ClientSide;
use super::fault;
use super::lists::value;
use super::shared::{OneMore, ServerCore, ServerLink};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::outcome::OnProgress;

/// Idle limits of calls, as Claude Code has them.
const IDLE_STDIO: Duration = Duration::from_secs(30 * 60);
const IDLE_HTTP: Duration = Duration::from_secs(5 * 60);
/// The most rounds in which a server may ask for more within one call.
const MOST_ROUNDS: usize = 10;
/// Code of an error that wants pages visited before the call is repeated, and the most pages that are.
const VISIT_FIRST: i32 = -32042;
const MOST_PAGES: usize = 3;
/// The wait before a round for which the server asked without a question.
const BETWEEN_ROUNDS: Duration = Duration::from_millis(200);

/// A request that may take rounds.
#[derive(Clone)]
pub(super) enum RoundTrip {
    Call(CallToolRequestParams),
    Prompt(GetPromptRequestParams),
    Resource(ReadResourceRequestParams),
}

impl RoundTrip {
    /// Name of the request in errors.
    fn name(&self) -> String {
        match self {
            Self::Call(call) => format!("a call of {}", call.name),
            Self::Prompt(prompt) => format!("the prompt {}", prompt.name),
            Self::Resource(resource) => format!("the resource {}", resource.uri),
        }
    }

    fn message(&self) -> ClientRequest {
        match self.clone() {
            Self::Call(params) => ClientRequest::CallToolRequest(CallToolRequest::new(params)),
            Self::Prompt(params) => ClientRequest::GetPromptRequest(GetPromptRequest::new(params)),
            Self::Resource(params) => ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params)),
        }
    }

    fn answer(&mut self, responses: Option<InputResponses>, state: Option<String>) {
        let (own_responses, own_state) = match self {
            Self::Call(params) => (&mut params.input_responses, &mut params.request_state),
            Self::Prompt(params) => (&mut params.input_responses, &mut params.request_state),
            Self::Resource(params) => (&mut params.input_responses, &mut params.request_state),
        };
        *own_responses = responses;
        *own_state = state;
    }
}

/// Sends a request and waits for its answer, as JSON. Dropping the future cancels it.
pub(super) async fn exchange(
    shared: &Arc<ServerCore>,
    link: &ServerLink,
    mut request: RoundTrip,
    limit: Duration,
    on_progress: Option<OnProgress>,
) -> Result<Value, Error> {
    let _asks = OneMore::of(&shared.requests);
    let deadline = Instant::now() + limit;
    let mut has_visited = false;
    for _ in 0..MOST_ROUNDS {
        let answer = match round(shared, link, &request, (limit, deadline), on_progress.clone()).await? {
            Ok(answer) => answer,
            Err(error) => {
                // Once: a server that still wants it may be waiting for what the user does there.
                if !has_visited && visit(shared, &error).await {
                    has_visited = true;
                    continue;
                }
                let (error, meaning) =
                    fault::of_request(&shared.name, shared.limits.message_bytes, &ServiceError::McpError(error));
                shared.found(link, meaning);
                return Err(error);
            }
        };
        match answer {
            ServerResult::InputRequiredResult(wanted) => {
                let state = wanted.request_state.clone();
                let responses = respond(shared, wanted).await.map_err(|error| Error::Refused {
                    server: shared.name.clone(),
                    code: error.code.0,
                    message: fault::words(&error.message),
                })?;
                if responses.is_empty() {
                    sleep(BETWEEN_ROUNDS).await;
                }
                request.answer((!responses.is_empty()).then_some(responses), state);
            }
            ServerResult::CreateTaskResult(_) => {
                let message = "it began a task, which this client did not offer to wait for".to_owned();
                return Err(Error::Broken { server: shared.name.clone(), message });
            }
            other => return complete(shared, value(other)),
        }
    }
    let message = format!("it asked for more in {MOST_ROUNDS} rounds");
    Err(Error::Broken { server: shared.name.clone(), message })
}

/// An answer that claims to be of a kind that is not understood is none.
fn complete(shared: &ServerCore, answer: Value) -> Result<Value, Error> {
    match answer.get("resultType").and_then(Value::as_str) {
        None | Some("complete") => Ok(answer),
        Some(kind) => {
            let message = fault::words(&format!("it answered in a way that this client does not know: {kind:?}"));
            Err(Error::Broken { server: shared.name.clone(), message })
        }
    }
}

async fn round(
    shared: &Arc<ServerCore>,
    link: &ServerLink,
    request: &RoundTrip,
    (limit, deadline): (Duration, Instant),
    on_progress: Option<OnProgress>,
) -> Result<Result<ServerResult, ErrorData>, Error> {
    let failed = |error: ServiceError| {
        let (error, meaning) = fault::of_request(&shared.name, shared.limits.message_bytes, &error);
        shared.found(link, meaning);
        error
    };
    let sent = link.peer.send_request_with_option(request.message(), PeerRequestOptions::no_options());
    let mut handle = sent.await.map_err(failed)?;
    let entry = shared.waiting.enter(handle.progress_token.clone(), on_progress);
    let mut guard = PendingRequest { peer: &link.peer, id: Some(handle.id.clone()) };
    let idle = shared.limits.idle.unwrap_or(match shared.endpoint {
        Endpoint::Stdio(_) => IDLE_STDIO,
        Endpoint::Http(_) => IDLE_HTTP,
    });
    let mut silent_until = Instant::now() + idle;
    let late = |after| Error::TimedOut { server: shared.name.clone(), what: request.name(), after };
    loop {
        tokio::select! {
            biased;
            answer = &mut handle.rx => {
                guard.id = None;
                return match answer.unwrap_or(Err(ServiceError::TransportClosed)) {
                    Err(ServiceError::McpError(error)) => Ok(Err(error)),
                    answer => answer.map(Ok).map_err(failed),
                };
            }
            () = entry.sign.notified() => silent_until = Instant::now() + idle,
            () = sleep_until(deadline) => return Err(late(limit)),
            () = sleep_until(silent_until) => {
                // While the user thinks about a question of the server's, the server may be silent.
                if shared.questions.load(Ordering::Acquire) == 0 {
                    return Err(late(idle));
                }
                silent_until = Instant::now() + idle;
            }
        }
    }
}

/// Asks the user to visit the pages that an error wants visited first. True if the user did.
async fn visit(shared: &Arc<ServerCore>, error: &ErrorData) -> bool {
    let pages = error.data.as_ref().and_then(|data| data["elicitations"].as_array());
    let Some(pages) = pages.filter(|pages| error.code.0 == VISIT_FIRST && !pages.is_empty()) else { return false };
    let side = ClientSide(shared.clone());
    for page in pages.iter().take(MOST_PAGES) {
        let Ok(page @ ElicitRequestParams::UrlElicitationParams { .. }) = serde_json::from_value(page.clone()) else {
            return false;
        };
        if side.elicit(page).await.action != ElicitationAction::Accept {
            return false;
        }
    }
    true
}

/// Our answers to what the server wants to know before it goes on.
async fn respond(shared: &Arc<ServerCore>, wanted: InputRequiredResult) -> Result<InputResponses, ErrorData> {
    let side = ClientSide(shared.clone());
    let mut responses = BTreeMap::new();
    for (key, request) in wanted.input_requests.unwrap_or_default() {
        let response = match request {
            InputRequest::Elicitation(request) => serde_json::to_value(side.elicit(request.params).await),
            InputRequest::ListRoots(_) => serde_json::to_value(side.roots()),
            InputRequest::CreateMessage(_) => {
                return Err(ErrorData::invalid_request("it asked for sampling, which is refused", None));
            }
            _ => return Err(ErrorData::invalid_request("it asked for something that this client does not know", None)),
        };
        responses.insert(key, response.unwrap_or_else(|_| json!({})));
    }
    Ok(responses)
}

/// A request that is cancelled at the server if it is dropped without an answer.
struct PendingRequest<'a> {
    peer: &'a Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let reason = Some("nobody waits for the answer any more".to_owned());
            let _ = peer.notify_cancelled(CancelledNotificationParam::new(Some(id), reason)).await;
        });
    }
}
