//! Where a server keeps repositories, members, and what they did.
//!
//! One [`Store`] on SQLite or PostgreSQL, with the same statements for both. Every change is one transaction with its line
//! in the audit log, so what was acknowledged is whole and can be accounted for. Nothing is overwritten: the text an entry
//! had stays in its history for as long as the retention says. Time is passed in as milliseconds since 1970.

mod audit;
mod backup;
mod entries;
mod invitations;
mod members;
mod past;
mod rights;
mod rows;
mod schema;
mod tokens;
mod used;
mod visits;

pub use audit::{Action, Audited};
pub use entries::{Limits, State, Version};
pub use invitations::{Invitation, Invited};
pub use members::Member;
pub use rights::Granted;
pub use tokens::{Known, Secret};
pub use visits::Visit;

use crate::error::Error;
pub use crate::protocol::{Level, Time};
use rows::Database;

/// A server's memory.
#[derive(Debug, Clone)]
pub struct Store {
    database: Database,
}

impl Store {
    /// Opens a database, `postgres://…` or the path of a file, and brings its tables up to date. Several servers may do
    /// so at once.
    pub async fn open(address: &str) -> Result<Self, Error> {
        let database = Database::open(address).await?;
        schema::migrate(&database).await?;
        Ok(Self { database })
    }

    /// Whether the database answers.
    pub async fn is_ready(&self) -> bool {
        self.database.rows("SELECT COUNT(*) FROM members", Vec::new()).await.is_ok()
    }

    /// Waits for what is under way, and closes.
    pub async fn close(&self) {
        self.database.close().await;
    }
}

/// A fresh id. Later ones sort behind earlier ones.
fn fresh_id() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}
