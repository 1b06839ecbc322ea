//! The page for members: repositories, entries with their history, rights, refused writes.
//!
//! It is rendered here, works without scripts, and has the rights of the member. Entries are texts of others and are
//! only ever shown as text. Every form carries a secret of the visit, so that no other page can send one.

mod view;

use axum::Router;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::json;
use subtle::ConstantTimeEq;

use super::Service;
use super::access::Access;
use super::problem::Problem;
use super::signing::UnknownVisitor;
use crate::key::EntryKey;
use crate::store::{Action, Level, Member, Visitor};

/// The cookie of a visit.
const VISIT: &str = "cairn_team_visit";
/// Lifetime of the cookie in the browser, in seconds; the server ends the visit by itself.
const KEPT: u32 = 12 * 60 * 60;
/// Nothing but our own style may be loaded, no script runs, no other page may frame this one.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// Limit on the lines of the audit log on a page.
const AUDIT_LINES: u64 = 50;

pub(super) fn routes() -> Router<Service> {
    Router::new()
        .route("/", get(index))
        .route("/style.css", get(style))
        .route("/sign-in", post(sign_in))
        .route("/sign-out", post(sign_out))
        .route("/repository", get(repository))
        .route("/entry", get(entry))
        .route("/restore", post(restore))
}

/// Query parameters of a page.
#[derive(Deserialize)]
struct PageQuery {
    #[serde(default)]
    repo: String,
    #[serde(default)]
    key: String,
}

async fn index(State(service): State<Service>, headers: HeaderMap) -> Response {
    let shown = async {
        let Some(visit) = service.visiting(&headers).await? else {
            return Ok(sign_in_page(&service, false));
        };
        let repositories = service.store.repositories().visible_to(&visit.member).await?;
        Ok(view::index(&visit, &repositories))
    };
    answered(shown.await)
}

fn sign_in_page(service: &Service, wrong: bool) -> String {
    view::render("sign-in.html", &json!({"issuer": service.options.issuer.is_some(), "wrong": wrong}))
}

async fn style() -> Response {
    ([(CONTENT_TYPE, "text/css; charset=utf-8"), (CACHE_CONTROL, "max-age=3600")], include_str!("pages/style.css"))
        .into_response()
}

/// A token typed into the form.
#[derive(Deserialize)]
struct TokenForm {
    token: String,
}

async fn sign_in(State(service): State<Service>, _: UnknownVisitor, body: Body) -> Result<Response, Problem> {
    let typed: TokenForm = service.form(body).await?;
    let member = service.store.tokens().member(typed.token.trim(), service.now()).await?;
    match member {
        Some(member) => signed_in(&service, &member).await,
        None => {
            let page = sign_in_page(&service, true);
            Ok(page_of(StatusCode::UNAUTHORIZED, page))
        }
    }
}

/// Begins a visit, and goes to the first page.
pub(super) async fn signed_in(service: &Service, member: &Member) -> Result<Response, Problem> {
    let secret = service.store.visits().begin(member, service.now()).await?;
    let cookie = set_cookie(service, VISIT, secret.reveal(), KEPT);
    Ok(([(SET_COOKIE, cookie)], Redirect::to("/")).into_response())
}

/// Fields of every form.
#[derive(Deserialize)]
struct FormFields {
    form: String,
}

async fn sign_out(State(service): State<Service>, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let (_, _): (Visitor, FormFields) = service.submitted(&headers, body, |carried: &FormFields| &carried.form).await?;
    if let Some(cookie) = cookie(&headers, VISIT) {
        service.store.visits().end(&cookie).await?;
    }
    Ok(([(SET_COOKIE, set_cookie(&service, VISIT, "", 0))], Redirect::to("/")).into_response())
}

async fn repository(State(service): State<Service>, headers: HeaderMap, Query(about): Query<PageQuery>) -> Response {
    let shown = async {
        let visit = service.visiting(&headers).await?.ok_or_else(Problem::nobody)?;
        let access = Access::check(&service, &visit.member, &about.repo, Level::Read).await?;
        let repository = &access.repository;
        let snapshot = service.store.entries().read(repository, 0).await?;
        let rights = service.store.repositories().rights(repository).await?;
        let mut audit = service.store.audit().newest(Some(repository), AUDIT_LINES).await?;
        if access.level < Level::Admin {
            // Everybody sees why their own writes were refused.
            audit.retain(|line| line.action == Action::Refused && line.who == visit.member.name);
        }
        Ok(view::repository(&visit, repository, snapshot.as_ref(), &rights, &audit))
    };
    answered(shown.await)
}

async fn entry(State(service): State<Service>, headers: HeaderMap, Query(about): Query<PageQuery>) -> Response {
    let shown = async {
        let visit = service.visiting(&headers).await?.ok_or_else(Problem::nobody)?;
        let access = Access::check(&service, &visit.member, &about.repo, Level::Read).await?;
        let repository = &access.repository;
        let key: EntryKey = about.key.parse().map_err(crate::Error::from)?;
        let versions = service.store.history().versions(repository, &key).await?;
        if versions.is_empty() {
            return Err(Problem::missing("there is no such entry"));
        }
        let may_write = access.level >= Level::Write;
        Ok(view::entry(&visit, repository, &key, &versions, may_write))
    };
    answered(shown.await)
}

/// Form to restore a version.
#[derive(Deserialize)]
struct RestoreForm {
    form: String,
    repo: String,
    key: String,
    version: u64,
}

async fn restore(State(service): State<Service>, headers: HeaderMap, body: Body) -> Response {
    let done = async {
        let (visit, wanted): (Visitor, RestoreForm) =
            service.submitted(&headers, body, |wanted: &RestoreForm| &wanted.form).await?;
        let access = Access::check(&service, &visit.member, &wanted.repo, Level::Write).await?;
        access.restore(&wanted.key, wanted.version).await?;
        let pairs = [("repo", &wanted.repo), ("key", &wanted.key)];
        let query = serde_urlencoded::to_string(pairs).unwrap_or_default();
        Ok::<_, Problem>(Redirect::to(&format!("/entry?{query}")).into_response())
    };
    done.await.unwrap_or_else(|problem| failed(&problem))
}

impl Service {
    /// The visit of the request, if it belongs to one.
    async fn visiting(&self, headers: &HeaderMap) -> Result<Option<Visitor>, Problem> {
        match cookie(headers, VISIT) {
            Some(cookie) => Ok(self.store.visits().find(&cookie, self.now()).await?),
            None => Ok(None),
        }
    }

    /// A form, within the limits of size and time.
    async fn form<T: serde::de::DeserializeOwned>(&self, body: Body) -> Result<T, Problem> {
        let read = tokio::time::timeout(self.options.body_patience, axum::body::to_bytes(body, 10_000));
        let bytes = read.await.ok().and_then(Result::ok).ok_or_else(|| Problem::bad("the form is too long"))?;
        serde_urlencoded::from_bytes(&bytes).map_err(|_| Problem::bad("the form is not whole"))
    }

    /// A form that one of our own pages sent for this visit.
    async fn submitted<T: serde::de::DeserializeOwned>(
        &self,
        headers: &HeaderMap,
        body: Body,
        carried: impl Fn(&T) -> &String,
    ) -> Result<(Visitor, T), Problem> {
        let visit = self.visiting(headers).await?.ok_or_else(Problem::nobody)?;
        let form: T = self.form(body).await?;
        if !bool::from(carried(&form).as_bytes().ct_eq(visit.form.as_bytes())) {
            return Err(Problem::forbidden());
        }
        Ok((visit, form))
    }
}

/// The value of a cookie.
pub(super) fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let all = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = all.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
}

/// A cookie only for this site, out of reach of scripts.
pub(super) fn set_cookie(service: &Service, name: &str, value: &str, seconds: u32) -> String {
    let secure = if service.options.address.starts_with("https:") { "; Secure" } else { "" };
    format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}")
}

fn answered(page: Result<String, Problem>) -> Response {
    match page {
        Ok(page) => page_of(StatusCode::OK, page),
        Err(problem) if problem.status == StatusCode::UNAUTHORIZED => Redirect::to("/").into_response(),
        Err(problem) => failed(&problem),
    }
}

fn failed(problem: &Problem) -> Response {
    page_of(problem.status, view::render("told.html", &json!({"message": problem.message})))
}

fn page_of(status: StatusCode, page: String) -> Response {
    let headers = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ];
    (status, headers, Html(page)).into_response()
}
