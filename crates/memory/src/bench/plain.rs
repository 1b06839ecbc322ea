//! Baseline of the ranker: BM25 as in a textbook. One field, stop words, Snowball's stems, k1 1.2, b 0.75.

use std::collections::HashMap;

use super::{QuestionOutcome, QuestionSet};
use crate::entry::Memory;
use crate::rank::words::Splitter;
use crate::rank::{ConfidenceFigures, Hit, Route};

const K1: f64 = 1.2;
const B: f64 = 0.75;

/// Memories, ready for BM25.
#[derive(Debug)]
pub struct Plain {
    docs: Vec<(String, HashMap<String, f64>, f64)>,
    /// Number of memories that contain each word.
    having: HashMap<String, f64>,
    average: f64,
}

impl Plain {
    /// Indexes memories.
    pub fn of(memories: &[Memory]) -> Self {
        let splitter = Splitter::new();
        let docs: Vec<_> = memories
            .iter()
            .map(|memory| {
                let about = memory.description.as_deref().unwrap_or_default();
                let asked = memory.asked.as_deref().unwrap_or_default();
                let mut counts = HashMap::new();
                for word in words(&format!("{}\n{about}\n{asked}\n{}", memory.name, memory.body), &splitter) {
                    *counts.entry(word).or_insert(0.0) += 1.0;
                }
                let length = counts.values().sum();
                (memory.path.clone(), counts, length)
            })
            .collect();
        let average = docs.iter().map(|doc| doc.2).sum::<f64>() / docs.len().max(1) as f64;
        let mut having = HashMap::new();
        for word in docs.iter().flat_map(|doc| doc.1.keys()) {
            *having.entry(word.clone()).or_insert(0.0) += 1.0;
        }
        Self { docs, having, average }
    }

    /// Paths, best first.
    pub fn rank(&self, question: &str) -> Vec<String> {
        self.scored(question).into_iter().map(|(_, path)| path).collect()
    }

    /// Paths with their scores, best first.
    pub fn scored(&self, question: &str) -> Vec<(f64, String)> {
        let splitter = Splitter::new();
        let asked = words(question, &splitter);
        let all = self.docs.len() as f64;
        let mut scored: Vec<(f64, &str)> = Vec::new();
        for (path, counts, length) in &self.docs {
            let mut score = 0.0;
            for word in &asked {
                let Some(count) = counts.get(word) else { continue };
                let has = self.having.get(word).copied().unwrap_or_default();
                let rarity = (1.0 + (all - has + 0.5) / (has + 0.5)).ln();
                score += rarity * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length / self.average));
            }
            if score > 0.0 {
                scored.push((score, path));
            }
        }
        scored.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(other.1)));
        scored.into_iter().map(|(score, path)| (score, path.to_owned())).collect()
    }

    /// Asks every question of a set. It is never silent, and never sure: its scores, given as shares, decide what would
    /// be surfaced.
    pub fn ask<'s>(&self, set: &'s QuestionSet) -> Vec<QuestionOutcome<'s>> {
        let hit = |(score, path): (f64, String)| Hit {
            path,
            confidence: 0.0,
            route: Route::Likeness,
            share: score as f32,
            figures: ConfidenceFigures::default(),
            matched: Vec::new(),
            older: Vec::new(),
        };
        let answer = |question| QuestionOutcome { question, ranked: Vec::new(), surfaced: Vec::new() };
        let ask = |question: &'s super::LabelledQuestion| {
            let ranked = self.scored(&question.text).into_iter().map(hit).collect();
            QuestionOutcome { ranked, ..answer(question) }
        };
        set.questions.iter().map(ask).collect()
    }
}

/// The stems of a text's words; for scripts without spaces, pairs of characters.
fn words(text: &str, splitter: &Splitter) -> Vec<String> {
    splitter.split(text).into_iter().filter(|token| !token.stop).map(|token| token.text.to_string()).collect()
}
