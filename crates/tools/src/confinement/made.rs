//! Guarded paths that a command made.

use std::path::PathBuf;

use files::exact::Identity;
use serde::{Deserialize, Serialize};

use super::paths;

/// A guarded path that a command made, and what was there when it was seen: whoever moves it away later can tell whether
/// it still is the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadePath {
    /// Where it is.
    #[serde(with = "paths::one")]
    pub path: PathBuf,
    /// What it is.
    pub identity: Identity,
}
