//! Making a connection: pipes or HTTP, the handshake, and the first lists.

use std::sync::Arc;

use futures_util::future::join_all;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientInitializeError, ClientServiceExt, Peer, RunningService, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::common::client_side_sse::SseRetryPolicy;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientLifecycleMode, RoleClient};
use tokio::time::{Duration, Instant, timeout, timeout_at};

use super::ServerStatus;
use super::client_side::ClientSide;
use super::fault::{self, FaultMeaning, StartFault};
use super::lists::{self, OfferList};
use super::oversized::OversizedLines;
use super::shared::{List, ServerCore};
use crate::authorization::Authorization;
use crate::endpoint::{Endpoint, HttpEndpoint, OpenPipes};
use crate::http::HttpClient;
use crate::names::short_description;
use crate::offer::{PromptOffer, ResourceOffer, ResourceTemplateOffer, ToolOffer};

/// Attempts to take up a stream that broke, and the first wait before one.
const STREAM_ATTEMPTS: usize = 5;
const STREAM_WAIT: Duration = Duration::from_secs(1);

/// For the lists besides that of tools.
const OTHER_LISTS: Duration = Duration::from_secs(10);

/// A connection that was made.
pub(super) type Connection = RunningService<RoleClient, ClientSide>;

/// Makes a connection within the start-up time.
pub(super) async fn open(shared: &Arc<ServerCore>) -> Result<Connection, StartFault> {
    let limit = shared.limits.start;
    let opened = match &shared.endpoint {
        Endpoint::Stdio(pipes) => timeout(limit, open_pipes(shared, pipes.as_ref())).await,
        Endpoint::Http(http) => timeout(limit, open_http(shared, http)).await,
    };
    let late = || StartFault::Lasting(format!("it did not answer within {} s", limit.as_secs()));
    opened.unwrap_or_else(|_| Err(late()))
}

async fn open_pipes(shared: &Arc<ServerCore>, pipes: &dyn OpenPipes) -> Result<Connection, StartFault> {
    let pipes = pipes.open().await.map_err(|text| StartFault::Lasting(fault::words(&text)))?;
    *shared.last_words.lock() = pipes.last_words;
    let most = shared.limits.message_bytes;
    let read = OversizedLines::new(pipes.read, most);
    let transport = AsyncRwTransport::new_client(read, pipes.write).with_max_line_length(most);
    let side = ClientSide(shared.clone());
    let made = side.serve_with_lifecycle(transport, ClientLifecycleMode::Initialize).await;
    made.map_err(|error| match fault::of_start(&error) {
        // What is told about a pipe says less than that.
        StartFault::Transient(_) => StartFault::Lasting("it ended before the connection was made".to_owned()),
        fault => fault,
    })
}

async fn open_http(shared: &Arc<ServerCore>, endpoint: &HttpEndpoint) -> Result<Connection, StartFault> {
    let first = open_http_once(shared, endpoint).await;
    match (&first, &endpoint.helper) {
        // Its headers may have been stale.
        (Err(StartFault::Login(_)), Some(_)) => open_http_once(shared, endpoint).await,
        _ => first,
    }
}

async fn open_http_once(shared: &Arc<ServerCore>, endpoint: &HttpEndpoint) -> Result<Connection, StartFault> {
    let mut headers = endpoint.headers.clone();
    if let Some(helper) = &endpoint.helper {
        headers.extend(helper.headers().await.map_err(|text| StartFault::Lasting(fault::words(&text)))?);
    }
    let client = HttpClient::new(&endpoint.url, &headers, shared.limits.message_bytes).map_err(StartFault::Lasting)?;
    let authorization = Authorization::new(endpoint).await.map_err(StartFault::Lasting)?;
    probe(shared, &endpoint.url, client.with_authorization(authorization)).await
}

/// Finds out which revision the server speaks: the current one, or one with a handshake.
async fn probe(shared: &Arc<ServerCore>, url: &str, client: HttpClient) -> Result<Connection, StartFault> {
    let connect = |lifecycle| {
        let mut config =
            StreamableHttpClientTransportConfig::with_uri(url).max_sse_event_size(shared.limits.message_bytes);
        config.retry_config = Arc::new(StreamRetries);
        let transport = StreamableHttpClientTransport::with_client(client.clone(), config);
        ClientSide(shared.clone()).serve_with_lifecycle(transport, lifecycle)
    };
    let current = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] };
    let was_late = match timeout(shared.limits.probe, connect(current.clone())).await {
        Ok(Ok(connection)) => return Ok(connection),
        Ok(Err(error)) if !is_older(&error) => return Err(fault::of_start(&error)),
        Ok(Err(_)) => false,
        Err(_) => true,
    };
    match connect(ClientLifecycleMode::Initialize).await.map_err(|error| fault::of_start(&error)) {
        // It was only slow: what knows no handshake is asked again, without a limit of its own.
        Err(StartFault::Lasting(text)) if was_late => connect(current).await.map_err(|_| StartFault::Lasting(text)),
        made => made,
    }
}

fn is_older(error: &ClientInitializeError) -> bool {
    let speaks_older = |versions: &[ProtocolVersion]| versions.iter().any(ProtocolVersion::has_initialize);
    match error {
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => speaks_older(server_supported),
        other => fault::is_legacy(other),
    }
}

/// Reads the lists of a new connection into a status. A list that cannot be read is a problem, not a failure.
pub(super) async fn first_status(
    shared: &ServerCore,
    peer: &Peer<RoleClient>,
    deadline: Instant,
) -> Result<ServerStatus, FaultMeaning> {
    let mut status = ServerStatus::off();
    shared.problems.lock().clear();
    let Some(info) = peer.peer_info() else { return Ok(status) };
    status.protocol = Some(info.protocol_version.as_str().to_owned());
    status.identity =
        info.server_info.as_ref().map(|server| fault::words(&format!("{} {}", server.name, server.version)));
    let instructions = info.instructions.as_deref().filter(|text| !text.trim().is_empty());
    status.instructions = instructions.map(|text| short_description(text).into_owned());
    // A server is ready with its tools; what else it has may not keep it from that for long.
    let soon = deadline.min(Instant::now() + OTHER_LISTS);
    let limit = |list| if list == List::Tools { deadline } else { soon };
    let readings = offered_lists(peer)
        .into_iter()
        .map(|list| async move { (list, timeout_at(limit(list), read(shared, peer, list)).await) });
    for (list, reading) in join_all(readings).await {
        let problems = match reading {
            Ok(Ok(part)) => part.put(&mut status),
            Ok(Err(error)) => match fault::of_request(&shared.name, shared.limits.message_bytes, &error) {
                (_, meaning @ (FaultMeaning::Login(_) | FaultMeaning::Unreachable)) => return Err(meaning),
                (error, _) => vec![format!("its {} could not be read: {error}", list.name())],
            },
            Err(_) => vec![format!("its {} did not come in time", list.name())],
        };
        shared.problems.lock().insert(list, problems);
    }
    if peer.is_transport_closed() {
        return Err(FaultMeaning::Unreachable);
    }
    status.problems = shared.all_problems();
    Ok(status)
}

/// Lists that the server says it has.
pub(super) fn offered_lists(peer: &Peer<RoleClient>) -> Vec<List> {
    let Some(info) = peer.peer_info() else { return Vec::new() };
    let has = |list: &List| match list {
        List::Tools => info.capabilities.tools.is_some(),
        List::Resources => info.capabilities.resources.is_some(),
        List::Prompts => info.capabilities.prompts.is_some(),
    };
    List::ALL.into_iter().filter(has).collect()
}

/// A list that was read whole.
pub(super) enum ListPart {
    Tools(OfferList<ToolOffer>),
    Resources(OfferList<ResourceOffer>, OfferList<ResourceTemplateOffer>),
    Prompts(OfferList<PromptOffer>),
}

impl ListPart {
    /// Replaces what the status has of it; answers with the problems.
    pub(super) fn put(self, status: &mut ServerStatus) -> Vec<String> {
        match self {
            Self::Tools(tools) => {
                status.tools = tools.entries;
                tools.problems
            }
            Self::Resources(resources, templates) => {
                status.resources = resources.entries;
                status.templates = templates.entries;
                [resources.problems, templates.problems].concat()
            }
            Self::Prompts(prompts) => {
                status.prompts = prompts.entries;
                prompts.problems
            }
        }
    }
}

/// Reads a list again.
pub(super) async fn read(shared: &ServerCore, peer: &Peer<RoleClient>, list: List) -> Result<ListPart, ServiceError> {
    let limits = &shared.limits;
    match list {
        List::Tools => lists::tools(peer, limits).await.map(ListPart::Tools),
        List::Prompts => lists::prompts(peer, limits).await.map(ListPart::Prompts),
        List::Resources => {
            let resources = lists::resources(peer, limits).await?;
            // Many servers with resources have no patterns and say so with an error.
            let none = OfferList { entries: Vec::new(), problems: Vec::new() };
            let templates = match lists::templates(peer, limits).await {
                Err(ServiceError::McpError(_) | ServiceError::UnexpectedResponse) => none,
                other => other?,
            };
            Ok(ListPart::Resources(resources, templates))
        }
    }
}

/// Waits between attempts to take up a stream.
#[derive(Debug)]
struct StreamRetries;

impl SseRetryPolicy for StreamRetries {
    fn retry(&self, current_times: usize) -> Option<Duration> {
        let wait = STREAM_WAIT.checked_mul(1 << current_times.min(STREAM_ATTEMPTS));
        wait.filter(|_| current_times < STREAM_ATTEMPTS)
    }
}
