//! The log of dreams: one line when a dream begins, one when it has ended. It is kept outside the memory directory,
//! and lines are only added. The changes of a dream are in the run of changes that its line names.

use std::path::{Path, PathBuf};

use files::{Lines, Log, Text};
use jiff::{SignedDuration, Timestamp};
use memory::changes;
use serde::{Deserialize, Serialize};
use session::Home;
use transcript::Usage;

use super::lock::Mark;
use crate::saver::Removal;

/// Folder of the books below the config home.
const FOLDER: &str = "cairn/dreams";

/// Time without automatic dreams after one that did not finish.
const REST: SignedDuration = SignedDuration::from_hours(1);
/// Time without automatic dreams after several failures in a row: the next would fail too.
const LONG_REST: SignedDuration = SignedDuration::from_hours(24);
const FAILURES: usize = 3;

/// The log of one memory directory.
#[derive(Debug, Clone)]
pub struct DreamLog {
    path: PathBuf,
}

/// A dream's beginning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DreamStart {
    /// Its id.
    pub id: String,
    /// Its time.
    #[serde(with = "time")]
    pub at: Timestamp,
    /// The process.
    pub pid: u32,
    /// The model.
    pub model: String,
    /// Number of sessions touched since the previous one.
    pub sessions: usize,
    /// Time of the previous one.
    #[serde(default, with = "time::optional")]
    pub before: Option<Timestamp>,
}

/// A dream's end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DreamFinish {
    /// Its id.
    pub id: String,
    /// Its time.
    #[serde(with = "time")]
    pub at: Timestamp,
    /// Its outcome.
    pub how: DreamOutcome,
    /// Its report, or the reason it failed.
    pub text: String,
    /// The run of its changes, if there are any.
    pub run: Option<String>,
    /// Memories that were created or changed.
    pub saved: Vec<String>,
    /// Memories that were removed.
    pub removed: Vec<String>,
    /// Reasons for the removals, and what took their place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removals: Vec<Removal>,
    /// Calls that were refused.
    pub denied: u32,
    /// Number of requests.
    pub rounds: u32,
    /// Their usage.
    pub usage: Usage,
}

impl DreamFinish {
    /// A dream that finished at once and did nothing.
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

/// Outcome of a dream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DreamOutcome {
    /// It finished.
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

/// A dream that was undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DreamUndo {
    /// Its id.
    pub id: String,
    /// Time of the undo.
    #[serde(with = "time")]
    pub at: Timestamp,
    /// The memories that were changed since, and stay as they are.
    pub kept: Vec<String>,
}

/// A dream, as the dream log has it.
#[derive(Debug, Clone, PartialEq)]
pub struct PastDream {
    /// Its beginning.
    pub began: DreamStart,
    /// Its end; without one it was cut off, or goes on.
    pub over: Option<DreamFinish>,
    /// Its undo, if there was one.
    pub undone: Option<DreamUndo>,
}

impl DreamLog {
    /// The log of a memory directory.
    pub fn of(home: &Home, memory: &Path) -> Self {
        let mut path = changes::folder(&home.path().join(FOLDER), memory).into_os_string();
        path.push(".jsonl");
        Self { path: path.into() }
    }

    /// Records that a dream begins.
    pub fn begin(&self, began: &DreamStart) -> Result<(), files::Error> {
        self.append(&DreamRecord::Began(began.clone()))
    }

    /// Records that a dream has ended.
    pub fn end(&self, over: &DreamFinish) -> Result<(), files::Error> {
        self.append(&DreamRecord::Over(over.clone()))
    }

    /// Records that a dream was undone.
    pub fn undone(&self, undone: &DreamUndo) -> Result<(), files::Error> {
        self.append(&DreamRecord::Undone(undone.clone()))
    }

    /// All dreams, the newest first. Unreadable lines are skipped.
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

    /// If the lock names a dream of ours that was cut off: the time of the previous one.
    pub fn interrupted(&self, mark: &Mark) -> Option<Option<Timestamp>> {
        let newest = self.dreams().into_iter().next()?;
        let is_it = newest.over.is_none() && Some(newest.began.pid) == mark.holder;
        is_it.then_some(newest.began.before)
    }

    /// Time until which no automatic dream begins, after unfinished ones: an hour after one that failed or was cut off,
    /// a day after `FAILURES` in a row.
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
        let log = DreamLog::of(&Home::at(folder.path()), Path::new("/m/memory"));
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
        assert_eq!((log.dreams(), log.interrupted(&mark(7))), (Vec::new(), None));
        log.begin(&began("one", 7, None)).unwrap();
        assert_eq!(log.interrupted(&mark(7)), Some(None));
        log.end(&over).unwrap();
        assert_eq!(log.interrupted(&mark(7)), None, "it came to its end");
        log.begin(&began("two", 8, Some(at(100)))).unwrap();
        assert_eq!((log.interrupted(&mark(8)), log.interrupted(&mark(9))), (Some(Some(at(100))), None));
        let ids: Vec<(String, bool)> =
            log.dreams().into_iter().map(|dream| (dream.began.id, dream.over.is_some())).collect();
        assert_eq!(ids, [("two".to_owned(), false), ("one".to_owned(), true)]);
    }
}
