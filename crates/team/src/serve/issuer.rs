//! Cache of an issuer's metadata and keys, so that sign-in attempts of strangers do not make this server ask again and
//! again. Failures are kept for a moment, too.

use std::time::Duration;

use jsonwebtoken::jwk::JwkSet;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use super::oidc::Issuer;
use super::problem::Problem;
use crate::store::Time;

/// Time limit for an answer of the issuer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The largest answer of an issuer that is read.
const ANSWER_BYTES: usize = 1_000_000;
/// Lifetime of an answer, in milliseconds.
const KEPT: Time = 10 * 60 * 1000;
/// Lifetime of a failure, and the earliest time to ask again for an unknown key, in milliseconds.
const KEPT_FAILURE: Time = 10 * 1000;

/// Metadata that an issuer publishes.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub(super) struct IssuerMetadata {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    pub(super) jwks_uri: String,
    pub(super) device_authorization_endpoint: Option<String>,
}

/// The last answers of an issuer. Concurrent requests wait for one answer together.
#[derive(Debug, Default)]
pub(super) struct IssuerCache {
    published: Mutex<Option<CachedAnswer<IssuerMetadata>>>,
    keys: Mutex<Option<CachedAnswer<JwkSet>>>,
}

/// An answer, or its absence, with its time.
#[derive(Debug)]
struct CachedAnswer<T> {
    at: Time,
    value: Option<T>,
}

impl<T: Clone> CachedAnswer<T> {
    /// The answer, if it is not too old. A clock that was set back makes it old.
    fn fresh(&self, now: Time) -> Option<Option<T>> {
        let kept = if self.value.is_some() { KEPT } else { KEPT_FAILURE };
        (0..kept).contains(&(now - self.at)).then(|| self.value.clone())
    }
}

impl IssuerCache {
    /// Metadata of an issuer, which must name itself in it.
    pub(super) async fn published(&self, issuer: &Issuer, now: Time) -> Result<IssuerMetadata, Problem> {
        let mut kept = self.published.lock().await;
        if let Some(said) = kept.as_ref().and_then(|answer| answer.fresh(now)) {
            return said.ok_or_else(unusable);
        }
        let address = issuer.address.trim_end_matches('/');
        let asked: Result<IssuerMetadata, Problem> =
            ask(client()?.get(format!("{address}/.well-known/openid-configuration"))).await;
        let said = asked.ok().filter(|published| published.issuer.trim_end_matches('/') == address);
        *kept = Some(CachedAnswer { at: now, value: said.clone() });
        said.ok_or_else(unusable)
    }

    /// Its keys. If the one of this name is missing, the issuer is asked again now and then.
    pub(super) async fn keys(
        &self,
        published: &IssuerMetadata,
        name: Option<&str>,
        now: Time,
    ) -> Result<JwkSet, Problem> {
        let mut kept = self.keys.lock().await;
        if let Some(answer) = kept.as_ref()
            && let Some(said) = answer.fresh(now)
        {
            let names = |keys: &JwkSet| name.is_none_or(|name| keys.find(name).is_some());
            if said.as_ref().is_none_or(names) || now - answer.at < KEPT_FAILURE {
                return said.ok_or_else(unusable);
            }
        }
        let said: Option<JwkSet> = ask(client()?.get(&published.jwks_uri)).await.ok();
        *kept = Some(CachedAnswer { at: now, value: said.clone() });
        said.ok_or_else(unusable)
    }
}

pub(super) fn client() -> Result<reqwest::Client, Problem> {
    let client = crate::client::http().timeout(PATIENCE).redirect(reqwest::redirect::Policy::none()).build();
    client.map_err(|_| unusable())
}

/// The answer to a request, bounded in size and time.
pub(super) async fn ask<T: serde::de::DeserializeOwned>(request: reqwest::RequestBuilder) -> Result<T, Problem> {
    let mut response = request.send().await.map_err(|_| unusable())?;
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await.map_err(|_| unusable())? {
        if body.len() + part.len() > ANSWER_BYTES {
            return Err(unusable());
        }
        body.extend_from_slice(&part);
    }
    if !response.status().is_success() {
        return Err(refused());
    }
    serde_json::from_slice(&body).map_err(|_| unusable())
}

pub(super) fn unusable() -> Problem {
    Problem::new(axum::http::StatusCode::BAD_GATEWAY, "api_error", "the issuer cannot be used now")
}

pub(super) fn refused() -> Problem {
    Problem::new(
        axum::http::StatusCode::UNAUTHORIZED,
        "authentication_error",
        "the issuer did not confirm this identity",
    )
}
