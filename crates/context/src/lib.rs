//! The layers that keep a session inside its window, one file each. Each only decides: what it decides is a commit, and
//! what has to be done for it (writing a file, asking a model) is the engine's.
//!
//! [`spill`] is the first and cheapest: oversized results go to disk, a frozen preview stays.

pub mod spill;
