//! Hooks: the user's programs, servers, questions and agents that run at certain events of a session, and may have a
//! say.
//!
//! [`Hook`](settings::hook_definitions::Hook) is a hook as the settings define it, with its author; [`HookInput`] is its input;
//! [`HookOutput`] its answer; [`HookOutputs`] what follows from all of them. [`Hooks`] runs those that match an event,
//! in parallel, identical ones once, each with a timeout. No hook can delay a session longer than that, end it, or let
//! a call run that a rule denies: the [gate](crate::gate) decides what an answer leads to.

mod callback;
mod hook_input;
mod hook_messages;
mod hook_output;
mod hook_question;
mod long_input;
pub(crate) mod response;
mod run_hooks;
mod server_call;

pub use callback::{CallbackReply, HookCallbacks, registered_hooks};
pub use hook_input::{CommonInput, ExitReason, HookInput, HookedCall, SessionExit, SessionStart};
pub use hook_messages::{LIMIT_NAME, LONGEST};
pub use hook_output::{HookMessage, HookOutput, HookOutputs, HookVerdict};
pub use hook_question::HookInquiry;
pub(crate) use hook_question::KIND;
pub use run_hooks::{HookContext, Hooks};
