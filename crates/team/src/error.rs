//! Errors of team memory, by what the caller can do about them.

use std::collections::BTreeMap;

use crate::key::{BadKey, EntryKey};
use crate::repository::BadRepository;

/// An error of team memory.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An invalid key.
    #[error(transparent)]
    Key(#[from] BadKey),
    /// An invalid repository name.
    #[error(transparent)]
    Repository(#[from] BadRepository),
    /// The server cannot listen at the address.
    #[error("cannot listen at {address}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// The reason.
        source: std::io::Error,
    },
    /// An error of the disk.
    #[error(transparent)]
    Files(#[from] files::Error),
    #[cfg(feature = "server")]
    /// The database failed, or cannot be reached: try again later.
    #[error("the database: {0}")]
    Database(#[from] sqlx::Error),
    /// The database has content that this program did not write.
    #[error("the database holds something this version does not know: {0}")]
    Schema(String),
    /// Another write came first: read again, and decide again.
    #[error("somebody else wrote first")]
    Conflict {
        /// The current checksum of the whole.
        checksum: String,
    },
    /// Not found.
    #[error("there is no {0}")]
    Missing(String),
    /// An invalid request.
    #[error("{0}")]
    Invalid(String),
    /// It already exists.
    #[error("{0} already exists")]
    Exists(String),
    /// Entries that cannot be stored; the others can be without them.
    #[error("nothing was written: {}", refused_list(.0))]
    Refused(BTreeMap<EntryKey, String>),
    /// Too many entries for a repository.
    #[error("a repository holds at most {most} entries, and this would make {received}")]
    TooMany {
        /// The limit.
        most: u64,
        /// Number of entries there would be.
        received: u64,
    },
}

/// Failure of a request, by what can be done about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestTrouble {
    /// Another write came first: read again, and decide again.
    #[error("somebody else wrote first")]
    Conflict,
    /// The repository is full.
    #[error("the server keeps at most {most} entries of a repository")]
    TooMany {
        /// The limit.
        most: u64,
    },
    /// The server refuses a part of the request and would take the rest without it.
    #[error("{server} refused ({status}): {message}")]
    Refused {
        /// The server.
        server: String,
        /// The status.
        status: u16,
        /// In the server's words.
        message: String,
        /// The refused entries with the reasons, if the server names them.
        refused: BTreeMap<String, String>,
    },
    /// Only the user can help: a bad token, a missing right.
    #[error("{server} refused ({status}): {message}")]
    Permanent {
        /// The server.
        server: String,
        /// The status.
        status: u16,
        /// In the server's words.
        message: String,
    },
    /// A passing failure: it may work later.
    #[error("{server} cannot be used now: {message}")]
    Later {
        /// The server.
        server: String,
        /// The reason.
        message: String,
    },
}

fn refused_list(refused: &BTreeMap<EntryKey, String>) -> String {
    let all: Vec<String> = refused.iter().map(|(key, why)| format!("{key}: {why}")).collect();
    all.join(", ")
}
