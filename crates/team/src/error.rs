//! What can go wrong, by what the caller can do about it.

use std::collections::BTreeMap;

use crate::key::{BadKey, Key};
use crate::repository::BadRepository;

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name that is none.
    #[error(transparent)]
    Key(#[from] BadKey),
    /// A repository that is none.
    #[error(transparent)]
    Repository(#[from] BadRepository),
    /// The address cannot be listened at.
    #[error("cannot listen at {address}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The disk said no.
    #[error(transparent)]
    Files(#[from] files::Error),
    /// The database failed, or cannot be reached: try again later.
    #[error("the database: {0}")]
    Database(#[from] sqlx::Error),
    /// What the database holds is not what this program writes.
    #[error("the database holds something this version does not know: {0}")]
    Schema(String),
    /// Somebody was first: read again, and decide again.
    #[error("somebody else wrote first")]
    Conflict {
        /// The checksum of the whole, now.
        checksum: String,
    },
    /// There is no such thing.
    #[error("there is no {0}")]
    Missing(String),
    /// It cannot be done so.
    #[error("{0}")]
    Invalid(String),
    /// It is there already.
    #[error("{0} is there already")]
    Exists(String),
    /// Entries that cannot be kept; without them the others can.
    #[error("nothing was written: {}", told(.0))]
    Refused(BTreeMap<Key, String>),
    /// More entries than a repository may have.
    #[error("a repository holds at most {most} entries, and this would make {received}")]
    TooMany {
        /// The most.
        most: u64,
        /// How many there would be.
        received: u64,
    },
}

fn told(refused: &BTreeMap<Key, String>) -> String {
    let all: Vec<String> = refused.iter().map(|(key, why)| format!("{key}: {why}")).collect();
    all.join(", ")
}
