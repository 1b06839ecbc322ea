//! Which memories matter to a question, without a model.
//!
//! Two routes. **Likeness**: how much of what the question asks for a memory has, word by word, each worth what it is rare,
//! with words of like meaning ([`question`], [`score`], [`table`], [`near`]). **Standing instructions**: what the turn does against
//! what a memory applies to ([`standing`]). Whether the best is an answer or only the least bad is told by [`sure`]: if it
//! is not, nothing is surfaced. "Nothing relevant" is an answer, and mostly the right one.
//!
//! The numbers are few, and fitted by `cargo run -p memory --example fit_recall -- --fit` on one half of the repository's questions ([`Weights`]).

mod corpus;
mod dates;
mod facets;
mod near;
mod question;
mod score;
mod sorted;
mod standing;
mod sure;
mod table;
mod tongues;
mod twins;
pub(crate) mod words;

use std::collections::HashMap;
use std::sync::Arc;

use files::Root;
use jiff::Timestamp;

use crate::entry::Memory;
use crate::error::Error;
use crate::scan;
use corpus::{Corpus, Words};
use standing::Turn;
use words::Splitter;

pub use standing::Doing;
pub(crate) use standing::directs;
pub use sure::Figures;

/// How many are surfaced at most.
pub const MOST: usize = 5;

/// From this confidence on, a memory is an answer: the logistic's own middle.
pub const SURE: f32 = 0.5;

/// Of a sure answer's followers, those that have at least half as much of the question come with it.
const FOLLOWS: f32 = 0.5;

/// How many of the likeliest are looked at closely.
const SHORTLIST: usize = 24;

/// The numbers: five for the order, three for the cut-off. The one for duplicates is [`twins::KIN`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    /// How soon a word said again counts for nothing more (BM25's k1).
    pub saturation: f32,
    /// How far a long text counts for less (BM25's b).
    pub length: f32,
    /// From which likeness on one word stands for another.
    pub alike: f32,
    /// What a word that is said instead is worth, and one of the same meaning at most.
    pub soft: f32,
    /// What it is worth if a question has all of a memory's title, beside what the memory has of the question.
    pub title: f32,
    /// The cut-off: how much evidence is enough, for each unit of the logarithm of how many memories there are.
    pub sure_from: f32,
    /// For how much one thing that is asked can count.
    pub sure_most: f32,
    /// What the largest thing that is missing costs.
    pub sure_missing: f32,
}

impl Weights {
    /// As `cargo run -p memory --example fit_recall -- --fit` found them.
    pub const FITTED: Self = Self {
        saturation: 0.5,
        length: 0.75,
        alike: 0.25,
        soft: 0.5,
        title: 0.5,
        sure_from: 0.116,
        sure_most: 0.45,
        sure_missing: 0.4,
    };
}

/// All memories of a directory, ready to be asked.
pub struct Ranker {
    weights: Weights,
    splitter: Splitter,
    /// Each file's words, and the state of the file they were read from.
    known: HashMap<String, Arc<Known>>,
    corpus: Corpus,
}

struct Known {
    modified: Option<Timestamp>,
    len: u64,
    words: Words,
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// What was said.
    pub text: &'a str,
    /// What the turn is doing beside.
    pub doing: &'a Doing,
    /// Now.
    pub now: Timestamp,
}

/// How a memory was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// It speaks of what the question speaks of.
    Likeness,
    /// It applies to what the turn does.
    Standing,
}

/// A memory and how sure it is that it matters.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Its path, relative to the memory directory.
    pub path: String,
    /// How sure, from 0 to 1.
    pub confidence: f32,
    /// By which route it was found.
    pub route: Route,
    /// How much of what the question asks for it has, as a share of all of it.
    pub share: f32,
    /// What the confidence is made of.
    pub figures: Figures,
    /// The words of the question it has, and how well.
    pub matched: Vec<(String, f32)>,
    /// Older memories that say the same with other values.
    pub older: Vec<String>,
    /// A newer memory that says the same with other values.
    pub newer: Option<String>,
}

impl std::fmt::Debug for Ranker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ranker").field("memories", &self.len()).finish_non_exhaustive()
    }
}

impl Ranker {
    /// Reads all memories below a directory.
    pub fn load(root: &Root) -> Result<Self, Error> {
        let mut ranker = Self::empty(Weights::FITTED);
        ranker.reload(root)?;
        Ok(ranker)
    }

    /// A ranker over memories that are in hand.
    pub fn of(memories: &[Memory]) -> Self {
        Self::with(memories, Weights::FITTED)
    }

    /// The same with other numbers, to fit them.
    pub fn with(memories: &[Memory], weights: Weights) -> Self {
        let mut ranker = Self::empty(weights);
        for memory in memories {
            let words = Words::of(memory, &ranker.splitter);
            let known = Known { modified: memory.modified, len: memory.len, words };
            ranker.known.insert(memory.path.clone(), Arc::new(known));
        }
        ranker.number();
        ranker
    }

    /// The same memories with other numbers.
    pub fn set(&mut self, weights: Weights) {
        self.weights = weights;
    }

    fn empty(weights: Weights) -> Self {
        let (splitter, corpus) = (Splitter::new(), Corpus::default());
        Self { weights, splitter, known: HashMap::new(), corpus }
    }

    /// Reads what was added or changed since, forgets what is gone, and says how many files that were.
    pub fn reload(&mut self, root: &Root) -> Result<usize, Error> {
        let paths = scan::paths(root)?;
        let known = &self.known;
        let read: Vec<(String, Arc<Known>)> = scan::each(&paths, |path| {
            // Of a known file the state is asked first: mostly it has not changed, and then none of its bytes are read.
            if let Some(known) = known.get(path) {
                let head = root.head(path, 0).ok()?;
                let modified = head.modified.and_then(|time| Timestamp::try_from(time).ok());
                if known.modified == modified && known.len == head.len {
                    return None;
                }
            }
            let memory = Memory::read(root, path).ok()?;
            let words = Words::of(&memory, &Splitter::new());
            Some((path.to_owned(), Arc::new(Known { modified: memory.modified, len: memory.len, words })))
        });
        let before = self.known.len();
        let there: std::collections::HashSet<&str> = paths.iter().map(String::as_str).collect();
        self.known.retain(|path, _| there.contains(path.as_str()));
        let changed = read.len() + before - self.known.len();
        self.known.extend(read);
        if changed > 0 {
            self.number();
        }
        Ok(changed)
    }

    /// A ranker of what is there now, made beside this one; none if nothing has changed.
    pub fn fresh(&self, root: &Root) -> Result<Option<Self>, Error> {
        let mut fresh = Self { known: self.known.clone(), ..Self::empty(self.weights) };
        Ok((fresh.reload(root)? > 0).then_some(fresh))
    }

    fn number(&mut self) {
        let mut all: Vec<&Words> = self.known.values().map(|known| &known.words).collect();
        all.sort_by(|one, other| one.path.cmp(&other.path));
        self.corpus = Corpus::new(all.into_iter());
    }

    /// How many memories there are.
    pub fn len(&self) -> usize {
        self.corpus.docs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memories that have most to do with a question, the likeliest first. Instructions for what the turn does come
    /// right after the likeliest, or first if that one is not sure.
    pub fn rank(&self, question: &Question<'_>) -> Vec<Hit> {
        let units = question::units(question.text, question.now, &self.corpus, &self.splitter, &self.weights);
        let found = score::search(&self.corpus, &units, &self.weights);
        let order = self.order(&found.likely, SHORTLIST);
        let hits: Vec<(usize, Hit)> = order.into_iter().map(|doc| (doc, self.hit(doc, &found, &units))).collect();
        let mut hits = self.with_newer_first(hits);
        let at = usize::from(hits.iter().any(|hit| hit.confidence >= SURE));
        let standing = self.standing(question, &units, &found);
        hits.retain(|hit| !standing.iter().any(|other| other.path == hit.path));
        let at = at.min(hits.len());
        hits.splice(at..at, standing);
        hits
    }

    /// So many memories with a part of the question, the likeliest first; among equals the newest.
    fn order(&self, likely: &[f32], count: usize) -> Vec<usize> {
        let docs = &self.corpus.docs;
        let before = |one: &usize, other: &usize| {
            let newest = || docs[*other].dated.cmp(&docs[*one].dated);
            likely[*other]
                .total_cmp(&likely[*one])
                .then_with(newest)
                .then_with(|| docs[*one].path.cmp(&docs[*other].path))
        };
        let mut order: Vec<usize> = (0..docs.len()).filter(|doc| likely[*doc] > 0.0).collect();
        if order.len() > count {
            order.select_nth_unstable_by(count, before);
            order.truncate(count);
        }
        order.sort_by(before);
        order
    }

    fn hit(&self, doc: usize, search: &score::Found, units: &[question::Unit]) -> Hit {
        let share = search.shares[doc];
        let doc = &self.corpus.docs[doc];
        let found: Vec<f32> = units.iter().map(|unit| score::found(doc, unit, &self.corpus, &self.weights)).collect();
        let figures = Figures::of(units, &found, &search.together, self.corpus.size(), &self.weights);
        let matched = units.iter().zip(&found).filter(|(_, found)| **found > 0.0);
        Hit {
            path: doc.path.clone(),
            confidence: figures.confidence(&self.weights),
            route: Route::Likeness,
            share,
            figures,
            matched: matched.map(|(unit, found)| (unit.label.clone(), *found)).collect(),
            older: Vec::new(),
            newer: None,
        }
    }

    /// A newer memory about the same stands before the older, and is found by what the older is found by: it may be its
    /// correction, in other words than the question's. Only if the two say the same with other values is the older known
    /// to be overtaken.
    fn with_newer_first(&self, mut hits: Vec<(usize, Hit)>) -> Vec<Hit> {
        let docs = &self.corpus.docs;
        let mut at = 0;
        while at < hits.len().min(MOST) {
            let (doc, hit) = &hits[at];
            let (share, confidence) = (hit.share, hit.confidence);
            let overtakes = |(other, _): &(usize, Hit)| {
                docs[*other].dated > docs[*doc].dated && twins::are_kin(*doc, *other, &self.corpus)
            };
            let Some(newer) = hits[at + 1..].iter().position(overtakes) else {
                at += 1;
                continue;
            };
            let (newer, hit) = hits.remove(at + 1 + newer);
            let hit = Hit { share: hit.share.max(share), confidence: hit.confidence.max(confidence), ..hit };
            hits.insert(at, (newer, hit));
        }
        for one in 0..hits.len() {
            for other in one + 1..hits.len() {
                let (a, b) = (&docs[hits[one].0], &docs[hits[other].0]);
                if a.dated > b.dated && twins::are_twins(&a.gist, &b.gist) {
                    let (newer, older) = (hits[one].1.path.clone(), hits[other].1.path.clone());
                    hits[other].1.newer = Some(newer);
                    hits[one].1.older.push(older);
                }
            }
        }
        hits.into_iter().map(|(_, hit)| hit).collect()
    }

    /// The instructions for what the turn does, those that share most words with the question first.
    fn standing(&self, question: &Question<'_>, units: &[question::Unit], found: &score::Found) -> Vec<Hit> {
        let shares = &found.shares;
        let turn = Turn::of(question.text, &self.splitter.split(question.text), question.doing, &self.splitter);
        let docs = self.corpus.docs.iter().enumerate();
        let mut fits: Vec<(usize, f32)> = docs
            .filter_map(|(at, doc)| Some((at, doc.scope.as_ref()?.fits(&turn))))
            .filter(|(_, fit)| *fit >= SURE)
            .collect();
        let dated = |at: usize| self.corpus.docs[at].dated;
        fits.sort_by(|one, other| {
            let (a, b) = (one.1 + shares[one.0], other.1 + shares[other.0]);
            b.total_cmp(&a).then_with(|| dated(other.0).cmp(&dated(one.0)))
        });
        let standing = fits.into_iter().take(standing::MOST).map(|(doc, fit)| {
            let hit = self.hit(doc, found, units);
            Hit { confidence: hit.confidence.max(fit), route: Route::Standing, ..hit }
        });
        standing.collect()
    }

    /// The memories that are to be surfaced for a question: those it is sure of, at most [`MOST`], perhaps none. What
    /// `admit` refuses (already seen) is passed over.
    pub fn choose(&self, question: &Question<'_>, admit: impl Fn(&str) -> bool) -> Vec<Hit> {
        surfaced(self.rank(question).into_iter().filter(|hit| admit(&hit.path)).collect())
    }

    /// The instructions that apply to what a turn does, whatever is asked.
    pub fn applying(&self, doing: &Doing, now: Timestamp, admit: impl Fn(&str) -> bool) -> Vec<Hit> {
        let hits = self.rank(&Question { text: "", doing, now });
        hits.into_iter().filter(|hit| hit.route == Route::Standing && admit(&hit.path)).collect()
    }

    /// The paths of the `count` likeliest memories, for a manifest that cannot hold all.
    pub fn likeliest(&self, question: &Question<'_>, count: usize) -> Vec<String> {
        let mut paths: Vec<String> = self.rank(question).into_iter().map(|hit| hit.path).collect();
        let units = question::units(question.text, question.now, &self.corpus, &self.splitter, &self.weights);
        let likely = score::search(&self.corpus, &units, &self.weights).likely;
        let docs = &self.corpus.docs;
        let mut rest: Vec<usize> = (0..docs.len()).filter(|doc| likely[*doc] == 0.0).collect();
        rest.sort_by(|one, other| docs[*other].dated.cmp(&docs[*one].dated));
        for doc in self.order(&likely, count + SHORTLIST).into_iter().chain(rest) {
            if paths.len() < count && !paths.contains(&docs[doc].path) {
                paths.push(docs[doc].path.clone());
            }
        }
        paths.truncate(count);
        paths
    }
}

/// What of ranked memories is surfaced: if the likeliest is sure, it and those that have nearly as much of the question,
/// without those that a newer one takes the place of; and the instructions for what is done.
pub fn surfaced(hits: Vec<Hit>) -> Vec<Hit> {
    let likely = hits.iter().filter(|hit| hit.route == Route::Likeness && hit.confidence >= SURE);
    let best = likely.map(|hit| hit.share).reduce(f32::max);
    let follows = |hit: &Hit| best.is_some_and(|best| hit.share >= best * FOLLOWS && hit.newer.is_none());
    hits.into_iter().filter(|hit| hit.route == Route::Standing || follows(hit)).take(MOST).collect()
}
