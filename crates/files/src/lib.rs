//! The only way to the disk.
//!
//! Six doors, each with one promise:
//!
//! - [`Root`]: an opened directory. What is outside it cannot be named: not by `..`, not by an absolute path, not
//!   through a symbolic link.
//! - [`read`], [`replace`], [`stamp`] and their like: single files that a user or a model named by an absolute path.
//!   Reading is bounded and never hangs on a pipe; replacing is atomic and notices a concurrent change.
//! - [`exact`]: the same for paths that were judged before. No link is followed any more, at any part of the path.
//! - [`Log`]: an append-only file. What was acknowledged is on the disk, whatever happens next; two writers never mix.
//! - [`add_line`]: a file of lines that several processes add to, none waiting for another.
//! - [`Lines`]: reading such a file back, however long it is, in bounded memory.
//!
//! What it refuses to do: follow a path out of a root, read a device or a pipe, load a file of unknown size, write in
//! place (a [`LockFile`] aside), truncate a log. It knows no network, no environment, no clock and no home directory: paths are passed in.

#![allow(clippy::disallowed_methods, reason = "this crate is the way to the disk that the bans point to")]

mod absolute;
mod append_shared;
mod atomic_write;
mod directory;
mod effect;
mod error;
pub mod exact;
mod fingerprint;
mod lines;
mod lock;
mod lockfile;
mod log;
mod process;
mod root;
mod walk;

pub use absolute::{
    Glance, create_new, glance, is_unchanged, list, make_private, open, read, read_range, real, remove, remove_tree,
    replace, replace_private, replace_unchanged, stamp,
};
pub use append_shared::add_line;
pub use directory::{create_directory, is_own};
#[cfg(any(test, feature = "faults"))]
pub use effect::faults;
pub use error::Error;
pub use fingerprint::{Snapshot, Stamp};
pub use lines::{FileLine, LineEnding, Lines, OVERSIZED, Text};
pub use lock::Lock;
pub use lockfile::{LockFile, LockText};
pub use log::Log;
pub use process::process_runs;
pub use root::{DirectoryEntry, EntryKind, FileHead, Root};
pub use walk::{Walk, WalkEntry};
