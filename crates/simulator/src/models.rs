//! Public facts about each model: its window, the longest reply, the least that can be cached, and its price.
//!
//! One table, matched by the longest prefix of the model's name, so that dated names (`claude-haiku-4-5-20251001`)
//! need no rows of their own. A name that no row matches but that begins with `claude` gets [`UNLISTED`]; any other
//! name is a model that does not exist.

use crate::request_price::Price;

/// The public facts about one model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Model {
    /// The name, or the beginning of it.
    pub(crate) name: &'static str,
    /// Input and output together may not exceed this.
    pub(crate) window: u64,
    /// The largest `max_tokens` the model accepts.
    pub(crate) longest_reply: u64,
    /// A prefix below this many tokens is silently not cached.
    pub(crate) least_cached: u64,
    /// Dollars per million tokens.
    pub(crate) price: Price,
}

const MILLION: u64 = 1_000_000;

const fn row(name: &'static str, window: u64, longest_reply: u64, least_cached: u64, price: (f64, f64)) -> Model {
    Model { name, window, longest_reply, least_cached, price: Price { input: price.0, output: price.1 } }
}

/// For a name that begins with `claude` and that no row knows.
const UNLISTED: Model = row("claude", 200_000, 64_000, 1_024, (3.0, 15.0));

/// Windows and minimum sizes are those of API.md; prices are the public list prices of November 2026.
const MODELS: &[Model] = &[
    row("claude-fable-5", MILLION, 128_000, 512, (10.0, 50.0)),
    row("claude-mythos-5", MILLION, 128_000, 512, (10.0, 50.0)),
    row("claude-opus-5", MILLION, 128_000, 512, (5.0, 25.0)),
    row("claude-opus-5-5", MILLION, 128_000, 512, (4.0, 20.0)),
    row("claude-opus-4-8", MILLION, 128_000, 1_024, (5.0, 25.0)),
    row("claude-opus-4-7", MILLION, 128_000, 2_048, (5.0, 25.0)),
    row("claude-opus-4-6", MILLION, 128_000, 4_096, (5.0, 25.0)),
    row("claude-opus-4-5", 200_000, 64_000, 4_096, (5.0, 25.0)),
    row("claude-opus-4-1", 200_000, 32_000, 1_024, (15.0, 75.0)),
    row("claude-opus-4", 200_000, 32_000, 1_024, (15.0, 75.0)),
    row("claude-sonnet-5", MILLION, 128_000, 1_024, (3.0, 15.0)),
    row("claude-sonnet-5-5", MILLION, 128_000, 1_024, (2.0, 10.0)),
    row("claude-sonnet-4-6", MILLION, 64_000, 1_024, (3.0, 15.0)),
    row("claude-sonnet-4-5", 200_000, 64_000, 1_024, (3.0, 15.0)),
    row("claude-sonnet-4", 200_000, 64_000, 1_024, (3.0, 15.0)),
    row("claude-haiku-5-5", MILLION, 128_000, 1_024, (0.1, 0.5)),
    row("claude-haiku-4-5", 200_000, 64_000, 4_096, (1.0, 5.0)),
    row("claude-3-5-haiku", 200_000, 8_192, 2_048, (0.8, 4.0)),
];

/// Models from before Opus 4.8 know no system message in the middle of the conversation.
const WITHOUT_SYSTEM_MESSAGES: &str = "claude-opus-4-7 claude-opus-4-6 claude-opus-4-5 claude-opus-4-1 claude-opus-4 claude-sonnet-4-6 \
    claude-sonnet-4-5 claude-sonnet-4 claude-haiku-4-5 claude-3-5-haiku";

impl Model {
    /// True if a message may have the role `system`.
    pub(crate) fn takes_system_messages(&self) -> bool {
        !WITHOUT_SYSTEM_MESSAGES.split(' ').any(|name| name == self.name)
    }
}

/// The facts about `name`, or `None` when the provider would not know it.
pub(crate) fn find(name: &str) -> Option<Model> {
    MODELS
        .iter()
        .filter(|model| name.starts_with(model.name))
        .max_by_key(|model| model.name.len())
        .copied()
        .or_else(|| name.starts_with(UNLISTED.name).then_some(UNLISTED))
}

/// Every listed model, for `GET /v1/models`.
pub(crate) fn all() -> &'static [Model] {
    MODELS
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn the_longest_matching_name_wins() {
        let least = |name| find(name).map(|model| model.least_cached);
        assert_eq!(least("claude-opus-4-7-20260401"), Some(2_048));
        assert_eq!(least("claude-opus-4-20250514"), Some(1_024));
        assert_eq!(least("claude-opus-5"), Some(512));
        assert_eq!(least("claude-something-new"), Some(1_024));
        assert_eq!(least("gpt-4"), None);
    }
}
