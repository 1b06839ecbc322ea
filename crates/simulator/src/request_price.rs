//! Price of a request, in US dollars.
//!
//! Only two numbers are listed per model; cached tokens are priced as a multiple of the input price, as the provider
//! publishes it. [`Options::prices`](crate::Options::prices) overrides the list by model name.

use serde::{Deserialize, Serialize};

use crate::cache::Split;

/// A 5-minute cache write costs this many times the input price.
const WRITE_5M: f64 = 1.25;
/// A 1-hour cache write costs this many times the input price.
const WRITE_1H: f64 = 2.0;
/// A cache read costs this many times the input price.
const READ: f64 = 0.1;

/// Dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// For input that is neither read from nor written to the cache.
    pub input: f64,
    /// For output, thinking included.
    pub output: f64,
}

impl Price {
    /// The price of one request.
    #[expect(clippy::cast_precision_loss, reason = "token counts stay far below 2^52")]
    pub(crate) fn of(self, input: Split, output: u64) -> f64 {
        let weighted = input.uncached as f64
            + input.write_5m as f64 * WRITE_5M
            + input.write_1h as f64 * WRITE_1H
            + input.read as f64 * READ;
        (weighted * self.input + output as f64 * self.output) / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_token_has_its_own_price() {
        let price = Price { input: 10.0, output: 50.0 };
        let million = 1_000_000;
        let cost = |split, output| price.of(split, output);
        assert_eq!(cost(Split { uncached: million, ..Split::default() }, 0), 10.0);
        assert_eq!(cost(Split { write_5m: million, ..Split::default() }, 0), 12.5);
        assert_eq!(cost(Split { write_1h: million, ..Split::default() }, 0), 20.0);
        assert_eq!(cost(Split { read: million, ..Split::default() }, 0), 1.0);
        assert_eq!(cost(Split::default(), million), 50.0);
    }
}
