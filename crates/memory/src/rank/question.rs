//! A question as what it asks for: its words, what each is worth, and what stands for each in the memories.

use jiff::Timestamp;

use super::Weights;
use super::corpus::{Corpus, Term};
use super::dates;
use super::table::{self, Row};
use super::words::{Form, Splitter, Token};

/// The natural logarithm of how many words a language has, about: what is not in the table is as rare as the last of them.
const RAREST: f32 = 11.92;

/// How many words of a question are looked at.
const MOST_WORDS: usize = 40;

/// One thing a question asks for.
#[derive(Debug, Clone)]
pub(crate) struct Unit {
    /// The word, as it is shown.
    pub(crate) label: String,
    /// What it is worth.
    pub(crate) weight: f32,
    /// What stands for it in the memories, and how well.
    pub(crate) stands: Vec<(Term, f32)>,
}

/// What a text asks for.
pub(crate) fn units(text: &str, now: Timestamp, corpus: &Corpus, splitter: &Splitter, weights: &Weights) -> Vec<Unit> {
    let mut mentions = dates::mentions(text);
    mentions.extend(dates::relative(text, now));
    let mut rest = text.to_owned();
    let mut units = Vec::new();
    for mention in mentions {
        let stands: Vec<(Term, f32)> =
            mention.terms.iter().filter_map(|(term, well)| Some((corpus.term(term)?, *well))).collect();
        let label = text.get(mention.range.clone()).unwrap_or_default().to_owned();
        units.push(Unit { label, weight: 1.0, stands });
        // What was a date is no word any more.
        if let (true, Some(said)) = (rest.is_char_boundary(mention.range.start), rest.get(mention.range.clone())) {
            rest = rest.replacen(said, &" ".repeat(said.len()), 1);
        }
    }
    let mut tokens: Vec<Token> = Vec::new();
    for token in splitter.split(&rest).into_iter().filter(|token| !token.stop) {
        if token.form == Form::Compound && corpus.term(&token.text).is_none() {
            continue;
        }
        if tokens.len() < MOST_WORDS && !tokens.iter().any(|known| known.text == token.text) {
            tokens.push(token);
        }
    }
    units.extend(tokens.iter().map(|token| unit(token, corpus, weights)));
    units
}

fn unit(token: &Token, corpus: &Corpus, weights: &Weights) -> Unit {
    let exact = corpus.term(&token.text);
    // Of the pairs of a run about half reach over the end of a word and are none: one that is nowhere says half as much.
    let part = if token.form == Form::Pair && exact.is_none() { token.part / 2.0 } else { token.part };
    let weight = part * worth(exact, token.row, corpus, weights);
    // Names, numbers and words without a meaning stand for themselves alone.
    let row = token.row.filter(|_| token.form == Form::Word && !token.name);
    Unit { label: token.shown.clone(), weight, stands: stands(exact, row, weight, corpus, weights) }
}

/// What stands for a word: itself, and words of like meaning, none for more than it is worth by itself.
fn stands(exact: Option<Term>, row: Option<Row>, weight: f32, corpus: &Corpus, weights: &Weights) -> Vec<(Term, f32)> {
    let mut stands: Vec<(Term, f32)> = exact.map(|term| (term, 1.0)).into_iter().collect();
    let Some(direction) = row.map(Row::direction) else { return stands };
    for (other, term) in corpus.directions.iter().zip(&corpus.directed) {
        let alike = table::cosine(&direction, other);
        if alike >= weights.alike && Some(*term) != exact {
            let well = weights.soft * (alike - weights.alike) / (1.0 - weights.alike);
            let own = worth(Some(*term), corpus.rows[*term as usize], corpus, weights);
            stands.push((*term, well.min(own / weight.max(f32::MIN_POSITIVE))));
        }
    }
    stands
}

/// What a word is worth: how rare it is in the directory and how rare in the language. The second keeps small
/// directories steady, where every word is rare.
pub(crate) fn worth(term: Option<Term>, row: Option<Row>, corpus: &Corpus, weights: &Weights) -> f32 {
    let (all, has) = (corpus.docs.len() as f32, term.map_or(0, |term| corpus.frequency(term)) as f32);
    let here = (1.0 + (all - has + 0.5) / (has + 0.5)).ln() / (all + 1.0).ln().max(1.0);
    let in_language = row.map_or(1.0, |row| (row.place() as f32).ln() / RAREST);
    if has == 0.0 {
        return in_language; // the directory knows nothing of it
    }
    (1.0 - weights.language) * here.min(1.0) + weights.language * in_language
}
