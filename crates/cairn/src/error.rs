//! How errors are told: what happened, why, and what to do; and the error that is no crate's.

use crate::out;
use crate::span::{cyan, red};

/// Why nothing can be said: something else than a secret that was found, also by the exit code.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NotRead(pub(crate) String);

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
    error.downcast_ref::<crate::model::NoModel>().map(crate::model::NoModel::hint)
}
