//! Invitations: how somebody becomes a member. Each can be used once and expires.

use super::audit_log::{self, Action};
use super::member_tokens::{self, Secret};
use super::rows::{Database, Transaction};
use super::{Level, Member, Time, members, repositories};
use crate::error::Error;
use crate::repository::Repository;

/// Lifetime of an invitation: a week, in milliseconds.
const COUNTS: Time = 7 * 24 * 60 * 60 * 1000;

/// Purpose of an invitation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invitation {
    /// To administer the server.
    Admin,
    /// To work with a repository.
    Repository(Repository, Level),
}

/// A member that has just accepted an invitation.
#[derive(Debug)]
pub struct NewMember {
    /// The member.
    pub member: Member,
    /// Its first token.
    pub token: Secret,
}

/// The invitations to become a member.
#[derive(Debug, Clone, Copy)]
pub struct Invitations<'a>(pub(super) &'a Database);

impl Invitations<'_> {
    /// An invitation for the first admin, if there is no member yet. One that another server has printed is valid as
    /// well, until one of them is used.
    pub async fn first(self, now: Time) -> Result<Option<Secret>, Error> {
        let mut transaction = self.0.begin().await?;
        transaction.lock("cairn team: members").await?;
        let members = transaction.row("SELECT COUNT(*) FROM members", Vec::new()).await?;
        if members.map_or(Ok(0), |row| row.number(0))? > 0 {
            return Ok(None);
        }
        transaction.run("DELETE FROM invitations WHERE expires <= $1", vec![now.into()]).await?;
        let secret = invite(&mut transaction, "the server", &Invitation::Admin, now).await?;
        transaction.commit().await?;
        Ok(Some(secret))
    }

    /// Invites somebody.
    pub async fn create(self, by: &Member, invitation: &Invitation, now: Time) -> Result<Secret, Error> {
        let mut transaction = self.0.begin().await?;
        let secret = invite(&mut transaction, &by.name, invitation, now).await?;
        transaction.commit().await?;
        Ok(secret)
    }

    /// Accepts an invitation under a name. `subject` identifies the new member at an issuer, if there is one.
    pub async fn accept(
        self,
        invitation: &str,
        name: &str,
        subject: Option<&str>,
        label: &str,
        now: Time,
    ) -> Result<NewMember, Error> {
        const FIND: &str = "SELECT hash, repository, level, is_admin, expires FROM invitations
            WHERE id = $1 AND used_by IS NULL";
        let gone = || Error::Missing("such invitation; it may have been used, or be older than a week".to_owned());
        let sealed = member_tokens::opened(invitation).ok_or_else(gone)?;
        let mut transaction = self.0.begin().await?;
        // Of two who come under one name, one waits for the other.
        transaction.lock("cairn team: members").await?;
        let row = transaction.row(FIND, vec![sealed.id.as_str().into()]).await?.ok_or_else(gone)?;
        if !member_tokens::same(&row.text(0)?, &sealed.hash) || row.number(4)? <= now {
            return Err(gone());
        }
        let member = members::add(&mut transaction, name, subject, row.number(3)? != 0, now).await?;
        let sql = "UPDATE invitations SET used_by = $2 WHERE id = $1 AND used_by IS NULL";
        if transaction.run(sql, vec![sealed.id.into(), member.id.as_str().into()]).await? == 0 {
            return Err(gone());
        }
        // With the first member there are no further invitations for a first one.
        let others = "DELETE FROM invitations WHERE used_by IS NULL AND (SELECT COUNT(*) FROM members) = 1";
        transaction.run(others, Vec::new()).await?;
        audit_log::note(&mut transaction, &member.name, Action::Joined, None, "", now).await?;
        if let (Some(repository), Some(level)) = (row.text_if_any(1)?, row.text_if_any(2)?) {
            let (repository, level) = (repository.parse()?, Some(level.parse()?));
            repositories::grant(&mut transaction, &member.name, &member, &repository, level, now).await?;
        }
        let token = member_tokens::issue(&mut transaction, &member, label, None, now).await?;
        transaction.commit().await?;
        Ok(NewMember { member, token })
    }
}

async fn invite(transaction: &mut Transaction, by: &str, invitation: &Invitation, now: Time) -> Result<Secret, Error> {
    let (secret, sealed) = member_tokens::fresh();
    let (repository, level) = match invitation {
        Invitation::Admin => (None, None),
        Invitation::Repository(repository, level) => (Some(repository), Some(level.word().to_owned())),
    };
    let values = vec![
        sealed.id.into(),
        sealed.hash.into(),
        repository.map(|repository| repository.as_str().to_owned()).into(),
        level.clone().into(),
        i64::from(*invitation == Invitation::Admin).into(),
        now.into(),
        (now + COUNTS).into(),
    ];
    let sql = "INSERT INTO invitations (id, hash, repository, level, is_admin, created, expires)
        VALUES ($1, $2, $3, $4, $5, $6, $7)";
    transaction.run(sql, values).await?;
    let detail = level.as_deref().unwrap_or("admin of the server");
    audit_log::note(transaction, by, Action::Invited, repository, detail, now).await?;
    Ok(secret)
}
