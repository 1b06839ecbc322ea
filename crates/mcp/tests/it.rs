//! Servers of all kinds, seen through the client.

#![allow(clippy::disallowed_methods, reason = "tests look at the disk and at processes by themselves")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed assumption is a failed test")]
#![allow(clippy::needless_pass_by_value, reason = "what a test makes, it gives away")]

#[path = "../../../tests/skipped.rs"]
mod skipped;

#[path = "it/calls.rs"]
mod calls;
#[path = "it/conformance.rs"]
mod conformance;
#[path = "it/hostile.rs"]
mod hostile;
#[path = "it/http.rs"]
mod http;
#[path = "it/lists.rs"]
mod lists;
#[path = "it/logins.rs"]
mod logins;
#[path = "it/questions.rs"]
mod questions;
#[path = "it/real.rs"]
mod real;
#[path = "it/scripted.rs"]
mod scripted;
#[path = "it/web.rs"]
mod web;
