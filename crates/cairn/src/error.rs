//! Prints errors: what happened, why, and what to do; and defines the errors that belong to no other crate.

use crate::out;
use crate::styled_text::{cyan, red};

/// Why nothing can be said: something else than a secret that was found, also by the exit code.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ScanFailure(pub(crate) String);

/// Something that this build of the program was made without.
#[derive(Debug, thiserror::Error)]
#[error("this build does not include {what}")]
#[cfg_attr(feature = "server", allow(dead_code, reason = "nothing is missing"))]
pub(crate) struct NotBuilt {
    pub(crate) what: &'static str,
    /// The cargo feature that brings it.
    pub(crate) feature: &'static str,
}

impl NotBuilt {
    fn hint(&self) -> String {
        format!(
            "in a checkout of Cairn: cargo install --path crates/cairn --features {} (or --all-features)",
            self.feature
        )
    }
}

/// `error:`, its `cause:`s, and after a blank line what to do.
pub(crate) fn print(error: &anyhow::Error) {
    out::tell(&red("error:"), &error.to_string());
    let mut shown = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !shown.contains(&cause) {
            out::tell(&red("cause:"), &cause);
        }
        shown = cause;
    }
    if let Some(hint) = hint(error) {
        out::talk!("");
        out::tell(&cyan("hint:"), &hint);
    }
}

fn hint(error: &anyhow::Error) -> Option<String> {
    if let Some(error) = error.downcast_ref::<session::Error>() {
        return error.hint();
    }
    if let Some(error) = error.downcast_ref::<provider::Error>() {
        return error.hint().map(str::to_owned);
    }
    if let Some(error) = error.downcast_ref::<NotBuilt>() {
        return Some(error.hint());
    }
    error.downcast_ref::<crate::model::NoModel>().map(crate::model::NoModel::hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A missing feature is a usage error, and the hint says how to get it.
    #[test]
    fn what_a_build_is_without_can_be_had() {
        let error: anyhow::Error = NotBuilt { what: "the team server", feature: "server" }.into();
        assert_eq!(crate::exit::Code::of(&error), crate::exit::Code::Usage);
        assert_eq!(error.to_string(), "this build does not include the team server");
        assert!(hint(&error).unwrap().contains("cargo install --path crates/cairn --features server"));
    }
}
