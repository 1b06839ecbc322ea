//! Signing in with an account somebody has elsewhere: OpenID Connect against any issuer.
//!
//! The page uses the code flow with PKCE; what has to be remembered between its two halves travels in a cookie, so any
//! server can take the second half. The command line runs the device flow with the issuer and hands in the id token it
//! got. Either way the token's signature, issuer, audience and age are checked here, and its subject names the member.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::http::header::SET_COOKIE;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::Service;
use super::page::{self, cookie};
use super::problem::Problem;
use crate::store::Member;

/// What the issuer says has to be there within this time.
const PATIENCE: Duration = Duration::from_secs(10);
/// The largest answer of an issuer that is read.
const ANSWER_BYTES: usize = 1_000_000;
/// An id token handed in is at most so old, in seconds.
const YOUNG: i64 = 600;
/// The cookie between the two halves.
const HALF: &str = "cairn_team_sign_in";
/// What a signature may be made with. Never a shared secret, never nothing.
const ALGORITHMS: [Algorithm; 5] =
    [Algorithm::RS256, Algorithm::RS384, Algorithm::RS512, Algorithm::ES256, Algorithm::EdDSA];

/// Who may say who somebody is.
#[derive(Debug, Clone)]
pub struct Issuer {
    /// Its address.
    pub address: String,
    /// What it knows this server as.
    pub client: String,
    /// The secret it gave this server, if it did.
    pub secret: Option<String>,
    /// Verified addresses that end in `@` and this are let in as new members, without any rights. Others need to be
    /// known.
    pub domain: Option<String>,
}

/// What an issuer publishes about itself.
#[derive(Debug, Clone, Deserialize, Serialize)]
struct Published {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    #[serde(default)]
    device_authorization_endpoint: Option<String>,
}

/// What an id token says.
#[derive(Debug, Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    iat: i64,
    #[serde(default)]
    nonce: Option<String>,
    #[serde(default)]
    email: Option<String>,
    #[serde(default)]
    email_verified: bool,
    #[serde(default)]
    preferred_username: Option<String>,
}

pub(super) fn routes() -> Router<Service> {
    Router::new()
        .route("/sign-in/issuer", get(begin))
        .route("/sign-in/back", get(end))
        .route("/api/team/issuer", get(told))
        .route("/api/team/sign-in", post(hand_in))
}

/// What the command line needs to run the device flow.
async fn told(State(service): State<Service>) -> Result<Json<serde_json::Value>, Problem> {
    let issuer = service.issuer()?;
    let published = published(&issuer).await?;
    let Some(device) = published.device_authorization_endpoint else {
        return Err(Problem::missing("the issuer has no device flow; sign in with an invitation"));
    };
    Ok(Json(json!({"client": issuer.client, "device": device, "token": published.token_endpoint})))
}

/// An id token that the command line got.
#[derive(Deserialize)]
struct HandedIn {
    id_token: String,
    #[serde(default)]
    label: String,
}

async fn hand_in(State(service): State<Service>, body: Body) -> Result<Json<serde_json::Value>, Problem> {
    let handed: HandedIn = service.json(body).await?;
    let member = service.member_of(&handed.id_token, None).await?;
    let token = service.store.issue_token(&member, &handed.label, None, service.now()).await?;
    Ok(Json(json!({"name": member.name, "token": token.reveal()})))
}

/// What has to be remembered while the issuer asks.
#[derive(Serialize, Deserialize)]
struct Half {
    state: String,
    nonce: String,
    verifier: String,
}

async fn begin(State(service): State<Service>) -> Result<Response, Problem> {
    let issuer = service.issuer()?;
    let published = published(&issuer).await?;
    let random = || format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
    let half = Half { state: random(), nonce: random(), verifier: random() };
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(half.verifier.as_bytes()));
    let mut address = reqwest::Url::parse(&published.authorization_endpoint).map_err(|_| unusable())?;
    address.query_pairs_mut().extend_pairs([
        ("response_type", "code"),
        ("client_id", &issuer.client),
        ("redirect_uri", &service.back()),
        ("scope", "openid email profile"),
        ("state", &half.state),
        ("nonce", &half.nonce),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
    ]);
    let half = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&half).unwrap_or_default());
    let kept = page::set_cookie(&service, HALF, &half, 600);
    Ok(([(SET_COOKIE, kept)], Redirect::to(address.as_str())).into_response())
}

/// What the issuer sends somebody back with.
#[derive(Deserialize)]
struct Back {
    #[serde(default)]
    code: String,
    #[serde(default)]
    state: String,
}

async fn end(
    State(service): State<Service>,
    Query(back): Query<Back>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let issuer = service.issuer()?;
    let begun = || Problem::bad("this sign-in was not begun here, or is over; begin again");
    let half = cookie(&headers, HALF).and_then(|half| URL_SAFE_NO_PAD.decode(half).ok()).ok_or_else(begun)?;
    let half: Half = serde_json::from_slice(&half).map_err(|_| begun())?;
    if half.state != back.state || back.code.is_empty() {
        return Err(begun());
    }
    let published = published(&issuer).await?;
    let mut form = vec![
        ("grant_type", "authorization_code".to_owned()),
        ("code", back.code),
        ("redirect_uri", service.back()),
        ("client_id", issuer.client.clone()),
        ("code_verifier", half.verifier),
    ];
    form.extend(issuer.secret.clone().map(|secret| ("client_secret", secret)));
    let answer: serde_json::Value = ask(client()?.post(&published.token_endpoint).form(&form)).await?;
    let id_token = answer["id_token"].as_str().ok_or_else(unusable)?;
    let member = service.member_of(id_token, Some(&half.nonce)).await?;
    page::signed_in(&service, &member).await
}

impl Service {
    fn issuer(&self) -> Result<Issuer, Problem> {
        self.options.issuer.clone().ok_or_else(|| Problem::missing("this server has no issuer; sign in with a token"))
    }

    fn back(&self) -> String {
        format!("{}/sign-in/back", self.options.address.trim_end_matches('/'))
    }

    /// The member an id token is about.
    async fn member_of(&self, id_token: &str, nonce: Option<&str>) -> Result<Member, Problem> {
        let issuer = self.issuer()?;
        let published = published(&issuer).await?;
        let keys: JwkSet = ask(client()?.get(&published.jwks_uri)).await?;
        let claims = checked(id_token, &keys, &published, &issuer)?;
        let age = self.now() / 1000 - claims.iat;
        if nonce.is_some_and(|nonce| claims.nonce.as_deref() != Some(nonce)) || !(-60..YOUNG).contains(&age) {
            return Err(refused());
        }
        // Who reads one on its way cannot hand it in again.
        if !self.store.use_once(id_token, (claims.iat + YOUNG + 60) * 1000, self.now()).await? {
            return Err(refused());
        }
        let subject = format!("{}|{}", claims.iss, claims.sub);
        if let Some(member) = self.store.member_of_subject(&subject).await? {
            return Ok(member);
        }
        let email = claims.email.filter(|_| claims.email_verified).unwrap_or_default();
        let is_ours = issuer.domain.as_ref().is_some_and(|domain| email.ends_with(&format!("@{domain}")));
        if !is_ours {
            return Err(Problem::forbidden());
        }
        let name = claims.preferred_username.unwrap_or(email);
        Ok(self.store.add_member(&name, &subject, self.now()).await?)
    }
}

/// The claims of a token that is signed by the issuer, for this server, and not over.
fn checked(id_token: &str, keys: &JwkSet, published: &Published, issuer: &Issuer) -> Result<Claims, Problem> {
    let header = decode_header(id_token).map_err(|_| refused())?;
    if !ALGORITHMS.contains(&header.alg) {
        return Err(refused());
    }
    let mut validation = Validation::new(header.alg);
    validation.set_audience(&[&issuer.client]);
    validation.set_issuer(&[&published.issuer]);
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    let candidates = keys.keys.iter().filter(|key| match (&header.kid, &key.common.key_id) {
        (Some(wanted), Some(has)) => wanted == has,
        _ => true,
    });
    candidates
        .filter_map(|key| DecodingKey::from_jwk(key).ok())
        .find_map(|key| decode::<Claims>(id_token, &key, &validation).ok())
        .map(|token| token.claims)
        .ok_or_else(refused)
}

/// What an issuer publishes. That it speaks for itself is checked.
async fn published(issuer: &Issuer) -> Result<Published, Problem> {
    let address = issuer.address.trim_end_matches('/');
    let published: Published = ask(client()?.get(format!("{address}/.well-known/openid-configuration"))).await?;
    if published.issuer.trim_end_matches('/') != address {
        return Err(unusable());
    }
    Ok(published)
}

fn client() -> Result<reqwest::Client, Problem> {
    let client = reqwest::Client::builder().timeout(PATIENCE).redirect(reqwest::redirect::Policy::none()).build();
    client.map_err(|_| unusable())
}

async fn ask<T: serde::de::DeserializeOwned>(request: reqwest::RequestBuilder) -> Result<T, Problem> {
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

fn unusable() -> Problem {
    Problem::new(axum::http::StatusCode::BAD_GATEWAY, "api_error", "the issuer cannot be used now")
}

fn refused() -> Problem {
    Problem::new(axum::http::StatusCode::UNAUTHORIZED, "authentication_error", "the issuer does not vouch for this")
}
