//! What this crate promises, tried on a real disk.

#![allow(clippy::disallowed_methods, reason = "tests look at the disk without the crate they check")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed assumption is a failed test")]

mod it {
    mod crash;
    mod exact;
    mod lines;
    mod log;
    mod named;
    mod root;
}
