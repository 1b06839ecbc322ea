//! The history of entries: their versions, which texts it knows, and whose text was replaced by somebody who had not seen it.

use std::collections::BTreeSet;

use serde::Serialize;

use super::rows::{Database, DatabaseRow};
use super::{Member, RepositoryLimits, Time};
use crate::error::Error;
use crate::key::EntryKey;
use crate::protocol::{HistoryAnswer, HistoryQuestion, OverwrittenText};
use crate::repository::Repository;

/// Limit on overwritten texts in one answer; the newest count.
const MOST_OVERWRITTEN: i64 = 200;

/// One version of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Version {
    /// The repository's version that it came with.
    pub version: u64,
    /// The text; none if it was deleted.
    pub text: Option<String>,
    /// Name of its author.
    pub author: String,
    /// Its time.
    pub at: Time,
}

/// The versions of entries.
#[derive(Debug, Clone, Copy)]
pub struct VersionHistory<'a>(pub(super) &'a Database);

impl VersionHistory<'_> {
    /// The versions of an entry, the newest first.
    pub async fn versions(self, repository: &Repository, key: &EntryKey) -> Result<Vec<Version>, Error> {
        const HISTORY: &str = "SELECT version, text, COALESCE(members.name, author), at FROM history
            LEFT JOIN members ON members.id = author WHERE repository = $1 AND key = $2 ORDER BY version DESC";
        let rows = self.0.rows(HISTORY, vec![repository.as_str().into(), key.as_str().into()]).await?;
        let version = |row: &DatabaseRow| {
            Ok(Version {
                version: row.number(0)? as u64,
                text: row.text_if_any(1)?,
                author: row.text(2)?,
                at: row.number(3)?,
            })
        };
        rows.iter().map(version).collect()
    }

    /// The texts that the history of a repository knows.
    pub async fn known(
        self,
        repository: &Repository,
        question: &HistoryQuestion,
        limits: &RepositoryLimits,
    ) -> Result<HistoryAnswer, Error> {
        const KNOWS: &str = "SELECT COUNT(*), COUNT(put_back) FROM history WHERE repository = $1 AND key = $2
            AND checksum = $3 AND text IS NOT NULL";
        const VERSIONS: &str = "SELECT COUNT(*) FROM history WHERE repository = $1 AND key = $2";
        const CHECKSUM: &str = "SELECT checksum FROM repositories WHERE name = $1";
        let mut snapshot = self.0.snapshot().await?;
        let mut answer = HistoryAnswer::default();
        if let Some(row) = snapshot.row(CHECKSUM, vec![repository.as_str().into()]).await? {
            answer.checksum = row.text(0)?;
        }
        for (key, checksum) in &question.entries {
            let of = || vec![repository.as_str().into(), key.as_str().into()];
            let mut text = of();
            text.push(checksum.as_str().into());
            let (known, put_back) = match snapshot.row(KNOWS, text).await? {
                Some(row) => (row.number(0)?, row.number(1)?),
                None => (0, 0),
            };
            if known > 0 {
                answer.known.insert(key.clone());
                if known == put_back {
                    answer.put_back.insert(key.clone());
                }
                continue;
            }
            let versions = snapshot.row(VERSIONS, of()).await?.map_or(Ok(0), |row| row.number(0))?;
            if versions as u64 >= limits.versions {
                answer.trimmed.insert(key.clone());
            }
        }
        Ok(answer)
    }

    /// Texts of a member that were replaced after a version by somebody who had not seen them.
    pub async fn overwritten(
        self,
        repository: &Repository,
        member: &Member,
        since: u64,
    ) -> Result<Vec<OverwrittenText>, Error> {
        const OVERWRITTEN: &str = "SELECT later.key, earlier.version, COALESCE(members.name, later.author)
            FROM history later JOIN history earlier ON earlier.repository = later.repository AND earlier.key = later.key
            AND earlier.version = (SELECT MAX(version) FROM history between_them WHERE between_them.repository = $1
                AND between_them.key = later.key AND between_them.version < later.version)
            LEFT JOIN members ON members.id = later.author
            WHERE later.repository = $1 AND later.version > $2 AND later.author <> $3 AND earlier.author = $3
            AND earlier.text IS NOT NULL AND later.base IS NOT NULL AND later.base <> earlier.checksum
            AND later.key IN (SELECT key FROM entries WHERE repository = $1 AND version > $2)
            ORDER BY later.version DESC LIMIT $4";
        let values =
            vec![repository.as_str().into(), (since as i64).into(), member.id.as_str().into(), MOST_OVERWRITTEN.into()];
        let told = |row: &DatabaseRow| {
            Ok(OverwrittenText { key: row.text(0)?, version: row.number(1)? as u64, by: row.text(2)? })
        };
        let rows = self.0.rows(OVERWRITTEN, values).await?;
        let told: BTreeSet<OverwrittenText> = rows.iter().map(told).collect::<Result<_, Error>>()?;
        Ok(told.into_iter().collect())
    }
}
