//! What holds of the log and its projection, whatever happens in a session.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, unreachable_pub, reason = "tests")]

#[path = "it/session.rs"]
mod session;
#[path = "../../../tests/skipped.rs"]
mod skipped;

#[path = "it/changes.rs"]
mod changes;
#[path = "it/crash.rs"]
mod crash;
#[path = "it/foreign.rs"]
mod foreign;
#[path = "it/going_back.rs"]
mod going_back;
#[path = "it/incremental.rs"]
mod incremental;
#[path = "it/pairing.rs"]
mod pairing;
#[path = "it/parallel.rs"]
mod parallel;
#[path = "it/prefix_stability.rs"]
mod prefix_stability;
#[path = "it/reused.rs"]
mod reused;
#[path = "it/tokens.rs"]
mod tokens;
#[path = "it/undo.rs"]
mod undo;
