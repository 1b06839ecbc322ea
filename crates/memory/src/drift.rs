//! Drift: things that a memory names and that are gone or have changed.
//!
//! A memory that says "run `deploy.sh --fast`" is believed long after the script is gone. So what it names in code
//! marks (files, functions, flags, commands) is recorded when it is saved, if it exists then; and whenever the memory
//! is surfaced, these things are looked up again in the working tree: files by their paths, the rest by reading
//! sources, without starting a process, within a time that nobody notices. Things that existed and are gone are
//! reported, and so are files that have changed since. Nothing else is: what never existed here (another machine's
//! path, a branch, a product) is not drift. For memories saved without a record, only the files they name in folders of
//! this tree are checked.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Component, Path};

use files::Root;

use crate::entry::Memory;

/// Limit on things looked up for one memory.
const MOST: usize = 12;

/// Limit on source files and folders read for one memory, and on bytes of each file: a few milliseconds.
const FILES: usize = 400;
const FOLDERS: usize = 300;
/// Limit on files looked up by name; in a larger tree nothing can be said to be missing.
const ENTRIES: usize = 6_000;
const BYTES: u64 = 64 * 1024;
const ALL_BYTES: u64 = 12 * 1024 * 1024;

/// Folders that hold no sources.
const PASSED: [&str; 8] = ["target", "node_modules", "dist", "build", "vendor", "__pycache__", "venv", "coverage"];

/// A thing that a memory names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum NamedThing {
    /// A file or a folder, relative to the working tree.
    File(String),
    /// A function, a type, a flag, a variable: a word of the sources.
    Word(String),
}

/// A named thing that has drifted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriftedThing {
    /// The thing.
    pub named: NamedThing,
    /// Its state.
    pub fate: ThingState,
}

/// State of a named thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThingState {
    /// It existed when the memory was saved, and is gone.
    Gone,
    /// The file's content has changed since the memory was saved.
    Changed,
    /// It is not here, and it is unknown whether it ever was.
    NotFound,
}

/// Separates a file's name from the fingerprint of its text in a record.
const MARK: char = '#';

/// Record of a memory that names things of which none existed.
const NOTHING: &str = "-";

/// Longest record.
const RECORD: usize = 380;

impl NamedThing {
    fn text(&self) -> &str {
        match self {
            Self::File(text) | Self::Word(text) => text,
        }
    }
}

impl fmt::Display for DriftedThing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.named.text();
        match self.fate {
            ThingState::Gone => write!(f, "`{name}`, there when this was written, is gone"),
            ThingState::Changed => write!(f, "`{name}` has changed since this was written"),
            ThingState::NotFound => write!(f, "`{name}` was not found here"),
        }
    }
}

/// Things that a text names in code marks.
pub fn named(text: &str) -> Vec<NamedThing> {
    let mut found = BTreeSet::new();
    for code in text.split('`').skip(1).step_by(2).filter(|code| !code.contains('\n') && code.len() <= 120) {
        for word in code.split_whitespace() {
            let word = word.trim_matches(|c: char| matches!(c, ',' | ';' | '"' | '\'' | '$' | '(' | ')'));
            found.extend(what(word));
        }
    }
    found.into_iter().take(MOST).collect()
}

/// Classifies a word in code marks: a path, an identifier that can only be one, or neither.
fn what(word: &str) -> Option<NamedThing> {
    let path = word.trim_start_matches("./").trim_end_matches('/').split(':').next().unwrap_or_default();
    let letters = |text: &str| text.chars().any(char::is_alphabetic);
    let inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    let plain = path.chars().all(|c| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_'));
    let ending = path.rsplit_once('.').is_some_and(|(stem, ending)| {
        !stem.is_empty()
            && (1..=5).contains(&ending.len())
            && ending.chars().all(char::is_alphanumeric)
            && letters(ending)
    });
    if inside && plain && letters(path) && !word.contains("://") && (ending || path.contains('/')) {
        return Some(NamedThing::File(path.to_owned()));
    }
    if let Some(flag) = word.strip_prefix("--") {
        let flag = flag.split('=').next().unwrap_or_default();
        let is_flag = flag.len() > 2 && flag.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        return is_flag.then(|| NamedThing::Word(format!("--{flag}")));
    }
    let name = word.trim_end_matches("()").rsplit("::").next().unwrap_or_default();
    let name = name.rsplit('.').next().unwrap_or_default();
    let joined =
        name.contains('_') || name.chars().skip(1).any(char::is_uppercase) && name.chars().any(char::is_lowercase);
    let is_name = name.len() > 3 && letters(name) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (is_name && (joined || word.ends_with("()"))).then(|| NamedThing::Word(name.to_owned()))
}

/// Record of the things a text names that exist now: files with a fingerprint of their text.
pub fn record(text: &str, tree: &Path) -> Vec<String> {
    let named = named(text);
    let Some(looked) = look(&named, tree) else { return Vec::new() };
    let is_there = |one: &&NamedThing| !looked.missing.contains(one) && !looked.unknown.contains(one);
    let entry = |one: &NamedThing| match one {
        NamedThing::File(path) => mark(path, tree).map_or_else(|| path.clone(), |mark| format!("{path}{MARK}{mark}")),
        NamedThing::Word(word) => word.clone(),
    };
    let (mut record, mut length): (Vec<String>, usize) = (Vec::new(), 0);
    for entry in named.iter().filter(is_there).map(entry) {
        length += entry.len() + 2;
        if length <= RECORD {
            record.push(entry);
        }
    }
    if record.is_empty() && !named.is_empty() {
        record.push(NOTHING.to_owned());
    }
    record
}

/// Things a memory names that have drifted.
pub fn check(memory: &Memory, tree: &Path) -> Vec<DriftedThing> {
    let drifted = |one: &NamedThing, fate: ThingState| DriftedThing { named: one.clone(), fate };
    if memory.named.is_empty() {
        let named: Vec<NamedThing> = named(&memory.body).into_iter().filter(|one| is_of_this_tree(one, tree)).collect();
        let missing = look(&named, tree).map(|looked| looked.missing).unwrap_or_default();
        return missing.into_iter().map(|one| drifted(one, ThingState::NotFound)).collect();
    }
    let parts = memory.named.iter().map(|entry| entry.split_once(MARK).unwrap_or((entry, "")));
    let recorded: Vec<(NamedThing, &str)> = parts.filter_map(|(word, mark)| Some((what(word)?, mark))).collect();
    let named: Vec<NamedThing> = recorded.iter().map(|(one, _)| one.clone()).collect();
    let missing = look(&named, tree).map(|looked| looked.missing).unwrap_or_default();
    let fate = |one: &NamedThing, was: &str| {
        let is_other = || mark(one.text(), tree).is_some_and(|mark| mark != was);
        match missing.contains(&one) {
            true => Some(ThingState::Gone),
            false if !was.is_empty() && is_other() => Some(ThingState::Changed),
            false => None,
        }
    };
    recorded.iter().filter_map(|(one, was)| Some(drifted(one, fate(one, was)?))).collect()
}

/// Short fingerprint of a file's text; `None` for a folder and for a file that is too large.
fn mark(path: &str, tree: &Path) -> Option<String> {
    let head = Root::open(tree).ok()?.head(path, BYTES).ok()?;
    (head.len <= BYTES).then(|| blake3::hash(&head.bytes).to_hex()[..8].to_owned())
}

/// Returns whether something looks like a file of this tree: with an extension, in an existing folder.
fn is_of_this_tree(named: &NamedThing, tree: &Path) -> bool {
    let NamedThing::File(path) = named else { return false };
    let has_ending = Path::new(path).extension().is_some();
    let folder = path.split_once('/').map(|(folder, _)| folder);
    has_ending && folder.is_some_and(|folder| Root::open(tree).is_ok_and(|root| root.sub(folder).is_ok()))
}

/// Things that were not found.
struct FailedLookup<'n> {
    /// They do not exist.
    missing: Vec<&'n NamedThing>,
    /// They were not in the part that was read, and the limit was reached.
    unknown: Vec<&'n NamedThing>,
}

/// Looks things up below the tree; `None` if the tree cannot be opened.
fn look<'n>(named: &'n [NamedThing], tree: &Path) -> Option<FailedLookup<'n>> {
    let root = Root::open(tree).ok()?;
    let is_there = |path: &str| root.head(path, 0).is_ok() || root.sub(path).is_ok();
    let mut missing: Vec<&NamedThing> =
        named.iter().filter(|one| matches!(one, NamedThing::File(path) if !is_there(path))).collect();
    let mut words: Vec<&NamedThing> = named.iter().filter(|one| matches!(one, NamedThing::Word(_))).collect();
    if words.is_empty() && missing.is_empty() {
        return Some(FailedLookup { missing, unknown: words });
    }
    let mut folders = 0;
    let enter = |folder: &Path| {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let is_source = !name.starts_with('.') && !PASSED.contains(&name.as_str());
        folders += usize::from(is_source);
        is_source && folders <= FOLDERS
    };
    let files = root.walk_some(ENTRIES, enter).unwrap_or_default();
    let all = folders <= FOLDERS && files.len() < ENTRIES;
    // A path may be given from a folder inside: `deploy.sh` for `scripts/deploy.sh`.
    let elsewhere = |one: &NamedThing| files.iter().any(|file| file.path.ends_with(one.text()));
    missing.retain(|one| !elsewhere(one) && (all || one.text().contains('/')));
    let (mut read, mut whole) = (0, all && files.len() <= FILES);
    for file in files.iter().take(FILES) {
        if words.is_empty() || read > ALL_BYTES {
            break;
        }
        let Ok(head) = root.head(&file.path, BYTES) else { continue };
        read += head.bytes.len() as u64;
        whole &= head.len <= BYTES;
        words.retain(|word| memchr::memmem::find(&head.bytes, word.text().as_bytes()).is_none());
    }
    if whole && read <= ALL_BYTES {
        missing.append(&mut words);
    }
    Some(FailedLookup { missing, unknown: words })
}
