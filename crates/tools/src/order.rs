//! What we and a guard tell one another, a line each: what to run, and how it ended.

use serde::{Deserialize, Serialize};

/// The byte that asks a guard to end what it runs. Closing the socket ends it at once.
pub(crate) const END: u8 = b'e';

/// What a guard is to run, in its own directory and environment.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
}

/// How it went.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// It was not to be.
    NotStarted {
        /// Why, in words.
        error: String,
        /// And as the system has it.
        code: Option<i32>,
    },
    /// It ran, and nothing is left of it.
    Ended {
        /// As the system writes it.
        status: i32,
        /// Whether it had left others behind, which were stopped.
        others: bool,
    },
}
