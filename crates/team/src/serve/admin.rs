//! Administration, for the command line: members, tokens, invitations, rights, history. The page uses the same steps.

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Service;
use super::problem::Problem;
use super::signing::{Signed, Stranger};
use crate::key::Key;
use crate::protocol::Write;
use crate::repository::Repository;
use crate::store::{Invitation, Level};

/// The most lines of the audit log in one answer.
const AUDIT_LINES: u64 = 500;

pub(super) fn routes() -> Router<Service> {
    Router::new()
        .route("/api/team/me", get(me))
        .route("/api/team/join", post(join))
        .route("/api/team/invitations", post(invite))
        .route("/api/team/members", get(members))
        .route("/api/team/members/{name}", delete(remove_member))
        .route("/api/team/tokens", get(tokens).post(rotate))
        .route("/api/team/tokens/{id}", delete(revoke))
        .route("/api/team/rights", get(rights).put(grant))
        .route("/api/team/repositories", get(repositories).delete(remove_repository))
        .route("/api/team/history", get(history))
        .route("/api/team/restore", post(restore))
        .route("/api/team/audit", get(audit))
}

type Answer = Result<Json<Value>, Problem>;

async fn me(signed: Signed) -> Answer {
    Ok(Json(json!({"name": signed.member.name, "isAdmin": signed.member.is_admin})))
}

/// Somebody takes up an invitation.
#[derive(Deserialize)]
struct Joining {
    invitation: String,
    name: String,
    #[serde(default)]
    label: String,
}

async fn join(State(service): State<Service>, _: Stranger, body: Body) -> Answer {
    let joining: Joining = service.json(body).await?;
    let now = service.now();
    let invited = service.store.join(&joining.invitation, &joining.name, None, &joining.label, now).await?;
    Ok(Json(json!({"name": invited.member.name, "token": invited.token.reveal()})))
}

/// An invitation to a repository, or to administer the server.
#[derive(Deserialize)]
struct Inviting {
    repo: Option<String>,
    level: Option<Level>,
}

async fn invite(State(service): State<Service>, signed: Signed, body: Body) -> Answer {
    let inviting: Inviting = service.json(body).await?;
    let invitation = match (inviting.repo, inviting.level) {
        (Some(repo), Some(level)) => {
            let repository: Repository = repo.parse().map_err(crate::Error::from)?;
            service.may(&signed.member, &repository, Level::Admin).await?;
            Invitation::Repository(repository, level)
        }
        (None, None) if signed.member.is_admin => Invitation::Admin,
        (None, None) => return Err(Problem::forbidden()),
        _ => return Err(Problem::bad("an invitation names a repository and a level, or neither")),
    };
    let secret = service.store.invite(&signed.member, &invitation, service.now()).await?;
    Ok(Json(json!({"invitation": secret.reveal()})))
}

async fn members(State(service): State<Service>, signed: Signed) -> Answer {
    if !signed.member.is_admin {
        return Err(Problem::forbidden());
    }
    let members = service.store.members().await?;
    let members: Vec<Value> =
        members.iter().map(|member| json!({"name": member.name, "isAdmin": member.is_admin})).collect();
    Ok(Json(json!({"members": members})))
}

async fn remove_member(State(service): State<Service>, signed: Signed, Path(name): Path<String>) -> Answer {
    if !signed.member.is_admin {
        return Err(Problem::forbidden());
    }
    service.store.remove_member(&signed.member, &name, service.now()).await?;
    Ok(Json(json!({"removed": name})))
}

async fn tokens(State(service): State<Service>, signed: Signed) -> Answer {
    let tokens = service.store.tokens(&signed.member).await?;
    let told = |token: &crate::store::Known| json!({"id": token.id, "label": token.label, "created": token.created});
    Ok(Json(json!({"tokens": tokens.iter().map(told).collect::<Vec<_>>()})))
}

async fn rotate(State(service): State<Service>, signed: Signed) -> Answer {
    let secret = service.store.rotate_token(&signed.token, service.now()).await?;
    Ok(Json(json!({"token": secret.reveal()})))
}

async fn revoke(State(service): State<Service>, signed: Signed, Path(id): Path<String>) -> Answer {
    service.store.revoke_token(&signed.member, &signed.member, &id, service.now()).await?;
    Ok(Json(json!({"revoked": id})))
}

/// A question about a repository.
#[derive(Deserialize)]
struct About {
    repo: String,
    #[serde(default)]
    key: Option<String>,
}

async fn rights(State(service): State<Service>, signed: Signed, Query(about): Query<About>) -> Answer {
    let repository = about.repo.parse().map_err(crate::Error::from)?;
    service.may(&signed.member, &repository, Level::Read).await?;
    let granted = service.store.granted(&repository).await?;
    let told: Vec<Value> = granted.iter().map(|one| json!({"member": one.member, "level": one.level.word()})).collect();
    Ok(Json(json!({"rights": told})))
}

/// What somebody may do from now on.
#[derive(Deserialize)]
struct Granting {
    repo: String,
    member: String,
    level: Option<Level>,
}

async fn grant(State(service): State<Service>, signed: Signed, body: Body) -> Answer {
    let granting: Granting = service.json(body).await?;
    let repository: Repository = granting.repo.parse().map_err(crate::Error::from)?;
    service.may(&signed.member, &repository, Level::Admin).await?;
    let member = service.store.member(&granting.member).await?;
    service.store.grant(&signed.member, &member, &repository, granting.level, service.now()).await?;
    Ok(Json(json!({"member": member.name, "level": granting.level.map(Level::word)})))
}

async fn repositories(State(service): State<Service>, signed: Signed) -> Answer {
    Ok(Json(json!({"repositories": service.store.repositories(&signed.member).await?})))
}

async fn remove_repository(State(service): State<Service>, signed: Signed, Query(about): Query<About>) -> Answer {
    let repository = about.repo.parse().map_err(crate::Error::from)?;
    service.may(&signed.member, &repository, Level::Admin).await?;
    service.store.remove_repository(&signed.member, &repository, service.now()).await?;
    Ok(Json(json!({"removed": repository})))
}

/// A version of an entry.
#[derive(Serialize)]
struct Told {
    version: u64,
    text: Option<String>,
    author: String,
    at: i64,
}

async fn history(State(service): State<Service>, signed: Signed, Query(about): Query<About>) -> Answer {
    let repository: Repository = about.repo.parse().map_err(crate::Error::from)?;
    service.may(&signed.member, &repository, Level::Read).await?;
    let key: Key = about.key.unwrap_or_default().parse().map_err(crate::Error::from)?;
    let versions = service.store.history(&repository, &key).await?;
    let versions: Vec<Told> = versions
        .into_iter()
        .map(|one| Told { version: one.version, text: one.text, author: one.author, at: one.at })
        .collect();
    Ok(Json(json!({"versions": versions})))
}

/// A version that comes back.
#[derive(Deserialize)]
pub(super) struct Restoring {
    pub(super) repo: String,
    pub(super) key: String,
    pub(super) version: u64,
}

async fn restore(State(service): State<Service>, signed: Signed, body: Body) -> Answer {
    let restoring: Restoring = service.json(body).await?;
    let written = service.restore(&signed.member, &restoring).await?;
    Ok(Json(json!({"version": written.version})))
}

impl Service {
    /// Writes an earlier text of an entry once more.
    pub(super) async fn restore(
        &self,
        member: &crate::store::Member,
        restoring: &Restoring,
    ) -> Result<crate::protocol::Written, Problem> {
        let repository: Repository = restoring.repo.parse().map_err(crate::Error::from)?;
        self.may(member, &repository, Level::Write).await?;
        let key: Key = restoring.key.parse().map_err(crate::Error::from)?;
        let versions = self.store.history(&repository, &key).await?;
        let version = versions.into_iter().find(|one| one.version == restoring.version);
        let text = version.and_then(|one| one.text).ok_or_else(|| Problem::missing("that version has no text"))?;
        let write = Write { entries: [(key, text)].into(), ..Write::default() };
        let written = self.put(member, &repository, &write, None).await;
        if let Err(problem) = &written {
            self.note_refusal(member, &repository, problem).await?;
        }
        written
    }
}

async fn audit(State(service): State<Service>, signed: Signed, Query(about): Query<AuditOf>) -> Answer {
    let repository: Option<Repository> = about.repo.map(|repo| repo.parse()).transpose().map_err(crate::Error::from)?;
    match &repository {
        Some(repository) => service.may(&signed.member, repository, Level::Admin).await?,
        None if signed.member.is_admin => {}
        None => return Err(Problem::forbidden()),
    }
    Ok(Json(json!({"audit": service.store.audit(repository.as_ref(), AUDIT_LINES).await?})))
}

/// Of which repository; of all where none is named.
#[derive(Deserialize)]
struct AuditOf {
    repo: Option<String>,
}
