//! Tombstones: memories that a user removed or took back, so that no agent brings them back.
//!
//! A tombstone is stored beside the changes, not among the memories. It holds hashes of all sequences of five words of
//! the removed text: enough to recognise it in other surroundings, and not to read it. Extraction, dreams and imports
//! are refused a memory that has a tombstone; the user's own command
//! lifts it, and what the user types after the removal may be learnt.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::echo_check::words;
use crate::entry::Memory;
use crate::error::Error;
use crate::quoted_sentences::QuotedSentence;

/// The file, next to the runs. Its name does not end like a run's.
const FILE: &str = "tombstones";

/// Share of a removed text's sequences that makes another text the same.
const SAME: f32 = 0.6;

/// Number of words in a sequence.
const SEQUENCE: usize = 5;

/// Letters at the beginning by which two forms of a word are the same.
const STEM: usize = 4;

/// Limit on the words of a text that are compared.
const LONGEST: usize = 2_000;

/// Size limit of the file.
const LIMIT: u64 = 64 * 1024 * 1024;

/// The tombstones of a memory directory.
#[derive(Debug, Clone)]
pub struct Tombstones {
    file: PathBuf,
}

/// A removed memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    /// Its path, relative to its directory.
    pub path: String,
    /// Its name.
    pub name: String,
    /// Time of the removal, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The sequences of its words, hashed.
    sequences: BTreeSet<u64>,
}

impl Tombstones {
    /// The tombstones in the folder of the runs, which need not exist.
    pub fn in_folder(folder: &Path) -> Self {
        Self { file: folder.join(FILE) }
    }

    /// All tombstones, the oldest first.
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

    /// Adds a tombstone for a memory that the user removed or took back.
    pub fn plant(&self, path: &str, text: &str, at: Option<String>) -> Result<(), Error> {
        let MemoryMark { name, sequences, .. } = MemoryMark::by(path, text);
        self.add(&TombstoneLine::Planted(Tombstone { path: path.to_owned(), name, at, sequences }))
    }

    /// The tombstone that applies to a memory with this path and text.
    pub fn against(&self, path: &str, text: &str) -> Option<Tombstone> {
        let all = self.all();
        let told = (!all.is_empty()).then(|| MemoryMark::by(path, text))?;
        all.into_iter().find(|stone| stone.is_for(path, &told))
    }

    /// True if a tombstone planted since `written` applies to a memory with this path and text. An older one stands for an
    /// earlier removal.
    pub fn applies_since(&self, path: &str, text: &str, written: Option<Timestamp>) -> bool {
        let told = MemoryMark::by(path, text);
        let is_since = |stone: &Tombstone| stone.removed().zip(written).is_none_or(|(removed, at)| removed >= at);
        self.all().iter().any(|stone| stone.is_for(path, &told) && is_since(stone))
    }

    /// The tombstone that refuses a memory which quotes this sentence of the user. A sentence typed after the removal is new,
    /// unless the text is mostly the removed one and is not in that sentence.
    pub fn refusing(&self, path: &str, text: &str, spoken: Option<&QuotedSentence>) -> Option<Tombstone> {
        let all = self.all();
        let told = (!all.is_empty()).then(|| MemoryMark::by(path, text))?;
        all.into_iter().find(|stone| stone.is_for(path, &told) && !stone.is_quoted_since(&told, spoken))
    }

    /// The same for a memory in another directory than the removed one: there a name says nothing, only the text counts.
    pub fn refusing_text(&self, text: &str, spoken: Option<&QuotedSentence>) -> Option<Tombstone> {
        let all = self.all();
        let told = (!all.is_empty()).then(|| MemoryMark::by("", text))?;
        all.into_iter().find(|stone| stone.is_text(&told.sequences) && !stone.is_quoted_since(&told, spoken))
    }

    /// Lifts the tombstones that apply to a memory with this path and text: the user wants it again.
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

/// Features by which a memory is recognised.
struct MemoryMark {
    name: String,
    sequences: BTreeSet<u64>,
    body: String,
}

impl MemoryMark {
    fn by(path: &str, text: &str) -> Self {
        let memory = Memory::parse(path, text.as_bytes(), None, text.len() as u64);
        Self { name: by_words(&memory.name).join(" "), sequences: sequences(&memory.body), body: memory.body }
    }
}

impl Tombstone {
    /// Returns true if a memory is the removed one: by its path or name, or because it holds enough of the removed
    /// text.
    fn is_for(&self, path: &str, told: &MemoryMark) -> bool {
        self.path == path || self.name == told.name || self.is_text(&told.sequences)
    }

    /// Returns true if a text holds enough of the removed one.
    pub fn is_in(&self, text: &str) -> bool {
        self.is_text(&MemoryMark::by("", text).sequences)
    }

    /// When it was removed.
    fn removed(&self) -> Option<Timestamp> {
        self.at.as_ref()?.parse().ok()
    }

    /// True if these sequences have so much of the removed text that they count as the same.
    fn is_text(&self, sequences: &BTreeSet<u64>) -> bool {
        let shared = self.sequences.intersection(sequences).count();
        shared > 0 && shared as f32 >= SAME * self.sequences.len() as f32
    }

    /// True if a memory rests on a sentence that the user typed after the removal, and is not the removed text under it.
    fn is_quoted_since(&self, told: &MemoryMark, spoken: Option<&QuotedSentence>) -> bool {
        let Some(spoken) = spoken else { return false };
        let is_later = self.removed().zip(spoken.time()).is_some_and(|(removed, typed)| typed > removed);
        let typed = words(&spoken.sentence);
        let unsaid: Vec<&str> = sentences(&told.body).filter(|sentence| !is_rendering(&typed, sentence)).collect();
        is_later && !self.is_text(&sequences(&unsaid.join("\n")))
    }
}

/// The sentences of a text.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split(['.', '!', '?', '\n', '。', '！', '？'])
}

/// True if at least half of a sentence's words are among those typed, in any form: `deployed` is `deploy`. Short words and
/// numbers count only where there is little else.
fn is_rendering(typed: &[String], sentence: &str) -> bool {
    let all = words(sentence);
    let is_telling = |word: &&String| {
        let is_number = word.chars().all(|c| c.is_ascii_digit());
        !is_number && (word.chars().count() >= STEM || !word.is_ascii())
    };
    let mut telling: Vec<&String> = all.iter().filter(is_telling).collect();
    if telling.len() < 2 {
        telling = all.iter().collect();
    }
    let is_typed = |word: &&&String| typed.iter().any(|typed| is_same_word(typed, word));
    2 * telling.iter().filter(is_typed).count() >= telling.len()
}

/// True if two words begin alike, or are the same.
fn is_same_word(one: &str, other: &str) -> bool {
    let shared = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    one == other || shared >= STEM
}

fn by_words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// The sequences of a text's words, hashed; for a shorter text, the text itself.
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
