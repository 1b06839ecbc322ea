//! A change to a memory, as recorded before it is made.

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// One change to one memory, or to an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptChange {
    /// The memory, relative to its directory.
    pub path: String,
    /// Its text before; `None` if it was new.
    pub before: Option<String>,
    /// Its text after; `None` if it was removed.
    pub after: Option<String>,
    /// Its line in the index before.
    pub line: Option<String>,
}

/// Records a change that is about to be made. If that fails, nothing is changed.
pub type Keep<'k> = dyn FnMut(&KeptChange) -> Result<(), Error> + 'k;
