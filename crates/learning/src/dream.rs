//! Dreaming: now and then an agent goes over what is remembered and brings it into order.
//!
//! [`gate`] says whether it is time, [`lock`] and [`disk`] that only one process does it, [`sessions`] which were touched
//! since; a [`DreamSite`] is where all that is looked up. What was said in them a dream learns from its [`sources`] alone.
//! [`run`] is the dream itself, [`book`] where it is written down, [`progress`] what can be seen of it meanwhile,
//! [`beside`] what starts it beside a session. What it
//! changed is kept with all that agents change ([`memory::changes`]), and can be taken back.

pub mod book;
mod brief;
pub mod disk;
pub mod gate;
pub mod lock;
pub mod progress;
mod read_budget;
mod recent;
pub mod rehearsal;
mod remove_tool;
mod room;
pub mod run;
pub mod session_dreams;
mod session_tool;
pub mod sessions;
mod site;
mod sources;
mod watch;

pub use run::{Dream, NoDreamReason};
pub use site::DreamSite;
pub use sources::SourcePurpose;
