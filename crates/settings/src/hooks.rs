//! Hooks as the settings define them: programs, servers, questions and agents of the user's that run at certain moments.
//!
//! [`Hook`] is one, with whose word it is; [`HookEvent`] when it runs, [`Matcher`] for what. Nothing here runs one.

mod definition;
mod matcher;
mod moment;
pub(crate) mod settings;

pub use definition::{Hook, HookAuthor, HookRepetition, HookWait, Kind, OnFailure};
pub use matcher::Matcher;
pub use moment::{Block, HookEvent};
pub use settings::{HookSettings, HooksOf};
