//! Signing in with an account from elsewhere: OpenID Connect against any issuer.
//!
//! The page uses the code flow with PKCE; the state between its two halves travels in a cookie, so any server can take
//! the second half. The command line runs the device flow with the issuer and hands in the id token it got. Either way
//! the token's signature, issuer, audience and age are checked here, and its subject names the member.

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
use jsonwebtoken::{DecodingKey, Validation, decode, decode_header};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::Service;
use super::issuer::{IssuerMetadata, ask, client, refused, unusable};
use super::page::{self, cookie};
use super::problem::Problem;
use super::signature::{ALGORITHMS, check_with_ring};
use super::signing::UnknownVisitor;
use crate::store::Member;

/// Age limit of an id token, in seconds.
const YOUNG: i64 = 600;
/// The cookie between the two halves.
const HALF: &str = "cairn_team_sign_in";
/// Settings of an issuer.
#[derive(Debug, Clone)]
pub struct Issuer {
    /// Its address.
    pub address: String,
    /// This server's client id there.
    pub client: String,
    /// The secret it gave this server, if it did.
    pub secret: Option<String>,
    /// Verified addresses that end in `@` and this are let in as new members, without any rights. Others need to be
    /// known.
    pub domain: Option<String>,
}

/// Claims of an id token.
#[derive(Debug, Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    iat: i64,
    nonce: Option<String>,
    email: Option<String>,
    #[serde(default)]
    email_verified: bool,
    preferred_username: Option<String>,
}

pub(super) fn routes() -> Router<Service> {
    Router::new()
        .route("/sign-in/issuer", get(begin))
        .route("/sign-in/back", get(end))
        .route("/api/team/issuer", get(device_flow))
        .route("/api/team/sign-in", post(hand_in))
}

/// Settings of the device flow for the command line.
async fn device_flow(State(service): State<Service>, _: UnknownVisitor) -> Result<Json<serde_json::Value>, Problem> {
    let issuer = service.issuer()?;
    let published = service.issuer_cache.published(&issuer, service.now()).await?;
    let Some(device) = published.device_authorization_endpoint else {
        return Err(Problem::missing("the issuer has no device flow; sign in with an invitation"));
    };
    Ok(Json(json!({"client": issuer.client, "device": device, "token": published.token_endpoint})))
}

/// An id token from the command line.
#[derive(Deserialize)]
struct IdToken {
    id_token: String,
    #[serde(default)]
    label: String,
}

async fn hand_in(
    State(service): State<Service>,
    _: UnknownVisitor,
    body: Body,
) -> Result<Json<serde_json::Value>, Problem> {
    let handed: IdToken = service.json(body).await?;
    let member = service.member_of(&handed.id_token, None).await?;
    let token = service.store.tokens().issue(&member, &handed.label, None, service.now()).await?;
    Ok(Json(json!({"name": member.name, "token": token.reveal()})))
}

/// State kept while the user is at the issuer.
#[derive(Serialize, Deserialize)]
struct PendingSignIn {
    state: String,
    nonce: String,
    verifier: String,
}

async fn begin(State(service): State<Service>, _: UnknownVisitor) -> Result<Response, Problem> {
    let issuer = service.issuer()?;
    let published = service.issuer_cache.published(&issuer, service.now()).await?;
    let random = || format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
    let half = PendingSignIn { state: random(), nonce: random(), verifier: random() };
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

/// Parameters of the issuer's redirect back.
#[derive(Deserialize)]
struct IssuerRedirect {
    #[serde(default)]
    code: String,
    #[serde(default)]
    state: String,
}

async fn end(
    State(service): State<Service>,
    _: UnknownVisitor,
    Query(back): Query<IssuerRedirect>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let issuer = service.issuer()?;
    let begun = || Problem::bad("this sign-in was not begun here, or is over; begin again");
    let half = cookie(&headers, HALF).and_then(|half| URL_SAFE_NO_PAD.decode(half).ok()).ok_or_else(begun)?;
    let half: PendingSignIn = serde_json::from_slice(&half).map_err(|_| begun())?;
    if half.state != back.state || back.code.is_empty() {
        return Err(begun());
    }
    let published = service.issuer_cache.published(&issuer, service.now()).await?;
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
        let (issuer, now) = (self.issuer()?, self.now());
        // Before the issuer is asked: what cannot be one of its tokens for us is no reason to.
        let name = plausible(id_token, &issuer, nonce, now / 1000).ok_or_else(refused)?;
        let published = self.issuer_cache.published(&issuer, now).await?;
        let keys = self.issuer_cache.keys(&published, name.as_deref(), now).await?;
        let claims = checked(id_token, &keys, &published, &issuer)?;
        // Who reads one on its way cannot hand it in again.
        if !self.store.tokens().use_once(id_token, (claims.iat + YOUNG + 60) * 1000, self.now()).await? {
            return Err(refused());
        }
        let subject = format!("{}|{}", claims.iss, claims.sub);
        if let Some(member) = self.store.members().of_subject(&subject).await? {
            return Ok(member);
        }
        let email = claims.email.filter(|_| claims.email_verified).unwrap_or_default();
        let is_ours = issuer.domain.as_ref().is_some_and(|domain| email.ends_with(&format!("@{domain}")));
        if !is_ours {
            return Err(Problem::forbidden());
        }
        let name = claims.preferred_username.unwrap_or(email);
        Ok(self.store.members().add(&name, &subject, self.now()).await?)
    }
}

/// The key id that a token names, if any; `None` if the token cannot be from the issuer, for this server, of this
/// sign-in, and young. This proves nothing.
fn plausible(id_token: &str, issuer: &Issuer, nonce: Option<&str>, second: i64) -> Option<Option<String>> {
    let header = decode_header(id_token).ok().filter(|header| ALGORITHMS.contains(&header.alg))?;
    let payload = URL_SAFE_NO_PAD.decode(id_token.split('.').nth(1)?).ok()?;
    let claims: Claims = serde_json::from_slice(&payload).ok()?;
    let of_issuer = claims.iss.trim_end_matches('/') == issuer.address.trim_end_matches('/');
    let of_sign_in = nonce.is_none_or(|nonce| claims.nonce.as_deref() == Some(nonce));
    let is_young = second.checked_sub(claims.iat).is_some_and(|age| (-60..YOUNG).contains(&age));
    (of_issuer && of_sign_in && is_young).then_some(header.kid)
}

/// The claims of a token that is signed by the issuer, for this server, and not expired.
fn checked(id_token: &str, keys: &JwkSet, published: &IssuerMetadata, issuer: &Issuer) -> Result<Claims, Problem> {
    let header = decode_header(id_token).map_err(|_| refused())?;
    if !ALGORITHMS.contains(&header.alg) {
        return Err(refused());
    }
    check_with_ring();
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
