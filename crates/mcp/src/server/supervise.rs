//! The life of a connection: made, kept up to date, and made again where that makes sense.

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::service::Peer;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::fault::{self, FaultMeaning, StartFault, words};
use super::listen::listen;
use super::open::{self, Connection};
use super::shared::ServerCore;
use super::{ServerState, ServerStatus};
use crate::endpoint::Endpoint;

/// Attempts at a first connection that fails in a way that may pass, as Claude Code has it.
const FIRST_ATTEMPTS: u32 = 3;
/// Attempts at a connection that broke.
const ATTEMPTS: u32 = 5;
/// The wait before the second attempt; it doubles.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The least time between two readings of the same lists: a server may announce changes without end.
const BETWEEN_READINGS: Duration = Duration::from_secs(1);
/// The longest wait for a connection to end in order.
const CLOSING: Duration = Duration::from_secs(2);

/// End of a connection.
enum ConnectionEnd {
    /// We ended it.
    Stopped,
    /// It broke.
    Broke,
    /// It wants a login.
    Unauthorized,
}

/// Makes the connection and looks after it until `stop`. `settled` is told once the first attempts are over.
pub(super) async fn supervise(shared: Arc<ServerCore>, stop: CancellationToken, settled: oneshot::Sender<()>) {
    let mut settled = Some(settled);
    // A process is started once for each command.
    let mut attempts = if matches!(shared.endpoint, Endpoint::Stdio(_)) { 1 } else { FIRST_ATTEMPTS };
    while let Some(connection) = connect(&shared, &stop, attempts).await {
        let _ = settled.take().map(|settled| settled.send(()));
        let end = serve(&shared, &stop, connection).await;
        match end {
            ConnectionEnd::Stopped => break,
            ConnectionEnd::Unauthorized if shared.has_helper() => attempts = ATTEMPTS,
            ConnectionEnd::Unauthorized => {
                shared.set_state(shared.rejected());
                break;
            }
            ConnectionEnd::Broke if matches!(shared.endpoint, Endpoint::Stdio(_)) => {
                shared.set_state(ServerState::Failed(ended(&shared, "the process ended").await));
                break;
            }
            ConnectionEnd::Broke => attempts = ATTEMPTS,
        }
    }
    let _ = settled.take().map(|settled| settled.send(()));
}

/// Tries to connect; none if that failed for good, which the status then says.
async fn connect(shared: &Arc<ServerCore>, stop: &CancellationToken, attempts: u32) -> Option<Connection> {
    shared.set_state(ServerState::Connecting);
    let mut wait = FIRST_WAIT;
    // After a connection that broke, the server is given time first.
    let is_again = attempts == ATTEMPTS;
    for attempt in 1..=attempts {
        if attempt > 1 || is_again {
            tokio::select! {
                () = sleep(wait) => wait *= 2,
                () = stop.cancelled() => return None,
            }
        }
        let opened = tokio::select! {
            opened = attempt_once(shared) => opened,
            () = stop.cancelled() => return None,
        };
        let state = match opened {
            Ok(connection) => return Some(connection),
            Err(StartFault::Login(challenge)) => {
                shared.remember(challenge);
                shared.rejected()
            }
            Err(StartFault::Transient(_)) if attempt < attempts => continue,
            Err(StartFault::Transient(text) | StartFault::Lasting(text)) => {
                ServerState::Failed(ended(shared, &text).await)
            }
        };
        shared.set_state(state);
        return None;
    }
    None
}

async fn attempt_once(shared: &Arc<ServerCore>) -> Result<Connection, StartFault> {
    let deadline = Instant::now() + shared.limits.start;
    shared.stale.clear();
    let connection = open::open(shared).await?;
    let status = match open::first_status(shared, connection.peer(), deadline).await {
        Ok(status) => status,
        Err(meaning) => {
            close(connection).await;
            return Err(match meaning {
                FaultMeaning::Login(challenge) => StartFault::Login(challenge),
                _ => StartFault::Transient("it ended before its lists were read".to_owned()),
            });
        }
    };
    shared.join(connection.peer().clone());
    shared.update(|old| *old = ServerStatus { state: ServerState::Ready, ..status });
    Ok(connection)
}

/// Keeps the lists up to date until the connection ends.
async fn serve(shared: &Arc<ServerCore>, stop: &CancellationToken, connection: Connection) -> ConnectionEnd {
    let (peer, cancel) = (connection.peer().clone(), connection.cancellation_token());
    let mut over = std::pin::pin!(connection.waiting());
    let end = tokio::select! {
        () = stop.cancelled() => ConnectionEnd::Stopped,
        _ = &mut over => return lose(shared, ConnectionEnd::Broke),
        () = shared.unreachable.notified() => ConnectionEnd::Broke,
        () = shared.unauthorized.notified() => ConnectionEnd::Unauthorized,
        () = refresh(shared, &peer) => ConnectionEnd::Broke,
        () = listen(shared, &peer) => ConnectionEnd::Broke,
    };
    let end = lose(shared, end);
    cancel.cancel();
    let _ = timeout(CLOSING, over).await;
    end
}

fn lose(shared: &ServerCore, end: ConnectionEnd) -> ConnectionEnd {
    *shared.link.lock() = None;
    end
}

/// Reads lists again when the server says that they changed. What cannot be read stays as it was.
async fn refresh(shared: &Arc<ServerCore>, peer: &Peer<RoleClient>) {
    loop {
        for list in shared.stale.next().await {
            let problems = match timeout(shared.limits.start, open::read(shared, peer, list)).await {
                Ok(Ok(part)) => {
                    let mut problems = Vec::new();
                    shared.update(|status| problems = part.put(status));
                    problems
                }
                Ok(Err(error)) => {
                    let (error, _) = fault::of_request(&shared.name, shared.limits.message_bytes, &error);
                    vec![format!("its changed {} could not be read: {error}", list.name())]
                }
                Err(_) => vec![format!("its changed {} did not come in time", list.name())],
            };
            shared.problems.lock().insert(list, problems);
            shared.update(|status| status.problems = shared.all_problems());
        }
        sleep(BETWEEN_READINGS).await;
    }
}

async fn close(mut connection: Connection) {
    let _ = connection.close_with_timeout(CLOSING).await;
}

/// Text about a server that is gone, with its last words.
async fn ended(shared: &ServerCore, text: &str) -> String {
    let last_words = shared.last_words.lock().take();
    let last = match last_words {
        Some(last_words) => Some(words(&last_words().await)),
        None => None,
    };
    match last.filter(|last| !last.is_empty()) {
        Some(last) => format!("{text}: {last}"),
        None => text.to_owned(),
    }
}
