//! Hooks: programs, servers, questions and agents of the user's that run at certain moments of a session, and may have a say.
//!
//! [`Hook`](settings::hooks::Hook) is one as the settings define it, with whose word it is; [`HookInput`] what it is told;
//! [`HookOutput`] what it answered; [`HookOutputs`] what follows from all of them. [`Hooks`] runs those that a happening concerns, at
//! the same time, identical ones once, each for as long as it may take. Nothing a hook does holds up a session for longer,
//! ends it, or lets a call run that a rule denies: what becomes of an answer is decided at the [gate](crate::gate).

mod callback;
mod hook_input;
mod hook_messages;
mod hook_output;
mod hook_question;
mod long_input;
pub(crate) mod response;
mod run_hooks;

pub use callback::{CallbackReply, CallsBack, asked_for};
pub use hook_input::{CommonInput, ExitReason, HookInput, HookedCall, SessionExit, SessionStart};
pub use hook_messages::{LIMIT_NAME, LONGEST};
pub use hook_output::{HookMessage, HookOutput, HookOutputs, HookVerdict};
pub use hook_question::HookInquiry;
pub(crate) use hook_question::KIND;
pub use run_hooks::{HookContext, Hooks};
