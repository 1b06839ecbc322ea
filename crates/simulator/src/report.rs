//! Report of all requests: tokens, price, and breaks of a prompt with the one before it (see [`trail`](crate::trail)).

use serde::{Deserialize, Serialize};

use crate::cache::Split;

/// Requests listed; later ones only enter the totals.
const MOST_LINES: usize = 20_000;

/// Everything the simulator saw.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Requests in the order of their arrival.
    pub requests: Vec<RequestLine>,
    /// Sums over all of them.
    pub totals: Totals,
}

/// One request to `/v1/messages`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestLine {
    /// Its number; the first is 1.
    pub index: u64,
    /// The model it named.
    pub model: String,
    /// The betas it asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub betas: Vec<String>,
    /// The kind of agent, when `metadata.user_id` is a JSON object with a field `agent`.
    pub agent: Option<String>,
    /// Billing of its input; zero if it was refused.
    #[serde(flatten)]
    pub input: Split,
    /// Output tokens.
    pub output: u64,
    /// US dollars.
    pub price: f64,
    /// HTTP status.
    pub status: u16,
    /// The error's message.
    pub error: Option<String>,
    /// The rule that replied.
    pub rule: Option<String>,
    /// The fault that struck.
    pub fault: Option<String>,
    /// The break with an earlier request, if there was one.
    pub broke: Option<PrefixBreak>,
}

/// The first block that differs from the request before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PrefixBreak {
    /// `tools[i]`, `system[i]`, `messages[i].content[j]` or `parameters`.
    pub place: String,
    /// The beginning of what stood there before.
    pub before: String,
    /// The beginning of what stands there now.
    pub after: String,
    /// Tokens from there to the end that an unbroken prefix would have kept.
    pub tokens: u64,
}

/// Sums over all requests.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// All requests, refused ones included.
    pub requests: u64,
    /// Refused ones.
    pub refused: u64,
    /// Sum of the inputs.
    #[serde(flatten)]
    pub input: Split,
    /// Sum of the outputs.
    pub output: u64,
    /// US dollars.
    pub price: f64,
    /// Requests that broke with an earlier one.
    pub breaks: u64,
    /// The largest context of one request.
    pub largest_context: u64,
    /// Part of all input that was read from the cache.
    pub hit_ratio: f64,
    /// Cache writes divided by the largest context: 1 when everything was written once.
    pub rewrite_factor: f64,
}

impl Report {
    /// Adds a line.
    pub(crate) fn add(&mut self, line: RequestLine) {
        let totals = &mut self.totals;
        totals.requests += 1;
        totals.refused += u64::from(line.status != 200);
        totals.input.uncached += line.input.uncached;
        totals.input.write_5m += line.input.write_5m;
        totals.input.write_1h += line.input.write_1h;
        totals.input.read += line.input.read;
        totals.output += line.output;
        totals.price += line.price;
        totals.breaks += u64::from(line.broke.is_some());
        totals.largest_context = totals.largest_context.max(line.input.total());
        totals.hit_ratio = ratio(totals.input.read, totals.input.total());
        totals.rewrite_factor = ratio(totals.input.written(), totals.largest_context);
        if self.requests.len() < MOST_LINES {
            self.requests.push(line);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "token counts stay far below 2^52")]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
