//! Errors of rmcp, by their meaning for a caller and for the connection.

use std::error::Error as StdError;
use std::io;

use rmcp::model::ErrorCode;
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::AuthError;
use rmcp::transport::streamable_http_client::{AuthRequiredError, InsufficientScopeError, StreamableHttpError};

use super::oversized::TOO_LONG;
use crate::error::Error;
use crate::http::{HttpFault, scope_of};
use crate::names::cut;

/// The most bytes of a server's words in an error.
const LONGEST_WORDS: usize = 1000;

/// Meaning of a failure for the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FaultMeaning {
    /// Nothing: the connection goes on.
    Nothing,
    /// The server wants a login, or more rights.
    Login(Challenge),
    /// The server cannot be reached; it may come back.
    Unreachable,
    /// A message was larger than the limit.
    TooLarge,
}

/// Answer of a server that wants a login.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    /// The header as it came.
    pub(super) header: String,
    /// The scope that would do, if it says so.
    pub(super) scope: Option<String>,
}

/// A server's words, cut and without control characters.
pub(super) fn words(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect();
    cut(clean.trim(), LONGEST_WORDS).into_owned()
}

/// The error of a request, and what it means for the connection.
pub(super) fn of_request(server: &str, message_limit: usize, error: &ServiceError) -> (Error, FaultMeaning) {
    let server = server.to_owned();
    let broken = |message: String| Error::Broken { server: server.clone(), message: words(&message) };
    match error {
        ServiceError::McpError(data) if data.message == TOO_LONG => {
            (too_large(server.clone(), message_limit), FaultMeaning::TooLarge)
        }
        ServiceError::McpError(data) => (
            Error::Refused { server: server.clone(), code: data.code.0, message: words(&data.message) },
            FaultMeaning::Nothing,
        ),
        ServiceError::TransportSend(error) => match meaning(error) {
            (FaultMeaning::Login(challenge), _) => {
                (Error::NeedsLogin { server: server.clone() }, FaultMeaning::Login(challenge))
            }
            (FaultMeaning::TooLarge, _) => (too_large(server.clone(), message_limit), FaultMeaning::TooLarge),
            (meaning, text) => (broken(text), meaning),
        },
        // Of a stream or of the whole connection, whose end is noticed elsewhere.
        ServiceError::TransportClosed => {
            (broken("it ended before the answer was complete".to_owned()), FaultMeaning::Nothing)
        }
        ServiceError::Cancelled { reason } => {
            let reason = reason.clone().unwrap_or_else(|| "it was cancelled".to_owned());
            (Error::Refused { server: server.clone(), code: 0, message: words(&reason) }, FaultMeaning::Nothing)
        }
        other => (broken(other.to_string()), FaultMeaning::Nothing),
    }
}

fn too_large(server: String, limit: usize) -> Error {
    Error::TooLarge { server, what: "an answer", limit: format!("{} MB", limit >> 20) }
}

/// Why a connection was not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StartFault {
    /// The server wants a login.
    Login(Challenge),
    /// It cannot be reached: it may come back.
    Transient(String),
    /// It will not get better by itself.
    Lasting(String),
}

/// The failure of a handshake.
pub(super) fn of_start(error: &ClientInitializeError) -> StartFault {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => of_start(fallback),
        ClientInitializeError::TransportError { error, .. } => match meaning(error) {
            (FaultMeaning::Login(challenge), _) => StartFault::Login(challenge),
            // Servers that are being started answer so.
            (_, text) if has_status(error) => StartFault::Transient(words(&text)),
            (FaultMeaning::Unreachable, text) => StartFault::Transient(words(&text)),
            (_, text) => StartFault::Lasting(words(&text)),
        },
        ClientInitializeError::JsonRpcError(data) => StartFault::Lasting(words(&data.message)),
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let versions: Vec<&str> = server_supported.iter().take(10).map(|version| version.as_str()).collect();
            StartFault::Lasting(words(&format!(
                "it only supports revisions of the protocol that Cairn does not: {}",
                versions.join(", ")
            )))
        }
        ClientInitializeError::ConnectionClosed(_) => {
            StartFault::Lasting("it ended before the connection was made".to_owned())
        }
        ClientInitializeError::ConflictInitResponseId(..) | ClientInitializeError::UncorrelatedErrorResponse { .. } => {
            StartFault::Lasting("it answered a question that was not asked".to_owned())
        }
        ClientInitializeError::ExpectedInitResponse(_) | ClientInitializeError::ExpectedInitResult(_) => {
            StartFault::Lasting("its answer to the first message is not one of the protocol".to_owned())
        }
        other => StartFault::Lasting(words(&other.to_string())),
    }
}

/// True if the server answered that it is busy or broken.
fn has_status(error: &(dyn StdError + 'static)) -> bool {
    causes(error).any(|cause| matches!(cause.downcast_ref(), Some(StreamableHttpError::<HttpFault>::HttpStatus(_))))
}

/// An error and its causes. Those that rmcp wraps without naming them as causes are found by its own type.
fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let current = next?;
        next = match current.downcast_ref() {
            Some(StreamableHttpError::<HttpFault>::Client(fault)) => Some(fault),
            Some(StreamableHttpError::<HttpFault>::Auth(error)) => Some(error),
            _ => current.source(),
        };
        Some(current)
    })
}

/// True if a failed probe means that the server speaks an older revision.
pub(super) fn is_legacy(error: &ClientInitializeError) -> bool {
    const REJECTIONS: [ErrorCode; 2] = [ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY, ErrorCode::HEADER_MISMATCH];
    match error {
        ClientInitializeError::JsonRpcError(data) => !REJECTIONS.contains(&data.code),
        // What answers a probe with nonsense may still know a handshake.
        ClientInitializeError::ExpectedInitResponse(_)
        | ClientInitializeError::ExpectedInitResult(_)
        | ClientInitializeError::ConflictInitResponseId(..)
        | ClientInitializeError::UncorrelatedErrorResponse { .. }
        | ClientInitializeError::ConnectionClosed(_) => true,
        ClientInitializeError::TransportError { error, .. } => {
            matches!(meaning(error).0, FaultMeaning::Nothing) && !has_status(error)
        }
        _ => false,
    }
}

/// The meaning and the text of the deepest known cause.
fn meaning(error: &(dyn StdError + 'static)) -> (FaultMeaning, String) {
    let mut text = error.to_string();
    for cause in causes(error) {
        let required = cause.downcast_ref::<AuthRequiredError>().map(|error| &error.www_authenticate_header);
        let more = cause.downcast_ref::<InsufficientScopeError>().map(|error| &error.www_authenticate_header);
        if let Some(header) = required.or(more) {
            let challenge = Challenge { header: header.clone(), scope: scope_of(header) };
            return (FaultMeaning::Login(challenge), String::new());
        }
        if let Some(auth) = cause.downcast_ref::<AuthError>() {
            return match auth {
                AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_) => {
                    (FaultMeaning::Login(Challenge::default()), String::new())
                }
                // The text may come from the token endpoint; its cause is told, its answer is not.
                AuthError::TokenRefreshFailed(_) => {
                    (FaultMeaning::Unreachable, "the tokens could not be refreshed".to_owned())
                }
                _ => (FaultMeaning::Nothing, "the login could not be used".to_owned()),
            };
        }
        let fault = cause.downcast_ref::<HttpFault>();
        let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(fault) = fault.or_else(|| inner.and_then(|inner| inner.downcast_ref())) {
            let meaning = match fault {
                HttpFault::Unreachable(_) => FaultMeaning::Unreachable,
                HttpFault::Broken(_) => FaultMeaning::Nothing,
                HttpFault::TooLarge => FaultMeaning::TooLarge,
            };
            return (meaning, fault.to_string());
        }
        if let Some(io) = cause.downcast_ref::<io::Error>() {
            return (FaultMeaning::Unreachable, io.to_string());
        }
        text = cause.to_string();
    }
    (FaultMeaning::Nothing, text)
}
