//! All memories, made ready to be asked: what words each has, and for each word where it occurs.
//!
//! Name, description, text, dates and the questions it says it answers are one field: what a word is worth is told by how
//! rare it is, not by where it stands.

use std::collections::HashMap;
use std::sync::Arc;

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

/// The natural logarithm of how many words a language has, about: what is not in the table is as rare as the last of them.
const RAREST: f32 = 11.92;

/// A word's number.
pub(crate) type Term = u32;

/// One memory's words before they have numbers.
#[derive(Debug, Clone)]
pub(crate) struct Words {
    pub(crate) path: String,
    pub(crate) dated: Option<Timestamp>,
    /// Its words, in order.
    counts: Vec<Counted>,
    /// What it says but for the values it gives.
    gist: Vec<u64>,
    /// What it applies to, if it is a standing instruction.
    scope: Option<AppliesTo>,
}

/// A word of a memory.
#[derive(Debug, Clone)]
struct Counted {
    text: Arc<str>,
    /// Its row in the table.
    row: Option<Row>,
    count: Count,
    /// Whether its description has it, and whether its name or its description has.
    describes: bool,
    titles: bool,
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
    /// The words of its name and its description.
    pub(crate) title: Vec<Term>,
    pub(crate) gist: Vec<u64>,
    pub(crate) scope: Option<AppliesTo>,
}

/// All memories.
#[derive(Debug, Default)]
pub(crate) struct Corpus {
    pub(crate) docs: Vec<Doc>,
    numbers: HashMap<Arc<str>, Term>,
    /// For each word the memories it is in, and how often.
    pub(crate) postings: Vec<Vec<(u32, f32)>>,
    /// For each word its row in the table.
    pub(crate) rows: Vec<Option<Row>>,
    /// What each word is worth.
    worths: Vec<f32>,
    /// The directions of words that have one, side by side, and whose they are.
    pub(crate) directions: Vec<[i8; WIDTH]>,
    pub(crate) directed: Vec<Term>,
    /// How many words a memory has on average.
    pub(crate) average: f32,
}

/// What of a memory a word stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Name,
    Description,
    Asked,
    Body,
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
        let mut counts: Vec<Counted> = Vec::new();
        for (text, of) in [
            (memory.name.as_str(), Part::Name),
            (description, Part::Description),
            (asked, Part::Asked),
            (body, Part::Body),
        ] {
            let count = |part: f32| Count { all: part, own: if of == Part::Asked { 0.0 } else { part } };
            splitter.each(text, |token| {
                if !token.stop {
                    let (text, describes) = (Arc::clone(&token.text), of == Part::Description);
                    let titles = describes || of == Part::Name;
                    counts.push(Counted { text, row: token.row, count: count(token.part), describes, titles });
                }
            });
            for (term, _) in dates::mentions(text).into_iter().flat_map(|mention| mention.terms) {
                let text = term.into();
                counts.push(Counted { text, row: None, count: count(1.0), describes: false, titles: false });
            }
        }
        // Of the same word the first stays first: its row counts.
        counts.sort_by(|one, other| one.text.cmp(&other.text));
        counts.dedup_by(|next, first| {
            next.text == first.text && {
                first.count.all += next.count.all;
                first.count.own += next.count.own;
                first.describes |= next.describes;
                first.titles |= next.titles;
                true
            }
        });
        counts.shrink_to_fit();
        Self {
            path: memory.path.clone(),
            dated: memory.dated,
            counts,
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
            let (mut about, mut title) = (Vec::new(), Vec::new());
            for word in &words.counts {
                let term = corpus.number(&word.text, word.row);
                corpus.postings[term as usize].push((number, word.count.all));
                terms.push((term, word.count));
                if word.describes {
                    about.push(term);
                }
                if word.titles {
                    title.push(term);
                }
            }
            terms.sort_unstable_by_key(|(term, _)| *term);
            about.sort_unstable();
            let length = terms.iter().map(|(_, count)| count.all).sum();
            corpus.docs.push(Doc {
                path: words.path.clone(),
                dated: words.dated,
                terms,
                length,
                about,
                title,
                gist: words.gist.clone(),
                scope: words.scope.clone(),
            });
        }
        let total: f32 = corpus.docs.iter().map(|doc| doc.length).sum();
        corpus.average = total / corpus.docs.len().max(1) as f32;
        let all = corpus.docs.len() as f32;
        let worth = |(postings, row): (&Vec<(u32, f32)>, &Option<Row>)| {
            let has = postings.len() as f32;
            let here = (1.0 + (all - has + 0.5) / (has + 0.5)).ln() / (all + 1.0).ln().max(1.0);
            f32::midpoint(here.min(1.0), rarity(*row))
        };
        corpus.worths = corpus.postings.iter().zip(&corpus.rows).map(worth).collect();
        corpus
    }

    fn number(&mut self, text: &Arc<str>, row: Option<Row>) -> Term {
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

    /// A word's number, if a memory has it.
    pub(crate) fn term(&self, text: &str) -> Option<Term> {
        self.numbers.get(text).copied()
    }

    /// How much text there is to be found by chance.
    pub(crate) fn size(&self) -> Size {
        Size { memories: self.docs.len(), words: self.average * self.docs.len() as f32 }
    }

    /// What a word is worth: half how rare it is in the directory, half how rare in the language. The second keeps small
    /// directories steady, where every word is rare.
    pub(crate) fn worth(&self, term: Term) -> f32 {
        self.worths[term as usize]
    }
}

/// How rare a word is in the language, at most 1.
pub(crate) fn rarity(row: Option<Row>) -> f32 {
    row.map_or(1.0, |row| (row.place() as f32).ln() / RAREST)
}
