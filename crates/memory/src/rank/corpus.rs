//! All memories, made ready to be asked: what words each has, and for each word where it occurs.
//!
//! Name, description, text, dates and the questions it says it answers are one field: what a word is worth is told by how
//! rare it is, not by where it stands.

use std::collections::HashMap;

use jiff::Timestamp;

use super::dates;
use super::standing::AppliesTo;
use super::sure::Size;
use super::table::{Row, WIDTH};
use super::twins;
use super::words::Splitter;
use crate::entry::Memory;

/// How much of a text is indexed.
const BODY_LIMIT: usize = 64 * 1024;

/// A word's number.
pub(crate) type Term = u32;

/// One memory's words before they have numbers.
#[derive(Debug, Clone)]
pub(crate) struct Words {
    pub(crate) path: String,
    pub(crate) dated: Option<Timestamp>,
    /// Words with their rows in the table and how often each occurs.
    counts: Vec<(String, Option<Row>, Count)>,
    /// The words of its description: what it is about.
    about: Vec<String>,
    /// What it says but for the values it gives.
    gist: Vec<u64>,
    /// What it applies to, if it is a standing instruction.
    scope: Option<AppliesTo>,
}

/// How often a word occurs in a memory.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Count {
    /// In all of it.
    pub(crate) all: f32,
    /// In what it says itself, and not in the questions it answers.
    pub(crate) own: f32,
}

/// One memory.
#[derive(Debug, Clone)]
pub(crate) struct Doc {
    pub(crate) path: String,
    pub(crate) dated: Option<Timestamp>,
    /// Its words and how often each occurs, by number.
    pub(crate) terms: Vec<(Term, Count)>,
    /// How many words that are.
    pub(crate) length: f32,
    /// The words of its description, in order of their numbers.
    pub(crate) about: Vec<Term>,
    pub(crate) gist: Vec<u64>,
    pub(crate) scope: Option<AppliesTo>,
}

/// All memories.
#[derive(Debug, Default)]
pub(crate) struct Corpus {
    pub(crate) docs: Vec<Doc>,
    numbers: HashMap<String, Term>,
    /// For each word the memories it is in, and how often.
    pub(crate) postings: Vec<Vec<(u32, f32)>>,
    /// For each word its row in the table.
    pub(crate) rows: Vec<Option<Row>>,
    /// The directions of words that have one, side by side, and whose they are.
    pub(crate) directions: Vec<[i8; WIDTH]>,
    pub(crate) directed: Vec<Term>,
    /// How many words a memory has on average.
    pub(crate) average: f32,
}

impl Doc {
    /// The words of what it says itself, in order of their numbers.
    pub(crate) fn own(&self) -> Vec<Term> {
        self.terms.iter().filter(|(_, count)| count.own > 0.0).map(|(term, _)| *term).collect()
    }
}

impl Words {
    /// The words of a memory.
    pub(crate) fn of(memory: &Memory, splitter: &Splitter) -> Self {
        let description = memory.description.as_deref().unwrap_or_default();
        let description = &description[..description.floor_char_boundary(2_000)];
        let asked = memory.asked.as_deref().unwrap_or_default();
        let asked = &asked[..asked.floor_char_boundary(2_000)];
        let body = &memory.body[..memory.body.floor_char_boundary(BODY_LIMIT)];
        let mut counts: HashMap<String, (Option<Row>, Count)> = HashMap::new();
        for (text, is_own) in [(memory.name.as_str(), true), (description, true), (asked, false), (body, true)] {
            let mut add = |term: String, row: Option<Row>, part: f32| {
                let (_, count) = counts.entry(term).or_insert((row, Count::default()));
                count.all += part;
                count.own += if is_own { part } else { 0.0 };
            };
            for token in splitter.split(text).into_iter().filter(|token| !token.stop) {
                add(token.text, token.row, token.part);
            }
            for (term, _) in dates::mentions(text).into_iter().flat_map(|mention| mention.terms) {
                add(term, None, 1.0);
            }
        }
        let mut counts: Vec<_> = counts.into_iter().map(|(text, (row, count))| (text, row, count)).collect();
        counts.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let mut about: Vec<String> =
            splitter.split(description).into_iter().filter(|token| !token.stop).map(|token| token.text).collect();
        about.sort_unstable();
        about.dedup();
        Self {
            path: memory.path.clone(),
            dated: memory.dated,
            counts,
            about,
            gist: twins::gist(&[&memory.name, description, body].join("\n"), splitter),
            scope: AppliesTo::of(memory, splitter),
        }
    }
}

impl Corpus {
    /// Numbers the words of all memories.
    pub(crate) fn new<'w>(all: impl Iterator<Item = &'w Words>) -> Self {
        let mut corpus = Self::default();
        for words in all {
            let number = corpus.docs.len() as u32;
            let mut terms = Vec::with_capacity(words.counts.len());
            for (text, row, count) in &words.counts {
                let term = corpus.number(text, *row);
                corpus.postings[term as usize].push((number, count.all));
                terms.push((term, *count));
            }
            terms.sort_unstable_by_key(|(term, _)| *term);
            let length = terms.iter().map(|(_, count)| count.all).sum();
            let mut about: Vec<Term> = words.about.iter().filter_map(|text| corpus.term(text)).collect();
            about.sort_unstable();
            corpus.docs.push(Doc {
                path: words.path.clone(),
                dated: words.dated,
                terms,
                length,
                about,
                gist: words.gist.clone(),
                scope: words.scope.clone(),
            });
        }
        let total: f32 = corpus.docs.iter().map(|doc| doc.length).sum();
        corpus.average = total / corpus.docs.len().max(1) as f32;
        corpus
    }

    fn number(&mut self, text: &str, row: Option<Row>) -> Term {
        if let Some(term) = self.numbers.get(text) {
            return *term;
        }
        let term = self.postings.len() as Term;
        self.numbers.insert(text.to_owned(), term);
        self.postings.push(Vec::new());
        self.rows.push(row);
        if let Some(row) = row {
            self.directions.push(row.direction());
            self.directed.push(term);
        }
        term
    }

    /// A word's number, if a memory has it.
    pub(crate) fn term(&self, text: &str) -> Option<Term> {
        self.numbers.get(text).copied()
    }

    /// How much text there is to be found by chance.
    pub(crate) fn size(&self) -> Size {
        Size { memories: self.docs.len(), words: self.average * self.docs.len() as f32 }
    }

    /// How many memories have a word.
    pub(crate) fn frequency(&self, term: Term) -> usize {
        self.postings[term as usize].len()
    }
}
