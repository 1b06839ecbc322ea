//! Identity of a request: the member of its token, or a stranger.

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, RETRY_AFTER};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};

use super::Service;
use super::listen::Peer;
use super::problem::Problem;
use crate::store::Member;

/// A member that showed its token.
pub(super) struct SignedInMember {
    pub(super) member: Member,
    /// The token itself, for operations on it.
    pub(super) token: String,
}

/// Refusal of a request's identity.
pub(super) enum SignInRefusal {
    Problem(Problem),
    /// Too many requests; seconds to wait.
    TooOften(u64),
}

impl IntoResponse for SignInRefusal {
    fn into_response(self) -> Response {
        match self {
            Self::Problem(problem) => problem.into_response(),
            Self::TooOften(seconds) => {
                let problem =
                    Problem::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", "too many requests; wait a little");
                ([(RETRY_AFTER, seconds.to_string())], problem).into_response()
            }
        }
    }
}

impl FromRequestParts<Service> for SignedInMember {
    type Rejection = SignInRefusal;

    async fn from_request_parts(parts: &mut Parts, service: &Service) -> Result<Self, SignInRefusal> {
        let now = service.now();
        let bearer = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = bearer.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default().trim();
        let member =
            service.store.tokens().member(token, now).await.map_err(|error| SignInRefusal::Problem(error.into()))?;
        // Who guesses tokens is limited by address, who has one by name.
        let name = member.as_ref().map_or_else(|| network(parts), |member| member.id.clone());
        service.rates.ask(&name, now).map_err(SignInRefusal::TooOften)?;
        match member {
            Some(member) => Ok(Self { member, token: token.to_owned() }),
            None => Err(SignInRefusal::Problem(Problem::nobody())),
        }
    }
}

/// A visitor who wants to join or to sign in. Each address has an allowance, so that one cannot use up that of all
/// others; and all together have a larger one.
pub(super) struct UnknownVisitor;

impl FromRequestParts<Service> for UnknownVisitor {
    type Rejection = SignInRefusal;

    async fn from_request_parts(parts: &mut Parts, service: &Service) -> Result<Self, SignInRefusal> {
        let now = service.now();
        service.rates.ask(&network(parts), now).map_err(SignInRefusal::TooOften)?;
        service.strangers.ask("", now).map_err(SignInRefusal::TooOften)?;
        Ok(Self)
    }
}

/// Name of the visitor's network for the rate limits.
fn network(parts: &Parts) -> String {
    parts.extensions.get::<Peer>().map_or_else(String::new, |peer| peer.network().to_string())
}
