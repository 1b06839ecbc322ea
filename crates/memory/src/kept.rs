//! A change of a memory, as it is kept before it is made.

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// One change of one memory, or of an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptChange {
    /// The memory, relative to its directory.
    pub path: String,
    /// Its text before; none if it was new.
    pub before: Option<String>,
    /// Its text after; none if it was removed.
    pub after: Option<String>,
    /// Its line in the index before.
    pub line: Option<String>,
}

/// Keeps what is about to be changed. Where it fails, nothing is.
pub type Keep<'k> = dyn FnMut(&KeptChange) -> Result<(), Error> + 'k;
