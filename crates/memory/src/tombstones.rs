//! What a user removed or took back, so that no agent brings it back.
//!
//! A tombstone lies beside the changes, not among the memories. Of the text that was removed it has the sequences of five words,
//! hashed: enough to know it again in other surroundings, and not to read it. Extraction, dreams and imports are refused what one
//! stands for; the user's own command lifts it, and what the user types later may be learnt beside it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::entry::Memory;
use crate::error::Error;
use crate::spoken::QuotedSentence;

/// The file, beside the runs. It ends in no run's ending.
const FILE: &str = "tombstones";

/// So much of a removed text's sequences make another the same text.
const SAME: f32 = 0.6;

/// How many words a sequence has.
const SEQUENCE: usize = 5;

/// So much of a text is compared, in words.
const LONGEST: usize = 2_000;

/// The largest file that is read.
const LIMIT: u64 = 64 * 1024 * 1024;

/// The tombstones of a memory directory.
#[derive(Debug, Clone)]
pub struct Tombstones {
    file: PathBuf,
}

/// What was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    /// Where it was, relative to its directory.
    pub path: String,
    /// What it was called.
    pub name: String,
    /// When it was removed, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The sequences of its words, hashed.
    sequences: BTreeSet<u64>,
}

impl Tombstones {
    /// Those beside the runs in a folder. It need not exist.
    pub fn beside(folder: &Path) -> Self {
        Self { file: folder.join(FILE) }
    }

    /// All that stand, the oldest first.
    pub fn all(&self) -> Vec<Tombstone> {
        let Ok(file) = files::read(&self.file, LIMIT) else { return Vec::new() };
        let text = String::from_utf8_lossy(&file.bytes);
        let mut standing: Vec<Tombstone> = Vec::new();
        for entry in text.lines().filter_map(|line| serde_json::from_str(line).ok()) {
            match entry {
                TombstoneLine::Planted(stone) => standing.push(stone),
                TombstoneLine::Lifted(gone) => standing.retain(|stone| *stone != gone),
            }
        }
        standing
    }

    /// Plants one for a memory that the user removed or took back.
    pub fn plant(&self, path: &str, text: &str, at: Option<String>) -> Result<(), Error> {
        let MemoryMark { name, sequences } = MemoryMark::by(path, text);
        self.add(&TombstoneLine::Planted(Tombstone { path: path.to_owned(), name, at, sequences }))
    }

    /// The one that stands against a memory with this path and text.
    pub fn against(&self, path: &str, text: &str) -> Option<Tombstone> {
        let all = self.all();
        let told = (!all.is_empty()).then(|| MemoryMark::by(path, text))?;
        all.into_iter().find(|stone| stone.is_for(path, &told))
    }

    /// Whether one was planted against a memory with this path and text since it was written: an older one stands for an
    /// earlier removal.
    pub fn stands_since(&self, path: &str, text: &str, written: Option<Timestamp>) -> bool {
        let told = MemoryMark::by(path, text);
        let is_since = |stone: &Tombstone| stone.removed().zip(written).is_none_or(|(removed, at)| removed >= at);
        self.all().iter().any(|stone| stone.is_for(path, &told) && is_since(stone))
    }

    /// The one that refuses a memory which quotes this sentence of the user. What was typed after the removal is new, unless
    /// the text is mostly the removed one and stands not in that sentence.
    pub fn refusing(&self, path: &str, text: &str, spoken: Option<&QuotedSentence>) -> Option<Tombstone> {
        let all = self.all();
        let told = (!all.is_empty()).then(|| MemoryMark::by(path, text))?;
        all.into_iter().find(|stone| stone.is_for(path, &told) && !stone.is_said_since(&told, spoken))
    }

    /// Lifts those that stand against a memory with this path and text: the user wants it again.
    pub fn lift(&self, path: &str, text: &str) -> Result<(), Error> {
        let all = self.all();
        if all.is_empty() {
            return Ok(());
        }
        let told = MemoryMark::by(path, text);
        all.into_iter()
            .filter(|stone| stone.is_for(path, &told))
            .try_for_each(|stone| self.add(&TombstoneLine::Lifted(stone)))
    }

    fn add(&self, entry: &TombstoneLine) -> Result<(), Error> {
        Ok(files::add_line(&self.file, &serde_json::to_vec(entry).unwrap_or_default())?)
    }
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum TombstoneLine {
    Planted(Tombstone),
    Lifted(Tombstone),
}

/// What a memory is known by.
struct MemoryMark {
    name: String,
    sequences: BTreeSet<u64>,
}

impl MemoryMark {
    fn by(path: &str, text: &str) -> Self {
        let memory = Memory::parse(path, text.as_bytes(), None, text.len() as u64);
        Self { name: by_words(&memory.name).join(" "), sequences: sequences(&memory.body) }
    }
}

impl Tombstone {
    /// Whether a memory is what was removed: by its name, or since so much of what was removed stands in it.
    fn is_for(&self, path: &str, told: &MemoryMark) -> bool {
        self.path == path || self.name == told.name || self.is_text(&told.sequences)
    }

    /// When it was removed.
    fn removed(&self) -> Option<Timestamp> {
        self.at.as_ref()?.parse().ok()
    }

    /// Whether so much of what was removed is among these sequences that they are the same text.
    fn is_text(&self, sequences: &BTreeSet<u64>) -> bool {
        let shared = self.sequences.intersection(sequences).count();
        shared > 0 && shared as f32 >= SAME * self.sequences.len() as f32
    }

    /// Whether a memory rests on a sentence that the user typed after the removal, and is not the removed text under it.
    fn is_said_since(&self, told: &MemoryMark, spoken: Option<&QuotedSentence>) -> bool {
        let Some(spoken) = spoken else { return false };
        let is_later = self.removed().zip(spoken.time()).is_some_and(|(removed, typed)| typed > removed);
        let elsewhere = told.sequences.difference(&sequences(&spoken.sentence)).copied().collect();
        is_later && !self.is_text(&elsewhere)
    }
}

fn by_words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// The sequences of a text's words, hashed; of a shorter text the text.
fn sequences(body: &str) -> BTreeSet<u64> {
    let words = by_words(body);
    let words = &words[..words.len().min(LONGEST)];
    let hash = |part: &[String]| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&blake3::hash(part.join(" ").as_bytes()).as_bytes()[..8]);
        u64::from_le_bytes(bytes)
    };
    match words {
        [] => BTreeSet::new(),
        few if few.len() < SEQUENCE => BTreeSet::from([hash(few)]),
        many => many.windows(SEQUENCE).map(hash).collect(),
    }
}
