//! The book of dreams: one line when a dream begins, one when it has ended. It lies outside the memory directory, and lines
//! are only added. What a dream changed stands in the run of changes that its line names.

use std::path::{Path, PathBuf};

use files::{Lines, Log, Text};
use jiff::{SignedDuration, Timestamp};
use memory::changes;
use serde::{Deserialize, Serialize};
use session::Home;
use transcript::Usage;

use super::lock::Mark;
use crate::saver::Removal;

/// Where books lie below the config home.
const FOLDER: &str = "cairn/dreams";

/// After a dream that did not come to its end none comes by itself for so long.
const REST: SignedDuration = SignedDuration::from_hours(1);
/// And after so many that failed in a row for so long: the next would too.
const LONG_REST: SignedDuration = SignedDuration::from_hours(24);
const FAILURES: usize = 3;

/// The book of one memory directory.
#[derive(Debug, Clone)]
pub struct DreamBook {
    path: PathBuf,
}

/// A dream's beginning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DreamStart {
    /// Its name.
    pub id: String,
    /// When.
    #[serde(with = "time")]
    pub at: Timestamp,
    /// The process.
    pub pid: u32,
    /// The model.
    pub model: String,
    /// How many sessions were touched since the one before.
    pub sessions: usize,
    /// When the one before was.
    #[serde(default, with = "time::optional")]
    pub before: Option<Timestamp>,
}

/// A dream's end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DreamFinish {
    /// Its name.
    pub id: String,
    /// When.
    #[serde(with = "time")]
    pub at: Timestamp,
    /// How.
    pub how: DreamOutcome,
    /// What it said of itself, or why it failed.
    pub text: String,
    /// The run of changes, if there are any.
    pub run: Option<String>,
    /// Memories that were made or changed.
    pub saved: Vec<String>,
    /// Memories that were removed.
    pub removed: Vec<String>,
    /// Why, and what took their place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removals: Vec<Removal>,
    /// Calls that were refused.
    pub denied: u32,
    /// Requests.
    pub rounds: u32,
    /// What they used.
    pub usage: Usage,
}

impl DreamFinish {
    /// One that came to its end at once, and did nothing.
    pub(super) fn of(id: String, at: Timestamp) -> Self {
        Self {
            id,
            at,
            how: DreamOutcome::Completed,
            text: String::new(),
            run: None,
            saved: Vec::new(),
            removed: Vec::new(),
            removals: Vec::new(),
            denied: 0,
            rounds: 0,
            usage: Usage::default(),
        }
    }
}

/// How a dream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DreamOutcome {
    /// It came to its end.
    Completed,
    /// Something went wrong.
    Failed,
    /// Somebody stopped it.
    Killed,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum DreamRecord {
    Began(DreamStart),
    Over(DreamFinish),
    Undone(DreamUndo),
}

/// A dream that was taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DreamUndo {
    /// Its name.
    pub id: String,
    /// When it was taken back.
    #[serde(with = "time")]
    pub at: Timestamp,
    /// The memories that were changed since, and stay as they are.
    pub kept: Vec<String>,
}

/// A dream, as the book has it.
#[derive(Debug, Clone, PartialEq)]
pub struct PastDream {
    /// How it began.
    pub began: DreamStart,
    /// How it ended; without an end it was cut off, or goes on.
    pub over: Option<DreamFinish>,
    /// Whether it was taken back.
    pub undone: Option<DreamUndo>,
}

impl DreamBook {
    /// The book of a memory directory.
    pub fn of(home: &Home, memory: &Path) -> Self {
        let mut path = changes::folder(&home.path().join(FOLDER), memory).into_os_string();
        path.push(".jsonl");
        Self { path: path.into() }
    }

    /// A dream begins.
    pub fn begin(&self, began: &DreamStart) -> Result<(), files::Error> {
        self.append(&DreamRecord::Began(began.clone()))
    }

    /// A dream has ended.
    pub fn end(&self, over: &DreamFinish) -> Result<(), files::Error> {
        self.append(&DreamRecord::Over(over.clone()))
    }

    /// A dream was taken back.
    pub fn undone(&self, undone: &DreamUndo) -> Result<(), files::Error> {
        self.append(&DreamRecord::Undone(undone.clone()))
    }

    /// All dreams, the newest first. What cannot be read is passed over.
    pub fn dreams(&self) -> Vec<PastDream> {
        let mut dreams: Vec<PastDream> = Vec::new();
        let Ok(mut lines) = Lines::open(&self.path) else { return dreams };
        while let Ok(Some(line)) = lines.next() {
            let Text::Whole(line) = line.text else { continue };
            match serde_json::from_slice(line) {
                Ok(DreamRecord::Began(began)) => dreams.push(PastDream { began, over: None, undone: None }),
                Ok(DreamRecord::Over(over)) => {
                    if let Some(dream) = dreams.iter_mut().rev().find(|dream| dream.began.id == over.id) {
                        dream.over = Some(over);
                    }
                }
                Ok(DreamRecord::Undone(undone)) => {
                    if let Some(dream) = dreams.iter_mut().rev().find(|dream| dream.began.id == undone.id) {
                        dream.undone = Some(undone);
                    }
                }
                Err(_) => {}
            }
        }
        dreams.reverse();
        dreams
    }

    /// Where the lock names a dream of ours that was cut off: when the one before it was.
    pub fn interrupted(&self, mark: &Mark) -> Option<Option<Timestamp>> {
        let newest = self.dreams().into_iter().next()?;
        let is_it = newest.over.is_none() && Some(newest.began.pid) == mark.holder;
        is_it.then_some(newest.began.before)
    }

    /// Until when no dream comes by itself, after ones that did not come to their end: an hour after one that failed or was
    /// cut off, a day after [`FAILURES`] in a row.
    pub fn rests_until(&self) -> Option<Timestamp> {
        let dreams = self.dreams();
        let newest = dreams.first()?;
        let ended = |dream: &PastDream| dream.over.as_ref().map(|over| over.how);
        if ended(newest) == Some(DreamOutcome::Completed) {
            return None;
        }
        let in_a_row = dreams.iter().take_while(|dream| ended(dream) != Some(DreamOutcome::Completed));
        let failures = in_a_row.filter(|dream| ended(dream) == Some(DreamOutcome::Failed)).count();
        let rest = if failures >= FAILURES { LONG_REST } else { REST };
        newest.over.as_ref().map_or(newest.began.at, |over| over.at).checked_add(rest).ok()
    }

    fn append(&self, entry: &DreamRecord) -> Result<(), files::Error> {
        let line = serde_json::to_vec(entry).unwrap_or_default();
        Log::open(&self.path, "a dream")?.append(&line)
    }
}

/// A time as text.
mod time {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(at: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(at)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }

    pub(super) mod optional {
        use super::*;

        pub(in super::super) fn serialize<S: Serializer>(at: &Option<Timestamp>, to: S) -> Result<S::Ok, S::Error> {
            match at {
                Some(at) => to.collect_str(at),
                None => to.serialize_none(),
            }
        }

        pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
            let text = Option::<String>::deserialize(from)?;
            text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DREAM-5: what is written stays, in order; a dream without an end is known as one that was cut off.
    #[test]
    fn the_book_knows_dreams_that_were_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let book = DreamBook::of(&Home::at(folder.path()), Path::new("/m/memory"));
        let at = |second| Timestamp::from_second(second).unwrap();
        let began = |id: &str, pid, before| DreamStart {
            id: id.into(),
            at: at(100),
            pid,
            model: "m".into(),
            sessions: 5,
            before,
        };
        let over = DreamFinish {
            id: "one".into(),
            at: at(200),
            how: DreamOutcome::Completed,
            text: "Merged.".into(),
            run: Some("r".into()),
            saved: vec!["a.md".into()],
            removed: Vec::new(),
            removals: Vec::new(),
            denied: 1,
            rounds: 2,
            usage: Usage::default(),
        };
        let mark = |holder| Mark { holder: Some(holder), dreamt: Some(at(100)) };
        assert_eq!((book.dreams(), book.interrupted(&mark(7))), (Vec::new(), None));
        book.begin(&began("one", 7, None)).unwrap();
        assert_eq!(book.interrupted(&mark(7)), Some(None));
        book.end(&over).unwrap();
        assert_eq!(book.interrupted(&mark(7)), None, "it came to its end");
        book.begin(&began("two", 8, Some(at(100)))).unwrap();
        assert_eq!((book.interrupted(&mark(8)), book.interrupted(&mark(9))), (Some(Some(at(100))), None));
        let ids: Vec<(String, bool)> =
            book.dreams().into_iter().map(|dream| (dream.began.id, dream.over.is_some())).collect();
        assert_eq!(ids, [("two".to_owned(), false), ("one".to_owned(), true)]);
    }
}
