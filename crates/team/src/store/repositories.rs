//! Repositories, and the rights of members to them.

use super::audit_log::{self, Action};
use super::rows::{Database, DatabaseRow, Transaction};
use super::{Level, Member, Time};
use crate::checksum;
use crate::error::Error;
use crate::repository::Repository;

/// The right of a member to a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryRight {
    /// The member's name.
    pub member: String,
    /// The repository.
    pub repository: Repository,
    /// The level.
    pub level: Level,
}

/// The repositories, and the rights to them.
#[derive(Debug, Clone, Copy)]
pub struct Repositories<'a>(pub(super) &'a Database);

impl Repositories<'_> {
    /// Rights of a member to a repository; an admin of the server may do everything.
    pub async fn level(self, member: &Member, repository: &Repository) -> Result<Option<Level>, Error> {
        if member.is_admin {
            return Ok(Some(Level::Admin));
        }
        const LEVEL: &str = "SELECT level FROM rights WHERE repository = $1 AND member = $2";
        let rows = self.0.rows(LEVEL, vec![repository.as_str().into(), member.id.as_str().into()]).await?;
        rows.first().map(|row| row.text(0)?.parse()).transpose()
    }

    /// The repositories a member may read.
    pub async fn visible_to(self, member: &Member) -> Result<Vec<Repository>, Error> {
        const ALL: &str = "SELECT name FROM repositories ORDER BY name";
        const OF: &str = "SELECT repository FROM rights WHERE member = $1 ORDER BY repository";
        let rows = match member.is_admin {
            true => self.0.rows(ALL, Vec::new()).await?,
            false => self.0.rows(OF, vec![member.id.as_str().into()]).await?,
        };
        rows.iter().map(|row| Ok(row.text(0)?.parse()?)).collect()
    }

    /// Rights of all members to a repository.
    pub async fn rights(self, repository: &Repository) -> Result<Vec<RepositoryRight>, Error> {
        const RIGHTS: &str = "SELECT members.name, level FROM rights JOIN members ON members.id = member
            WHERE repository = $1 ORDER BY members.name";
        let right = |row: &DatabaseRow| {
            Ok(RepositoryRight { member: row.text(0)?, repository: repository.clone(), level: row.text(1)?.parse()? })
        };
        self.0.rows(RIGHTS, vec![repository.as_str().into()]).await?.iter().map(right).collect()
    }

    /// Gives a member a level, or removes its rights. The repository is created if it is missing.
    pub async fn grant(
        self,
        by: &Member,
        member: &Member,
        repository: &Repository,
        level: Option<Level>,
        now: Time,
    ) -> Result<(), Error> {
        let mut transaction = self.0.begin().await?;
        grant(&mut transaction, &by.name, member, repository, level, now).await?;
        transaction.commit().await
    }

    /// Removes a repository, with its entries, their history and all rights.
    pub async fn remove(self, by: &Member, repository: &Repository, now: Time) -> Result<(), Error> {
        let mut transaction = self.0.begin().await?;
        transaction.lock(repository.as_str()).await?;
        let sql = "DELETE FROM repositories WHERE name = $1";
        if transaction.run(sql, vec![repository.as_str().into()]).await? == 0 {
            return Err(Error::Missing(format!("repository {repository}")));
        }
        audit_log::note(&mut transaction, &by.name, Action::RemovedRepository, Some(repository), "", now).await?;
        transaction.commit().await
    }
}

pub(super) async fn grant(
    transaction: &mut Transaction,
    by: &str,
    member: &Member,
    repository: &Repository,
    level: Option<Level>,
    now: Time,
) -> Result<(), Error> {
    let empty = checksum::of_all(std::iter::empty());
    transaction
        .run(
            "INSERT INTO repositories (name, version, checksum, modified) VALUES ($1, 0, $2, $3)
             ON CONFLICT (name) DO NOTHING",
            vec![repository.as_str().into(), empty.into(), now.into()],
        )
        .await?;
    let (place, who) = (repository.as_str(), member.id.as_str());
    match level {
        Some(level) => {
            let sql = "INSERT INTO rights (repository, member, level) VALUES ($1, $2, $3)
                ON CONFLICT (repository, member) DO UPDATE SET level = excluded.level";
            transaction.run(sql, vec![place.into(), who.into(), level.word().into()]).await?
        }
        None => {
            let sql = "DELETE FROM rights WHERE repository = $1 AND member = $2";
            transaction.run(sql, vec![place.into(), who.into()]).await?
        }
    };
    let detail = format!("{}: {}", member.name, level.map_or("nothing", Level::word));
    audit_log::note(transaction, by, Action::Granted, Some(repository), &detail, now).await
}
