//! Hooks: programs, servers, questions and agents of the user's that run at certain moments of a session, and may have a say.
//!
//! [`Hook`](settings::hooks::Hook) is one as the settings define it, with whose word it is; [`Happening`] what it is told;
//! [`Said`] what it answered; [`Answers`] what follows from all of them. [`Hooks`] runs those that a happening concerns, at
//! the same time, identical ones once, each for as long as it may take. Nothing a hook does holds up a session for longer,
//! ends it, or lets a call run that a rule denies: what becomes of an answer is decided at the [gate](crate::gate).

mod answer;
mod callback;
mod input;
mod long_input;
mod question;
pub(crate) mod response;
mod run;
mod words;

pub use answer::{HookMessage, HookOutput, HookOutputs, HookVerdict};
pub use callback::{CallbackReply, CallsBack, asked_for};
pub use input::{CommonInput, ExitReason, HookInput, HookedCall, SessionExit, SessionStart};
pub use question::HookInquiry;
pub(crate) use question::KIND;
pub use run::{HookContext, Hooks};
pub use words::{LIMIT_NAME, LONGEST};
