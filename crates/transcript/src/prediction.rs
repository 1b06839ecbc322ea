//! Accuracy of the token estimates, measured on a recorded session.

use serde::Serialize;

use crate::id::Id;
use crate::line::{Body, Line};
use crate::log::Log;

/// Estimate for a request beside the provider's count.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Prediction {
    /// The reply that reported the count.
    pub reply: Id,
    /// The estimate just before the request.
    pub estimated: u64,
    /// The provider's count.
    pub reported: u64,
}

impl Prediction {
    /// Relative error of the estimate.
    pub fn error(&self) -> f64 {
        self.estimated.abs_diff(self.reported) as f64 / self.reported.max(1) as f64
    }
}

/// For every reply of a recorded session: the estimate just before it and the count that the provider then reported.
/// The first is left out if the log does not have the prologue, since there is nothing to estimate from.
pub fn predictions(lines: Vec<Line>) -> Vec<Prediction> {
    let mut made: Vec<Prediction> = Vec::new();
    let mut known = false;
    Log::load_watching(lines, |view, line| {
        known |= view.prologue().is_some();
        let Body::Assistant { id, usage: Some(usage), .. } = &line.body else { return };
        if usage.context() == 0 || made.last().is_some_and(|last| last.reply == *id) {
            return;
        }
        made.push(Prediction { reply: id.clone(), estimated: view.tally().count(), reported: usage.context() });
    });
    if !known && !made.is_empty() {
        made.remove(0);
    }
    made
}
