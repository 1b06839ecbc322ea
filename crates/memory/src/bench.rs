//! How good recall without a model is, on a labelled set.
//!
//! A set is two files of lines with `|` between the fields: memories (`path | type | date | name | description | text`)
//! and questions (`kind | wanted paths or - | question | files touched`). A question that wants nothing is answered
//! rightly by surfacing nothing. The ranker was made with the first set in view, its weights were chosen on all three:
//! none of them is a clean hold-out any more.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;

use crate::entry::{Memory, parse_time};
use crate::rank::{self, Doing, Hit, Question, Ranker};
use crate::store::{self, New};
use crate::taxonomy::Kind;

/// A labelled set.
#[derive(Debug, Clone, Default)]
pub struct Set {
    /// The memories.
    pub memories: Vec<Memory>,
    /// The questions.
    pub questions: Vec<Labelled>,
}

/// A question and what it wants.
#[derive(Debug, Clone)]
pub struct Labelled {
    /// What is hard about it.
    pub kind: String,
    /// The paths that answer it, any of them; none if nothing does.
    pub wanted: Vec<String>,
    /// What is asked.
    pub text: String,
    /// The files the turn touches.
    pub files: Vec<String>,
}

/// How a question went.
#[derive(Debug, Clone)]
pub struct Answer<'s> {
    /// The question.
    pub question: &'s Labelled,
    /// What it was ranked to.
    pub ranked: Vec<Hit>,
    /// What was surfaced.
    pub surfaced: Vec<String>,
}

impl Set {
    /// Reads a set.
    pub fn read(memories: &str, questions: &str) -> Self {
        Self {
            memories: rows(memories).filter_map(|fields| memory(&fields)).collect(),
            questions: rows(questions)
                .filter(|fields| fields.len() >= 3)
                .map(|fields| Labelled {
                    kind: fields[0].to_owned(),
                    wanted: fields[1]
                        .split(',')
                        .map(str::trim)
                        .filter(|path| *path != "-")
                        .map(str::to_owned)
                        .collect(),
                    text: fields[2].to_owned(),
                    files: fields
                        .get(3)
                        .map(|files| files.split_whitespace().map(str::to_owned).collect())
                        .unwrap_or_default(),
                })
                .collect(),
        }
    }

    /// Asks every question.
    pub fn ask(&self, now: Timestamp) -> Vec<Answer<'_>> {
        let ranker = Ranker::of(&self.memories);
        self.questions
            .iter()
            .map(|question| {
                let doing = Doing { files: question.files.clone(), tools: Vec::new() };
                let ranked = ranker.rank(&Question { text: &question.text, doing: &doing, now });
                let surfaced = rank::surfaced(ranked.clone()).into_iter().map(|hit| hit.path).collect();
                Answer { question, ranked, surfaced }
            })
            .collect()
    }
}

fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|line| line.split(" | ").map(str::trim).collect())
}

fn memory(fields: &[&str]) -> Option<Memory> {
    let [path, kind, date, name, description, text] = fields else { return None };
    let new = New {
        path: Some((*path).to_owned()),
        name: (*name).to_owned(),
        description: (*description).to_owned(),
        kind: Kind::of(kind),
        applies_to: Vec::new(),
        body: (*text).to_owned(),
    };
    let file = store::render(&new);
    Some(Memory::parse(path, file.as_bytes(), parse_time(date), file.len() as u64))
}

/// The figures of some answers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Figures {
    /// Questions that something answers.
    pub answerable: usize,
    /// Of these, where the first surfaced memory is wanted.
    pub first: usize,
    /// Of these, where a surfaced memory is wanted. At most five are surfaced.
    pub five: usize,
    /// Of these, where one of the five likeliest is wanted, surfaced or not.
    pub ranked: usize,
    /// The sum of reciprocal ranks of the first wanted memory, surfaced or not.
    pub reciprocal: f64,
    /// Questions that nothing answers.
    pub unanswerable: usize,
    /// Of these, where nothing was surfaced.
    pub silent: usize,
}

impl Figures {
    /// Counts answers.
    pub fn of<'a, 's: 'a>(answers: impl IntoIterator<Item = &'a Answer<'s>>) -> Self {
        let mut figures = Self::default();
        for answer in answers {
            let wanted = &answer.question.wanted;
            if wanted.is_empty() {
                figures.unanswerable += 1;
                figures.silent += usize::from(answer.surfaced.is_empty());
                continue;
            }
            figures.answerable += 1;
            figures.first += usize::from(answer.surfaced.first().is_some_and(|path| wanted.contains(path)));
            figures.five += usize::from(answer.surfaced.iter().any(|path| wanted.contains(path)));
            let rank = answer.ranked.iter().position(|hit| wanted.contains(&hit.path));
            figures.ranked += usize::from(rank.is_some_and(|rank| rank < rank::MOST));
            figures.reciprocal += rank.map_or(0.0, |rank| 1.0 / (rank + 1) as f64);
        }
        figures
    }

    /// Recall@5 of the answerable, surfaced ones only.
    pub fn recall(&self) -> f64 {
        share(self.five, self.answerable)
    }

    /// The share of unanswerable questions that surfaced nothing.
    pub fn abstention(&self) -> f64 {
        share(self.silent, self.unanswerable)
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.answerable > 0 {
            let of = |part| 100.0 * share(part, self.answerable);
            write!(
                f,
                "{:4} answerable  R@1 {:5.1}  R@5 {:5.1}  (ranked {:5.1})  MRR {:.3}",
                self.answerable,
                of(self.first),
                of(self.five),
                of(self.ranked),
                self.reciprocal / self.answerable as f64
            )?;
        }
        if self.unanswerable > 0 {
            let gap = if self.answerable > 0 { "  " } else { "" };
            write!(f, "{gap}{:4} unanswerable  silent {:5.1}", self.unanswerable, 100.0 * self.abstention())?;
        }
        Ok(())
    }
}

/// The figures by kind of question.
pub fn by_kind(answers: &[Answer<'_>]) -> BTreeMap<String, Figures> {
    let mut kinds: BTreeMap<String, Vec<&Answer<'_>>> = BTreeMap::new();
    for answer in answers {
        kinds.entry(answer.question.kind.clone()).or_default().push(answer);
    }
    kinds.into_iter().map(|(kind, answers)| (kind, Figures::of(answers))).collect()
}

/// Every second question of a set, and the others: figures that hold for both are no chance.
pub fn halves<'a, 's>(answers: &'a [Answer<'s>]) -> (Vec<&'a Answer<'s>>, Vec<&'a Answer<'s>>) {
    let (mut tuned, mut held) = (Vec::new(), Vec::new());
    for (at, answer) in answers.iter().enumerate() {
        if at % 2 == 0 { tuned.push(answer) } else { held.push(answer) }
    }
    (tuned, held)
}
