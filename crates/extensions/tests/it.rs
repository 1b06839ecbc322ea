//! Skills, commands, agents and plugins that people have published.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

#[path = "it/corpora.rs"]
mod corpora;
#[path = "../../../tests/skipped.rs"]
mod skipped;
