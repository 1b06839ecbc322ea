//! Substitutes for values that Claude Code knows and Cairn does not.
//!
//! A substitute never lets more happen unasked.

use serde_json::Value;

use super::keys::{self, SettingKey};

/// A substitute for a value.
pub(super) struct SubstituteValue {
    /// The value that is used.
    pub(super) value: &'static str,
    /// The effect that the original value would have, in words that follow its name.
    pub(super) why: &'static str,
}

/// Permission modes that do not exist here.
const MODES: [(&str, SubstituteValue); 3] = [
    ("auto", SubstituteValue { value: "default", why: "has a model decide what may run; here you are asked" }),
    ("dontAsk", SubstituteValue { value: "default", why: "denies what would be asked; here you are asked" }),
    (
        "delegate",
        SubstituteValue {
            value: "default",
            why: "keeps the lead of a team to coordinating; here there is no such mode",
        },
    ),
];

/// The substitute for a value that is unknown here; none for all others.
pub(super) fn stand_in(key: &SettingKey, value: &Value) -> Option<&'static SubstituteValue> {
    let value = value.as_str().filter(|_| *key == keys::MODE)?;
    MODES.iter().find(|(name, _)| *name == value).map(|(_, stand_in)| stand_in)
}
