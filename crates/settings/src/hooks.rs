//! Hooks as the settings define them: programs, servers, questions and agents of the user's that run at certain moments.
//!
//! [`Hook`] is one, with whose word it is; [`HookEvent`] when it runs, [`Matcher`] for what. Nothing here runs one.

mod definition;
mod hook_event;
mod matcher;
pub(crate) mod settings;

pub use definition::{Hook, HookAuthor, HookRepetition, HookWait, Kind, OnFailure};
pub use hook_event::{Block, HookEvent};
pub use matcher::Matcher;
pub use settings::{HookSettings, HooksOf};
