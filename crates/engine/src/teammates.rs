//! Teammates: processes that work alongside a session, below the lead's guard.
//!
//! [`Teammates`] starts, stops and resumes them; `lead_service` is the lead's side of their permission requests.

mod lead_service;
mod teammate_processes;

pub use teammate_processes::{Lead, TeammateRequest, Teammates, briefing};
