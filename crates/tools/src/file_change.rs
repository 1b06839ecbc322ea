//! Effect of a call on a file, derived from its input: for display, judgement and records.

use serde_json::Value;

use crate::edit::{EditInput, edited};

/// Input field of an edit that holds the removed text.
const TAKEN_OUT: &str = "old_string";

/// A change to a file requested by a call of Write or Edit.
#[derive(Debug)]
pub enum FileChange {
    /// Replaces the whole content.
    Write(String),
    /// Replaces a text in it.
    Edit(EditInput),
}

impl FileChange {
    /// Parses a change from an input; `None` if there is none.
    pub fn of(input: &Value) -> Option<Self> {
        match input["content"].as_str() {
            Some(content) => Some(Self::Write(content.to_owned())),
            None => serde_json::from_value(input.clone()).ok().map(Self::Edit),
        }
    }

    /// Removed and added text, as far as the input has them.
    pub fn texts(&self) -> (&str, &str) {
        match self {
            Self::Write(content) => ("", content),
            Self::Edit(edit) => (&edit.old_string, &edit.new_string),
        }
    }

    /// The file's text after the change, or the reason why the call will fail.
    pub fn applied(&self, before: &str) -> Result<String, String> {
        match self {
            Self::Write(content) => Ok(content.clone()),
            Self::Edit(edit) if edit.old_string.is_empty() && before.is_empty() => Ok(edit.new_string.clone()),
            Self::Edit(edit) => edited(before, edit),
        }
    }
}

/// The texts in an input, without the removed text of an edit.
pub fn texts_put_in(input: &Value) -> impl Iterator<Item = &str> {
    let fields = input.as_object().into_iter().flatten();
    fields.filter(|(name, _)| *name != TAKEN_OUT).filter_map(|(_, value)| value.as_str())
}
