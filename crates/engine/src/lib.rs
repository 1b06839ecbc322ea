//! The engine: one agent session, from the user's words to the end of the turn.
//!
//! [`Session`] is the log on disk. [`run::Run`] is the step machine: looking at the log, what comes next? [`Agent`]
//! drives it: it calls the model, asks for permission, runs tools, and appends what happened. What is to be seen of it
//! leaves as [`Event`]s; they are also the points where hooks attach.
//!
//! The engine never touches a terminal, reads no environment and listens on no port: the binary does.

pub mod agent;
mod error;
pub mod event;
pub mod home;
mod inbox;
pub mod knowledge;
pub mod permission;
pub mod prompt;
pub mod record;
pub mod rewind;
pub mod run;
pub mod session;
pub mod settings;
pub mod stats;
pub mod world;

pub use agent::{Agent, Turn};
pub use error::Error;
pub use event::Event;
pub use home::Home;
pub use inbox::Inbox;
pub use session::Session;
pub use world::World;
