//! Teammates: processes that work beside a session, below the lead's guard.
//!
//! [`Teammates`] starts, stops and resumes them; `answering` is the lead's side of what their programs ask.

mod answering;
mod mates;

pub use mates::{Lead, TeammateRequest, Teammates, briefing};
