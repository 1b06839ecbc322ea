//! What we and a guard tell one another, a line each: what to run, and how it ended.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::confinement::{Confinement, MadePath, paths};

/// The byte that asks a guard to end what it runs. Closing the socket ends it at once.
pub(crate) const END: u8 = b'e';

/// The byte by which a guard shows that it is still at work, any number of times before its report.
pub(crate) const SIGN: u8 = b' ';

/// How long output may still come after the shell has ended, from a process it left in the background.
pub(crate) const AFTER_EXIT: Duration = Duration::from_millis(500);

/// How long processes have between being asked to end and being killed.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// How often is looked whether those who were asked have ended.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

/// What a guard is to run, in its own directory and environment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct GuardOrder {
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// What comes on its standard input; nothing where this is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<String>,
    /// How it is confined, if it is.
    pub(crate) confinement: Option<Confinement>,
    /// On which side of the confinement the guard is.
    pub(crate) side: GuardSide,
}

/// A confined command has two guards: one outside that sees to its end, and one inside that confines itself first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum GuardSide {
    Outside,
    Inside {
        /// What was found in the working directories that is guarded.
        #[serde(with = "paths")]
        guarded: Vec<PathBuf>,
    },
}

/// How it went.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum GuardReport {
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
        /// Guarded paths that were not there before, or not the same.
        made: Vec<MadePath>,
    },
}
