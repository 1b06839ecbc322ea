//! Teammates: processes that work beside a session, below the lead's guard.
//!
//! [`Teammates`] starts, stops and resumes them; `joining` offers that as the Agent tool; `answering` is the lead's side of
//! what their programs ask.

mod answering;
mod joining;
mod mates;

pub(crate) use joining::InTeam;
pub use mates::{Lead, Teammates, Wanted, briefing};
