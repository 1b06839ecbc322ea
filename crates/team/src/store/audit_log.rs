//! Audit log: who did what, and when. Lines are only ever added, in the transaction of the change.

use serde::{Deserialize, Serialize};

use super::rows::{Database, DatabaseRow, Transaction};
use super::{Time, fresh_id};
use crate::error::Error;
use crate::repository::Repository;

/// Kind of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Entries were written or deleted.
    Wrote,
    /// A write was refused.
    Refused,
    /// Somebody joined.
    Joined,
    /// A member was removed.
    RemovedMember,
    /// Somebody was invited.
    Invited,
    /// A token was issued.
    IssuedToken,
    /// A token was revoked.
    RevokedToken,
    /// Rights were changed.
    Granted,
    /// A repository was removed.
    RemovedRepository,
    /// A backup was read in.
    RestoredBackup,
}

impl Action {
    fn word(self) -> String {
        serde_json::to_value(self).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// A line of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditLine {
    /// Its time.
    pub at: Time,
    /// The member's name at that time.
    pub who: String,
    /// The action.
    pub action: Action,
    /// The repository, if it is about one.
    pub repository: Option<String>,
    /// Details. Never a text or a secret.
    pub detail: String,
}

/// Adds a line.
pub(super) async fn note(
    transaction: &mut Transaction,
    who: &str,
    action: Action,
    repository: Option<&Repository>,
    detail: &str,
    now: Time,
) -> Result<(), Error> {
    let values = vec![
        fresh_id().into(),
        now.into(),
        who.into(),
        action.word().into(),
        repository.map(|repository| repository.as_str().to_owned()).into(),
        detail.into(),
    ];
    let sql = "INSERT INTO audit (id, at, who, action, repository, detail) VALUES ($1, $2, $3, $4, $5, $6)";
    transaction.run(sql, values).await.map(drop)
}

/// The audit log.
#[derive(Debug, Clone, Copy)]
pub struct AuditLog<'a>(pub(super) &'a Database);

impl AuditLog<'_> {
    /// Adds a line about an event that changed nothing.
    pub async fn add(
        self,
        who: &str,
        action: Action,
        repository: Option<&Repository>,
        detail: &str,
        now: Time,
    ) -> Result<(), Error> {
        let mut transaction = self.0.begin().await?;
        note(&mut transaction, who, action, repository, detail, now).await?;
        transaction.commit().await
    }

    /// The newest lines, of one repository or of all.
    pub async fn newest(self, repository: Option<&Repository>, most: u64) -> Result<Vec<AuditLine>, Error> {
        const ALL: &str = "SELECT at, who, action, repository, detail FROM audit ORDER BY id DESC LIMIT $1";
        const OF: &str = "SELECT at, who, action, repository, detail FROM audit WHERE repository = $2
            ORDER BY id DESC LIMIT $1";
        let most = (most as i64).into();
        let rows = match repository {
            Some(repository) => self.0.rows(OF, vec![most, repository.as_str().into()]).await?,
            None => self.0.rows(ALL, vec![most]).await?,
        };
        rows.iter().map(line).collect()
    }
}

fn line(row: &DatabaseRow) -> Result<AuditLine, Error> {
    let word = row.text(2)?;
    let action =
        serde_json::from_value(word.clone().into()).map_err(|_| Error::Schema(format!("the action {word}")))?;
    Ok(AuditLine {
        at: row.number(0)?,
        who: row.text(1)?,
        action,
        repository: row.text_if_any(3)?,
        detail: row.text(4)?,
    })
}
