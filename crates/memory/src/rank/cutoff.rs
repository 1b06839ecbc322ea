//! Sure or silent: is the best memory an answer, or only the least bad?
//!
//! A match is evidence to the extent that a memory has more of it than its neighbours: in a directory about databases
//! every memory has "database". No single thing counts for more than a limit, so that it takes two: if a memory has one
//! name of a question and nothing else, the question is about something else. The largest missing thing counts against
//! it. The more text there is, the more the best memory has by chance: the evidence required grows with the logarithm
//! of the total word count, up to the value of two things, since a question seldom has three. Three numbers are fitted
//! ([`super::Weights`]): the limit, the cost of a missing thing, and the evidence required.

use super::Weights;
use super::question::Unit;

/// Steepness of the logistic around its midpoint. It changes no decision.
const STEEPNESS: f32 = 8.0;

/// A usual share is found by counting memories, and a few say little: this many imagined memories with nothing of the
/// question are added.
const IMAGINED: f32 = 10.0;

/// However many memories there are, two asked things are enough, if hardly any memory has them.
const TWO_THINGS: f32 = 1.95;

/// Number of counted words in a short memory.
const SHORT: f32 = 10.0;

/// Amount of text in which something can be found by chance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) memories: usize,
    /// Counted words of all memories.
    pub(crate) words: f32,
}

/// Figures behind a confidence.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ConfidenceFigures {
    /// Amount of the question that the memory has beyond what the others have.
    pub evidence: f32,
    /// Weight of the largest thing it does not have.
    pub missing: f32,
    /// Amount of text it is the best of: logarithm of the number of short memories.
    pub among: f32,
}

impl ConfidenceFigures {
    /// Computes the figures of a memory from its match of each asked thing and the matches of all memories together.
    pub(crate) fn of(units: &[Unit], found: &[f32], together: &[f32], size: Size, weights: &Weights) -> Self {
        let memories = size.memories as f32;
        let mut figures = Self { among: (size.words / SHORT + IMAGINED).ln(), ..Self::default() };
        for ((unit, found), together) in units.iter().zip(found).zip(together) {
            let found = found.min(1.0);
            let usual = (together - found).max(0.0) / (memories - 1.0 + IMAGINED);
            figures.evidence += (unit.weight * (found - usual).max(0.0)).min(weights.sure_most);
            figures.missing = figures.missing.max(unit.weight * (1.0 - found));
        }
        // Where only one thing is asked for, no second can be found.
        if units.len() == 1 {
            figures.evidence *= 2.0;
        }
        figures
    }

    /// Confidence that the memory answers, from 0 to 1.
    pub(crate) fn confidence(self, weights: &Weights) -> f32 {
        let enough = (weights.sure_from * self.among).min(TWO_THINGS * weights.sure_most);
        1.0 / (1.0 + (-STEEPNESS * (self.evidence - weights.sure_missing * self.missing - enough)).exp())
    }

    /// Evidence for the memory, less the cost of the missing thing, relative to the amount of text.
    pub fn against(self, sure_missing: f32) -> f32 {
        (self.evidence - sure_missing * self.missing) / self.among.max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RECALL-8: the best of many, and of long ones, has more by chance than the best of few, so it needs more
    /// evidence.
    #[test]
    fn the_same_evidence_says_less_among_more() {
        let unit = || Unit { label: String::new(), weight: 0.8, stands: Vec::new(), instead: Vec::new() };
        let sure = |memories: usize, words: f32| {
            let size = Size { memories, words: memories as f32 * words };
            let figures = ConfidenceFigures::of(&[unit(), unit()], &[0.9, 0.8], &[0.9, 0.8], size, &Weights::FITTED);
            figures.confidence(&Weights::FITTED)
        };
        assert!(sure(1, 10.0) > sure(40, 10.0) && sure(40, 10.0) > 0.5);
        assert!(sure(40, 10.0) > sure(40, 80.0) && sure(40, 80.0) > sure(10_000, 10.0) && sure(10_000, 10.0) < 0.5);
    }
}
