//! A question as units of meaning, each with what may stand for it and how much it says.
//!
//! A word that only says "how do we handle…" counts little, a name or a rare word counts much, and a word no memory has
//! counts too: it is the sign that a question is about something else. What may stand for a word: itself, a word of the
//! same group in the lexicon, another name for it, for an unknown word one that begins alike or is a letter apart.

use jiff::Timestamp;

use super::corpus::{Corpus, Term, concept_term, phrases};
use super::dates;
use super::expected::Kinds;
use super::lexicon::{Facet, Frequency, LEXICON};
use super::polarity;
use super::words::{Form, Script, Splitter, Token, grams, script_of};

/// How well a word of the same group stands for another.
const SAME_GROUP: f32 = 0.9;
const SAME_PHRASE: f32 = 0.95;
const PART_OF_PHRASE: f32 = 0.45;
const OTHER_NAME: f32 = 0.9;
const BEGINS_ALIKE: f32 = 0.7;
const LETTER_APART: f32 = 0.75;

/// How much a word says before it is known how rare it is.
const COMMON_WEIGHT: f32 = 0.25;
const WORD_WEIGHT: f32 = 1.0;
const NAME_WEIGHT: f32 = 1.25;
const NUMBER_WEIGHT: f32 = 0.8;

/// The share of a word's weight that does not depend on how rare it is.
const FLOOR: f32 = 0.35;

/// A tool, a language or a name is what a question is about: a memory that lacks it is hardly about the same.
const SUBJECT_COST: f32 = 1.7;
const NAME_COST: f32 = 1.25;

/// How much of its weight speaks against a memory that lacks it: of a common word, of a word nobody knows that is not
/// written like a name, of characters that may be an ending or half a word, of a Korean verb.
const COMMON_COST: f32 = 0.7;
const UNKNOWN_COST: f32 = 0.9;
const OFTEN_COST: f32 = 0.45;
const SOMETIMES_COST: f32 = 0.7;
const RUN_COST: f32 = 0.75;
const VERB_COST: f32 = 0.3;

/// A question longer than this is cut: what is meant was said.
const LONGEST: usize = 4_000;

/// One thing a question names.
#[derive(Debug, Clone)]
pub(crate) struct Unit {
    /// For people.
    pub(crate) label: String,
    /// How much it says where it is found.
    pub(crate) weight: f32,
    /// How much it says against a memory that does not have it.
    pub(crate) cost: f32,
    /// Counts only where it is found.
    pub(crate) bonus: bool,
    /// What may stand for it, and how well.
    pub(crate) stands: Vec<(Term, f32)>,
    /// For characters without word boundaries: the pairs, of which a part may be found.
    pub(crate) grams: Vec<Option<Term>>,
}

/// A question made ready.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) units: Vec<Unit>,
    /// What it leaves out.
    pub(crate) left_out: Vec<Term>,
    /// Asks for what is forbidden.
    pub(crate) negative: bool,
    /// What kind of answer it expects.
    pub(crate) expected: Kinds,
    /// What it is written in.
    pub(crate) script: Option<Script>,
    /// Its tokens, for what it is doing.
    pub(crate) tokens: Vec<Token>,
}

/// Reads a question.
pub(crate) fn read(text: &str, now: Timestamp, corpus: &Corpus, splitter: &Splitter) -> Asked {
    let text = &text[..text.floor_char_boundary(LONGEST)];
    let mut rest = text.to_owned();
    let mut asked = Asked {
        negative: polarity::asks_for_negative(text),
        expected: Kinds::expected(text),
        script: Some(script_of(text)),
        ..Asked::default()
    };
    for range in polarity::left_out(text) {
        for token in splitter.split(&text[range.clone()]).iter().filter(|token| !token.stop) {
            asked.left_out.extend(stands_for(token, corpus).into_iter().map(|(term, _)| term));
        }
        blank(&mut rest, range);
    }
    let mentions = dates::mentions(text).into_iter().chain(dates::relative(text, now));
    for mention in mentions {
        let stands: Vec<_> = mention
            .terms
            .iter()
            .filter_map(|(term, well)| corpus.numbers.get(term).map(|term| (*term, *well)))
            .collect();
        let label = text[mention.range.clone()].to_owned();
        blank(&mut rest, mention.range);
        if !(mention.relative && stands.is_empty()) {
            let weight = if mention.relative { 0.6 } else { 0.9 };
            asked.units.push(Unit { label, weight, cost: weight, bonus: mention.relative, stands, grams: Vec::new() });
        }
    }
    let tokens = splitter.split(&rest);
    let phrases = phrases(&tokens);
    for (range, concepts) in &phrases {
        let mut stands: Vec<_> = concepts
            .iter()
            .filter_map(|concept| corpus.numbers.get(&concept_term(*concept)).map(|term| (*term, SAME_PHRASE)))
            .collect();
        let parts = tokens[range.clone()].iter().filter(|token| !token.stop);
        stands.extend(parts.filter_map(|part| corpus.numbers.get(&part.text).map(|term| (*term, PART_OF_PHRASE))));
        let label = tokens[range.clone()].iter().map(|token| token.text.as_str()).collect::<Vec<_>>().join(" ");
        let weight = weight(WORD_WEIGHT, &stands, corpus);
        asked.units.push(Unit { label, weight, cost: weight, bonus: false, stands, grams: Vec::new() });
    }
    for (at, token) in tokens.iter().enumerate() {
        let in_phrase = phrases.iter().any(|(range, _)| range.contains(&at));
        // A compound whose parts are a phrase says the same once more.
        let said = token.form == Form::Compound && phrases.iter().any(|(range, _)| range.end == at);
        if token.stop || in_phrase || said || asked.units.iter().any(|unit| unit.label == token.text) {
            continue;
        }
        asked.units.push(unit(token, corpus));
    }
    asked.tokens = tokens;
    asked
}

fn blank(text: &mut String, range: std::ops::Range<usize>) {
    let spaces = " ".repeat(range.len());
    text.replace_range(range, &spaces);
}

fn unit(token: &Token, corpus: &Corpus) -> Unit {
    let stands = stands_for(token, corpus);
    let label = token.text.clone();
    let known = !stands.is_empty();
    let in_lexicon = !token.concepts.is_empty();
    match token.form {
        Form::Run => {
            let grams: Vec<_> = grams(&token.text).iter().map(|gram| corpus.numbers.get(gram).copied()).collect();
            let len = token.text.chars().count() as f32;
            let found: Vec<_> = grams.iter().flatten().map(|term| (*term, 1.0)).collect();
            let base = match len {
                _ if in_lexicon => WORD_WEIGHT,
                len if len < 2.0 => 0.2,
                len => (len / 2.0).min(1.5) * 0.8,
            };
            let weight = weight(base, if known { &stands } else { &found }, corpus);
            let cost = weight
                * if in_lexicon {
                    1.0
                } else if token.name {
                    VERB_COST
                } else {
                    RUN_COST
                };
            Unit { label, weight, cost, bonus: false, stands, grams }
        }
        Form::Compound => Unit { label, weight: 0.8, cost: 0.0, bonus: true, stands, grams: Vec::new() },
        Form::Number => {
            let weight = weight(NUMBER_WEIGHT, &stands, corpus);
            Unit { label, weight, cost: weight, bonus: false, stands, grams: Vec::new() }
        }
        Form::Word => {
            let common = LEXICON.is_common(&token.text);
            // `API` and `CI` are written like names and are none.
            let name = token.name && !in_lexicon && LEXICON.frequency(&token.text) == Frequency::Seldom;
            let (base, cost) = match (common, name) {
                (true, _) => (COMMON_WEIGHT, COMMON_COST),
                (false, true) => (NAME_WEIGHT, NAME_COST),
                (false, false) if is_subject(token) => (WORD_WEIGHT, SUBJECT_COST),
                (false, false) => (WORD_WEIGHT, cost_of(&token.text, known || in_lexicon)),
            };
            let weight = weight(base, &stands, corpus);
            Unit { label, weight, cost: weight * cost, bonus: false, stands, grams: Vec::new() }
        }
    }
}

/// How much of its weight a word speaks against a memory that lacks it: the more often people use it, the less.
fn cost_of(stem: &str, known: bool) -> f32 {
    let known = if known { 1.0 } else { UNKNOWN_COST };
    known
        * match LEXICON.frequency(stem) {
            Frequency::Often => OFTEN_COST,
            Frequency::Sometimes => SOMETIMES_COST,
            Frequency::Seldom => 1.0,
        }
}

/// Whether a token names a tool or a language.
fn is_subject(token: &Token) -> bool {
    token.concepts.iter().any(|concept| matches!(LEXICON.facet(*concept), Facet::Tool | Facet::Language))
}

/// How much a unit says, given how rare what stands for it is.
fn weight(base: f32, stands: &[(Term, f32)], corpus: &Corpus) -> f32 {
    let best = stands.iter().max_by(|one, other| one.1.total_cmp(&other.1));
    let rarity = best.map_or(1.0, |(term, _)| corpus.rarity(corpus.frequency(*term)));
    base * (FLOOR + (1.0 - FLOOR) * rarity)
}

/// What may stand for a token.
fn stands_for(token: &Token, corpus: &Corpus) -> Vec<(Term, f32)> {
    let mut stands = Vec::new();
    let own = corpus.numbers.get(&token.text).copied().filter(|term| corpus.frequency(*term) > 0);
    if token.form != Form::Run {
        stands.extend(own.map(|term| (term, 1.0)));
    }
    for concept in &token.concepts {
        let term = corpus.numbers.get(&concept_term(*concept));
        stands.extend(term.map(|term| (*term, SAME_GROUP)));
    }
    if let Some(term) = corpus.numbers.get(&token.text) {
        let others = corpus.aliases.get(term).into_iter().flatten();
        stands.extend(others.map(|other| (*other, OTHER_NAME)));
    }
    if stands.is_empty() && token.form == Form::Word && !LEXICON.is_common(&token.text) {
        stands.extend(alike(&token.text, corpus));
    }
    stands
}

/// Words that begin alike, or are one letter apart.
fn alike(word: &str, corpus: &Corpus) -> Vec<(Term, f32)> {
    let mut found = Vec::new();
    if !word.is_ascii() || word.len() < 4 {
        return found;
    }
    let first = &word[..1];
    let from = corpus.sorted.partition_point(|(other, _)| other.as_str() < first);
    for (other, term) in corpus.sorted[from..].iter().take_while(|(other, _)| other.starts_with(first)) {
        if !other.is_ascii() || corpus.frequency(*term) == 0 {
            continue;
        }
        let (short, long) = if other.len() < word.len() { (other.as_str(), word) } else { (word, other.as_str()) };
        if short.len() >= 4 && long.starts_with(short) && long.len() - short.len() <= 8 {
            found.push((*term, BEGINS_ALIKE));
        } else if word.len() >= 5 && is_a_letter_apart(word.as_bytes(), other.as_bytes()) {
            found.push((*term, LETTER_APART));
        }
        if found.len() >= 8 {
            break;
        }
    }
    found
}

/// Whether one letter was added, dropped, changed or swapped with its neighbour.
fn is_a_letter_apart(one: &[u8], other: &[u8]) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    if long.len() - short.len() > 1 || short == long {
        return false;
    }
    let same = short.iter().zip(long).take_while(|(a, b)| a == b).count();
    let (short_rest, long_rest) = (&short[same..], &long[same..]);
    if short.len() < long.len() {
        return short_rest == &long_rest[1..];
    }
    short_rest[1..] == long_rest[1..]
        || short_rest.len() >= 2
            && short_rest[0] == long_rest[1]
            && short_rest[1] == long_rest[0]
            && short_rest[2..] == long_rest[2..]
}
