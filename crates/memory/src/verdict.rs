//! Sure, unsure or silent: the answer of memory to a message before any model is asked.
//!
//! The ranker orders well and judges badly: it can tell that a topic is known, but not that the answer is. So a memory
//! that has nearly all of the question is surfaced at once; if there is no evidence for any memory, no model is asked;
//! and between the two a small model reads the top few, with the beginning of their text, and chooses. If there is no
//! model, or it does not answer, the memories that the ranker is sure of are surfaced.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;

use crate::age;
use crate::entry::Memory;
use crate::quoting;
use crate::rank::{self, Hit, OlderMemory, RankQuestion, Route, surfaced};
use crate::recall::Need;
use crate::recall::selection;
use crate::scan::one_line;
use crate::shelf::{Shelf, ShelfHit};
use crate::taxonomy::Kind;

/// Number of candidates shown to a model. The right one is among them for nine of ten questions.
pub const CANDIDATES: usize = 12;

/// Characters of a candidate's text shown to a model.
pub const BEGINNING: usize = 300;

/// Bytes of a message shown to a model, from its beginning and from its end.
const MESSAGE: usize = 4_000;

/// Answer of memory to a message.
#[derive(Debug, Clone)]
pub enum RecallVerdict {
    /// These are surfaced, and no model is asked.
    Sure(Vec<ShelfHit>),
    /// These may be relevant: a model is to choose among them. Instructions for the turn's activity are surfaced at
    /// once.
    Unsure {
        /// The instructions.
        instructions: Vec<ShelfHit>,
        /// The memories surfaced if no model answers: the instructions, and those that the ranker is sure of.
        without_model: Vec<ShelfHit>,
        /// Candidates, best first; all memories if they are few.
        candidates: Vec<RecallCandidate>,
    },
    /// There is nothing to surface, and nothing worth asking a model.
    Silent,
}

/// A memory that may be relevant, with as much of it as a model needs to judge.
#[derive(Debug, Clone)]
pub struct RecallCandidate {
    /// Its shelf.
    pub shelf: Arc<Shelf>,
    /// Its path, relative to the shelf.
    pub path: String,
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Option<Kind>,
    /// Its description.
    pub description: Option<String>,
    /// The questions it says it answers.
    pub asked: Option<String>,
    /// The beginning of its text.
    pub beginning: String,
    /// Time of its last change.
    pub dated: Option<Timestamp>,
    /// Older ones that say the same with other values.
    pub older: Vec<OlderMemory>,
}

/// Decides what a message gets from some shelves. Memories that `admit` refuses (already seen) are skipped.
pub fn verdict(
    shelves: &[Arc<Shelf>],
    question: &RankQuestion<'_>,
    admit: impl Fn(&Shelf, &str) -> bool,
) -> RecallVerdict {
    let mut ranked: Vec<ShelfHit> = Vec::new();
    let mut all: Vec<(Arc<Shelf>, String)> = Vec::new();
    for shelf in shelves {
        let Some(ranker) = shelf.ranker() else { continue };
        let admitted = ranker.rank(question).into_iter().filter(|hit| admit(shelf, &hit.path));
        ranked.extend(admitted.map(|hit| ShelfHit { shelf: shelf.clone(), hit }));
        if ranker.len() <= CANDIDATES {
            let paths = ranker.likeliest(question, CANDIDATES).into_iter().filter(|path| admit(shelf, path));
            all.extend(paths.map(|path| (shelf.clone(), path)));
        }
    }
    if shelves.len() > 1 {
        ranked.sort_by(|one, other| other.hit.confidence.total_cmp(&one.hit.confidence));
    }
    let hits: Vec<Hit> = ranked.iter().map(|found| found.hit.clone()).collect();
    let likely = |hit: &Hit| hit.route == Route::Likeness;
    let chosen = surfaced(hits.clone());
    let to_surface = |wanted: &dyn Fn(&Hit) -> bool| -> Vec<ShelfHit> {
        ranked
            .iter()
            .filter(|found| chosen.contains(&found.hit) && wanted(&found.hit))
            .take(rank::MOST)
            .cloned()
            .collect()
    };
    let without_model = to_surface(&|_| true);
    if chosen.iter().any(Hit::has_nearly_all) {
        return RecallVerdict::Sure(without_model);
    }
    let instructions = to_surface(&|hit| !likely(hit));
    if !hits.iter().any(|hit| likely(hit) && hit.has_evidence()) {
        return if instructions.is_empty() { RecallVerdict::Silent } else { RecallVerdict::Sure(instructions) };
    }
    let mut candidates: Vec<RecallCandidate> = Vec::new();
    let by_rank = ranked.iter().map(|found| (found.shelf.clone(), found.hit.path.clone(), found.hit.older.clone()));
    let few = shelves.iter().filter_map(|shelf| shelf.ranker()).map(|ranker| ranker.len()).sum::<usize>() <= CANDIDATES;
    let rest = all.into_iter().filter(|_| few).map(|(shelf, path)| (shelf, path, Vec::new()));
    for (shelf, path, older) in by_rank.chain(rest) {
        let is = |shelf: &Arc<Shelf>, path: &str, other: &Arc<Shelf>, known: &str| {
            Arc::ptr_eq(shelf, other) && path == known
        };
        let known = candidates.iter().any(|one| is(&one.shelf, &one.path, &shelf, &path))
            || instructions.iter().any(|one| is(&one.shelf, &one.hit.path, &shelf, &path));
        if candidates.len() < CANDIDATES && !known {
            candidates.extend(RecallCandidate::read(shelf, &path, older));
        }
    }
    RecallVerdict::Unsure { instructions, without_model, candidates }
}

impl RecallCandidate {
    fn read(shelf: Arc<Shelf>, path: &str, older: Vec<OlderMemory>) -> Option<Self> {
        let memory = Memory::read(shelf.root(), path).ok()?;
        Some(Self {
            path: path.to_owned(),
            name: memory.name,
            kind: memory.kind,
            description: memory.description,
            asked: memory.asked,
            beginning: memory.body.trim().chars().take(BEGINNING).collect(),
            dated: memory.dated,
            older,
            shelf,
        })
    }

    /// Its id for a model, which returns it to choose the memory.
    pub fn key(&self) -> String {
        self.shelf.key(&self.path)
    }

    /// Its rendering for a model. Its text is data: tags in it are made harmless.
    fn shown(&self, now: Timestamp) -> String {
        let kind = self.kind.map(|kind| format!("[{kind}] ")).unwrap_or_default();
        let age = age::words(age::days(self.dated, now));
        let mut lines = vec![format!("- {kind}{} ({age}): {}", self.key(), one_line(&self.name, 200))];
        let part = |label: &str, text: &Option<String>| Some(format!("  {label}: {}", one_line(text.as_deref()?, 500)));
        lines.extend(part("about", &self.description));
        lines.extend(part("answers", &self.asked));
        if !self.beginning.is_empty() {
            let cut = if self.beginning.chars().count() == BEGINNING { "…" } else { "" };
            let text = self.beginning.split_whitespace().collect::<Vec<_>>().join(" ");
            lines.push(format!("  text: {text}{cut}"));
        }
        lines.extend(self.older.iter().map(|older| format!("  older, with other values: {older}")));
        quoting::quoted(&lines.join("\n")).into_owned()
    }
}

/// The question to a model as to which candidates are relevant; `None` if there are none.
pub fn question(
    message: &str,
    candidates: &[RecallCandidate],
    recent_tools: &[String],
    now: Timestamp,
) -> Option<Need> {
    if candidates.is_empty() {
        return None;
    }
    let shown: Vec<String> = candidates.iter().map(|one| one.shown(now)).collect();
    Some(selection(&shortened(message), &shown.join("\n"), recent_tools, now))
}

/// The candidates that a model chose: each once, at most five. An unreadable answer is an error of the model; text
/// around the JSON is not, nor is a file's name without its folder if it is unique.
pub fn chosen<'c>(
    answer: &str,
    candidates: &'c [RecallCandidate],
) -> Result<Vec<&'c RecallCandidate>, serde_json::Error> {
    #[derive(Deserialize)]
    struct SelectorAnswer {
        selected_memories: Vec<String>,
    }
    let (from, to) = (answer.find('{'), answer.rfind('}'));
    let json = from.zip(to).and_then(|(from, to)| answer.get(from..=to)).unwrap_or(answer);
    let answer: SelectorAnswer = serde_json::from_str(json)?;
    let mut chosen: Vec<&RecallCandidate> = Vec::new();
    for key in answer.selected_memories {
        let mut by_name = candidates.iter().filter(|one| one.key().rsplit('/').next() == Some(&key));
        let by_name = by_name.next().filter(|_| by_name.next().is_none());
        let found = candidates.iter().find(|one| one.key() == key).or(by_name);
        let fresh =
            found.filter(|one| chosen.len() < rank::MOST && !chosen.iter().any(|known| known.key() == one.key()));
        chosen.extend(fresh);
    }
    Ok(chosen)
}

/// The beginning and the end of a long message: text pasted in between does not help to choose.
fn shortened(message: &str) -> String {
    if message.len() <= 2 * MESSAGE {
        return message.to_owned();
    }
    let (beginning, end) = (message.floor_char_boundary(MESSAGE), message.ceil_char_boundary(message.len() - MESSAGE));
    format!("{}\n[…]\n{}", &message[..beginning], &message[end..])
}
