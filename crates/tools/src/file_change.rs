//! What a call would make of a file, told by its input: for those who show it, judge it or write it down.

use serde_json::Value;

use crate::edit::{EditInput, edited};

/// The field of an edit's input that holds what is taken out.
const TAKEN_OUT: &str = "old_string";

/// A change of a file that a call of Write or Edit asks for.
#[derive(Debug)]
pub enum FileChange {
    /// All of it becomes this.
    Write(String),
    /// A text in it is replaced.
    Edit(EditInput),
}

impl FileChange {
    /// The change that an input asks for; none if it asks for none.
    pub fn of(input: &Value) -> Option<Self> {
        match input["content"].as_str() {
            Some(content) => Some(Self::Write(content.to_owned())),
            None => serde_json::from_value(input.clone()).ok().map(Self::Edit),
        }
    }

    /// What is taken out and what is put in, as far as the input says.
    pub fn texts(&self) -> (&str, &str) {
        match self {
            Self::Write(content) => ("", content),
            Self::Edit(edit) => (&edit.old_string, &edit.new_string),
        }
    }

    /// The file's text afterwards, or why the call will fail.
    pub fn applied(&self, before: &str) -> Result<String, String> {
        match self {
            Self::Write(content) => Ok(content.clone()),
            Self::Edit(edit) if edit.old_string.is_empty() && before.is_empty() => Ok(edit.new_string.clone()),
            Self::Edit(edit) => edited(before, edit),
        }
    }
}

/// The texts in an input, without what an edit takes out.
pub fn texts_put_in(input: &Value) -> impl Iterator<Item = &str> {
    let fields = input.as_object().into_iter().flatten();
    fields.filter(|(name, _)| *name != TAKEN_OUT).filter_map(|(_, value)| value.as_str())
}
