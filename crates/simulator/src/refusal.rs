//! An answer that is not a reply: status, error type and message in the provider's shape.

use serde_json::{Value, json};

/// Why a request was not answered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) message: String,
    /// `error.details`, where the provider has any.
    pub(crate) details: Option<Value>,
    /// Seconds for the `retry-after` header.
    pub(crate) retry_after: Option<u64>,
}

impl Refusal {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), details: None, retry_after: None }
    }

    /// 400 `invalid_request_error`.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, message)
    }

    /// 500 `api_error`: the script itself is wrong.
    pub(crate) fn script(rule: &str, problem: impl std::fmt::Display) -> Self {
        Self::new(500, format!("simulator script, rule \"{rule}\": {problem}"))
    }

    /// The error type that the provider pairs with the status.
    pub(crate) fn kind(&self) -> &'static str {
        kind_of(self.status)
    }

    /// The body, as JSON.
    pub(crate) fn body(&self, request_id: &str) -> Value {
        let mut error = json!({"type": self.kind(), "message": self.message});
        if let Some(details) = &self.details {
            error["details"] = details.clone();
        }
        json!({"type": "error", "error": error, "request_id": request_id})
    }
}

/// The provider's name for a status.
fn kind_of(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        409 => "conflict_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    }
}

/// Default message of the provider for a status.
pub(crate) fn usual_message(status: u16) -> &'static str {
    match status {
        401 => "invalid x-api-key",
        402 => "Your credit balance is too low to access the API.",
        403 => "Your API key does not have permission to use the specified resource.",
        404 => "Not found",
        409 => "The request conflicts with another one.",
        413 => "Request exceeds the maximum size",
        429 => "This request would exceed your account's rate limit. Please try again later.",
        504 => "The request timed out.",
        529 => "Overloaded",
        400..=499 => "Invalid request",
        _ => "Internal server error",
    }
}
