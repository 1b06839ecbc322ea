//! A question as a list of asked things: its words, the weight of each, and its equivalents in the memories.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;

use super::Weights;
use super::corpus::{Corpus, Term, rarity};
use super::table::{self, TableWord};
use super::words::{Form, Splitter, TextWord};
use super::{dates, near};

/// Number of words of a question that are used, from its beginning and, of a longer one, from its end: the actual
/// question often follows pasted text.
const FIRST_WORDS: usize = 40;
const LAST_WORDS: usize = 20;

/// Bytes of a long message that are read for them.
const BEGINNING: usize = 8_000;
const END: usize = 4_000;

/// One thing a question asks for.
#[derive(Debug, Clone)]
pub(crate) struct Unit {
    /// The word, for display.
    pub(crate) label: String,
    /// Its weight.
    pub(crate) weight: f32,
    /// Terms that stand for it in the memories, each with the quality of the match.
    pub(crate) stands: Vec<(Term, f32)>,
    /// Terms that people say instead of it, each with the quality of the match: they affect the order and are no
    /// evidence.
    pub(crate) instead: Vec<(Term, f32)>,
}

/// The things a text asks for.
pub(crate) fn units(text: &str, now: Timestamp, corpus: &Corpus, splitter: &Splitter, weights: &Weights) -> Vec<Unit> {
    let shortened = shortened(text);
    let text = shortened.as_ref();
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
    let mut tokens: Vec<TextWord> = Vec::new();
    let mut known = HashSet::new();
    splitter.each(&rest, |token| {
        // A compound's parts are words of the question.
        if !token.stop && token.form != Form::Compound && known.insert(Arc::clone(&token.text)) {
            tokens.push(token.clone());
        }
    });
    if tokens.len() > FIRST_WORDS + LAST_WORDS {
        tokens.drain(FIRST_WORDS..tokens.len() - LAST_WORDS);
    }
    units.extend(tokens.iter().map(|token| unit(token, corpus, weights)));
    units
}

/// The beginning and the end of a long message.
fn shortened(text: &str) -> Cow<'_, str> {
    if text.len() <= BEGINNING + END {
        return Cow::Borrowed(text);
    }
    let (beginning, end) = (text.floor_char_boundary(BEGINNING), text.ceil_char_boundary(text.len() - END));
    Cow::Owned(format!("{}\n{}", &text[..beginning], &text[end..]))
}

fn unit(token: &TextWord, corpus: &Corpus, weights: &Weights) -> Unit {
    let exact = corpus.term(&token.text);
    // Of the pairs of a run about half reach over the end of a word and are none: one that is nowhere says half as much.
    let part = if token.form == Form::Pair && exact.is_none() { token.part / 2.0 } else { token.part };
    // Of a word that is in no memory, the directory knows nothing.
    let weight = part * exact.map_or_else(|| rarity(token.row), |term| corpus.worth(term));
    let mut stands: Vec<(Term, f32)> = exact.map(|term| (term, 1.0)).into_iter().collect();
    let mut instead = Vec::new();
    // Numbers stand for themselves alone.
    if token.form == Form::Word {
        let other = |(term, _): &(Term, f32)| Some(*term) != exact;
        stands.extend(alike(token.row, corpus, weights).filter(other));
        instead.extend(alternatives(&token.text, corpus, weights).filter(other));
    }
    Unit { label: token.shown.clone(), weight, stands, instead }
}

/// The words that people say instead of a word.
fn alternatives(stem: &str, corpus: &Corpus, weights: &Weights) -> impl Iterator<Item = (Term, f32)> {
    let well = weights.soft;
    near::words(stem).filter_map(move |other| Some((corpus.term(other)?, well)))
}

/// The words of similar meaning, by the table.
fn alike(row: Option<TableWord>, corpus: &Corpus, weights: &Weights) -> impl Iterator<Item = (Term, f32)> {
    let (from, soft) = (weights.alike, weights.soft);
    let all = corpus.directions.iter().zip(&corpus.directed);
    row.map(TableWord::direction).into_iter().flat_map(move |direction| {
        all.clone().filter_map(move |(other, term)| {
            let alike = table::cosine(&direction, other);
            (alike >= from).then(|| (*term, soft * (alike - from) / (1.0 - from)))
        })
    })
}
