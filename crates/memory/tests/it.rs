//! What this crate promises, tried on a real disk.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed assumption is a failed test")]
#![allow(clippy::disallowed_methods, reason = "tests look at the disk without the crate they check")]

mod it {
    mod bad_input;
    mod changes;
    mod concurrency;
    mod doctor;
    mod drift;
    mod frontmatter;
    mod import;
    mod index;
    mod instructions;
    mod place;
    mod rank;
    mod recall;
    mod remember;
    mod revise;
    mod scan;
    mod secrets;
    mod store;
    mod taxonomy;
    mod verdict;
}
