//! LOOP-2: every provider is put through one suite.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "clippy sees tests only in functions marked so"
)]

mod anthropic;
mod openai;
mod simulated;
mod suite;
mod wire;

/// A behaviour that is new to the suite is new to every provider: it is tested, or it is said why not.
#[test]
fn every_provider_answers_for_every_behaviour() {
    let sorted = |behaviours: &[&'static str]| {
        let mut behaviours = behaviours.to_vec();
        behaviours.sort_unstable();
        behaviours
    };
    assert_eq!(sorted(anthropic::ANSWERED_FOR), sorted(openai::ANSWERED_FOR));
}
