//! The sending half of a run: deletions and texts from here, in batches, each based on the state it was decided on.

use std::collections::{BTreeMap, VecDeque};

use super::{SendResult, SyncDisk, SyncRun, SyncServer};
use crate::checksum::{self, Checksums};
use crate::error::RequestTrouble;
use crate::key::EntryKey;
use crate::protocol::{EntryWrite, HistoryAnswer, WriteAnswer};
use crate::report::EarlyEnd;
use crate::sync;

/// Writes that wait, and entries that the server has no room for.
#[derive(Default)]
struct Outbox {
    waiting: VecDeque<EntryWrite>,
    /// New entries beyond the limit.
    beyond: BTreeMap<EntryKey, String>,
    /// True if the server named its limit in this run, and not only in an earlier one.
    limit_heard: bool,
}

impl<D: SyncDisk, S: SyncServer> SyncRun<'_, D, S> {
    /// Sends the changes made here. One refused entry stops no other.
    pub(super) async fn send(&mut self) -> Result<SendResult, EarlyEnd> {
        let (listing, plan) = self.compare().await?;
        self.report.not_sent.clone_from(&plan.not_sent);
        self.report.limit = None;
        let mut outbox = Outbox::default();
        let kept = self.local_texts(&plan.keep, &listing.files).await;
        let entries = self.local_texts(&plan.send, &listing.files).await;
        outbox.waiting.extend(sync::batches(kept).into_iter().map(|kept| EntryWrite { kept, ..EntryWrite::default() }));
        // Deletions first: they make room, and a name that only changed its case is no twin of itself.
        if !plan.delete.is_empty() {
            outbox.waiting.push_back(EntryWrite { deletes: plan.delete, ..EntryWrite::default() });
        }
        outbox
            .waiting
            .extend(sync::batches(entries).into_iter().map(|entries| EntryWrite { entries, ..EntryWrite::default() }));
        self.empty(outbox).await?;
        Ok(if plan.keep.is_empty() { SendResult::All } else { SendResult::WithMoreToTake })
    }

    async fn local_texts(
        &mut self,
        keys: &std::collections::BTreeSet<EntryKey>,
        here: &Checksums,
    ) -> BTreeMap<EntryKey, String> {
        let mut texts = BTreeMap::new();
        for (key, checksum) in keys.iter().filter_map(|key| Some((key, here.get(key)?))) {
            if let Some(text) = self.disk.text(key, checksum).await {
                texts.insert(key.clone(), text);
            }
        }
        texts
    }

    async fn empty(&mut self, mut outbox: Outbox) -> Result<(), EarlyEnd> {
        loop {
            let Some(write) = outbox.waiting.pop_front() else {
                if outbox.beyond.is_empty() || outbox.limit_heard {
                    break;
                }
                self.try_beyond(&mut outbox);
                continue;
            };
            let mut write = self.within_limit(write, &mut outbox.beyond);
            if write.is_empty() {
                continue;
            }
            write.bases = self.bases(&write);
            write.seen = self.seen(&write);
            write.entries.iter().for_each(|(key, text)| self.state.send(key, checksum::of(text)));
            self.save().await?;
            match self.server.write(&write, &self.tag).await {
                Ok(written) => self.wrote(&write, written).await?,
                Err(RequestTrouble::Refused { refused, message, .. }) => {
                    self.set_aside(write, &refused, &message, &mut outbox);
                }
                Err(RequestTrouble::TooMany { most }) => self.heard_limit(write, most, &mut outbox),
                Err(trouble) => return Err(trouble.into()),
            }
        }
        for key in outbox.beyond.into_keys() {
            let most = self.state.most.unwrap_or_default();
            self.report.not_sent.insert(key, format!("the server keeps at most {most} entries of a repository"));
            self.report.limit = Some(most);
        }
        self.save().await
    }

    /// Checksums of the texts that the written ones were made from.
    fn bases(&self, write: &EntryWrite) -> Checksums {
        let base = |key: &EntryKey| self.state.entries.get(key).cloned().unwrap_or_default();
        write.entries.keys().map(|key| (key.clone(), base(key))).collect()
    }

    /// Checksums of the texts that are replaced, or stay above.
    fn seen(&self, write: &EntryWrite) -> Checksums {
        let seen = |key: &EntryKey| self.state.server.get(key).cloned().unwrap_or_default();
        write
            .entries
            .keys()
            .chain(&write.deletes)
            .chain(write.kept.keys())
            .map(|key| (key.clone(), seen(key)))
            .collect()
    }

    async fn wrote(&mut self, write: &EntryWrite, written: WriteAnswer) -> Result<(), EarlyEnd> {
        for (key, text) in &write.entries {
            let checksum = checksum::of(text);
            self.state.agree(key, Some(&checksum));
            self.state.server.insert(key.clone(), checksum);
            self.state.deleted.remove(key);
            self.state.authors.remove(key);
            self.report.sent.insert(key.clone());
        }
        for key in &write.deletes {
            self.state.agree(key, None);
            self.state.server.remove(key);
            self.state.authors.remove(key);
            self.report.deleted.insert(key.clone());
        }
        let kept: Checksums = write.kept.iter().map(|(key, text)| (key.clone(), checksum::of(text))).collect();
        let known = kept.keys().cloned().collect();
        let checksum = self.tag.clone();
        self.past.note(&kept, Some(&HistoryAnswer { checksum, known, ..HistoryAnswer::default() }), &self.tag);
        if !self.unusable.is_empty() {
            self.tag = written.checksum; // what cannot be used keeps it from being known whole
        } else if self.state.whole() == written.checksum {
            self.tag = written.checksum;
            (self.state.version, self.state.checksum) = (written.version, Some(self.tag.clone()));
        } else {
            // Others wrote other entries meanwhile: the next run reads on from where this one read.
            self.state.checksum = None;
        }
        self.save().await
    }

    /// Holds back new entries beyond the limit that the server named.
    fn within_limit(&self, mut write: EntryWrite, beyond: &mut BTreeMap<EntryKey, String>) -> EntryWrite {
        let Some(most) = self.state.most else { return write };
        let mut room = most.saturating_sub(self.state.server.len() as u64);
        for (key, text) in std::mem::take(&mut write.entries) {
            if self.state.server.contains_key(&key) {
                write.entries.insert(key, text);
            } else if room > 0 {
                room -= 1;
                write.entries.insert(key, text);
            } else {
                beyond.insert(key, text);
            }
        }
        write
    }

    fn heard_limit(&mut self, write: EntryWrite, most: u64, outbox: &mut Outbox) {
        (self.state.most, outbox.limit_heard) = (Some(most), true);
        let before = write.entries.len();
        let write = self.within_limit(write, &mut outbox.beyond);
        if write.entries.len() < before {
            outbox.waiting.push_front(write);
        } else {
            // There are more than it keeps already: not even what is there can be changed.
            outbox.beyond.extend(write.entries);
        }
    }

    /// Tests with one entry whether a limit from an earlier run still holds.
    fn try_beyond(&mut self, outbox: &mut Outbox) {
        (self.state.most, outbox.limit_heard) = (None, true);
        let mut beyond = std::mem::take(&mut outbox.beyond);
        if let Some((key, text)) = beyond.pop_first() {
            outbox.waiting.push_back(EntryWrite { entries: [(key, text)].into(), ..EntryWrite::default() });
        }
        outbox
            .waiting
            .extend(sync::batches(beyond).into_iter().map(|entries| EntryWrite { entries, ..EntryWrite::default() }));
    }

    /// Removes the entries that the server refused by name. If it named none, halves are tried, down to the one that is
    /// refused.
    fn set_aside(
        &mut self,
        mut write: EntryWrite,
        refused: &BTreeMap<String, String>,
        message: &str,
        outbox: &mut Outbox,
    ) {
        let before = write.entries.len() + write.kept.len();
        for (name, why) in refused {
            let Ok(key) = name.parse::<EntryKey>() else { continue };
            if write.entries.remove(&key).is_some() || write.kept.remove(&key).is_some() {
                self.report.not_sent.insert(key, why.clone());
            }
        }
        if write.entries.len() + write.kept.len() < before {
            outbox.waiting.push_front(write);
        } else if write.entries.len() > 1 {
            let half = write.entries.keys().nth(write.entries.len() / 2).cloned();
            let later = half.map(|half| write.entries.split_off(&half)).unwrap_or_default();
            outbox.waiting.push_front(EntryWrite { entries: later, ..EntryWrite::default() });
            outbox.waiting.push_front(write);
        } else {
            let keys = write.entries.into_keys().chain(write.deletes).chain(write.kept.into_keys());
            self.report.not_sent.extend(keys.map(|key| (key, message.to_owned())));
        }
    }
}
