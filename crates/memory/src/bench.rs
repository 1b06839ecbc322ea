//! Quality of recall without a model, on a labelled set.
//!
//! A set is two files of lines with `|` between the fields: memories (`path | type | date | name | description | text`)
//! and questions (`kind | wanted paths or - | question | files touched`). Beside them are the questions that each
//! memory says it answers (`path | questions`), written by a model that was shown the memories alone. A question that
//! wants nothing is answered correctly by surfacing nothing. The ranker's few numbers are fitted on every second
//! question of the first three sets; figures come from the others, and from sets written when the ranker was done.

mod plain;
mod ranker_comparison;
mod selected;

use std::collections::BTreeMap;
use std::fmt;

use jiff::{SignedDuration, Timestamp};

use crate::entry::{Memory, parse_time};
use crate::rank::{self, Hit, RankQuestion, Ranker, Route, WorkAtHand};
use crate::store::{self, NewMemory};
use crate::taxonomy::Kind;
use crate::verdict::CANDIDATES;

pub use plain::Plain;
pub use ranker_comparison::{Comparison, Difference};
pub use selected::{SelectionOutcome, read_keys};

/// The sets the numbers are fitted on: one half of them.
const SETS: [(&str, &str); 3] = [
    (include_str!("../tests/recall/memories.txt"), include_str!("../tests/recall/queries.txt")),
    (include_str!("../tests/recall/other_memories.txt"), include_str!("../tests/recall/other_queries.txt")),
    (include_str!("../tests/recall/third_memories.txt"), include_str!("../tests/recall/third_queries.txt")),
];

/// Half of the questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionHalf {
    /// The first, third, fifth …: numbers are fitted on these.
    Fitting = 0,
    /// The others: figures come from these.
    Telling = 1,
}

/// The repository's sets, each with questions of the others that nothing answers there: as they are (`foreign`), and with
/// one of its own names in them (`near`).
pub fn repository(half: QuestionHalf) -> Vec<QuestionSet> {
    let whole: Vec<QuestionSet> =
        SETS.iter().map(|(memories, questions)| QuestionSet::read(memories, questions)).collect();
    let part = |set: &QuestionSet| QuestionSet {
        memories: set.memories.clone(),
        questions: set.questions.iter().skip(half as usize).step_by(2).cloned().collect(),
    };
    let with_others = |at: usize| {
        let mut set = part(&whole[at]);
        for other in (0..whole.len()).filter(|other| *other != at) {
            set.questions.extend(set.not_ours(&part(&whole[other])));
        }
        set
    };
    (0..whole.len()).map(with_others).collect()
}

/// The questions that the repository's memories say they answer, set by set.
pub const ASKED: [&str; 3] = [
    include_str!("../tests/recall/memories_asked.txt"),
    include_str!("../tests/recall/other_memories_asked.txt"),
    include_str!("../tests/recall/third_memories_asked.txt"),
];

/// Ten projects by other writers: the order is fitted on one ten, figures come from the other.
pub fn projects(half: QuestionHalf) -> Vec<QuestionSet> {
    QuestionSet::projects(match half {
        QuestionHalf::Fitting => include_str!("../tests/recall/projects_fitting.txt"),
        QuestionHalf::Telling => include_str!("../tests/recall/projects_telling.txt"),
    })
}

/// Sets from other trades, each written when a ranker was done and not looked at again, with the questions that their
/// memories say they answer.
const AFTERWARDS: [(&str, &str, &str); 5] = [
    (
        include_str!("../tests/recall/fourth_memories.txt"),
        include_str!("../tests/recall/fourth_queries.txt"),
        include_str!("../tests/recall/fourth_memories_asked.txt"),
    ),
    (
        include_str!("../tests/recall/fifth_memories.txt"),
        include_str!("../tests/recall/fifth_queries.txt"),
        include_str!("../tests/recall/fifth_memories_asked.txt"),
    ),
    (
        include_str!("../tests/recall/sixth_memories.txt"),
        include_str!("../tests/recall/sixth_queries.txt"),
        include_str!("../tests/recall/sixth_memories_asked.txt"),
    ),
    (
        include_str!("../tests/recall/seventh_memories.txt"),
        include_str!("../tests/recall/seventh_queries.txt"),
        include_str!("../tests/recall/seventh_memories_asked.txt"),
    ),
    (
        include_str!("../tests/recall/eighth_memories.txt"),
        include_str!("../tests/recall/eighth_queries.txt"),
        include_str!("../tests/recall/eighth_memories_asked.txt"),
    ),
];

/// The sets written afterwards.
pub fn afterwards() -> Vec<QuestionSet> {
    AFTERWARDS.iter().map(|(memories, questions, _)| QuestionSet::read(memories, questions)).collect()
}

/// The same with the questions that their memories say they answer.
pub fn afterwards_asked() -> Vec<QuestionSet> {
    afterwards().iter().zip(AFTERWARDS).map(|(set, (_, _, asked))| set.with_asked(asked)).collect()
}

/// Projects whose memories and questions have different writers, asked once when the order was found.
pub fn projects_afterwards() -> Vec<QuestionSet> {
    QuestionSet::projects(include_str!("../tests/recall/projects_afterwards.txt"))
}

/// A labelled set.
#[derive(Debug, Clone, Default)]
pub struct QuestionSet {
    /// The memories.
    pub memories: Vec<Memory>,
    /// The questions.
    pub questions: Vec<LabelledQuestion>,
}

/// A question and its expected answers.
#[derive(Debug, Clone)]
pub struct LabelledQuestion {
    /// Its kind of difficulty.
    pub kind: String,
    /// Paths that answer it, any of them; empty if none does.
    pub wanted: Vec<String>,
    /// The question.
    pub text: String,
    /// The files the turn touches.
    pub files: Vec<String>,
}

/// Outcome of a question.
#[derive(Debug, Clone)]
pub struct QuestionOutcome<'s> {
    /// The question.
    pub question: &'s LabelledQuestion,
    /// The ranked memories.
    pub ranked: Vec<Hit>,
    /// The surfaced memories.
    pub surfaced: Vec<String>,
}

impl QuestionSet {
    /// Reads a set.
    pub fn read(memories: &str, questions: &str) -> Self {
        Self {
            memories: rows(memories).filter_map(|fields| memory(&fields)).collect(),
            questions: rows(questions)
                .filter(|fields| fields.len() >= 3)
                .map(|fields| LabelledQuestion {
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

    /// Reads projects, one after the other: `## whose notes`, then each memory (`### name | description`, and its text
    /// on a line) with the questions it answers, literal (`?`) and paraphrased (`~`), and at the end questions that
    /// nothing answers (`-`) or of which only the topic is known (`=`).
    pub fn projects(text: &str) -> Vec<Self> {
        format!("\n{text}").split("\n## ").skip(1).map(Self::project).collect()
    }

    fn project(text: &str) -> Self {
        let mut set = Self::default();
        let mut title = None;
        for line in text.lines() {
            let asks = [("? ", "plain"), ("~ ", "reworded"), ("- ", "none"), ("= ", "known")]
                .iter()
                .find_map(|(sign, kind)| Some((*kind, line.strip_prefix(sign)?)));
            if let Some((kind, asked)) = asks {
                let answered = matches!(kind, "plain" | "reworded");
                let wanted = set.memories.last().filter(|_| answered).map(|memory| memory.path.clone());
                let (kind, text) = (kind.to_owned(), asked.to_owned());
                set.questions.push(LabelledQuestion {
                    kind,
                    wanted: wanted.into_iter().collect(),
                    text,
                    files: Vec::new(),
                });
            } else if let Some((name, description)) = line.strip_prefix("### ").and_then(|line| line.split_once(" | "))
            {
                title = Some((name, description));
            } else if let Some((name, description)) = title.take() {
                let path = format!("{name}.md");
                set.memories.extend(memory(&[&path, "project", "", name, description, line]));
            }
        }
        set
    }

    /// Joins sets in one directory, a folder for each.
    pub fn side_by_side(sets: &[Self]) -> Self {
        let mut all = Self::default();
        for (at, set) in sets.iter().enumerate() {
            let moved = |path: &String| format!("set{at}/{path}");
            all.memories
                .extend(set.memories.iter().map(|memory| Memory { path: moved(&memory.path), ..memory.clone() }));
            all.questions.extend(set.questions.iter().map(|question| LabelledQuestion {
                wanted: question.wanted.iter().map(moved).collect(),
                ..question.clone()
            }));
        }
        all
    }

    /// The same set where each memory begins with a line that all share, and each run of eight has the same date.
    pub fn with_common_line(&self, first_day: Timestamp) -> Self {
        let mut set = self.clone();
        for (at, memory) in set.memories.iter_mut().enumerate() {
            let dated =
                first_day + SignedDuration::from_hours(24 * (at / 8) as i64) + SignedDuration::from_secs(at as i64);
            let day = dated.strftime("%Y-%m-%d");
            memory.dated = Some(dated);
            memory.body =
                format!("Session of {day}, noted for the user after a talk about the project.\n\n{}", memory.body);
        }
        set
    }

    /// The same set with the questions that its memories say they answer.
    pub fn with_asked(&self, asked: &str) -> Self {
        let mut set = self.clone();
        let asked: BTreeMap<&str, &str> = asked.lines().filter_map(|line| line.split_once(" | ")).collect();
        for memory in &mut set.memories {
            memory.asked = asked.get(memory.path.as_str()).map(|text| (*text).to_owned());
        }
        set
    }

    /// Asks every question.
    pub fn ask(&self, now: Timestamp) -> Vec<QuestionOutcome<'_>> {
        self.ask_of(&Ranker::of(&self.memories), now)
    }

    /// The answerable questions of another set, which nothing here answers: unchanged, and with one of this set's names
    /// in each, so that they look like ours.
    pub fn not_ours(&self, other: &QuestionSet) -> Vec<LabelledQuestion> {
        let names = self.names();
        // To a request for work, standing instructions apply wherever it comes from.
        let foreign =
            other.questions.iter().filter(|question| !question.wanted.is_empty() && question.kind != "standing");
        let mut questions = Vec::new();
        for (at, question) in foreign.enumerate() {
            let unwanted = |kind: &str, text: String| LabelledQuestion {
                kind: kind.to_owned(),
                wanted: Vec::new(),
                text,
                files: Vec::new(),
            };
            questions.push(unwanted("foreign", question.text.clone()));
            if let Some(name) = (!names.is_empty()).then(|| &names[at * 7 % names.len()]) {
                let text = question.text.trim_end_matches(['?', '.', '？']);
                questions.push(unwanted("near", format!("{text} in {name}?")));
            }
        }
        questions
    }

    /// One word of each memory that is written like a name: capitalised inside a sentence, or with a digit.
    fn names(&self) -> Vec<String> {
        let is_name = |word: &&str| word.len() > 2 && word.chars().any(|c| c.is_uppercase() || c.is_ascii_digit());
        let mut names: Vec<String> = Vec::new();
        for memory in &self.memories {
            let about = memory.description.as_deref().unwrap_or_default();
            let about = about.split_once(' ').map_or("", |(_, inside)| inside);
            let mut words = memory.name.split(' ').chain(about.split(' '));
            let word = words.find(is_name).map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase());
            names.extend(word);
        }
        names.sort();
        names.dedup();
        names
    }

    /// Asks every question of a ranker.
    pub fn ask_of(&self, ranker: &Ranker, now: Timestamp) -> Vec<QuestionOutcome<'_>> {
        self.questions
            .iter()
            .map(|question| {
                let doing = WorkAtHand { files: question.files.clone(), tools: Vec::new() };
                let ranked = ranker.rank(&RankQuestion { text: &question.text, doing: &doing, now });
                let surfaced = rank::surfaced(ranked.clone()).into_iter().map(|hit| hit.path).collect();
                QuestionOutcome { question, ranked, surfaced }
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
    let new = NewMemory {
        path: Some((*path).to_owned()),
        name: (*name).to_owned(),
        description: (*description).to_owned(),
        kind: Kind::of(kind),
        body: (*text).to_owned(),
        ..NewMemory::default()
    };
    let file = store::render(&new);
    Some(Memory::parse(path, file.as_bytes(), parse_time(date), file.len() as u64))
}

/// The figures of some answers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RecallFigures {
    /// Answerable questions.
    pub answerable: usize,
    /// Of these, those whose top memory is wanted, surfaced or not.
    pub first: usize,
    /// Of these, those with a wanted memory in the top five, surfaced or not.
    pub five: usize,
    /// Sum of reciprocal ranks of the first wanted memory, surfaced or not.
    pub reciprocal: f64,
    /// Of these, those with a wanted memory surfaced. At most five are surfaced.
    pub surfaced: usize,
    /// Of the questions whose top memory is wanted, those with a wanted memory surfaced.
    pub surfaced_of_first: usize,
    /// Memories surfaced for answerable questions.
    pub shown: usize,
    /// Of these, those that are wanted.
    pub right: usize,
    /// Of the answerable questions, those with a wanted memory surfaced without a model or among the candidates for
    /// one.
    pub within_reach: usize,
    /// Of all questions, those that a model would be asked about.
    pub left_to_a_model: usize,
    /// Unanswerable questions.
    pub unanswerable: usize,
    /// Of these, those with nothing surfaced.
    pub silent: usize,
}

impl RecallFigures {
    /// Counts answers.
    pub fn of<'a, 's: 'a>(answers: impl IntoIterator<Item = &'a QuestionOutcome<'s>>) -> Self {
        let mut figures = Self::default();
        for answer in answers {
            let wanted = &answer.question.wanted;
            let evident = |hit: &Hit| hit.route == Route::Likeness && hit.has_evidence();
            let is_certain = answer.ranked.iter().any(Hit::has_nearly_all);
            let asks = !is_certain && answer.ranked.iter().any(evident);
            figures.left_to_a_model += usize::from(asks);
            if wanted.is_empty() {
                figures.unanswerable += 1;
                figures.silent += usize::from(answer.surfaced.is_empty());
                continue;
            }
            let rank = answer.ranked.iter().position(|hit| wanted.contains(&hit.path));
            let right = answer.surfaced.iter().filter(|path| wanted.contains(path)).count();
            figures.answerable += 1;
            figures.first += usize::from(rank == Some(0));
            figures.five += usize::from(rank.is_some_and(|rank| rank < rank::MOST));
            figures.reciprocal += rank.map_or(0.0, |rank| 1.0 / (rank + 1) as f64);
            let among = asks && rank.is_some_and(|rank| rank < CANDIDATES);
            figures.within_reach += usize::from(among || is_certain && right > 0);
            figures.surfaced += usize::from(right > 0);
            figures.surfaced_of_first += usize::from(right > 0 && rank == Some(0));
            figures.shown += answer.surfaced.len();
            figures.right += right;
        }
        figures
    }

    /// R@1: share of the answerable questions whose top memory is wanted, surfaced or not.
    pub fn first(&self) -> f64 {
        share(self.first, self.answerable)
    }

    /// R@5: share of the answerable questions with a wanted memory in the top five, surfaced or not.
    pub fn five(&self) -> f64 {
        share(self.five, self.answerable)
    }

    /// Mean reciprocal rank of the first wanted memory.
    pub fn mrr(&self) -> f64 {
        self.reciprocal / self.answerable.max(1) as f64
    }

    /// Share of the answerable questions with a wanted memory surfaced.
    pub fn surfaced(&self) -> f64 {
        share(self.surfaced, self.answerable)
    }

    /// The same share of those whose top memory is wanted.
    pub fn surfaced_of_first(&self) -> f64 {
        share(self.surfaced_of_first, self.first)
    }

    /// Share of the surfaced memories that are wanted, for answerable questions.
    pub fn right(&self) -> f64 {
        share(self.right, self.shown)
    }

    /// Share of the answerable questions with a wanted memory surfaced without a model, or among the candidates for
    /// one.
    pub fn within_reach(&self) -> f64 {
        share(self.within_reach, self.answerable)
    }

    /// Share of all questions that a model would be asked about.
    pub fn left_to_a_model(&self) -> f64 {
        share(self.left_to_a_model, self.answerable + self.unanswerable)
    }

    /// Share of the unanswerable questions with nothing surfaced.
    pub fn silent(&self) -> f64 {
        share(self.silent, self.unanswerable)
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

impl fmt::Display for RecallFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.answerable > 0 {
            write!(
                f,
                "{:4} answerable  surfaced {:5.1}  right {:5.1}  ranked R@1 {:5.1}  R@5 {:5.1}  MRR {:.3}",
                self.answerable,
                100.0 * self.surfaced(),
                100.0 * self.right(),
                100.0 * self.first(),
                100.0 * self.five(),
                self.mrr()
            )?;
        }
        if self.unanswerable > 0 {
            let gap = if self.answerable > 0 { "  " } else { "" };
            write!(f, "{gap}{:4} unanswerable  silent {:5.1}", self.unanswerable, 100.0 * self.silent())?;
        }
        if self.answerable > 0 {
            write!(f, "  within reach {:5.1}", 100.0 * self.within_reach())?;
        }
        write!(f, "  left to a model {:5.1}", 100.0 * self.left_to_a_model())?;
        Ok(())
    }
}

/// Figures by kind of question.
pub fn by_kind(answers: &[QuestionOutcome<'_>]) -> BTreeMap<String, RecallFigures> {
    let mut kinds: BTreeMap<String, Vec<&QuestionOutcome<'_>>> = BTreeMap::new();
    for answer in answers {
        kinds.entry(answer.question.kind.clone()).or_default().push(answer);
    }
    kinds.into_iter().map(|(kind, answers)| (kind, RecallFigures::of(answers))).collect()
}
