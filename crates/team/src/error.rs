//! What can go wrong, by what the caller can do about it.

use std::collections::BTreeMap;

use crate::key::{BadKey, EntryKey};
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
    #[cfg(feature = "server")]
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
    Refused(BTreeMap<EntryKey, String>),
    /// More entries than a repository may have.
    #[error("a repository holds at most {most} entries, and this would make {received}")]
    TooMany {
        /// The most.
        most: u64,
        /// How many there would be.
        received: u64,
    },
}

/// Why a request came to nothing, by what can be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestTrouble {
    /// Somebody was first: read again, and decide again.
    #[error("somebody else wrote first")]
    Conflict,
    /// The repository is full.
    #[error("the server keeps at most {most} entries of a repository")]
    TooMany {
        /// The most.
        most: u64,
    },
    /// Something in the request cannot be kept. Without it the rest can.
    #[error("{server} says no ({status}): {message}")]
    Refused {
        /// Who.
        server: String,
        /// The status.
        status: u16,
        /// In the server's words.
        message: String,
        /// What, where it says so, with why.
        refused: BTreeMap<String, String>,
    },
    /// Nothing helps but the user: a bad token, no right.
    #[error("{server} says no ({status}): {message}")]
    Permanent {
        /// Who.
        server: String,
        /// The status.
        status: u16,
        /// In the server's words.
        message: String,
    },
    /// It may work later.
    #[error("{server} cannot be used now: {message}")]
    Later {
        /// Who.
        server: String,
        /// Why.
        message: String,
    },
}

fn told(refused: &BTreeMap<EntryKey, String>) -> String {
    let all: Vec<String> = refused.iter().map(|(key, why)| format!("{key}: {why}")).collect();
    all.join(", ")
}
