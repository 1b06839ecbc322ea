//! LOOP-2: every provider is put through one suite; so far there is one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "clippy sees tests only in functions marked so"
)]

mod anthropic;
mod simulated;
mod suite;
mod wire;
