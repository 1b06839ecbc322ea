//! Storage of a server: repositories, members, and a record of what they did.
//!
//! One [`Store`] on SQLite or PostgreSQL, with the same statements for both; each kind of record has a type of its own,
//! which borrows the database. Every change is one transaction with its line in the audit log, so whatever was
//! acknowledged is whole and can be accounted for. Nothing is overwritten: the text an entry had stays in its history
//! for as long as the retention says. Time is passed in as milliseconds since 1970.

mod audit_log;
mod backup;
mod entries;
mod history;
mod invitations;
mod member_tokens;
mod members;
mod migrations;
mod repositories;
mod rows;
mod visits;

pub use audit_log::{Action, AuditLine, AuditLog};
pub use entries::{Entries, RepositoryLimits, State};
pub use history::{Version, VersionHistory};
pub use invitations::{Invitation, Invitations, NewMember};
pub use member_tokens::{Secret, Token, Tokens};
pub use members::{Member, Members};
pub use repositories::{Repositories, RepositoryRight};
pub use visits::{Visitor, Visits};

use crate::error::Error;
pub use crate::protocol::{Level, Time};
use rows::Database;

/// Database of a server.
#[derive(Debug, Clone)]
pub struct Store {
    database: Database,
}

impl Store {
    /// Opens a database, `postgres://…` or the path of a file, and brings its tables up to date. Several servers may do
    /// so at once.
    pub async fn open(address: &str) -> Result<Self, Error> {
        let database = Database::open(address).await?;
        migrations::migrate(&database).await?;
        Ok(Self { database })
    }

    /// True if the database answers.
    pub async fn is_ready(&self) -> bool {
        self.database.rows("SELECT COUNT(*) FROM members", Vec::new()).await.is_ok()
    }

    /// The entries of repositories.
    pub fn entries(&self) -> Entries<'_> {
        Entries(&self.database)
    }

    /// The versions of entries.
    pub fn history(&self) -> VersionHistory<'_> {
        VersionHistory(&self.database)
    }

    /// The repositories, and the rights to them.
    pub fn repositories(&self) -> Repositories<'_> {
        Repositories(&self.database)
    }

    /// The members.
    pub fn members(&self) -> Members<'_> {
        Members(&self.database)
    }

    /// The tokens of members.
    pub fn tokens(&self) -> Tokens<'_> {
        Tokens(&self.database)
    }

    /// The invitations to become a member.
    pub fn invitations(&self) -> Invitations<'_> {
        Invitations(&self.database)
    }

    /// The visits to the page.
    pub fn visits(&self) -> Visits<'_> {
        Visits(&self.database)
    }

    /// The audit log.
    pub fn audit(&self) -> AuditLog<'_> {
        AuditLog(&self.database)
    }

    /// Waits for running statements, and closes.
    pub async fn close(&self) {
        self.database.close().await;
    }
}

/// A fresh id. Later ones sort behind earlier ones.
fn fresh_id() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}
