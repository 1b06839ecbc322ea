//! Administration, for the command line: members, tokens, invitations, rights, history. The page uses the same steps.

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Service;
use super::access::Access;
use super::problem::Problem;
use super::signing::{SignedInMember, UnknownVisitor};
use crate::key::EntryKey;
use crate::store::{Invitation, Level, Token};

/// Limit on the lines of the audit log in one answer.
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

type AdminAnswer = Result<Json<Value>, Problem>;

async fn me(signed: SignedInMember) -> AdminAnswer {
    Ok(Json(json!({"name": signed.member.name, "isAdmin": signed.member.is_admin})))
}

/// Request to accept an invitation.
#[derive(Deserialize)]
struct JoinRequest {
    invitation: String,
    name: String,
    #[serde(default)]
    label: String,
}

async fn join(State(service): State<Service>, _: UnknownVisitor, body: Body) -> AdminAnswer {
    let joining: JoinRequest = service.json(body).await?;
    let now = service.now();
    let invited =
        service.store.invitations().accept(&joining.invitation, &joining.name, None, &joining.label, now).await?;
    Ok(Json(json!({"name": invited.member.name, "token": invited.token.reveal()})))
}

/// An invitation to a repository, or to administer the server.
#[derive(Deserialize)]
struct InviteRequest {
    repo: Option<String>,
    level: Option<Level>,
}

async fn invite(State(service): State<Service>, signed: SignedInMember, body: Body) -> AdminAnswer {
    let inviting: InviteRequest = service.json(body).await?;
    let invitation = match (inviting.repo, inviting.level) {
        (Some(repo), Some(level)) => {
            let access = Access::check(&service, &signed.member, &repo, Level::Admin).await?;
            Invitation::Repository(access.repository, level)
        }
        (None, None) if signed.member.is_admin => Invitation::Admin,
        (None, None) => return Err(Problem::forbidden()),
        _ => return Err(Problem::bad("an invitation names a repository and a level, or neither")),
    };
    let secret = service.store.invitations().create(&signed.member, &invitation, service.now()).await?;
    Ok(Json(json!({"invitation": secret.reveal()})))
}

async fn members(State(service): State<Service>, signed: SignedInMember) -> AdminAnswer {
    if !signed.member.is_admin {
        return Err(Problem::forbidden());
    }
    let members = service.store.members().all().await?;
    let members: Vec<Value> =
        members.iter().map(|member| json!({"name": member.name, "isAdmin": member.is_admin})).collect();
    Ok(Json(json!({"members": members})))
}

async fn remove_member(
    State(service): State<Service>,
    signed: SignedInMember,
    Path(name): Path<String>,
) -> AdminAnswer {
    if !signed.member.is_admin {
        return Err(Problem::forbidden());
    }
    service.store.members().remove(&signed.member, &name, service.now()).await?;
    Ok(Json(json!({"removed": name})))
}

async fn tokens(State(service): State<Service>, signed: SignedInMember) -> AdminAnswer {
    let tokens = service.store.tokens().of(&signed.member).await?;
    let told = |token: &Token| json!({"id": token.id, "label": token.label, "created": token.created});
    Ok(Json(json!({"tokens": tokens.iter().map(told).collect::<Vec<_>>()})))
}

async fn rotate(State(service): State<Service>, signed: SignedInMember) -> AdminAnswer {
    let secret = service.store.tokens().rotate(&signed.token, service.now()).await?;
    Ok(Json(json!({"token": secret.reveal()})))
}

async fn revoke(State(service): State<Service>, signed: SignedInMember, Path(id): Path<String>) -> AdminAnswer {
    service.store.tokens().revoke(&signed.member, &signed.member, &id, service.now()).await?;
    Ok(Json(json!({"revoked": id})))
}

/// Query about a repository.
#[derive(Deserialize)]
struct RepositoryQuery {
    repo: String,
    key: Option<String>,
}

async fn rights(
    State(service): State<Service>,
    signed: SignedInMember,
    Query(about): Query<RepositoryQuery>,
) -> AdminAnswer {
    let access = Access::check(&service, &signed.member, &about.repo, Level::Read).await?;
    let rights = service.store.repositories().rights(&access.repository).await?;
    let told: Vec<Value> = rights.iter().map(|one| json!({"member": one.member, "level": one.level.word()})).collect();
    Ok(Json(json!({"rights": told})))
}

/// Request to change a member's rights.
#[derive(Deserialize)]
struct GrantRequest {
    repo: String,
    member: String,
    level: Option<Level>,
}

async fn grant(State(service): State<Service>, signed: SignedInMember, body: Body) -> AdminAnswer {
    let granting: GrantRequest = service.json(body).await?;
    let access = Access::check(&service, &signed.member, &granting.repo, Level::Admin).await?;
    let member = service.store.members().named(&granting.member).await?;
    service
        .store
        .repositories()
        .grant(&signed.member, &member, &access.repository, granting.level, service.now())
        .await?;
    Ok(Json(json!({"member": member.name, "level": granting.level.map(Level::word)})))
}

async fn repositories(State(service): State<Service>, signed: SignedInMember) -> AdminAnswer {
    Ok(Json(json!({"repositories": service.store.repositories().visible_to(&signed.member).await?})))
}

async fn remove_repository(
    State(service): State<Service>,
    signed: SignedInMember,
    Query(about): Query<RepositoryQuery>,
) -> AdminAnswer {
    let access = Access::check(&service, &signed.member, &about.repo, Level::Admin).await?;
    service.store.repositories().remove(&signed.member, &access.repository, service.now()).await?;
    Ok(Json(json!({"removed": access.repository})))
}

async fn history(
    State(service): State<Service>,
    signed: SignedInMember,
    Query(about): Query<RepositoryQuery>,
) -> AdminAnswer {
    let access = Access::check(&service, &signed.member, &about.repo, Level::Read).await?;
    let key: EntryKey = about.key.unwrap_or_default().parse().map_err(crate::Error::from)?;
    Ok(Json(json!({"versions": service.store.history().versions(&access.repository, &key).await?})))
}

/// Request to restore a version.
#[derive(Deserialize)]
struct RestoreRequest {
    repo: String,
    key: String,
    version: u64,
}

async fn restore(State(service): State<Service>, signed: SignedInMember, body: Body) -> AdminAnswer {
    let restoring: RestoreRequest = service.json(body).await?;
    let access = Access::check(&service, &signed.member, &restoring.repo, Level::Write).await?;
    let written = access.restore(&restoring.key, restoring.version).await?;
    Ok(Json(json!({"version": written.version})))
}

async fn audit(State(service): State<Service>, signed: SignedInMember, Query(about): Query<AuditOf>) -> AdminAnswer {
    let access = match &about.repo {
        Some(repo) => Some(Access::check(&service, &signed.member, repo, Level::Admin).await?),
        None if signed.member.is_admin => None,
        None => return Err(Problem::forbidden()),
    };
    let repository = access.as_ref().map(|access| &access.repository);
    Ok(Json(json!({"audit": service.store.audit().newest(repository, AUDIT_LINES).await?})))
}

/// Query for the audit log of one repository, or of all.
#[derive(Deserialize)]
struct AuditOf {
    repo: Option<String>,
}
