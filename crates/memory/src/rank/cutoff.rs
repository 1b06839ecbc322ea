//! Sure or silent: is the best memory an answer, or only the least bad?
//!
//! What a memory has of a question is evidence as far as it has more than its neighbours: in a directory about databases
//! every memory has "database". No one thing is worth more than a limit, so that it takes two: a question of which a
//! memory has one name and nothing else is about something else. The largest thing it does not have speaks against it.
//! The more text there is, the more the best memory has by chance: what is enough grows with the logarithm of how many
//! words all memories have, up to what two things are worth: a question seldom has three. Three numbers are fitted ([`super::Weights`]): the limit, what a missing thing costs, and how much is enough.

use super::Weights;
use super::question::Unit;

/// How fast doubt turns into confidence around the middle. It moves no decision.
const STEEPNESS: f32 = 8.0;

/// What is usual is told by counting memories, and a few say little: so many are imagined beside them that have nothing of
/// the question.
const IMAGINED: f32 = 10.0;

/// However many memories there are, two things that are asked are enough, if hardly anything of them is usual.
const TWO_THINGS: f32 = 1.95;

/// So many words that count are a short memory.
const SHORT: f32 = 10.0;

/// How much there is to be found by chance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) memories: usize,
    /// The words of all of them that count.
    pub(crate) words: f32,
}

/// What a confidence is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ConfidenceFigures {
    /// How much of the question the memory has beyond what the others have.
    pub evidence: f32,
    /// What the largest thing is worth that it does not have.
    pub missing: f32,
    /// How much text it is the best of, counted in short memories, as a logarithm.
    pub among: f32,
}

impl ConfidenceFigures {
    /// For a memory, from how well it has each thing that is asked, and how well all memories together have it.
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

    /// How sure it is that the memory answers, from 0 to 1.
    pub(crate) fn confidence(self, weights: &Weights) -> f32 {
        let enough = (weights.sure_from * self.among).min(TWO_THINGS * weights.sure_most);
        1.0 / (1.0 + (-STEEPNESS * (self.evidence - weights.sure_missing * self.missing - enough)).exp())
    }

    /// What speaks for the memory, less what is missing of it, held against how many there are.
    pub fn against(self, sure_missing: f32) -> f32 {
        (self.evidence - sure_missing * self.missing) / self.among.max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RECALL-8: the best of many, and of long ones, has more by chance than the best of few, so more is asked of it.
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
