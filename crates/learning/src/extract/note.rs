//! Lines of a session's log about learning, beside what is said.

use serde::{Deserialize, Serialize};
use transcript::Id;
use transcript::line::{Body, Line};

/// A line about learning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub(crate) enum Note {
    /// Turns that need not be learnt from again.
    Extracted {
        /// The turns, each by the line of the user's first words in it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        turns: Vec<Id>,
        /// A message: every turn up to it is covered. Older sessions have this in place of turns.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        covers: Option<Id>,
        /// The memories that were saved.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        saved: Vec<String>,
        /// The run under which the changes are kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<String>,
        /// Why no model was asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        skipped: Option<String>,
    },
    /// A run about these turns did not come to its end.
    ExtractFailed {
        /// The turns.
        turns: Vec<Id>,
        /// Why.
        why: String,
    },
    /// From here on nothing is learnt, or again.
    Private {
        /// Whether the session is private.
        on: bool,
    },
    /// The session goes on here; what precedes this line was said elsewhere.
    Continued,
    /// This session is one that is learnt from: what it leaves, a later one may take up.
    Learns,
}

impl Note {
    /// The note in a line, if it is one.
    pub(crate) fn of(line: &Line) -> Option<Self> {
        match &line.body {
            Body::Meta(meta) => serde_json::from_str(meta.get()).ok(),
            _ => None,
        }
    }

    /// The note as a line carries it.
    pub(crate) fn value(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Turns that were learnt from.
    pub(crate) fn learnt(turns: Vec<Id>, saved: Vec<String>, run: Option<String>) -> Self {
        Self::Extracted { turns, covers: None, saved, run, skipped: None }
    }

    /// Turns that nothing is learnt from.
    pub(crate) fn skipped(turns: Vec<Id>, why: String) -> Self {
        Self::Extracted { turns, covers: None, saved: Vec::new(), run: None, skipped: Some(why) }
    }
}
