//! The weight of what was said, in tokens.
//!
//! The record says how large each request was. So what came between two requests weighs as much as the second was larger
//! than the first, and its blocks share that by their estimates. Where a program compacted or cleared in between, the
//! record says nothing about it, and the mean of the session counts.

use transcript::size::Size;
use transcript::tokens::Tally;

/// A stretch that is off the estimate by more than this was changed by something else than what was said.
const LIKELY: std::ops::Range<f64> = 0.3..3.0;
/// A request is as large as expected within these shares.
const NEAR: std::ops::Range<f64> = 0.8..1.25;
/// A stretch of fewer tokens says nothing.
const LEAST_TOKENS: u64 = 50;

/// The weight of a conversation's stretches: stretch `n` is what was said between request `n - 1` and request `n`.
#[derive(Debug, Clone)]
pub(super) struct Weights {
    /// The weight of each stretch, as a multiple of its estimate.
    factors: Vec<f64>,
    /// The mean of those that are known.
    mean: f64,
    /// Tokens before the messages.
    prologue: u64,
    tally: Tally,
}

/// One stretch: how much was said, and the size of the request behind it, where the record says it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stretch {
    pub(super) size: Size,
    pub(super) request_tokens: Option<u64>,
}

impl Weights {
    /// The weights that a record tells; `prologue` is what the estimate says of the prologue.
    pub(super) fn of(stretches: &[Stretch], prologue: u64) -> Self {
        let tally = Tally::default();
        let estimates: Vec<u64> = stretches.iter().map(|stretch| tally.estimate(stretch.size)).collect();
        let (mut predicted, mut actual) = (0.0, 0.0);
        let mut known: Vec<Option<f64>> = vec![None; stretches.len()];
        for (at, pair) in stretches.windows(2).enumerate() {
            let (Some(before), Some(after)) = (pair[0].request_tokens, pair[1].request_tokens) else { continue };
            let estimate = estimates[at + 1];
            let factor = (after as f64 - before as f64) / estimate.max(1) as f64;
            if estimate >= LEAST_TOKENS && LIKELY.contains(&factor) {
                known[at + 1] = Some(factor);
                predicted += estimate as f64;
                actual += after as f64 - before as f64;
            }
        }
        let mean = if predicted > 0.0 { actual / predicted } else { 1.0 };
        let first = estimates.first().copied().unwrap_or_default();
        let reported = stretches.first().and_then(|stretch| stretch.request_tokens).filter(|tokens| *tokens > 0);
        // What the first request had beyond what was said.
        let said = (first as f64 * mean) as u64;
        let prologue = reported.map_or(prologue, |tokens| tokens.saturating_sub(said));
        let factors = known.into_iter().map(|factor| factor.unwrap_or(mean)).collect();
        Self { factors, mean, prologue, tally }
    }

    /// Tokens before the messages.
    pub(super) fn prologue(&self) -> u64 {
        self.prologue
    }

    /// True if the last request was about as large as all stretches together: then nothing had been taken out of it.
    pub(super) fn fit(&self, stretches: &[Stretch]) -> bool {
        let Some(last) = stretches.iter().rposition(|stretch| stretch.request_tokens.is_some()) else { return true };
        let said: u64 =
            stretches.iter().take(last + 1).enumerate().map(|(at, one)| self.tokens(one.size, Some(at))).sum();
        let reported = stretches[last].request_tokens.unwrap_or_default() as f64;
        NEAR.contains(&((self.prologue + said) as f64 / reported))
    }

    /// Nothing stands before the messages.
    pub(super) fn leave_out_prologue(&mut self) {
        self.prologue = 0;
    }

    /// The weight of something that was said in a stretch, in tokens; of something that was not, where none is named.
    pub(super) fn tokens(&self, size: Size, stretch: Option<usize>) -> u64 {
        let factor = stretch.and_then(|at| self.factors.get(at)).unwrap_or(&self.mean);
        (self.tally.estimate(size) as f64 * factor).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use transcript::Block;

    /// PRICE-1: what was said between two requests weighs as much as the second was larger than the first; a request that
    /// shrank says nothing, and the mean counts.
    #[test]
    fn a_stretch_weighs_what_the_record_says() {
        let size = Block::text("x".repeat(3_300)).size();
        let stretch = |tokens: u64| Stretch { size, request_tokens: Some(tokens) };
        let weights = Weights::of(&[stretch(21_200), stretch(22_700), stretch(23_600), stretch(4_000)], 0);
        assert_eq!(weights.tokens(size, Some(1)), 1_500);
        assert_eq!(weights.tokens(size, Some(2)), 900);
        assert_eq!(weights.tokens(size, Some(3)), 1_200, "the mean");
        assert_eq!(weights.prologue(), 20_000);
        assert!(!weights.fit(&[stretch(21_200), stretch(22_700), stretch(23_600), stretch(4_000)]), "it had shrunk");
        assert!(weights.fit(&[stretch(21_200), stretch(22_700), stretch(23_600)]));
        let unknown = Weights::of(&[Stretch { size, request_tokens: None }], 700);
        assert_eq!((unknown.prologue(), unknown.tokens(size, Some(0))), (700, 1_000));
    }
}
