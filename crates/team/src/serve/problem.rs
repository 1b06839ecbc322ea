//! Errors as clients get them: a status, a kind, a sentence. Internal causes are logged and not sent.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::error::Error;
use crate::protocol::{Details, ErrorBody, ErrorDetail, TOO_MANY_ENTRIES};

/// An error answer.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    kind: &'static str,
    pub(super) message: String,
    details: Option<Box<Details>>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self { status, kind, message: message.into(), details: None }
    }

    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", message)
    }

    pub(super) fn nobody() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "authentication_error", "this needs a valid token")
    }

    pub(super) fn forbidden() -> Self {
        Self::new(StatusCode::FORBIDDEN, "permission_error", "you may not do this here; ask an admin of the repository")
    }

    pub(super) fn missing(what: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found_error", what)
    }

    pub(super) fn with(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Key(_) | Error::Repository(_) | Error::Invalid(_) => Self::bad(message),
            Error::Refused(refused) => {
                let refused = refused.into_iter().map(|(key, why)| (key.to_string(), why)).collect();
                let error_code = "team_memory_refused".to_owned();
                Self::bad(message).with(Details { error_code, refused, ..Details::default() })
            }
            Error::Conflict { .. } => Self::new(StatusCode::PRECONDITION_FAILED, "conflict_error", message),
            Error::Missing(_) => Self::missing(message),
            Error::Exists(_) => Self::new(StatusCode::CONFLICT, "conflict_error", message),
            Error::TooMany { most, received } => {
                let (max_entries, received_entries) = (Some(most), Some(received));
                let error_code = TOO_MANY_ENTRIES.to_owned();
                let details = Details { error_code, max_entries, received_entries, ..Details::default() };
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "request_too_large", message).with(details)
            }
            Error::Database(_) | Error::Schema(_) | Error::Files(_) | Error::Listen { .. } => {
                tracing::error!(error = message, "a request failed");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "api_error", "the server cannot answer now")
            }
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let told = ErrorDetail {
            kind: self.kind.to_owned(),
            message: self.message,
            details: self.details.map(|details| *details),
        };
        (self.status, Json(ErrorBody { error: told })).into_response()
    }
}
