//! Visits: a member signed in to the page, until it signs out or the visit expires.

use super::member_tokens::{self, Secret};
use super::members::member;
use super::rows::Database;
use super::{Member, Time, fresh_id};
use crate::error::Error;

/// Lifetime of a visit: twelve hours, in milliseconds.
const LASTS: Time = 12 * 60 * 60 * 1000;

/// A visiting member.
#[derive(Debug, Clone)]
pub struct Visitor {
    /// The member.
    pub member: Member,
    /// Secret that every form of the visit has to carry.
    pub form: String,
}

/// The visits to the page.
#[derive(Debug, Clone, Copy)]
pub struct Visits<'a>(pub(super) &'a Database);

impl Visits<'_> {
    /// Begins a visit of a member; the secret goes into its cookie.
    pub async fn begin(self, member: &Member, now: Time) -> Result<Secret, Error> {
        let (secret, sealed) = member_tokens::fresh();
        let form = format!("{}{}", uuid::Uuid::new_v4().simple(), fresh_id());
        let values =
            vec![sealed.id.into(), sealed.hash.into(), member.id.as_str().into(), form.into(), (now + LASTS).into()];
        let mut transaction = self.0.begin().await?;
        transaction.run("DELETE FROM visits WHERE expires <= $1", vec![now.into()]).await?;
        let sql = "INSERT INTO visits (id, hash, member, form, expires) VALUES ($1, $2, $3, $4, $5)";
        transaction.run(sql, values).await?;
        transaction.commit().await?;
        Ok(secret)
    }

    /// The visit of a cookie.
    pub async fn find(self, cookie: &str, now: Time) -> Result<Option<Visitor>, Error> {
        const FIND: &str = "SELECT members.id, members.name, members.is_admin, hash, form, expires FROM visits
            JOIN members ON members.id = visits.member WHERE visits.id = $1";
        let Some(sealed) = member_tokens::opened(cookie) else { return Ok(None) };
        let rows = self.0.rows(FIND, vec![sealed.id.into()]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        if !member_tokens::same(&row.text(3)?, &sealed.hash) || row.number(5)? <= now {
            return Ok(None);
        }
        Ok(Some(Visitor { member: member(row)?, form: row.text(4)? }))
    }

    /// Ends a visit.
    pub async fn end(self, cookie: &str) -> Result<(), Error> {
        let Some(sealed) = member_tokens::opened(cookie) else { return Ok(()) };
        let mut transaction = self.0.begin().await?;
        transaction.run("DELETE FROM visits WHERE id = $1", vec![sealed.id.into()]).await?;
        transaction.commit().await
    }
}
