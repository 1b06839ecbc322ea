//! Faults: what a provider does on a bad day.
//!
//! A fault is chosen like a rule, by what is visible, or by the number of the request. It either refuses the request
//! (`status`, `overflow`) or lets it be answered badly: late, slowly, in part, or never to the end.

use serde::Deserialize;

use crate::Error;
use crate::refusal::{self, Refusal};
use crate::request_view::RequestView;
use crate::when::{Conditions, When};

/// One thing that goes wrong.
///
/// With both `status` and `cut_after`, the stream ends with an `error` event of that status after so many events. In an
/// unstreamed reply, `cut_after` and `stall` act before the first byte.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fault {
    /// Conditions, as for rules.
    pub when: When,
    /// Only the request with this number; the first is 1.
    pub request: Option<u64>,
    /// At most so often; once unless given.
    pub times: Option<u64>,
    /// Answer with this HTTP status.
    pub status: Option<u16>,
    /// The error's message, instead of the usual one.
    pub message: Option<String>,
    /// Seconds in the `retry-after` header.
    pub retry_after: Option<u64>,
    /// Drop the connection after so many events.
    pub cut_after: Option<usize>,
    /// Never send another byte after `cut_after` events (none unless given), and keep the connection.
    pub stall: bool,
    /// Wait before answering.
    pub delay_ms: u64,
    /// Wait before every event.
    pub slow_ms_per_event: u64,
    /// Refuse the prompt as too long, with these numbers.
    pub overflow: Option<Overflow>,
}

/// The numbers in `prompt is too long: N tokens > M maximum`; what is not given is the real number.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Overflow {
    /// N, the size of the prompt.
    pub tokens: Option<u64>,
    /// M, the window.
    pub maximum: Option<u64>,
}

impl Fault {
    /// A fault that refuses with a status, once.
    pub fn status(status: u16) -> Self {
        Self { status: Some(status), ..Self::default() }
    }

    /// A short name for reports.
    pub(crate) fn label(&self) -> String {
        match self {
            Self { status: Some(status), cut_after: Some(events), .. } => {
                format!("error {status} after {events} events")
            }
            Self { status: Some(status), .. } => format!("status {status}"),
            Self { overflow: Some(_), .. } => "overflow".to_owned(),
            Self { stall: true, .. } => "stall".to_owned(),
            Self { cut_after: Some(events), .. } => format!("cut after {events} events"),
            _ => "slow".to_owned(),
        }
    }

    /// The refusal that this fault is, if it is one.
    pub(crate) fn refusal(&self, tokens: u64, window: u64) -> Option<Refusal> {
        if let Some(overflow) = self.overflow {
            let (tokens, window) = (overflow.tokens.unwrap_or(tokens), overflow.maximum.unwrap_or(window));
            return Some(too_long(tokens, window));
        }
        match (self.status, self.cut_after) {
            (Some(_), None) => self.error(),
            _ => None,
        }
    }

    /// The error named by `status`.
    pub(crate) fn error(&self) -> Option<Refusal> {
        let status = self.status?;
        let message = self.message.clone().unwrap_or_else(|| refusal::usual_message(status).to_owned());
        Some(Refusal { retry_after: self.retry_after, ..Refusal::new(status, message) })
    }
}

/// The provider's words for a prompt beyond the window.
pub(crate) fn too_long(tokens: u64, window: u64) -> Refusal {
    Refusal::invalid(format!("prompt is too long: {tokens} tokens > {window} maximum"))
}

/// Faults waiting for their moment, in order.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    waiting: Vec<(Conditions, Fault, u64)>,
}

impl Faults {
    pub(crate) fn push(&mut self, fault: Fault) -> Result<(), Error> {
        let conditions = Conditions::new(&fault.when, &fault.label())?;
        let left = fault.times.unwrap_or(1);
        self.waiting.push((conditions, fault, left));
        Ok(())
    }

    /// The fault that strikes request `number`, used up by one.
    pub(crate) fn strike(&mut self, number: u64, view: &RequestView) -> Option<Fault> {
        let (_, fault, left) = self.waiting.iter_mut().find(|(conditions, fault, left)| {
            *left > 0 && fault.request.is_none_or(|only| only == number) && conditions.hold(view).is_some()
        })?;
        *left -= 1;
        Some(fault.clone())
    }
}
