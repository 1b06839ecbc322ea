//! Match of a question with each memory: BM25 over one field, with words of similar meaning; plus the share of the
//! memory's title that the question has.

use super::Weights;
use super::corpus::{Corpus, Doc, Term};
use super::question::Unit;

/// Result of searching for a question.
pub(crate) struct QuestionMatch {
    /// Share of the question that each memory has, by the memory's number.
    pub(crate) shares: Vec<f32>,
    /// The same with words said instead, and with the bonus for its title: the sort key of the memories.
    pub(crate) likely: Vec<f32>,
    /// For memories that stand for older ones: the older ones that have something of the question, each with its score,
    /// best first.
    pub(crate) of_older: Vec<(usize, usize, f32)>,
    /// Match of all memories together for each asked thing; each memory counts at most 1.
    pub(crate) together: Vec<f32>,
}

/// Searches all memories for a question.
pub(crate) fn search(corpus: &Corpus, units: &[Unit], weights: &Weights) -> QuestionMatch {
    let all: f32 = units.iter().map(|unit| unit.weight).sum();
    let none = || vec![0.0_f32; corpus.docs.len()];
    let mut found =
        QuestionMatch { shares: none(), likely: none(), of_older: Vec::new(), together: vec![0.0; units.len()] };
    let mut best = BestMatches { found: none(), touched: Vec::new() };
    let mut asked = vec![0.0_f32; corpus.postings.len()];
    for (unit, together) in units.iter().zip(&mut found.together).filter(|(unit, _)| unit.weight > 0.0) {
        best.raise(&unit.stands, corpus, weights);
        for doc in &best.touched {
            let has = best.found[*doc as usize];
            found.shares[*doc as usize] += unit.weight * has / all;
            *together += has.min(1.0);
        }
        best.raise(&unit.instead, corpus, weights);
        for doc in best.touched.drain(..) {
            found.likely[doc as usize] += unit.weight * std::mem::take(&mut best.found[doc as usize]) / all;
        }
        for (term, well) in &unit.stands {
            asked[*term as usize] = asked[*term as usize].max(*well);
        }
    }
    for (likely, doc) in found.likely.iter_mut().zip(&corpus.docs).filter(|(likely, _)| **likely > 0.0) {
        *likely += weights.title * titled(doc, &asked, corpus);
    }
    found.fold(corpus);
    found
}

impl QuestionMatch {
    /// Adds the matches of older memories to the newest of their form, which stands for them.
    fn fold(&mut self, corpus: &Corpus) {
        for (newest, older) in &corpus.older {
            for doc in older {
                let (likely, share) = (std::mem::take(&mut self.likely[*doc]), std::mem::take(&mut self.shares[*doc]));
                if likely > 0.0 {
                    self.of_older.push((*newest, *doc, likely));
                }
                self.likely[*newest] = self.likely[*newest].max(likely);
                self.shares[*newest] = self.shares[*newest].max(share);
            }
        }
        self.of_older.sort_by(|one, other| other.2.total_cmp(&one.2).then(one.1.cmp(&other.1)));
    }
}

/// Share of a memory's title that is asked for.
fn titled(doc: &Doc, asked: &[f32], corpus: &Corpus) -> f32 {
    let (mut has, mut all) = (0.0, 0.0);
    for term in &doc.title {
        all += corpus.worth(*term);
        has += corpus.worth(*term) * asked[*term as usize];
    }
    has / all.max(f32::MIN_POSITIVE)
}

/// Match of each memory for one asked thing, by the best of its equivalents.
struct BestMatches {
    found: Vec<f32>,
    touched: Vec<u32>,
}

impl BestMatches {
    fn raise(&mut self, stands: &[(Term, f32)], corpus: &Corpus, weights: &Weights) {
        for (term, well) in stands {
            for (doc, count) in &corpus.postings[*term as usize] {
                let found = well * saturated(*count, &corpus.docs[*doc as usize], corpus, weights);
                let slot = &mut self.found[*doc as usize];
                if *slot == 0.0 {
                    self.touched.push(*doc);
                }
                *slot = slot.max(found);
            }
        }
    }
}

/// Match of a memory for one asked thing, by the word itself or one of similar meaning.
pub(crate) fn found(doc: &Doc, unit: &Unit, corpus: &Corpus, weights: &Weights) -> f32 {
    let count = |term: u32| doc.terms.binary_search_by_key(&term, |(term, _)| *term).ok().map(|at| doc.terms[at].1);
    let each = unit.stands.iter().filter_map(|(term, well)| Some((count(*term)?, *well)));
    each.map(|(count, well)| well * saturated(count, doc, corpus, weights)).fold(0.0, f32::max)
}

/// Value of the occurrences of a word: the first counts most, and less in a long text. 1 for one in a text of average
/// length.
fn saturated(count: f32, doc: &Doc, corpus: &Corpus, weights: &Weights) -> f32 {
    let long = 1.0 - weights.length + weights.length * doc.length / corpus.average.max(1.0);
    count * (weights.saturation + 1.0) / (count + weights.saturation * long)
}
