//! Tokens: a secret that stands for a member. Shown once, kept as a hash, compared in constant time.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::audit_log::{self, Action};
use super::members::member;
use super::rows::{Database, DatabaseRow, Transaction};
use super::{Member, Time, fresh_id};
use crate::error::Error;

/// Prefix of every token, by which scanners recognise one.
const PREFIX: &str = "cairn_team_";

/// A secret, to be shown once. Debug does not.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The text, for the one it was made for.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A secret's public half: the id it is found by, and the hash it is compared with.
pub(super) struct HashedSecret {
    pub(super) id: String,
    pub(super) hash: String,
}

/// Makes a secret. Its id stands in it, so that it is found without comparing it to all others.
pub(super) fn fresh() -> (Secret, HashedSecret) {
    let id = fresh_id();
    // Two random ids have 244 random bits between them.
    let random = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
    let sealed = HashedSecret { hash: hash(&random), id: id.clone() };
    (Secret(format!("{PREFIX}{id}_{random}")), sealed)
}

/// The id in a secret, and the hash of the rest.
pub(super) fn opened(secret: &str) -> Option<HashedSecret> {
    let (id, random) = secret.strip_prefix(PREFIX)?.split_once('_')?;
    Some(HashedSecret { id: id.to_owned(), hash: hash(random) })
}

/// True if two hashes are equal, compared in constant time.
pub(super) fn same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

fn hash(random: &str) -> String {
    Sha256::digest(random.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Its id.
    pub id: String,
    /// Its purpose.
    pub label: String,
    /// Time of creation.
    pub created: Time,
    /// Time of expiry.
    pub expires: Option<Time>,
}

/// The tokens of members.
#[derive(Debug, Clone, Copy)]
pub struct Tokens<'a>(pub(super) &'a Database);

impl Tokens<'_> {
    /// The member of a token; none if it is invalid.
    pub async fn member(self, token: &str, now: Time) -> Result<Option<Member>, Error> {
        const FIND: &str = "SELECT members.id, members.name, members.is_admin, tokens.hash, tokens.expires FROM tokens
            JOIN members ON members.id = tokens.member WHERE tokens.id = $1";
        let Some(sealed) = opened(token) else { return Ok(None) };
        let rows = self.0.rows(FIND, vec![sealed.id.into()]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let counts = same(&row.text(3)?, &sealed.hash) && row.number_if_any(4)?.is_none_or(|expires| expires > now);
        if counts { member(row).map(Some) } else { Ok(None) }
    }

    /// A new token for a member.
    pub async fn issue(self, member: &Member, label: &str, expires: Option<Time>, now: Time) -> Result<Secret, Error> {
        let mut transaction = self.0.begin().await?;
        let secret = issue(&mut transaction, member, label, expires, now).await?;
        transaction.commit().await?;
        Ok(secret)
    }

    /// A member's tokens.
    pub async fn of(self, member: &Member) -> Result<Vec<Token>, Error> {
        const OF: &str = "SELECT id, label, created, expires FROM tokens WHERE member = $1 ORDER BY id";
        let rows = self.0.rows(OF, vec![member.id.as_str().into()]).await?;
        let token = |row: &DatabaseRow| {
            Ok(Token { id: row.text(0)?, label: row.text(1)?, created: row.number(2)?, expires: row.number_if_any(3)? })
        };
        rows.iter().map(token).collect()
    }

    /// Revokes a token.
    pub async fn revoke(self, by: &Member, owner: &Member, id: &str, now: Time) -> Result<(), Error> {
        let mut transaction = self.0.begin().await?;
        let sql = "DELETE FROM tokens WHERE id = $1 AND member = $2";
        if transaction.run(sql, vec![id.into(), owner.id.as_str().into()]).await? == 0 {
            return Err(Error::Missing(format!("token {id} of {}", owner.name)));
        }
        let detail = format!("{id} of {}", owner.name);
        audit_log::note(&mut transaction, &by.name, Action::RevokedToken, None, &detail, now).await?;
        transaction.commit().await
    }

    /// Replaces a token with a new one.
    pub async fn rotate(self, token: &str, now: Time) -> Result<Secret, Error> {
        let gone = || Error::Missing("such token".to_owned());
        let owner = self.member(token, now).await?.ok_or_else(gone)?;
        let id = opened(token).ok_or_else(gone)?.id;
        let mut transaction = self.0.begin().await?;
        let row = transaction.row("SELECT label, expires FROM tokens WHERE id = $1", vec![id.clone().into()]).await?;
        let row = row.ok_or_else(gone)?;
        let secret = issue(&mut transaction, &owner, &row.text(0)?, row.number_if_any(1)?, now).await?;
        if transaction.run("DELETE FROM tokens WHERE id = $1", vec![id.clone().into()]).await? == 0 {
            return Err(gone());
        }
        audit_log::note(&mut transaction, &owner.name, Action::RevokedToken, None, &id, now).await?;
        transaction.commit().await?;
        Ok(secret)
    }

    /// True if an id token of an issuer is used for the first time. It is remembered, as a hash, until it expires.
    pub async fn use_once(self, id_token: &str, until: Time, now: Time) -> Result<bool, Error> {
        let mut transaction = self.0.begin().await?;
        transaction.run("DELETE FROM used WHERE until < $1", vec![now.into()]).await?;
        let fresh = "INSERT INTO used (hash, until) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING";
        let is_first = transaction.run(fresh, vec![hash(id_token).into(), until.into()]).await? == 1;
        transaction.commit().await?;
        Ok(is_first)
    }
}

pub(super) async fn issue(
    transaction: &mut Transaction,
    member: &Member,
    label: &str,
    expires: Option<Time>,
    now: Time,
) -> Result<Secret, Error> {
    let (secret, sealed) = fresh();
    let values = vec![
        sealed.id.clone().into(),
        member.id.as_str().into(),
        sealed.hash.into(),
        label.into(),
        now.into(),
        expires.into(),
    ];
    let sql = "INSERT INTO tokens (id, member, hash, label, created, expires) VALUES ($1, $2, $3, $4, $5, $6)";
    transaction.run(sql, values).await?;
    let detail = format!("{} ({label})", sealed.id);
    audit_log::note(transaction, &member.name, Action::IssuedToken, None, &detail, now).await?;
    Ok(secret)
}
