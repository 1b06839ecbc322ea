//! Which memories matter to a question, without a model.
//!
//! Two routes. **Likeness**: the question's words, weighed by how much each says, how much of that a memory covers
//! ([`query`], [`corpus`]), and whether it holds the kind of answer that is asked for ([`expected`]). **Standing
//! instructions**: what the turn does against what a memory applies to ([`standing`]). Either gives a confidence from 0
//! to 1, and if none reaches [`SURE`] nothing is surfaced: "nothing relevant" is an answer, and mostly the right one.
//!
//! The confidence is made from what a question leaves uncovered rather than from a score, since scores of different
//! questions cannot be compared: a question of which half the meaning is found nowhere is about something else.

mod aliases;
mod corpus;
mod dates;
mod expected;
mod lexicon;
mod polarity;
mod query;
mod rivals;
mod score;
mod standing;
pub(crate) mod words;

use std::collections::HashMap;

use files::Root;
use jiff::Timestamp;

use crate::entry::Memory;
use crate::error::Error;
use crate::scan;
use corpus::{Corpus, Words};
use standing::Turn;
use words::Splitter;

pub use score::{Route, SURE};
pub use standing::Doing;

/// How many are surfaced at most.
pub const MOST: usize = 5;

/// All memories of a directory, ready to be asked.
pub struct Ranker {
    splitter: Splitter,
    /// Each file's words, and the state of the file they were read from.
    known: HashMap<String, Known>,
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

/// A memory and how sure it is that it matters.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Its path, relative to the memory directory.
    pub path: String,
    /// How sure, from 0 to 1.
    pub confidence: f32,
    /// By which route it was found.
    pub route: Route,
    /// The words of the question it covers, and how well.
    pub matched: Vec<(String, f32)>,
    /// How much of what the question says it covers, from 0 to 1.
    pub coverage: f32,
    /// How much that is.
    pub evidence: f32,
    /// How much of its name and description the question covers, from 0 to 1.
    pub topic: f32,
    /// Older memories about the same thing, which it takes the place of.
    pub supersedes: Vec<String>,
    /// A newer memory about the same thing, which takes its place.
    pub superseded_by: Option<String>,
}

impl std::fmt::Debug for Ranker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ranker").field("memories", &self.len()).finish_non_exhaustive()
    }
}

impl Ranker {
    /// Reads all memories below a directory.
    pub fn load(root: &Root) -> Result<Self, Error> {
        let mut ranker = Self { splitter: Splitter::new(), known: HashMap::new(), corpus: Corpus::default() };
        ranker.reload(root)?;
        Ok(ranker)
    }

    /// A ranker over memories that are in hand.
    pub fn of(memories: &[Memory]) -> Self {
        let splitter = Splitter::new();
        let known = memories
            .iter()
            .map(|memory| {
                let words = Words::of(memory, &splitter);
                (memory.path.clone(), Known { modified: memory.modified, len: memory.len, words })
            })
            .collect();
        let mut ranker = Self { splitter, known, corpus: Corpus::default() };
        ranker.number();
        ranker
    }

    /// Reads what was added or changed since, forgets what is gone, and says how many files that were.
    pub fn reload(&mut self, root: &Root) -> Result<usize, Error> {
        let paths = scan::paths(root)?;
        let known = &self.known;
        let read: Vec<(String, Known)> = scan::each(&paths, |path| {
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
            Some((path.to_owned(), Known { modified: memory.modified, len: memory.len, words }))
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

    /// The memories that have anything to do with a question, the surest first.
    pub fn rank(&self, question: &Question<'_>) -> Vec<Hit> {
        let asked = query::read(question.text, question.now, &self.corpus, &self.splitter);
        let turn = Turn::of(question.text, &asked.tokens, question.doing, &self.splitter);
        let mut hits = score::hits(&self.corpus, &asked, &turn, question.now);
        rivals::settle(&self.corpus, &mut hits);
        hits.into_iter().map(|scored| scored.hit).collect()
    }

    /// The memories that are to be surfaced for a question: those it is sure of, at most [`MOST`], perhaps none. What
    /// `admit` refuses (already seen) is passed over.
    pub fn choose(&self, question: &Question<'_>, admit: impl Fn(&str) -> bool) -> Vec<Hit> {
        surfaced(self.rank(question).into_iter().filter(|hit| admit(&hit.path)).collect())
    }

    /// The paths of the `count` likeliest memories, for a manifest that cannot hold all.
    pub fn likeliest(&self, question: &Question<'_>, count: usize) -> Vec<String> {
        let mut paths: Vec<String> = self.rank(question).into_iter().take(count).map(|hit| hit.path).collect();
        let mut rest: Vec<_> = self.corpus.docs.iter().filter(|doc| !paths.contains(&doc.path)).collect();
        rest.sort_by(|one, other| other.dated.cmp(&one.dated).then_with(|| one.path.cmp(&other.path)));
        paths.extend(rest.into_iter().map(|doc| doc.path.clone()).take(count.saturating_sub(paths.len())));
        paths
    }
}

/// What of ranked memories is surfaced: if one of them is sure, all that are nearly as sure, without those that a newer
/// one takes the place of. That there is an answer is decided once; which of the likely ones it is, the reader sees.
pub fn surfaced(hits: Vec<Hit>) -> Vec<Hit> {
    let best = hits.iter().map(|hit| hit.confidence).fold(0.0, f32::max);
    let worth = |hit: &Hit| best >= SURE && hit.confidence >= best * score::NEARLY && hit.superseded_by.is_none();
    hits.into_iter().filter(worth).take(MOST).collect()
}
