//! How well tokens are estimated, told from a recorded session.

use serde::Serialize;

use crate::id::Id;
use crate::line::{Body, Line};
use crate::log::Log;

/// What was expected of a request, and what the provider counted.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Prediction {
    /// The reply that told.
    pub reply: Id,
    /// The count just before the request.
    pub estimated: u64,
    /// What the provider counted.
    pub reported: u64,
}

impl Prediction {
    /// How far off, as a share of what was counted.
    pub fn error(&self) -> f64 {
        self.estimated.abs_diff(self.reported) as f64 / self.reported.max(1) as f64
    }
}

/// For every reply of a recorded session: the count made just before it, and what the provider then reported. The first
/// is left out where the log does not say what stood before the messages: there is nothing to count it from.
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
