//! All memories, made ready to be asked: their words by field, and for each word where it occurs.
//!
//! A word in the name says more about a memory than one in its text, so fields have weights, and they are added up
//! before a count saturates (BM25F). Texts that are long for a memory count each word for less.

use std::collections::HashMap;

use jiff::Timestamp;

use super::aliases;
use super::dates;
use super::expected::Kinds;
use super::lexicon::{Concept, LEXICON};
use super::standing::Scope;
use super::words::{Form, Script, Splitter, Token, grams, script_of};
use crate::entry::Memory;
use crate::taxonomy::Kind;

/// How much of a text is indexed.
const BODY_LIMIT: usize = 64 * 1024;

/// How many words a text of a memory has, about. Longer ones count each for less.
const USUAL_LENGTH: f32 = 120.0;

/// How far the length counts.
const LENGTH_WEIGHT: f32 = 0.4;

const NAME: f32 = 3.0;
const DESCRIPTION: f32 = 2.5;
const HEADING: f32 = 1.8;
const PATH: f32 = 1.5;
const TYPE: f32 = 0.3;
const BODY: f32 = 1.0;

/// A word's number.
pub(crate) type Term = u32;

/// One memory's words before they have numbers.
#[derive(Debug, Clone)]
pub(crate) struct Words {
    pub(crate) path: String,
    pub(crate) kind: Option<Kind>,
    pub(crate) dated: Option<Timestamp>,
    /// Words with their weighted counts.
    pub(crate) counts: HashMap<String, f32>,
    /// The words of name and description, each with the groups it is in.
    pub(crate) title: Vec<Vec<String>>,
    /// What it applies to, if it is a standing instruction.
    pub(crate) scope: Option<Scope>,
    /// Names that mean the same thing.
    pub(crate) aliases: Vec<(String, String)>,
    /// Says what not to do.
    pub(crate) negative: bool,
    /// What kinds of answers it holds.
    pub(crate) held: Kinds,
    /// What it is written in.
    pub(crate) script: Script,
}

/// One memory.
#[derive(Debug, Clone)]
pub(crate) struct Doc {
    pub(crate) path: String,
    pub(crate) kind: Option<Kind>,
    pub(crate) dated: Option<Timestamp>,
    /// Its words and their weighted counts, by number.
    pub(crate) terms: Vec<(Term, f32)>,
    /// The words of name and description, each with the groups it is in.
    pub(crate) title: Vec<Vec<Term>>,
    pub(crate) scope: Option<Scope>,
    pub(crate) negative: bool,
    pub(crate) held: Kinds,
    pub(crate) script: Script,
}

/// All memories.
#[derive(Debug, Default)]
pub(crate) struct Corpus {
    pub(crate) docs: Vec<Doc>,
    pub(crate) numbers: HashMap<String, Term>,
    /// For each word the memories it is in, with its weighted count there.
    pub(crate) postings: Vec<Vec<(u32, f32)>>,
    /// The words, in order, for those that begin alike.
    pub(crate) sorted: Vec<(String, Term)>,
    /// Names that mean the same thing.
    pub(crate) aliases: HashMap<Term, Vec<Term>>,
}

impl Words {
    /// The words of a memory.
    pub(crate) fn of(memory: &Memory, splitter: &Splitter) -> Self {
        let mut counts = HashMap::new();
        let mut title = Vec::new();
        let description = memory.description.as_deref().unwrap_or_default();
        let description = &description[..description.floor_char_boundary(2_000)];
        let body = &memory.body[..memory.body.floor_char_boundary(BODY_LIMIT)];

        let name_tokens = splitter.split(&memory.name);
        let description_tokens = splitter.split(description);
        for (tokens, weight) in [(&name_tokens, NAME), (&description_tokens, DESCRIPTION)] {
            count(tokens, weight, &mut counts);
            let said = tokens.iter().filter(|token| !token.stop && token.form != Form::Compound);
            title.extend(said.flat_map(title_words));
        }
        let path = memory.path.strip_suffix(".md").unwrap_or(&memory.path);
        count(&splitter.split(path), PATH, &mut counts);
        count(&splitter.split(memory.kind.map_or("", Kind::name)), TYPE, &mut counts);

        let headings: String = body.lines().filter(|line| line.starts_with('#')).collect::<Vec<_>>().join("\n");
        count(&splitter.split(&headings), HEADING, &mut counts);
        let body_tokens = splitter.split(body);
        let long = 1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * (body_tokens.len() as f32 / USUAL_LENGTH).max(0.5);
        count(&body_tokens, BODY / long, &mut counts);
        for (text, weight) in [(description, DESCRIPTION), (memory.name.as_str(), NAME), (body, BODY)] {
            for (term, _) in dates::mentions(text).into_iter().flat_map(|mention| mention.terms) {
                *counts.entry(term).or_default() += weight;
            }
        }
        title.sort();
        title.dedup();
        let whole = format!("{}. {description}\n{body}", memory.name);
        Self {
            path: memory.path.clone(),
            kind: memory.kind,
            dated: memory.dated,
            counts,
            title,
            scope: Scope::of(memory, splitter),
            aliases: aliases::find(&whole, splitter),
            negative: super::polarity::is_negative(&whole),
            held: Kinds::held(&whole),
            script: script_of(&whole),
        }
    }
}

/// The words a token stands for in the index.
fn terms_of(token: &Token) -> Vec<String> {
    match token.form {
        Form::Run => grams(&token.text),
        _ => vec![token.text.clone()],
    }
}

/// The words a token stands for in a title: one that is known with its groups, else each by itself.
fn title_words(token: &Token) -> Vec<Vec<String>> {
    let terms = terms_of(token);
    if token.concepts.is_empty() {
        return terms.into_iter().map(|term| vec![term]).collect();
    }
    vec![terms.into_iter().chain(token.concepts.iter().map(|concept| concept_term(*concept))).collect()]
}

fn count(tokens: &[Token], weight: f32, counts: &mut HashMap<String, f32>) {
    for token in tokens.iter().filter(|token| !token.stop) {
        match token.form {
            Form::Run => grams(&token.text).iter().for_each(|gram| add(counts, gram, weight)),
            _ => add(counts, &token.text, weight),
        }
        for concept in &token.concepts {
            add(counts, &concept_term(*concept), weight);
        }
    }
    for (_, concepts) in phrases(tokens) {
        for concept in concepts {
            add(counts, &concept_term(concept), weight);
        }
    }
}

/// Adds to the count of a word, which is mostly there already.
fn add(counts: &mut HashMap<String, f32>, word: &str, weight: f32) {
    match counts.get_mut(word) {
        Some(count) => *count += weight,
        None => _ = counts.insert(word.to_owned(), weight),
    }
}

/// A group of the lexicon as a word.
pub(crate) fn concept_term(concept: Concept) -> String {
    format!("#{concept}")
}

/// The phrases of the lexicon among tokens: which tokens, and their groups. Longer ones first, none overlapping.
pub(crate) fn phrases(tokens: &[Token]) -> Vec<(std::ops::Range<usize>, Vec<Concept>)> {
    let mut found: Vec<(std::ops::Range<usize>, Vec<Concept>)> = Vec::new();
    let latin: Vec<usize> = (0..tokens.len()).filter(|at| tokens[*at].form == Form::Word).collect();
    let opens: Vec<bool> = tokens.iter().map(|token| LEXICON.opens_phrase(&token.text)).collect();
    for len in (2..=LEXICON.longest_phrase()).rev() {
        for window in latin.windows(len).filter(|window| opens[window[0]]) {
            let range = window[0]..window[len - 1] + 1;
            if found.iter().any(|(other, _)| other.start < range.end && range.start < other.end) {
                continue;
            }
            let words = window.iter().map(|at| tokens[*at].text.as_str()).collect::<Vec<_>>().join(" ");
            let concepts = LEXICON.of_stem(&words);
            if !concepts.is_empty() {
                found.push((range, concepts.to_vec()));
            }
        }
    }
    found
}

impl Corpus {
    /// Gives every word a number and notes where it occurs.
    pub(crate) fn new<'w>(all: impl Iterator<Item = &'w Words>) -> Self {
        let mut corpus = Self::default();
        let mut aliases = Vec::new();
        for words in all {
            let mut terms: Vec<(Term, f32)> =
                words.counts.iter().map(|(word, count)| (corpus.number(word), *count)).collect();
            terms.sort_unstable_by_key(|(term, _)| *term);
            let at = u32::try_from(corpus.docs.len()).unwrap_or(u32::MAX);
            for (term, count) in &terms {
                corpus.postings[*term as usize].push((at, *count));
            }
            let title = words.title.iter().map(|word| word.iter().map(|term| corpus.number(term)).collect()).collect();
            corpus.docs.push(Doc {
                path: words.path.clone(),
                kind: words.kind,
                dated: words.dated,
                terms,
                title,
                scope: words.scope.clone(),
                negative: words.negative,
                held: words.held,
                script: words.script,
            });
            aliases.extend(words.aliases.iter().cloned());
        }
        for (one, other) in aliases {
            let (one, other) = (corpus.number(&one), corpus.number(&other));
            corpus.aliases.entry(one).or_default().push(other);
            corpus.aliases.entry(other).or_default().push(one);
        }
        corpus.sorted = corpus
            .numbers
            .iter()
            .filter(|(word, _)| word.starts_with(|c: char| c.is_ascii_alphabetic()))
            .map(|(word, term)| (word.clone(), *term))
            .collect();
        corpus.sorted.sort();
        corpus
    }

    fn number(&mut self, word: &str) -> Term {
        if let Some(term) = self.numbers.get(word) {
            return *term;
        }
        let term = Term::try_from(self.postings.len()).unwrap_or(Term::MAX);
        self.numbers.insert(word.to_owned(), term);
        self.postings.push(Vec::new());
        term
    }

    /// In how many memories a word is.
    pub(crate) fn frequency(&self, term: Term) -> usize {
        self.postings.get(term as usize).map_or(0, Vec::len)
    }

    /// How rare a word in that many memories is: 1 for one in none, towards 0 for one in all.
    pub(crate) fn rarity(&self, frequency: usize) -> f32 {
        let count = self.docs.len() as f32;
        let frequency = frequency as f32;
        let of = |frequency: f32| (1.0 + (count - frequency + 0.5) / (frequency + 0.5)).ln();
        (of(frequency) / of(0.0)).clamp(0.0, 1.0)
    }
}
