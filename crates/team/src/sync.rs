//! Decisions about each entry, from checksums alone: of the text a file was made from, of the file, of the server's
//! text, and of those that the server's history knows. Nothing here touches a disk, a network or a clock.
//!
//! If one side alone changed an entry, it wins. If both did, a text beats a deletion, and of two texts the one here
//! wins, unless the history knows it: then it is no edit but an old text, and gives way. The other stays in the
//! history, and its author is told. A text that the server once had and lost is sent again, or put back into its
//! history if somebody wrote another meanwhile. What could not be seen is neither deleted nor overwritten.

use std::collections::{BTreeMap, BTreeSet};

use crate::checksum::Checksums;
use crate::folder::Listing;
use crate::key::EntryKey;
use crate::protocol::{BATCH_BYTES, HistoryAnswer};
use crate::state::SyncState;

/// Number of missing files from which on deleting them needs a question.
const MANY: usize = 5;
/// Share of missing files, one in this many, up to which deleting them needs none.
const SHARE: usize = 3;

/// Policy for files deleted here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Deletions {
    /// A file that was deleted here is deleted for all. If most of a folder is missing, the files are held, and if all
    /// of it is, they come back: that is seldom meant.
    #[default]
    Travel,
    /// The same, for any number: somebody was asked.
    TravelAll,
    /// They come back with the next pull.
    ComeBack,
}

/// Plan of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SyncPlan {
    /// Take these from the server.
    pub take: BTreeSet<EntryKey>,
    /// Remove these here.
    pub remove: BTreeSet<EntryKey>,
    /// Send these to the server.
    pub send: BTreeSet<EntryKey>,
    /// Delete these there.
    pub delete: BTreeSet<EntryKey>,
    /// Put the texts here back into the history, which lost them; then they are taken.
    pub keep: BTreeSet<EntryKey>,
    /// Changed on both sides; the decisions are in the other sets.
    pub conflicts: BTreeSet<EntryKey>,
    /// Missing here, and too many to be deleted without a question.
    pub held: BTreeSet<EntryKey>,
    /// Cannot be a file here, with the reasons.
    pub not_taken: BTreeMap<EntryKey, String>,
    /// Cannot be an entry there, with the reasons.
    pub not_sent: BTreeMap<EntryKey, String>,
}

impl SyncPlan {
    /// True if both sides are the same.
    pub fn is_empty(&self) -> bool {
        let sets = [&self.take, &self.remove, &self.send, &self.delete, &self.keep, &self.held];
        sets.iter().all(|keys| keys.is_empty()) && self.not_taken.is_empty() && self.not_sent.is_empty()
    }
}

/// Place of a text in the server's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextHistory {
    Known,
    /// It was lost and put back, below the current text: that does not tell which is newer.
    PutBack,
    /// It is there, but the server has changed since it was read.
    KnownSince,
    /// It is not there, and the history goes back to the beginning.
    Lost,
    /// It is not there, but may have been: the history was trimmed.
    Trimmed,
    /// The server cannot say.
    Untold,
}

/// Answers of the history about texts.
#[derive(Debug, Clone, Default)]
pub struct PastTexts {
    known: BTreeMap<EntryKey, (String, TextHistory)>,
}

impl PastTexts {
    /// Records an answer; none if the server has no history to ask. `tag` is the server's state that was read.
    pub fn note(&mut self, asked: &Checksums, answer: Option<&HistoryAnswer>, tag: &str) {
        let is_of_that = answer.is_none_or(|answer| answer.checksum == tag);
        for (key, text) in asked {
            let past = match answer {
                None => TextHistory::Untold,
                Some(answer) if answer.put_back.contains(key) => TextHistory::PutBack,
                Some(answer) if answer.known.contains(key) && !is_of_that => TextHistory::KnownSince,
                Some(answer) if answer.known.contains(key) => TextHistory::Known,
                Some(answer) if answer.trimmed.contains(key) => TextHistory::Trimmed,
                Some(_) => TextHistory::Lost,
            };
            self.known.insert(key.clone(), (text.clone(), past));
        }
    }

    fn of(&self, key: &EntryKey, text: &str) -> Option<TextHistory> {
        self.known.get(key).filter(|(asked, _)| asked == text).map(|(_, past)| *past)
    }
}

/// The texts here that the history has to be asked about before anything is decided.
pub fn questions(state: &SyncState, here: &Listing, past: &PastTexts) -> Checksums {
    let open = |key: &EntryKey, text: &String| {
        let other = state.server.get(key);
        let is_alike = other == Some(text);
        !is_alike && !is_only_here(state, key, text) && !here.hides(key) && past.of(key, text).is_none()
    };
    here.files.iter().filter(|(key, text)| open(key, text)).map(|(key, text)| (key.clone(), text.clone())).collect()
}

/// True if a text was certainly changed here alone. One that a run began to send without hearing the answer may have
/// arrived.
fn is_only_here(state: &SyncState, key: &EntryKey, text: &String) -> bool {
    let (was, other) = (state.entries.get(key), state.server.get(key));
    was != Some(text) && was == other && (state.met || was.is_some()) && state.sending.get(key) != Some(text)
}

/// Decision about one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryFate {
    Alike,
    Take,
    Keep,
    Remove,
    Send,
    Missing,
}

/// Compares the agreed state with the files here and the entries there.
pub fn plan(state: &SyncState, here: &Listing, past: &PastTexts, deletions: Deletions) -> SyncPlan {
    let mut plan = SyncPlan::default();
    let mut missing = BTreeSet::new();
    let keys = state.entries.keys().chain(here.files.keys()).chain(state.server.keys());
    for key in keys.collect::<BTreeSet<_>>() {
        // A file that is here and cannot be shared, or cannot be seen, is neither deleted nor written over.
        if here.hides(key) {
            continue;
        }
        let (fate, is_conflict) = fate(state, key, here.files.get(key), past);
        if is_conflict {
            plan.conflicts.insert(key.clone());
        }
        let set = match fate {
            EntryFate::Alike => continue,
            EntryFate::Take => &mut plan.take,
            EntryFate::Keep => &mut plan.keep,
            EntryFate::Remove => &mut plan.remove,
            EntryFate::Send => &mut plan.send,
            EntryFate::Missing => &mut missing,
        };
        set.insert(key.clone());
    }
    let gone = state.entries.keys().filter(|key| !here.files.contains_key(*key) && !here.hides(key)).count();
    let is_much = gone >= MANY && gone * SHARE > state.entries.len();
    match deletions {
        Deletions::TravelAll => plan.delete = missing,
        Deletions::ComeBack => plan.take.append(&mut missing),
        Deletions::Travel if here.files.is_empty() => plan.take.append(&mut missing),
        Deletions::Travel if is_much => plan.held = missing,
        // What was held stays so until somebody says what is meant.
        Deletions::Travel => (plan.held, plan.delete) = missing.into_iter().partition(|key| state.held.contains(key)),
    }
    set_aside(state, here, &mut plan);
    plan
}

fn fate(state: &SyncState, key: &EntryKey, is: Option<&String>, past: &PastTexts) -> (EntryFate, bool) {
    let (was, other) = (state.entries.get(key), state.server.get(key));
    if is == other {
        return (EntryFate::Alike, false);
    }
    let Some(text) = is else {
        return match (was, other) {
            (Some(was), Some(other)) if was == other => (EntryFate::Missing, false),
            (was, _) => (EntryFate::Take, was.is_some()),
        };
    };
    let is_edited = was != Some(text);
    if is_only_here(state, key, text) {
        return (EntryFate::Send, false);
    }
    let gives_way = if other.is_some() { EntryFate::Take } else { EntryFate::Remove };
    // Gone there without a word: an older server, or one that lost it. That is no reason to lose it here.
    let vanished = other.is_none() && !state.deleted.contains(key);
    // What is there now was here before this text.
    let is_older = other.is_some_and(|other| state.past.get(key).is_some_and(|past| past.contains(other)));
    match past.of(key, text).unwrap_or(TextHistory::Untold) {
        TextHistory::KnownSince if other.is_none() => (EntryFate::Alike, false), // the next run reads again
        TextHistory::PutBack if is_older => (EntryFate::Send, false),
        TextHistory::Known | TextHistory::KnownSince | TextHistory::PutBack => (gives_way, false),
        _ if is_edited => (EntryFate::Send, !vanished && was != other),
        TextHistory::Trimmed | TextHistory::Untold if vanished => (EntryFate::Send, false),
        TextHistory::Trimmed | TextHistory::Untold => (gives_way, false),
        // The server had this text, and lost it. What it has now is older, or somebody wrote it since.
        TextHistory::Lost if other.is_some() && !is_older => (EntryFate::Keep, true),
        TextHistory::Lost => (EntryFate::Send, !vanished),
    }
}

/// Moves entries out of the plan that cannot be a file here or an entry there because of another name: one is a folder
/// of the other, or they are one file on some systems.
fn set_aside(state: &SyncState, here: &Listing, plan: &mut SyncPlan) {
    let stays = |keys: &BTreeSet<EntryKey>| keys.clone();
    let (gone_here, gone_there) = (stays(&plan.remove), stays(&plan.delete));
    let files = Names::of(here.files.keys().filter(|key| !gone_here.contains(*key)));
    let entries = Names::of(state.server.keys().filter(|key| !gone_there.contains(*key)));
    for (keys, names, aside) in
        [(&mut plan.take, &files, &mut plan.not_taken), (&mut plan.send, &entries, &mut plan.not_sent)]
    {
        for key in std::mem::take(keys) {
            match names.obstacle(&key) {
                Some(why) => drop(aside.insert(key, why)),
                None => drop(keys.insert(key)),
            }
        }
    }
    plan.conflicts.retain(|key| !plan.not_taken.contains_key(key) && !plan.not_sent.contains_key(key));
}

/// Names in use with their folders, without regard to case.
struct Names<'k> {
    files: BTreeMap<String, &'k EntryKey>,
    folders: BTreeMap<String, &'k EntryKey>,
}

impl<'k> Names<'k> {
    fn of(keys: impl Iterator<Item = &'k EntryKey>) -> Self {
        let mut names = Self { files: BTreeMap::new(), folders: BTreeMap::new() };
        for key in keys {
            let folded = key.folded();
            for (at, _) in folded.match_indices('/') {
                names.folders.insert(folded[..at].to_owned(), key);
            }
            names.files.insert(folded, key);
        }
        names
    }

    fn obstacle(&self, key: &EntryKey) -> Option<String> {
        let folded = key.folded();
        if let Some(other) = self.files.get(&folded).filter(|other| **other != key) {
            return Some(format!("the name of {other} differs only in the form of its letters"));
        }
        if let Some(other) = self.folders.get(&folded) {
            return Some(format!("it cannot be a file: it is the folder of {other}"));
        }
        let above = folded.match_indices('/').find_map(|(at, _)| self.files.get(&folded[..at]));
        above.map(|other| format!("it cannot be in a folder of this name: {other} is a file"))
    }
}

/// Texts in batches for one request each, in the order of their keys. A text larger than a batch is sent alone.
pub fn batches(texts: BTreeMap<EntryKey, String>) -> Vec<BTreeMap<EntryKey, String>> {
    let mut batches: Vec<(usize, BTreeMap<EntryKey, String>)> = Vec::new();
    for (key, text) in texts {
        let bytes = key.as_str().len() + text.len();
        match batches.last_mut() {
            Some((filled, batch)) if *filled + bytes <= BATCH_BYTES => {
                *filled += bytes;
                batch.insert(key, text);
            }
            _ => batches.push((bytes, BTreeMap::from([(key, text)]))),
        }
    }
    batches.into_iter().map(|(_, batch)| batch).collect()
}

#[cfg(test)]
mod tests;
