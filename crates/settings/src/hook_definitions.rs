//! Hooks as the settings define them: commands, URLs, questions and agents of the user's that run at certain events.
//!
//! [`Hook`] is one with its origin, [`HookEvent`] the event at which it runs, [`Matcher`] its filter. Nothing here runs
//! one.

mod hook;
mod hook_event;
mod in_text;
mod matcher;
pub(crate) mod settings;

pub use hook::{Hook, HookAuthor, HookRepetition, HookWait, Kind, OnFailure};
pub use hook_event::{Block, HookEvent};
pub use in_text::in_text;
pub use matcher::Matcher;
pub use settings::{HookSettings, HooksOf};
