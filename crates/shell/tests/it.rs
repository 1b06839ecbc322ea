//! The judge of shell commands, from outside.

#![allow(clippy::disallowed_methods, reason = "tests look at the disk without the tools they check")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed assumption is a failed test")]

mod it {
    mod running;
    mod table;
}
