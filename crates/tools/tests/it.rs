//! The tools as the engine calls them: by name, with JSON, in a directory of their own.

#![allow(clippy::disallowed_methods, reason = "tests look at the disk without the tools they check")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed assumption is a failed test")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test tells what it did")]

#[path = "../../../tests/skipped.rs"]
mod skipped;

mod it {
    mod always;
    mod attacks;
    mod bash;
    mod changes;
    mod definitions;
    mod edit;
    mod guard;
    mod jobs;
    mod links;
    mod looked;
    mod looking;
    mod looking_attacks;
    mod permission;
    mod place;
    mod private;
    mod program;
    mod read;
    mod repositories;
    mod run;
    mod sandbox;
    mod sandbox_keeps;
    mod sandbox_sequences;
    mod sandbox_size;
    mod search;
    mod server_process;
    mod shell_asking;
    mod shell_plain;
    mod trick;
    mod write;
}
