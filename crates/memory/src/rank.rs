//! Ranks memories by their relevance to a question, without a model.
//!
//! Two routes. **Likeness**: the share of the question's words that a memory has, each weighted by its rarity, with
//! words of similar meaning (`question`, `score`, `table`, `near`). **Standing instructions**: the turn's
//! activity against the scope of a memory (`standing_instructions`). `cutoff` decides if the best hit is an answer or only the
//! least bad: if it is not an answer, nothing is surfaced. "Nothing relevant" is an answer, and mostly the right one.
//!
//! The numbers are few, and fitted by `cargo run -p memory --example fit_recall -- --fit` on one half of the
//! repository's questions ([`Weights`]).

mod cjk_words;
mod corpus;
mod cutoff;
mod dates;
mod duplicates;
mod facets;
mod near;
mod question;
mod score;
mod sorted;
mod standing_instructions;
mod table;
pub(crate) mod words;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use files::Root;
use jiff::Timestamp;
use jiff::civil::Date;
use serde::Serialize;

use crate::entry::{Memory, is_over};
use crate::error::Error;
use crate::scan;
use corpus::{Corpus, Words};
use standing_instructions::TurnActivity;
use words::Splitter;

pub use cutoff::ConfidenceFigures;
pub use standing_instructions::WorkAtHand;
pub(crate) use standing_instructions::directs;

/// Limit on surfaced memories.
pub const MOST: usize = 5;

/// Confidence from which on a memory is an answer: the midpoint of the logistic.
pub const SURE: f32 = 0.5;

/// A memory is surfaced along with a sure answer if it has at least this share of what the answer has of the question.
/// Chosen on the fitting half: at 0.7 fewer than 55 of 100 memories surfaced among a thousand are wanted; at 0.8 small
/// directories lose one answer in a hundred.
pub(crate) const FOLLOWS: f32 = 0.75;

/// A sure answer with this share of the question is surfaced even if a model could be asked. Chosen on the fitting
/// half: where the topic is known and the answer is not, a seventh is surfaced this way, against three quarters if
/// every sure answer were.
const NEARLY_ALL: f32 = 0.9;

/// A memory that has all of a question is sure if no other has more than this share of what it has.
const FAR_BEHIND: f32 = 0.6;

/// Evidence from which on a memory is worth showing to a model, unless more than this is missing. "Go on" and "what
/// next?" have less; each of the two limits loses one answerable question in a hundred.
const LEAST_EVIDENCE: f32 = 0.2;
const MOST_MISSING: f32 = 0.1;

/// Limit on older memories named with the newest of their form.
const OLDER: usize = 3;

/// Number of top memories that are examined closely.
const SHORTLIST: usize = 24;

/// The numbers: five for the order, three for the cut-off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    /// Saturation of repeated words (BM25's k1).
    pub saturation: f32,
    /// Penalty for long texts (BM25's b).
    pub length: f32,
    /// Similarity from which on one word stands for another.
    pub alike: f32,
    /// Weight of a word commonly said instead, and upper limit for a word of similar meaning.
    pub soft: f32,
    /// Bonus if the question has all of a memory's title, added to the memory's share of the question.
    pub title: f32,
    /// Cut-off: evidence needed per unit of the logarithm of the corpus size.
    pub sure_from: f32,
    /// Cut-off: upper limit on what one asked thing counts.
    pub sure_most: f32,
    /// Cut-off: cost of the largest missing thing.
    pub sure_missing: f32,
}

impl Weights {
    /// The values found by `cargo run -p memory --example fit_recall -- --fit`.
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

/// All memories of a directory, indexed for questions.
pub struct Ranker {
    weights: Weights,
    splitter: Splitter,
    /// The words of each file, with the state of the file they were read from.
    known: HashMap<String, Arc<IndexedMemory>>,
    corpus: Corpus,
}

struct IndexedMemory {
    modified: Option<Timestamp>,
    len: u64,
    until: Option<Date>,
    words: Words,
}

/// A question to the ranker.
#[derive(Debug, Clone, Copy)]
pub struct RankQuestion<'a> {
    /// Text of the message.
    pub text: &'a str,
    /// Current activity of the turn.
    pub doing: &'a WorkAtHand,
    /// Current time.
    pub now: Timestamp,
}

/// Route by which a memory was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// It is about the same thing as the question.
    Likeness,
    /// It applies to the turn's activity.
    Standing,
}

/// A memory with the confidence that it is relevant.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Its path, relative to the memory directory.
    pub path: String,
    /// Confidence, from 0 to 1.
    pub confidence: f32,
    /// Route by which it was found.
    pub route: Route,
    /// Share of the question that it has.
    pub share: f32,
    /// Figures behind the confidence.
    pub figures: ConfidenceFigures,
    /// Words of the question it has, each with the quality of the match.
    pub matched: Vec<(String, f32)>,
    /// Older memories that say the same with other values; some may still be valid.
    pub older: Vec<OlderMemory>,
}

impl Hit {
    /// Returns true if it is sure and has so much of the question that no model needs to look.
    pub fn has_nearly_all(&self) -> bool {
        self.route == Route::Likeness && self.confidence >= SURE && self.share >= NEARLY_ALL
    }

    /// Returns true if there is enough evidence to show it to a model.
    pub fn has_evidence(&self) -> bool {
        let ConfidenceFigures { evidence, missing, .. } = self.figures;
        evidence > LEAST_EVIDENCE && evidence - Weights::FITTED.sure_missing * missing > -MOST_MISSING
    }
}

/// An older memory that says the same as another with other values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OlderMemory {
    /// Its path, relative to the memory directory.
    pub path: String,
    /// Its description.
    pub description: Option<String>,
}

impl fmt::Display for OlderMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        self.description.as_ref().map_or(Ok(()), |description| write!(f, ": {description}"))
    }
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

    /// Builds a ranker over memories in hand.
    pub fn of(memories: &[Memory]) -> Self {
        Self::with(memories, Weights::FITTED)
    }

    /// Builds a ranker with other weights, to fit them.
    pub fn with(memories: &[Memory], weights: Weights) -> Self {
        let mut ranker = Self::empty(weights);
        for memory in memories {
            let words = Words::of(memory, &ranker.splitter);
            let known = IndexedMemory { modified: memory.modified, len: memory.len, until: memory.until, words };
            ranker.known.insert(memory.path.clone(), Arc::new(known));
        }
        ranker.number();
        ranker
    }

    /// Replaces the weights.
    pub fn set(&mut self, weights: Weights) {
        self.weights = weights;
    }

    fn empty(weights: Weights) -> Self {
        let (splitter, corpus) = (Splitter::new(), Corpus::default());
        Self { weights, splitter, known: HashMap::new(), corpus }
    }

    /// Reads added and changed files, drops deleted ones, and returns the number of files concerned.
    pub fn reload(&mut self, root: &Root) -> Result<usize, Error> {
        let paths = scan::paths(root)?;
        let known = &self.known;
        let read: Vec<(String, Arc<IndexedMemory>)> = scan::each(&paths, |path| {
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
            let known = IndexedMemory { modified: memory.modified, len: memory.len, until: memory.until, words };
            Some((path.to_owned(), Arc::new(known)))
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

    /// Builds an up-to-date ranker next to this one; `None` if nothing has changed.
    pub fn fresh(&self, root: &Root) -> Result<Option<Self>, Error> {
        let mut fresh = Self { known: self.known.clone(), ..Self::empty(self.weights) };
        Ok((fresh.reload(root)? > 0).then_some(fresh))
    }

    fn number(&mut self) {
        let mut all: Vec<&Words> = self.known.values().map(|known| &known.words).collect();
        all.sort_by(|one, other| one.path.cmp(&other.path));
        self.corpus = Corpus::new(all.into_iter());
    }

    /// Number of memories.
    pub fn len(&self) -> usize {
        self.corpus.docs.len()
    }

    /// Returns true if there are no memories.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memories most relevant to a question, best first. Instructions for the turn's activity come right after the
    /// best one, or first if that one is not sure.
    pub fn rank(&self, question: &RankQuestion<'_>) -> Vec<Hit> {
        let units = question::units(question.text, question.now, &self.corpus, &self.splitter, &self.weights);
        let found = score::search(&self.corpus, &units, &self.weights);
        let order = self.order(&found.likely, SHORTLIST);
        let mut hits: Vec<(usize, Hit)> = order.into_iter().map(|doc| (doc, self.hit(doc, &found, &units))).collect();
        make_sure_of_what_has_all(&mut hits, units.len());
        let at = usize::from(hits.iter().any(|(_, hit)| hit.confidence >= SURE));
        let standing = self.fitting_instructions(question, &units, &found);
        hits.retain(|(doc, _)| !standing.iter().any(|(other, _)| other == doc));
        let at = at.min(hits.len());
        hits.splice(at..at, standing);
        self.put_newer_first(&mut hits);
        hits.into_iter().map(|(_, hit)| hit).filter(|hit| !self.is_over(&hit.path, question.now)).collect()
    }

    /// Returns true if a memory names a last day that has passed.
    fn is_over(&self, path: &str, now: Timestamp) -> bool {
        self.known.get(path).is_some_and(|known| is_over(known.until, now))
    }

    /// The top `count` memories that have a part of the question, best first; ties go to the newest.
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

    /// Builds the hit for a memory. One that stands for older ones is as sure as the best of them.
    fn hit(&self, doc: usize, search: &score::QuestionMatch, units: &[question::Unit]) -> Hit {
        let older = self.older(doc, search);
        let has = |doc: usize| {
            let doc = &self.corpus.docs[doc];
            let found: Vec<f32> =
                units.iter().map(|unit| score::found(doc, unit, &self.corpus, &self.weights)).collect();
            let figures = ConfidenceFigures::of(units, &found, &search.together, self.corpus.size(), &self.weights);
            (figures.confidence(&self.weights), figures, found)
        };
        let mut best = has(doc);
        if let Some(of_older) = older.first().map(|older| has(*older)).filter(|older| older.0 > best.0) {
            best = of_older;
        }
        let (confidence, figures, found) = best;
        let matched = units.iter().zip(&found).filter(|(_, found)| **found > 0.0);
        let named = |doc: &usize| {
            let doc = &self.corpus.docs[*doc];
            OlderMemory { path: doc.path.clone(), description: doc.description.clone() }
        };
        Hit {
            path: self.corpus.docs[doc].path.clone(),
            confidence,
            route: Route::Likeness,
            share: search.shares[doc],
            figures,
            matched: matched.map(|(unit, found)| (unit.label.clone(), *found)).collect(),
            older: older.iter().take(OLDER).map(named).collect(),
        }
    }

    /// The older memories that one stands for: those that have most of the question first, then the newest.
    fn older(&self, doc: usize, search: &score::QuestionMatch) -> Vec<usize> {
        let Some(all) = self.corpus.older.get(&doc) else { return Vec::new() };
        let likely = search.of_older.iter().filter(|(newest, _, _)| *newest == doc);
        let mut older: Vec<usize> = likely.map(|(_, older, _)| *older).take(OLDER).collect();
        let mut rest: Vec<usize> = all.iter().copied().filter(|doc| !older.contains(doc)).collect();
        rest.sort_by(|one, other| self.corpus.docs[*other].dated.cmp(&self.corpus.docs[*one].dated));
        older.extend(rest);
        older
    }

    /// Among the top places, moves a newer memory about the same subject before an older one, with the same confidence:
    /// it may be its correction, in other words than the question's. The order changes, never the set.
    fn put_newer_first(&self, hits: &mut [(usize, Hit)]) {
        let docs = &self.corpus.docs;
        let first = hits.len().min(MOST);
        for at in 0..first {
            let doc = &docs[hits[at].0];
            let is_newer = |other: &usize| {
                let other = &docs[hits[*other].0];
                other.dated > doc.dated && duplicates::are_about_the_same(&doc.called, &other.called, &self.corpus)
            };
            let Some(newer) = (at + 1..first).find(is_newer) else { continue };
            let (share, confidence) = (hits[at].1.share, hits[at].1.confidence);
            hits[at..=newer].rotate_right(1);
            let hit = &mut hits[at].1;
            (hit.share, hit.confidence) = (hit.share.max(share), hit.confidence.max(confidence));
        }
    }

    /// The instructions for the turn's activity, those that share most words with the question first.
    fn fitting_instructions(
        &self,
        question: &RankQuestion<'_>,
        units: &[question::Unit],
        found: &score::QuestionMatch,
    ) -> Vec<(usize, Hit)> {
        let shares = &found.shares;
        let turn = TurnActivity::of(question.text, &self.splitter.split(question.text), question.doing, &self.splitter);
        let docs = self.corpus.docs.iter().enumerate().filter(|(_, doc)| doc.newest.is_none());
        let mut fits: Vec<(usize, f32)> = docs
            .filter_map(|(at, doc)| Some((at, doc.scope.as_ref()?.fits(&turn))))
            .filter(|(_, fit)| *fit >= SURE)
            .collect();
        let dated = |at: usize| self.corpus.docs[at].dated;
        fits.sort_by(|one, other| {
            let (a, b) = (one.1 + shares[one.0], other.1 + shares[other.0]);
            b.total_cmp(&a).then_with(|| dated(other.0).cmp(&dated(one.0)))
        });
        let standing = fits.into_iter().take(standing_instructions::MOST).map(|(doc, fit)| {
            let hit = self.hit(doc, found, units);
            (doc, Hit { confidence: hit.confidence.max(fit), route: Route::Standing, ..hit })
        });
        standing.collect()
    }

    /// The memories to surface for a question: the sure ones, at most [`MOST`], perhaps none. Memories that `admit`
    /// refuses (already seen) are skipped.
    pub fn choose(&self, question: &RankQuestion<'_>, admit: impl Fn(&str) -> bool) -> Vec<Hit> {
        surfaced(self.rank(question).into_iter().filter(|hit| admit(&hit.path)).collect())
    }

    /// The instructions that apply to the turn's activity, whatever is asked.
    pub fn applying(&self, doing: &WorkAtHand, now: Timestamp, admit: impl Fn(&str) -> bool) -> Vec<Hit> {
        let hits = self.rank(&RankQuestion { text: "", doing, now });
        hits.into_iter().filter(|hit| hit.route == Route::Standing && admit(&hit.path)).collect()
    }

    /// The paths of the top `count` memories, for a manifest that cannot hold all.
    pub fn likeliest(&self, question: &RankQuestion<'_>, count: usize) -> Vec<String> {
        let mut paths: Vec<String> = self.rank(question).into_iter().map(|hit| hit.path).collect();
        let units = question::units(question.text, question.now, &self.corpus, &self.splitter, &self.weights);
        let likely = score::search(&self.corpus, &units, &self.weights).likely;
        let docs = &self.corpus.docs;
        let mut rest: Vec<usize> =
            (0..docs.len()).filter(|doc| likely[*doc] == 0.0 && docs[*doc].newest.is_none()).collect();
        rest.sort_by(|one, other| docs[*other].dated.cmp(&docs[*one].dated));
        for doc in self.order(&likely, count + SHORTLIST).into_iter().chain(rest) {
            let path = &docs[doc].path;
            if paths.len() < count && !paths.contains(path) && !self.is_over(path, question.now) {
                paths.push(path.clone());
            }
        }
        paths.truncate(count);
        paths
    }
}

/// Makes a memory that has all of the question sure if no other has nearly as much: in a series of similar memories
/// each has one thing of its own, which is less evidence than required.
fn make_sure_of_what_has_all(hits: &mut [(usize, Hit)], asked: usize) {
    let best = hits.iter().map(|(_, hit)| hit.share).fold(0.0, f32::max);
    let near = hits.iter().filter(|(_, hit)| hit.share > best * FAR_BEHIND).count();
    let has_all = |hit: &Hit| hit.share >= best.max(1.0) && hit.matched.len() == asked;
    if let (1, Some((_, hit))) = (near, hits.iter_mut().find(|(_, hit)| has_all(hit))) {
        hit.confidence = hit.confidence.max(SURE);
    }
}

/// Filters ranked memories to those surfaced: if the best one is sure, it and those with nearly as much of the
/// question; and the instructions for the turn's activity.
pub fn surfaced(hits: Vec<Hit>) -> Vec<Hit> {
    let likely = hits.iter().filter(|hit| hit.route == Route::Likeness && hit.confidence >= SURE);
    let best = likely.map(|hit| hit.share).reduce(f32::max);
    let follows = |hit: &Hit| best.is_some_and(|best| hit.share >= best * FOLLOWS);
    hits.into_iter().filter(|hit| hit.route == Route::Standing || follows(hit)).take(MOST).collect()
}
