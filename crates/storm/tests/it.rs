//! The storm: see the crate's documentation.

#![allow(clippy::disallowed_methods, reason = "the storm is the disk, and a test makes its own files")]

#[cfg(test)]
mod it {
    mod chance;
    mod disk;
    mod session;
    mod team;
    mod year;
}
