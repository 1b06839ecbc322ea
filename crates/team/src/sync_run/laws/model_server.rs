//! The server of the laws' world: it keeps every version of every entry.

use std::collections::BTreeMap;

use crate::checksum::{self, Checksums};
use crate::key::EntryKey;
use crate::protocol::OverwrittenText;

/// One version of an entry.
#[derive(Debug, Clone)]
pub(super) struct EntryVersion {
    pub(super) version: u64,
    pub(super) text: Option<String>,
    pub(super) author: usize,
    pub(super) base: Option<String>,
    pub(super) is_put_back: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct ModelServer {
    pub(super) version: u64,
    pub(super) rows: BTreeMap<EntryKey, Vec<EntryVersion>>,
}

impl ModelServer {
    pub(super) fn entries(&self) -> BTreeMap<EntryKey, String> {
        let newest = |rows: &Vec<EntryVersion>| rows.last()?.text.clone();
        self.rows.iter().filter_map(|(key, rows)| Some((key.clone(), newest(rows)?))).collect()
    }

    pub(super) fn whole(&self) -> String {
        let sums = sums(&self.entries());
        checksum::of_all(sums.iter().map(|(key, sum)| (key, sum.as_str())))
    }

    pub(super) fn knows(&self, key: &EntryKey, sum: &str) -> bool {
        let is = |row: &EntryVersion| row.text.as_ref().is_some_and(|text| checksum::of(text) == sum);
        self.rows.get(key).is_some_and(|rows| rows.iter().any(is))
    }

    /// True if it knows a text only because somebody put it back.
    pub(super) fn only_put_back(&self, key: &EntryKey, sum: &str) -> bool {
        let is = |row: &&EntryVersion| row.text.as_ref().is_some_and(|text| checksum::of(text) == sum);
        self.rows.get(key).into_iter().flatten().filter(is).all(|row| row.is_put_back)
    }

    pub(super) fn put_back(&mut self, key: &EntryKey, text: String, author: usize) {
        let row = EntryVersion { version: self.version, text: Some(text), author, base: None, is_put_back: true };
        self.rows.entry(key.clone()).or_default().push(row);
    }

    pub(super) fn newest(&self, key: &EntryKey) -> Option<&EntryVersion> {
        self.rows.get(key)?.last()
    }

    pub(super) fn put(&mut self, key: &EntryKey, text: Option<String>, author: usize, base: Option<String>) {
        let row = EntryVersion { version: self.version, text, author, base, is_put_back: false };
        self.rows.entry(key.clone()).or_default().push(row);
    }

    pub(super) fn overwritten(&self, reader: usize, since: u64) -> Vec<OverwrittenText> {
        let mut told = Vec::new();
        for (key, rows) in &self.rows {
            for pair in rows.windows(2) {
                let (earlier, later) = (&pair[0], &pair[1]);
                let unseen = earlier.text.as_ref().zip(later.base.as_ref());
                let unseen = unseen.is_some_and(|(text, base)| checksum::of(text) != *base);
                if later.version > since && later.author != reader && earlier.author == reader && unseen {
                    let (version, by) = (earlier.version, later.author.to_string());
                    told.push(OverwrittenText { key: key.to_string(), version, by });
                }
            }
        }
        told
    }
}

fn sums(texts: &BTreeMap<EntryKey, String>) -> Checksums {
    texts.iter().map(|(key, text)| (key.clone(), checksum::of(text))).collect()
}
