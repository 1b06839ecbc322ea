//! Team memory, from the outside.

#![allow(clippy::disallowed_methods, reason = "tests look at the disk and at processes by themselves")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed assumption is a failed test")]
#![allow(clippy::print_stderr, reason = "a test tells what it did")]

#[path = "../../../tests/skipped.rs"]
mod skipped;

mod it {
    mod browser;
    mod databases;
    mod faults;
    mod hostile;
    mod house;
    mod issuer;
    mod members_hostile;
    mod mirrors;
    mod office;
    mod page;
    mod recovery;
    mod refusals;
    mod server;
    mod store;
    mod strangers;
    mod watching;
}
