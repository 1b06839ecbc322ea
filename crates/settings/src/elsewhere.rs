//! Values that Claude Code knows and this program does not: what is used in their place, and why.
//!
//! The one in their place never lets more happen unasked.

use serde_json::Value;

use super::keys::{self, SettingKey};

/// What takes the place of a value.
pub(super) struct SubstituteValue {
    /// The value that counts.
    pub(super) value: &'static str,
    /// What the other would do, in words that follow its name.
    pub(super) why: &'static str,
}

/// Modes of permission that there are not here.
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

/// What takes the place of a value that is not known here; none for all others.
pub(super) fn stand_in(key: &SettingKey, value: &Value) -> Option<&'static SubstituteValue> {
    let value = value.as_str().filter(|_| *key == keys::MODE)?;
    MODES.iter().find(|(name, _)| *name == value).map(|(_, stand_in)| stand_in)
}
