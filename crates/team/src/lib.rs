//! Team memory: the memories that all collaborators of a repository share.
//!
//! A repository's entries are a map from [`EntryKey`] to text, kept by a server and mirrored in a folder of each member. The
//! protocol is small ([`protocol`]): read all or only checksums, write some under an optimistic lock. What a member
//! changed and what the server changed since they last met is worked out by checksums alone, so neither side needs a
//! clock or a lock on the other.
//!
//! This crate knows nothing of sessions, models or terminals. It refuses every key that could name anything but a file
//! below the team's folder, on both sides, and every text that holds a secret.

mod checked_text;
pub mod checksum;
pub mod client;
mod error;
pub mod folder;
mod key;
pub mod mirror;
pub mod protocol;
pub mod report;
mod repository;
pub mod rhythm;
#[cfg(feature = "server")]
pub mod serve;
pub mod state;
#[cfg(feature = "server")]
pub mod store;
pub mod sync;
pub mod sync_run;
pub mod watch_folder;

pub use error::{Error, RequestTrouble};
pub use key::{BadKey, EntryKey};
pub use repository::Repository;
