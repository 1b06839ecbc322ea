//! Tests that cannot run here say so and why, instead of passing in silence.
//!
//! `./test` counts what they say. `./test full` has all that packages bring: a test that lacks such a thing fails there.
#![allow(dead_code, clippy::print_stderr, reason = "every suite takes what it needs; a test that is skipped says so")]

use std::io::Write;

/// Names the file that collects why tests were skipped.
const COLLECTED: &str = "CAIRN_TEST_SKIPPED";

/// Whether the tests run in full.
pub(crate) fn is_full() -> bool {
    std::env::var_os("CAIRN_TEST_FULL").is_some()
}

/// A test is skipped for lack of what a package brings, or because it is long. In full it fails.
pub(crate) fn skipped(why: &str) {
    skipped_on_this_machine(why);
    assert!(!is_full(), "./test full needs what is missing: {why}");
}

/// A test is skipped for lack of what no package brings: a feature of the kernel, the rights of another user, recordings.
pub(crate) fn skipped_on_this_machine(why: &str) {
    eprintln!("skipped: {why}");
    let Some(file) = std::env::var_os(COLLECTED) else { return };
    let file = std::fs::OpenOptions::new().create(true).append(true).open(file);
    let _ = file.and_then(|mut file| file.write_all(format!("{why}\n").as_bytes())); // an ordinary user may not write there
}
