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

pub use answer::{Answers, Said, Verdict, Word};
pub use callback::{Back, CallsBack, asked_for};
pub use input::{Called, Common, Happening, Leaving, Left, Start};
pub use question::Asking;
pub(crate) use question::KIND;
pub use run::{Ground, Hooks};
pub use words::{LIMIT_NAME, LONGEST};
