//! Notes about learning in a session's log, outside the conversation.

use serde::{Deserialize, Serialize};
use transcript::Id;
use transcript::line::{Body, Line};

/// A line about learning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub(crate) enum Note {
    /// Turns that need not be learnt from again.
    Extracted {
        /// The turns, each by the id of the user's first words in it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        turns: Vec<Id>,
        /// A message: every turn up to it is covered. Older sessions have this in place of turns.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        covers: Option<Id>,
        /// The memories that were saved.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        saved: Vec<String>,
        /// The run with the changes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<String>,
        /// The reason no model was asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        skipped: Option<String>,
    },
    /// A run about these turns failed.
    ExtractFailed {
        /// The turns.
        turns: Vec<Id>,
        /// The reason.
        why: String,
    },
    /// The session becomes private from here on, or no longer.
    Private {
        /// True if the session is private.
        on: bool,
    },
    /// The session goes on here; what precedes this line was said elsewhere.
    Continued,
    /// This session is learnt from: a later one may take up what it leaves.
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

    /// The note as the value of a line.
    pub(crate) fn value(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// A note about turns that were learnt from.
    pub(crate) fn learnt(turns: Vec<Id>, saved: Vec<String>, run: Option<String>) -> Self {
        Self::Extracted { turns, covers: None, saved, run, skipped: None }
    }

    /// A note about turns that nothing is learnt from.
    pub(crate) fn skipped(turns: Vec<Id>, why: String) -> Self {
        Self::Extracted { turns, covers: None, saved: Vec::new(), run: None, skipped: Some(why) }
    }
}
