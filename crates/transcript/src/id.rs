//! The name of a line in the log.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A line's uuid. Other programs' ids are kept as they wrote them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Id(Arc<str>);

impl Id {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: AsRef<str>> From<T> for Id {
    fn from(text: T) -> Self {
        Self(text.as_ref().into())
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
