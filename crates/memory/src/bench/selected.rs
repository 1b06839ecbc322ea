//! Quality of recall with a model to choose: the real path, from a shelf on disk to what is surfaced, with a selector
//! that is passed in and sees nothing but its request.

use std::sync::Arc;

use jiff::Timestamp;

use super::{LabelledQuestion, QuestionOutcome, QuestionSet};
use crate::rank::{Hit, RankQuestion, WorkAtHand};
use crate::recall::Need;
use crate::shelf::{Shelf, ShelfHit};
use crate::verdict::{self, CANDIDATES, RecallVerdict};

/// Outcome of a question with a model to choose.
#[derive(Debug, Clone)]
pub struct SelectionOutcome<'s> {
    /// The ranked and the finally surfaced memories.
    pub answer: QuestionOutcome<'s>,
    /// True if a wanted memory is among the candidates for a model, whether it was asked or not.
    pub is_candidate: bool,
    /// Bytes of the prompt for the model; `None` if it was not asked.
    pub asked: Option<usize>,
}

impl QuestionSet {
    /// Asks every question about its memories on a shelf. `select` gets a question and the prompt for a selector, and
    /// answers it.
    pub fn ask_with<'s>(
        &'s self,
        shelf: &Arc<Shelf>,
        now: Timestamp,
        select: impl Fn(&'s LabelledQuestion, &str) -> String,
    ) -> Vec<SelectionOutcome<'s>> {
        let shelves = [shelf.clone()];
        let ask = |question: &'s LabelledQuestion| {
            let doing = WorkAtHand { files: question.files.clone(), tools: Vec::new() };
            let asked = RankQuestion { text: &question.text, doing: &doing, now };
            let ranked = shelf.ranker().map(|ranker| ranker.rank(&asked)).unwrap_or_default();
            let paths = |found: Vec<ShelfHit>| found.into_iter().map(|found| found.hit.path).collect::<Vec<_>>();
            let is_wanted = |hit: &Hit| question.wanted.contains(&hit.path);
            let is_candidate = ranked.iter().take(CANDIDATES).any(is_wanted);
            let (surfaced, asked) = match verdict::verdict(&shelves, &asked, |_, _| true) {
                RecallVerdict::Silent => (Vec::new(), None),
                RecallVerdict::Sure(found) => (paths(found), None),
                RecallVerdict::Unsure { instructions, candidates, .. } => {
                    let need = verdict::question(&question.text, &candidates, &[], now);
                    let prompt = need.map(|Need::Select { prompt, .. }| prompt).unwrap_or_default();
                    let chosen = verdict::chosen(&select(question, &prompt), &candidates).unwrap_or_default();
                    let chosen = chosen.into_iter().map(|one| one.path.clone());
                    (paths(instructions).into_iter().chain(chosen).collect(), Some(prompt.len()))
                }
            };
            SelectionOutcome { answer: QuestionOutcome { question, ranked, surfaced }, is_candidate, asked }
        };
        self.questions.iter().map(ask).collect()
    }
}

/// The keys of the memories in a selector's prompt.
pub fn read_keys(prompt: &str) -> Vec<&str> {
    let memories = prompt.split_once("\n\nMemories:\n").map_or("", |(_, memories)| memories);
    let key = |line: &'_ str| -> Option<usize> { line.find(" (") };
    memories
        .lines()
        .filter_map(|line| line.strip_prefix("- "))
        .filter_map(|line| Some(&line[..key(line)?]))
        .map(|line| line.split_once("] ").map_or(line, |(_, path)| path))
        .collect()
}
