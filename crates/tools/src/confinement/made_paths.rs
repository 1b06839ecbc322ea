//! Guarded paths that a command made.

use std::path::PathBuf;

use files::exact::Identity;
use serde::{Deserialize, Serialize};

use super::paths;

/// A guarded path that a command made, with the identity seen then: before it is moved away later, it can be checked to
/// be the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadePath {
    /// Its path.
    #[serde(with = "paths::one")]
    pub path: PathBuf,
    /// Its identity.
    pub identity: Identity,
}
