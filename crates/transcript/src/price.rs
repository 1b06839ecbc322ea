//! Prices of tokens.

use serde::{Deserialize, Serialize};

use crate::message::Usage;

/// Dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Price {
    /// Uncached input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Written to the cache for five minutes.
    pub cache_write_5m: f64,
    /// Written to the cache for an hour.
    pub cache_write_1h: f64,
    /// Read from the cache.
    pub cache_read: f64,
}

/// Dollars for a thousand searches that the provider makes, with every model.
const WEB_SEARCHES: f64 = 10.0;

impl Price {
    /// A price from the two published figures, with the usual factors for the cache.
    pub const fn new(input: f64, output: f64) -> Self {
        Self { input, output, cache_write_5m: input * 1.25, cache_write_1h: input * 2.0, cache_read: input * 0.1 }
    }

    /// Cost of a request in dollars.
    pub fn cost(&self, usage: &Usage) -> f64 {
        let hour = usage.cache_creation.ephemeral_1h_input_tokens.min(usage.cache_creation_input_tokens);
        let five_minutes = usage.cache_creation_input_tokens - hour;
        let sum = usage.input_tokens as f64 * self.input
            + usage.output_tokens as f64 * self.output
            + five_minutes as f64 * self.cache_write_5m
            + hour as f64 * self.cache_write_1h
            + usage.cache_read_input_tokens as f64 * self.cache_read;
        sum / 1_000_000.0 + usage.web_searches as f64 * WEB_SEARCHES / 1_000.0
    }
}

/// Prices by a part of the model's name; the first match counts, so more specific names come first.
const TABLE: [(&str, Price); 12] = [
    ("opus-4-5", Price::new(5.0, 25.0)),
    ("opus-4-6", Price::new(5.0, 25.0)),
    ("opus-4-7", Price::new(5.0, 25.0)),
    ("opus-4-8", Price::new(5.0, 25.0)),
    ("opus-5", Price::new(5.0, 25.0)),
    ("opus", Price::new(15.0, 75.0)),
    ("sonnet", Price::new(3.0, 15.0)),
    ("haiku-4-5", Price::new(1.0, 5.0)),
    ("haiku-3-5", Price::new(0.8, 4.0)),
    ("3-5-haiku", Price::new(0.8, 4.0)),
    ("haiku", Price::new(1.0, 5.0)),
    ("fable", Price::new(10.0, 50.0)),
];

/// Prices of models: from settings, else from the table. A model in neither has no known cost.
#[derive(Debug, Clone, Default)]
pub struct Prices {
    overrides: Vec<(String, Price)>,
}

impl Prices {
    /// The table, with the prices from settings ahead of it.
    pub fn with(overrides: Vec<(String, Price)>) -> Self {
        Self { overrides }
    }

    /// The price of a model.
    pub fn of(&self, model: &str) -> Option<Price> {
        let own = self.overrides.iter().find(|(name, _)| name == model).map(|(_, price)| *price);
        own.or_else(|| TABLE.iter().find(|(part, _)| model.contains(part)).map(|(_, price)| *price))
    }
}

/// An amount of money, in millionths of a dollar, so that amounts can be compared exactly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Dollars(u64);

impl Dollars {
    /// An amount, if it is above zero.
    pub fn new(dollars: f64) -> Option<Self> {
        Some(Self::rounded(dollars)).filter(|amount| dollars.is_finite() && amount.0 > 0)
    }

    /// A cost, rounded to a millionth; a negative one is zero.
    pub fn rounded(dollars: f64) -> Self {
        Self((dollars * 1e6).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::CacheCreation;

    /// TOK-7: a request costs its input, cache writes by time to live, cache reads and output; settings override the
    /// table; an unknown model has no price rather than a wrong one.
    #[test]
    fn a_request_costs_what_its_parts_cost() {
        let usage = Usage {
            input_tokens: 1_000_000,
            cache_read_input_tokens: 1_000_000,
            cache_creation_input_tokens: 2_000_000,
            cache_creation: CacheCreation {
                ephemeral_5m_input_tokens: 1_000_000,
                ephemeral_1h_input_tokens: 1_000_000,
            },
            output_tokens: 1_000_000,
            web_searches: 100,
        };
        let prices = Prices::with(vec![("mine".into(), Price::new(1.0, 2.0))]);
        let cost = |model: &str| prices.of(model).map(|price| price.cost(&usage));
        assert_eq!(cost("claude-sonnet-4-5"), Some(3.0 + 0.3 + 3.75 + 6.0 + 15.0 + 1.0));
        assert_eq!(cost("mine"), Some(1.0 + 0.1 + 1.25 + 2.0 + 2.0 + 1.0));
        assert_eq!(cost("nobody-knows"), None);
    }
}
