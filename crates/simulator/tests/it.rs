//! The simulator over HTTP, as a client sees it. One file a behaviour.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::needless_pass_by_value, reason = "`json!` makes values to give away")]

#[path = "it/client.rs"]
mod client;

#[path = "it/cache_law.rs"]
mod cache_law;
#[path = "it/context_editing.rs"]
mod context_editing;
#[path = "it/faults.rs"]
mod faults;
#[path = "it/refusals.rs"]
mod refusals;
#[path = "it/refused_messages.rs"]
mod refused_messages;
#[path = "it/reporting.rs"]
mod reporting;
#[path = "it/scripted_model.rs"]
mod scripted_model;
#[path = "it/streaming.rs"]
mod streaming;
