//! What is noted of everything that happens to the team's texts, and what may not happen to them.
//!
//! Every text that a person types is unlike any other, so wherever one is found it is known who wrote it and when. What the
//! server accepts is read off the wire; what a run does to a folder is seen by the disk just before it happens.

use std::collections::{BTreeMap, BTreeSet};

use team::checksum;
use team::protocol::EntryWrite;

/// What the server has, by its accepted writes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Accepted {
    pub(crate) current: BTreeMap<String, String>,
    pub(crate) history: BTreeSet<(String, String)>,
}

#[derive(Debug, Default)]
pub(crate) struct TeamLaws {
    pub(crate) is_calm: bool,
    /// Whether somebody has an old copy of what was agreed on.
    pub(crate) is_forgetful: bool,
    pub(crate) broken: Vec<String>,
    pub(crate) story: Vec<String>,
    pub(crate) accepted: Accepted,
    pub(crate) backup: Accepted,
    /// Counts how often the server was restored.
    pub(crate) epoch: usize,
    /// When each text was first accepted.
    first: BTreeMap<String, usize>,
    /// Conflicts by the text that won and the one that lost.
    won: BTreeSet<(String, String)>,
    writes: usize,
    /// Who typed a text.
    authors: BTreeMap<String, usize>,
    typed: usize,
    /// The texts that each member's file has had.
    had: BTreeMap<(usize, String), BTreeSet<String>>,
    /// The texts that a member had seen of an entry when she deleted it.
    deleted: Vec<(usize, String, BTreeSet<String>)>,
}

impl TeamLaws {
    pub(crate) fn tell(&mut self, what: String) {
        self.story.push(what);
    }

    pub(crate) fn note(&mut self, broken: String) {
        self.tell(format!("BROKEN: {broken}"));
        self.broken.push(broken);
    }

    /// A text that never was.
    pub(crate) fn new_text(&mut self, member: usize, key: &str) -> String {
        self.typed += 1;
        let text = format!("{key} {} by {member}", self.typed);
        self.tell(format!("{member}: types {text:?}"));
        self.authors.insert(text.clone(), member);
        text
    }

    /// A member's file has this text now.
    pub(crate) fn sees(&mut self, member: usize, key: &str, text: &str) {
        self.had.entry((member, key.to_owned())).or_default().insert(text.to_owned());
    }

    pub(crate) fn person_deletes(&mut self, member: usize, key: &str) {
        self.tell(format!("{member}: deletes {key}"));
        let had = self.had.get(&(member, key.to_owned())).cloned().unwrap_or_default();
        self.deleted.push((member, key.to_owned(), had));
    }

    /// A run is about to replace or remove a file: it may not be the last copy of its text.
    pub(crate) fn run_takes_away(&mut self, member: usize, key: &str, text: &str, began: usize) {
        self.tell(format!("{member}: a run takes {text:?} away"));
        if began == self.epoch && !self.accepted.history.contains(&(key.to_owned(), text.to_owned())) {
            self.note(format!("member {member} loses the last copy of {text:?}"));
        }
    }

    /// A run is about to remove a file.
    pub(crate) fn run_removes(&mut self, member: usize, key: &str) {
        if !self.deleted.iter().any(|(_, deleted, _)| deleted == key) {
            self.note(format!("{key} is removed at member {member}, and nobody deleted it"));
        }
    }

    /// The server has accepted a write.
    pub(crate) fn accepts(&mut self, member: usize, write: &EntryWrite) {
        self.tell(format!(
            "{member}: writes {:?}, keeps {:?}, deletes {:?}",
            write.entries.values(),
            write.kept.values(),
            write.deletes
        ));
        for (key, text) in &write.kept {
            self.accepted.history.insert((key.to_string(), text.clone()));
        }
        for key in &write.deletes {
            let Some(now) = self.accepted.current.remove(key.as_str()) else { continue };
            let saw = |(who, of, had): &(usize, String, BTreeSet<String>)| {
                *who == member && of == key.as_str() && had.contains(&now)
            };
            if !self.deleted.iter().any(saw) {
                self.note(format!("member {member} deletes {now:?}, and nobody there did"));
            }
        }
        for (key, text) in &write.entries {
            // What a text was made from, as its writer remembers: itself, where it was only taken or is sent once more.
            let is_new = self.authors.get(text) == Some(&member)
                && write.bases.get(key).is_none_or(|base| *base != checksum::of(text));
            self.accepts_text(member, key.as_str(), text, is_new);
        }
    }

    fn accepts_text(&mut self, member: usize, key: &str, text: &str, is_new: bool) {
        let known = self.accepted.history.contains(&(key.to_owned(), text.to_owned()));
        let now = self.accepted.current.insert(key.to_owned(), text.to_owned());
        match now {
            // A server that lost it cannot know that it was sent before, nor can its writer who never heard so.
            Some(now) if now != text && (known || !is_new) => {
                let (first, other) = (self.first.get(text).copied(), self.first.get(&now).copied());
                let has_won = self.won.contains(&(text.to_owned(), now.clone()));
                if first.is_some_and(|first| other.is_some_and(|other| first < other)) && !has_won {
                    self.note(format!("member {member} writes {text:?} over {now:?}, which is newer"));
                }
            }
            // Whoever typed a text and does not know that it was there sends it as a new one. Where another had written
            // since, that is a conflict which this text wins, for good.
            Some(now) if now != text => drop(self.won.insert((text.to_owned(), now))),
            // Who has an old copy of what was agreed on cannot tell a file that was deleted for all from a new one.
            None if known && !self.is_forgetful => {
                self.note(format!("member {member} brings {text:?} back, which was deleted"));
            }
            _ => {}
        }
        self.writes += 1;
        self.first.entry(text.to_owned()).or_insert(self.writes);
        self.accepted.history.insert((key.to_owned(), text.to_owned()));
    }

    pub(crate) fn back_up(&mut self) {
        self.tell("the server is backed up".to_owned());
        self.backup = self.accepted.clone();
    }

    pub(crate) fn restore(&mut self) {
        self.tell("the server is restored".to_owned());
        self.accepted = self.backup.clone();
        self.epoch += 1;
    }
}
