//! How much of a question each memory has: BM25 over one field, with words of like meaning.

use super::Weights;
use super::corpus::{Corpus, Doc};
use super::question::Unit;

/// What was found of a question.
pub(crate) struct Found {
    /// How much of what is asked for each memory has, as a share of all of it; by the memory's number.
    pub(crate) shares: Vec<f32>,
    /// How well all memories together have each thing that is asked, none counted for more than one.
    pub(crate) together: Vec<f32>,
}

/// Looks for a question in all memories.
pub(crate) fn search(corpus: &Corpus, units: &[Unit], weights: &Weights) -> Found {
    let all: f32 = units.iter().map(|unit| unit.weight).sum();
    let mut together = vec![0.0_f32; units.len()];
    let mut shares = vec![0.0_f32; corpus.docs.len()];
    let mut best = vec![0.0_f32; corpus.docs.len()];
    let mut touched: Vec<u32> = Vec::new();
    for (unit, together) in units.iter().zip(&mut together).filter(|(unit, _)| unit.weight > 0.0) {
        for (term, well) in &unit.stands {
            for (doc, count) in &corpus.postings[*term as usize] {
                let found = well * saturated(*count, &corpus.docs[*doc as usize], corpus, weights);
                let slot = &mut best[*doc as usize];
                if *slot == 0.0 {
                    touched.push(*doc);
                }
                *slot = slot.max(found);
            }
        }
        for doc in touched.drain(..) {
            let found = std::mem::take(&mut best[doc as usize]);
            shares[doc as usize] += unit.weight * found / all;
            *together += found.min(1.0);
        }
    }
    Found { shares, together }
}

/// How well a memory has one thing a question asks for.
pub(crate) fn found(doc: &Doc, unit: &Unit, corpus: &Corpus, weights: &Weights) -> f32 {
    let count = |term: u32| doc.terms.binary_search_by_key(&term, |(term, _)| *term).ok().map(|at| doc.terms[at].1.all);
    let each = unit.stands.iter().filter_map(|(term, well)| Some((count(*term)?, *well)));
    each.map(|(count, well)| well * saturated(count, doc, corpus, weights)).fold(0.0, f32::max)
}

/// What an occurrence is worth: the first the most, and in a long text less. 1 for one in a text of usual length.
fn saturated(count: f32, doc: &Doc, corpus: &Corpus, weights: &Weights) -> f32 {
    let long = 1.0 - weights.length + weights.length * doc.length / corpus.average.max(1.0);
    count * (weights.saturation + 1.0) / (count + weights.saturation * long)
}
