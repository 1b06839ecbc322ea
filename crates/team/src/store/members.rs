//! Members: who may sign in.

use super::audit_log::{self, Action};
use super::rows::{Database, DatabaseRow, Transaction};
use super::{Time, fresh_id};
use crate::error::Error;

/// A member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its id.
    pub id: String,
    /// Its name, visible to others.
    pub name: String,
    /// True for an admin of the server, who may do everything.
    pub is_admin: bool,
}

/// The members.
#[derive(Debug, Clone, Copy)]
pub struct Members<'a>(pub(super) &'a Database);

impl Members<'_> {
    /// All members.
    pub async fn all(self) -> Result<Vec<Member>, Error> {
        let rows = self.0.rows("SELECT id, name, is_admin FROM members ORDER BY name", Vec::new()).await?;
        rows.iter().map(member).collect()
    }

    /// A member by name.
    pub async fn named(self, name: &str) -> Result<Member, Error> {
        let rows = self.0.rows("SELECT id, name, is_admin FROM members WHERE name = $1", vec![name.into()]).await?;
        rows.first().map(member).transpose()?.ok_or_else(|| Error::Missing(format!("member called {name}")))
    }

    /// The member an issuer knows by this subject.
    pub async fn of_subject(self, subject: &str) -> Result<Option<Member>, Error> {
        const SUBJECT: &str = "SELECT id, name, is_admin FROM members WHERE subject = $1";
        let rows = self.0.rows(SUBJECT, vec![subject.into()]).await?;
        rows.first().map(member).transpose()
    }

    /// Removes a member, with its tokens, rights and visits. Its texts stay, under its name.
    pub async fn remove(self, by: &Member, name: &str, now: Time) -> Result<(), Error> {
        const LAST: &str = "SELECT COUNT(*) FROM members WHERE is_admin = 1 AND name <> $1";
        let mut transaction = self.0.begin().await?;
        transaction.lock("cairn team: members").await?;
        let others = transaction.row(LAST, vec![name.into()]).await?.map_or(Ok(0), |row| row.number(0))?;
        if others == 0 {
            return Err(Error::Invalid("the last admin cannot be removed".to_owned()));
        }
        // Texts name their author by id; from now on by name.
        for sql in [
            "UPDATE entries SET author = $1 WHERE author = (SELECT id FROM members WHERE name = $1)",
            "UPDATE history SET author = $1 WHERE author = (SELECT id FROM members WHERE name = $1)",
        ] {
            transaction.run(sql, vec![name.into()]).await?;
        }
        if transaction.run("DELETE FROM members WHERE name = $1", vec![name.into()]).await? == 0 {
            return Err(Error::Missing(format!("member called {name}")));
        }
        audit_log::note(&mut transaction, &by.name, Action::RemovedMember, None, name, now).await?;
        transaction.commit().await
    }

    /// Adds a member that an issuer vouches for, without any rights. A name that is taken gets a number.
    pub async fn add(self, name: &str, subject: &str, now: Time) -> Result<Member, Error> {
        let mut transaction = self.0.begin().await?;
        transaction.lock("cairn team: members").await?;
        for number in 1.. {
            let tried = if number == 1 { name.to_owned() } else { format!("{name} {number}") };
            match add(&mut transaction, &tried, Some(subject), false, now).await {
                Err(Error::Exists(_)) if number < 100 => {}
                outcome => {
                    let member = outcome?;
                    audit_log::note(&mut transaction, &member.name, Action::Joined, None, "by an issuer", now).await?;
                    transaction.commit().await?;
                    return Ok(member);
                }
            }
        }
        Err(Error::Exists(format!("a member called {name}")))
    }
}

/// Adds a member.
pub(super) async fn add(
    transaction: &mut Transaction,
    name: &str,
    subject: Option<&str>,
    is_admin: bool,
    now: Time,
) -> Result<Member, Error> {
    let name = name.trim();
    if name.is_empty() || name.len() > 100 || name.chars().any(char::is_control) {
        return Err(Error::Invalid("a name has 1 to 100 characters, and no control characters".to_owned()));
    }
    let taken = transaction.row("SELECT id FROM members WHERE name = $1", vec![name.into()]).await?;
    if taken.is_some() {
        return Err(Error::Exists(format!("a member called {name}")));
    }
    let member = Member { id: fresh_id(), name: name.to_owned(), is_admin };
    let values = vec![
        member.id.as_str().into(),
        name.into(),
        subject.map(str::to_owned).into(),
        i64::from(is_admin).into(),
        now.into(),
    ];
    let sql = "INSERT INTO members (id, name, subject, is_admin, created) VALUES ($1, $2, $3, $4, $5)";
    transaction.run(sql, values).await?;
    Ok(member)
}

pub(super) fn member(row: &DatabaseRow) -> Result<Member, Error> {
    Ok(Member { id: row.text(0)?, name: row.text(1)?, is_admin: row.number(2)? != 0 })
}
