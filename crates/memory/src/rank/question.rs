//! A question as what it asks for: its words, what each is worth, and what stands for each in the memories.

use jiff::Timestamp;

use super::Weights;
use super::corpus::{Corpus, Term, rarity};
use super::table::{self, Row};
use super::words::{Form, Splitter, Token};
use super::{dates, near};

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
    /// What people say instead of it, and how well: it helps to order the memories, and is no evidence.
    pub(crate) instead: Vec<(Term, f32)>,
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
        units.push(Unit { label, weight: 1.0, stands, instead: Vec::new() });
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
    // Of a word that is in no memory, the directory knows nothing.
    let weight = part * exact.map_or_else(|| rarity(token.row), |term| corpus.worth(term));
    let mut stands: Vec<(Term, f32)> = exact.map(|term| (term, 1.0)).into_iter().collect();
    let mut instead = Vec::new();
    // Names and numbers stand for themselves alone.
    if token.form == Form::Word && !token.name {
        // No other word counts for more than it is worth by itself.
        let own = |(term, well): (Term, f32)| (term, well.min(corpus.worth(term) / weight.max(f32::MIN_POSITIVE)));
        let other = |(term, _): &(Term, f32)| Some(*term) != exact;
        stands.extend(alike(token.row, corpus, weights).filter(other).map(own));
        instead.extend(said_instead(&token.text, corpus, weights).filter(other).map(own));
    }
    Unit { label: token.shown.clone(), weight, stands, instead }
}

/// The words that people say instead of a word.
fn said_instead(stem: &str, corpus: &Corpus, weights: &Weights) -> impl Iterator<Item = (Term, f32)> {
    let well = weights.soft;
    near::words(stem).filter_map(move |other| Some((corpus.term(other)?, well)))
}

/// The words of like meaning, by the table.
fn alike(row: Option<Row>, corpus: &Corpus, weights: &Weights) -> impl Iterator<Item = (Term, f32)> {
    let (from, soft) = (weights.alike, weights.soft);
    let all = corpus.directions.iter().zip(&corpus.directed);
    row.map(Row::direction).into_iter().flat_map(move |direction| {
        all.clone().filter_map(move |(other, term)| {
            let alike = table::cosine(&direction, other);
            (alike >= from).then(|| (*term, soft * (alike - from) / (1.0 - from)))
        })
    })
}
