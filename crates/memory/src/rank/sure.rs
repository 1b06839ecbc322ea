//! Sure or silent: is the best memory an answer, or only the least bad?
//!
//! Scores of different questions cannot be compared, so two figures are taken that can. How far a memory stands above what
//! chance brings: some words of one memory, asked as a question, have a best among the others too, and it is no answer.
//! And the largest part of the question that the memory does not touch: a question of which the heart is missing is about
//! something else. A logistic over the two gives the confidence; its three numbers are fitted ([`super::Weights`]).

use super::corpus::{Corpus, Term};
use super::question::{Unit, of_term};
use super::{Weights, score};

/// How many memories are asked about the others.
const SAMPLES: usize = 24;

/// With how many words each.
const LENGTHS: [usize; 3] = [2, 4, 8];

/// What chance brings in one directory, by the number of words asked.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Chance([f32; LENGTHS.len()]);

impl Chance {
    /// Asks some memories' words of the others.
    pub(crate) fn of(corpus: &Corpus, weights: &Weights) -> Self {
        let count = corpus.docs.len();
        let mut sums = [0.0; LENGTHS.len()];
        let samples: Vec<usize> = (0..SAMPLES.min(count)).map(|at| at * count / SAMPLES.min(count)).collect();
        for &doc in &samples {
            let mut terms: Vec<Term> = corpus.docs[doc].terms.iter().map(|(term, _)| *term).collect();
            // An order that has nothing to do with the text, and is the same each time.
            terms.sort_by_key(|term| (u64::from(*term) + doc as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let longest = terms.len().min(LENGTHS[LENGTHS.len() - 1]);
            let units: Vec<Unit> = terms[..longest].iter().map(|term| of_term(*term, corpus, weights)).collect();
            for (sum, length) in sums.iter_mut().zip(LENGTHS) {
                let units = &units[..length.min(longest)];
                let shares = score::shares(corpus, units, weights);
                let others = (0..count).filter(|other| *other != doc);
                let best = others.max_by(|one, other| shares[*one].total_cmp(&shares[*other]));
                *sum += best.map_or(0.0, |best| score::capped(&corpus.docs[best], units, corpus, weights));
            }
        }
        Self(sums.map(|sum| sum / samples.len().max(1) as f32))
    }

    /// What chance brings for a question of so many words.
    fn at(&self, words: usize) -> f32 {
        let place = (words.max(1) as f32 / LENGTHS[0] as f32).log2().clamp(0.0, (LENGTHS.len() - 1) as f32);
        let low = (place as usize).min(LENGTHS.len() - 2);
        let part = place - low as f32;
        self.0[low] * (1.0 - part) + self.0[low + 1] * part
    }

    /// How sure it is that a memory with this share answers, from what it does not touch.
    pub(crate) fn confidence(&self, figures: Figures, weights: &Weights) -> f32 {
        let sum = weights.sure_base + weights.sure_above * figures.above - weights.sure_missing * figures.missing;
        1.0 / (1.0 + (-sum).exp())
    }

    /// The two figures for a memory, from how well it has each thing that is asked.
    pub(crate) fn figures(&self, units: &[Unit], found: &[f32]) -> Figures {
        let all: f32 = units.iter().map(|unit| unit.weight).sum::<f32>().max(f32::MIN_POSITIVE);
        let has = units.iter().zip(found).map(|(unit, found)| unit.weight * found.min(1.0) / all);
        let lacks = units.iter().zip(found).map(|(unit, found)| unit.weight * (1.0 - found.min(1.0)) / all);
        Figures { above: has.sum::<f32>() - self.at(units.len()), missing: lacks.fold(0.0, f32::max) }
    }
}

/// What a confidence is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Figures {
    /// How far the memory's share of the question stands above what chance brings.
    pub above: f32,
    /// The largest part of the question it does not touch, as a share of the whole.
    pub missing: f32,
}
