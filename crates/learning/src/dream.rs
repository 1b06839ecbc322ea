//! Dreaming: now and then an agent goes over the memories and brings them into order.
//!
//! [`schedule`] decides whether it is time, [`lock`] and [`disk`] ensure that only one process does it, [`sessions`] finds
//! those that were touched since; all of it is looked up at a [`DreamSite`]. A dream learns what was said in them only
//! from its `sources`. [`run`] is the dream itself, [`dream_log`] the record of dreams, [`progress`] what can be seen of
//! one meanwhile, and [`session_dreams`] starts them alongside a session. Its changes are kept with those of other agents
//! ([`memory::changes`]), and can be undone.

pub mod disk;
pub mod dream_log;
pub mod lock;
pub mod progress;
mod prompt;
mod read_budget;
mod recent;
pub mod rehearsal;
mod remove_tool;
mod room;
pub mod run;
pub mod schedule;
pub mod session_dreams;
mod session_tool;
pub mod sessions;
mod site;
mod sources;
mod watch;

pub use run::{Dream, NoDreamReason};
pub use site::DreamSite;
pub use sources::SourcePurpose;
