//! Protocol between us and a guard, a line each: the command to run, and its end.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::confinement::{Confinement, MadePath, paths};

/// Byte that asks a guard to end its command. Closing the socket ends it at once.
pub(crate) const END: u8 = b'e';

/// Byte by which a guard shows that it is still working, any number of times before its report.
pub(crate) const SIGN: u8 = b' ';

/// Time for which output may still arrive after the shell has ended, from a process it left in the background.
pub(crate) const AFTER_EXIT: Duration = Duration::from_millis(500);

/// Time between asking processes to end and killing them.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// Interval of checks whether they have ended.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

/// Order for a guard, to be run in its own directory and environment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct GuardOrder {
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// Standard input.
    pub(crate) input: ProcessInput,
    /// Confinement, if any.
    pub(crate) confinement: Option<Confinement>,
    /// Side of the confinement that the guard is on.
    pub(crate) side: GuardSide,
}

/// Standard input of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ProcessInput {
    Nothing,
    Text(String),
    /// The socket that is its standard output too: whoever started it goes on talking to it.
    Socket,
}

/// Side of a guard. A confined command has two: one outside that makes sure of its end, and one inside that confines
/// itself first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum GuardSide {
    Outside,
    Inside {
        /// Guarded paths found in the working directories.
        #[serde(with = "paths")]
        guarded: Vec<PathBuf>,
    },
}

/// Report of a guard.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum GuardReport {
    /// The command was not started.
    NotStarted {
        /// The reason, in words.
        error: String,
        /// The system's error code.
        code: Option<i32>,
    },
    /// It ran, and nothing is left of it.
    Ended {
        /// Exit status as the system encodes it.
        status: i32,
        /// True if it had left other processes behind, which were stopped.
        others: bool,
        /// Guarded paths that did not exist before, or are not the same.
        made: Vec<MadePath>,
    },
}
