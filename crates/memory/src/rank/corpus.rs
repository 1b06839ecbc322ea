//! All memories, indexed for questions: the words of each, and the postings of each word.
//!
//! Name, description, text, dates and the questions it says it answers are one field: a word is weighted by its rarity,
//! not by its position.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::cutoff::Size;
use super::dates;
use super::duplicates;
use super::standing_instructions::AppliesTo;
use super::table::{TableWord, WIDTH};
use super::words::Splitter;
use crate::entry::Memory;
use crate::scan;

/// Indexed bytes of a text.
const BODY_LIMIT: usize = 64 * 1024;

/// Length limit of a description where a memory is only named.
const DESCRIPTION_LIMIT: usize = 200;

/// Natural logarithm of the approximate vocabulary of a language: a word not in the table is as rare as the last of
/// them.
const RAREST: f32 = 11.92;

/// Number of a word.
pub(crate) type Term = u32;

/// Words of one memory before they have numbers.
#[derive(Debug, Clone)]
pub(crate) struct Words {
    pub(crate) path: String,
    pub(crate) dated: Option<Timestamp>,
    description: Option<String>,
    /// Its words, in order.
    counts: Vec<CountedWord>,
    /// Words of its title, without numbers and dates.
    called: Vec<String>,
    /// Hash of its text without the values in it.
    gist: Option<u64>,
    /// Its scope, if it is a standing instruction.
    scope: Option<AppliesTo>,
}

/// A word of a memory.
#[derive(Debug, Clone)]
struct CountedWord {
    text: Arc<str>,
    /// Its row in the table of meanings.
    row: Option<TableWord>,
    /// Number of occurrences.
    count: f32,
    /// Set if it is in the name or the description.
    titles: bool,
}

/// One memory.
#[derive(Debug, Clone)]
pub(crate) struct Doc {
    pub(crate) path: String,
    pub(crate) dated: Option<Timestamp>,
    pub(crate) description: Option<String>,
    /// Its words by number, with the number of occurrences.
    pub(crate) terms: Vec<(Term, f32)>,
    /// Number of its words.
    pub(crate) length: f32,
    /// Words of its name and its description.
    pub(crate) title: Vec<Term>,
    /// The same without numbers and dates, in order of their numbers.
    pub(crate) called: Vec<Term>,
    /// The newest memory that says the same with other values, if this one is older.
    pub(crate) newest: Option<usize>,
    pub(crate) scope: Option<AppliesTo>,
}

/// All memories.
#[derive(Debug, Default)]
pub(crate) struct Corpus {
    pub(crate) docs: Vec<Doc>,
    /// The older memories that a memory stands for.
    pub(crate) older: HashMap<usize, Vec<usize>>,
    numbers: HashMap<Arc<str>, Term>,
    /// For each word, the memories it is in, with the number of occurrences.
    pub(crate) postings: Vec<Vec<(u32, f32)>>,
    /// For each word, its row in the table.
    pub(crate) rows: Vec<Option<TableWord>>,
    /// Weight of each word.
    worths: Vec<f32>,
    /// The directions of the words that have one, side by side, and the words they belong to.
    pub(crate) directions: Vec<[i8; WIDTH]>,
    pub(crate) directed: Vec<Term>,
    /// Average number of words in a memory.
    pub(crate) average: f32,
}

impl Words {
    /// The words of a memory.
    pub(crate) fn of(memory: &Memory, splitter: &Splitter) -> Self {
        let description = memory.description.as_deref().unwrap_or_default();
        let description = &description[..description.floor_char_boundary(2_000)];
        let asked = memory.asked.as_deref().unwrap_or_default();
        let asked = &asked[..asked.floor_char_boundary(2_000)];
        let body = &memory.body[..memory.body.floor_char_boundary(BODY_LIMIT)];
        let mut counts: Vec<CountedWord> = Vec::new();
        for (text, titles) in [(memory.name.as_str(), true), (description, true), (asked, false), (body, false)] {
            splitter.each(text, |token| {
                if !token.stop {
                    counts.push(CountedWord {
                        text: Arc::clone(&token.text),
                        row: token.row,
                        count: token.part,
                        titles,
                    });
                }
            });
            for (term, _) in dates::mentions(text).into_iter().flat_map(|mention| mention.terms) {
                counts.push(CountedWord { text: term.into(), row: None, count: 1.0, titles: false });
            }
        }
        // Of the same word the first stays first: its row counts.
        counts.sort_by(|one, other| one.text.cmp(&other.text));
        counts.dedup_by(|next, first| {
            next.text == first.text && {
                first.count += next.count;
                first.titles |= next.titles;
                true
            }
        });
        counts.shrink_to_fit();
        Self {
            path: memory.path.clone(),
            dated: memory.dated,
            description: memory.description.as_deref().map(|text| scan::one_line(text, DESCRIPTION_LIMIT)),
            counts,
            called: duplicates::called(&format!("{}\n{description}", memory.name), splitter),
            gist: duplicates::gist(&[&memory.name, description, body].join("\n"), splitter),
            scope: AppliesTo::of(memory, splitter),
        }
    }
}

impl Corpus {
    /// Numbers the words of all memories.
    pub(crate) fn new<'w>(all: impl Iterator<Item = &'w Words>) -> Self {
        let mut corpus = Self::default();
        let mut gists: HashMap<u64, Vec<usize>> = HashMap::new();
        for words in all {
            let number = corpus.docs.len() as u32;
            let mut terms = Vec::with_capacity(words.counts.len());
            let mut title = Vec::new();
            for word in &words.counts {
                let term = corpus.number(&word.text, word.row);
                corpus.postings[term as usize].push((number, word.count));
                terms.push((term, word.count));
                if word.titles {
                    title.push(term);
                }
            }
            terms.sort_unstable_by_key(|(term, _)| *term);
            let mut called: Vec<Term> = words.called.iter().filter_map(|word| corpus.term(word)).collect();
            called.sort_unstable();
            let length = terms.iter().map(|(_, count)| count).sum();
            if let Some(gist) = words.gist {
                gists.entry(gist).or_default().push(number as usize);
            }
            corpus.docs.push(Doc {
                path: words.path.clone(),
                dated: words.dated,
                description: words.description.clone(),
                terms,
                length,
                title,
                called,
                newest: None,
                scope: words.scope.clone(),
            });
        }
        for alike in gists.into_values().filter(|alike| alike.len() > 1) {
            corpus.set_newest(&alike);
        }
        let total: f32 = corpus.docs.iter().map(|doc| doc.length).sum();
        corpus.average = total / corpus.docs.len().max(1) as f32;
        let all = corpus.docs.len() as f32;
        let worth = |(postings, row): (&Vec<(u32, f32)>, &Option<TableWord>)| {
            let here = rarity_among(postings.len(), corpus.docs.len()) / (all + 1.0).ln().max(1.0);
            f32::midpoint(here.min(1.0), rarity(*row))
        };
        corpus.worths = corpus.postings.iter().zip(&corpus.rows).map(worth).collect();
        corpus
    }

    /// Makes the newest of memories that say the same with other values stand for the others; ties go to the last path.
    fn set_newest(&mut self, alike: &[usize]) {
        let Some(newest) = alike.iter().copied().max_by_key(|doc| (self.docs[*doc].dated, *doc)) else { return };
        for doc in alike.iter().copied().filter(|doc| *doc != newest) {
            self.docs[doc].newest = Some(newest);
            self.older.entry(newest).or_default().push(doc);
        }
    }

    fn number(&mut self, text: &Arc<str>, row: Option<TableWord>) -> Term {
        if let Some(term) = self.numbers.get(text) {
            return *term;
        }
        let term = self.postings.len() as Term;
        self.numbers.insert(Arc::clone(text), term);
        self.postings.push(Vec::new());
        self.rows.push(row);
        if let Some(row) = row {
            self.directions.push(row.direction());
            self.directed.push(term);
        }
        term
    }

    /// Number of a word, if a memory has it.
    pub(crate) fn term(&self, text: &str) -> Option<Term> {
        self.numbers.get(text).copied()
    }

    /// Rarity of a word in the directory.
    pub(crate) fn rarity_here(&self, term: Term) -> f32 {
        rarity_among(self.postings[term as usize].len(), self.docs.len())
    }

    /// Amount of text in which something can be found by chance.
    pub(crate) fn size(&self) -> Size {
        Size { memories: self.docs.len(), words: self.average * self.docs.len() as f32 }
    }

    /// Weight of a word: the mean of its rarity in the directory and in the language. The second keeps small
    /// directories steady, where every word is rare.
    pub(crate) fn worth(&self, term: Term) -> f32 {
        self.worths[term as usize]
    }
}

/// Rarity of a word that `having` of `all` memories have.
fn rarity_among(having: usize, all: usize) -> f32 {
    let (having, all) = (having as f32, all as f32);
    (1.0 + (all - having + 0.5) / (having + 0.5)).ln()
}

/// Rarity of a word in the language, at most 1.
pub(crate) fn rarity(row: Option<TableWord>) -> f32 {
    row.map_or(1.0, |row| (row.place() as f32).ln() / RAREST)
}
