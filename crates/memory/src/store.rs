//! Saving, changing, removing and renaming memories: file and index together.
//!
//! Every change is made under one lock of the operating system in the memory directory, so two processes that add at
//! the same time lose nothing. The file comes first, then the index. A crash between the two leaves a file without a
//! line or a line without a file, and [`crate::doctor`] completes the change in either case. Other programs write here
//! without our lock: the index is replaced only if it is still as it was read, and read again if it is not.

use std::fmt;
use std::path::{Component, Path};
use std::time::Duration;

use files::{Lock, Root};
use jiff::Timestamp;
use parking_lot::Mutex;

use crate::entry::{ASKED, Memory};
use crate::error::Error;
use crate::frontmatter;
use crate::index::{self, Warning};
use crate::kept_change;
use crate::quoting;
use crate::scan;
use crate::secrets::no_secret;
use crate::taxonomy::Kind;

/// File mode of memories: they are private.
pub(crate) const MODE: u32 = 0o600;

/// The lock file. It is no `*.md`, so it is no memory.
pub(crate) const LOCK: &str = ".index-lock";

/// An index or a memory larger than this is not edited.
const EDIT_LIMIT: u64 = 16 * 1024 * 1024;

/// Longest wait for a lock held by somebody else.
const PATIENCE: Duration = Duration::from_secs(10);

/// Limit on attempts to change the index while someone else changes it too.
const ATTEMPTS: usize = 50;

/// The folder shared with collaborators; it has an index of its own.
pub(crate) const TEAM: &str = "team/";

/// A memory directory that can be written to.
#[derive(Debug)]
pub struct Store {
    root: Root,
    indexing: IndexUpkeep,
    keeper: Option<Keeper>,
}

/// Callback that keeps a change a command is about to make.
struct Keeper(Mutex<Box<SendKeep>>);

type SendKeep = dyn FnMut(&kept_change::KeptChange) -> Result<(), Error> + Send;

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keeper")
    }
}

/// Upkeep of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexUpkeep {
    /// Each change of a file changes its line.
    Kept,
    /// There is no index step (`skipIndex`).
    Skipped,
}

/// A memory to be saved.
#[derive(Debug, Clone, Default)]
pub struct NewMemory {
    /// The file, relative to the memory directory; made from the name where it is not given.
    pub path: Option<String>,
    /// Its name.
    pub name: String,
    /// One-line description.
    pub description: String,
    /// Questions that it answers, in the words of somebody who does not remember its wording.
    pub asked: Option<String>,
    /// Its type.
    pub kind: Option<Kind>,
    /// Scope: files, languages, tools, activities.
    pub applies_to: Vec<String>,
    /// The text.
    pub body: String,
}

/// A change of a memory; fields not given stay as they are, byte for byte.
#[derive(Debug, Clone, Default)]
pub struct MemoryEdit {
    /// New name.
    pub name: Option<String>,
    /// New description.
    pub description: Option<String>,
    /// New questions that it answers.
    pub asked: Option<String>,
    /// New type.
    pub kind: Option<Kind>,
    /// New text.
    pub body: Option<String>,
    /// Time of the change, recorded in the memory.
    pub at: Option<Timestamp>,
}

/// Result of a save.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaveResult {
    /// The file, relative to the memory directory.
    pub path: String,
    /// Limits that the index now exceeds.
    pub warnings: Vec<Warning>,
}

impl Store {
    /// Opens a memory directory, creating it if it is missing.
    pub fn create(path: impl AsRef<Path>, indexing: IndexUpkeep) -> Result<Self, Error> {
        Ok(Self { root: Root::create(path)?, indexing, keeper: None })
    }

    /// Opens an existing memory directory.
    pub fn open(path: impl AsRef<Path>, indexing: IndexUpkeep) -> Result<Self, Error> {
        Ok(Self { root: Root::open(path)?, indexing, keeper: None })
    }

    /// Upkeep of the index.
    pub fn indexing(&self) -> IndexUpkeep {
        self.indexing
    }

    /// The opened directory.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// Hands every change to `keep` before it is made; if that fails, nothing is changed. Agents keep their revisions
    /// themselves.
    #[must_use]
    pub fn keeping(mut self, keep: impl FnMut(&kept_change::KeptChange) -> Result<(), Error> + Send + 'static) -> Self {
        self.keeper = Some(Keeper(Mutex::new(Box::new(keep))));
        self
    }

    /// Keeps a change that is about to be made. The lock is held.
    pub(crate) fn keep(&self, path: &str, before: Option<&str>, after: Option<&str>) -> Result<(), Error> {
        let Some(Keeper(keep)) = &self.keeper else { return Ok(()) };
        let (before, after) = (before.map(str::to_owned), after.map(str::to_owned));
        let change = kept_change::KeptChange { line: self.line(path)?, path: path.to_owned(), before, after };
        (keep.lock())(&change)
    }

    /// The line of the index for a memory.
    pub(crate) fn line(&self, path: &str) -> Result<Option<String>, Error> {
        let (at, target) = home(path);
        match self.root.read(at, EDIT_LIMIT) {
            Ok(file) => Ok(index::written(&String::from_utf8_lossy(&file.bytes), target).map(str::to_owned)),
            Err(files::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Saves a new memory. Its name must be free.
    pub fn add(&self, new: &NewMemory) -> Result<SaveResult, Error> {
        let path = match &new.path {
            Some(path) => checked(path)?.to_owned(),
            None => file_name(&new.name)?,
        };
        let _held = self.lock()?;
        self.root.create_new(&path, render(new).as_bytes(), MODE)?;
        self.indexed(&path, |text, target| index::put(text, &new.name, target, &new.description))
    }

    /// Changes a memory.
    pub fn edit(&self, path: &str, change: &MemoryEdit) -> Result<SaveResult, Error> {
        checked(path)?;
        let _held = self.lock()?;
        let file = self.root.read(path, EDIT_LIMIT).map_err(|error| self.missing(path, error))?;
        let Ok(text) = String::from_utf8(file.bytes) else {
            return Err(Error::NotText { path: self.root.path().join(path) });
        };
        let edited = apply(&text, change);
        if edited != text {
            no_secret(path, &edited)?;
            self.keep(path, Some(&text), Some(&edited))?;
            self.root.replace_unchanged(path, edited.as_bytes(), &file.stamp, MODE)?;
        }
        let memory = Memory::parse(path, edited.as_bytes(), None, edited.len() as u64);
        let named = change.name.is_some() || change.description.is_some();
        self.indexed(path, |text, target| {
            if named || !index::links(text).iter().any(|link| link.target == target) {
                index::put(text, &memory.name, target, memory.description.as_deref().unwrap_or_default())
            } else {
                text.to_owned()
            }
        })
    }

    /// Removes a memory.
    pub fn remove(&self, path: &str) -> Result<SaveResult, Error> {
        checked(path)?;
        let _held = self.lock()?;
        let file = self.root.read(path, EDIT_LIMIT).map_err(|error| self.missing(path, error))?;
        self.keep(path, Some(&String::from_utf8_lossy(&file.bytes)), None)?;
        self.root.remove(path).map_err(|error| self.missing(path, error))?;
        self.indexed(path, index::take)
    }

    /// Renames the file of a memory; its time and text stay the same.
    pub fn rename(&self, from: &str, to: &str) -> Result<SaveResult, Error> {
        checked(from)?;
        checked(to)?;
        let _held = self.lock()?;
        let memory = Memory::read(&self.root, from).map_err(|error| match error {
            Error::Files(error) => self.missing(from, error),
            other => other,
        })?;
        if self.root.head(to, 0).is_ok() {
            return Err(files::Error::Exists { path: self.root.path().join(to) }.into());
        }
        let text = self.root.read(from, EDIT_LIMIT)?.bytes;
        let text = String::from_utf8_lossy(&text);
        self.keep(to, None, Some(&text))?;
        self.keep(from, Some(&text), None)?;
        self.root.rename(from, to)?;
        let (old, new) = (home(from), home(to));
        if old.0 == new.0 {
            return self.indexed(to, |text, target| {
                let moved = index::point(text, old.1, target);
                if index::links(&moved).iter().any(|link| link.target == target) {
                    return moved;
                }
                index::put(&moved, &memory.name, target, memory.description.as_deref().unwrap_or_default())
            });
        }
        self.indexed(from, index::take)?;
        self.indexed(to, |text, target| {
            index::put(text, &memory.name, target, memory.description.as_deref().unwrap_or_default())
        })
    }

    /// Takes the lock on the directory. A holder that takes longer than any write has hung, and is not waited for.
    pub(crate) fn lock(&self) -> Result<Lock, Error> {
        Ok(self.root.lock_within(LOCK, PATIENCE)?)
    }

    /// Changes the index a file belongs to. The lock is held.
    pub(crate) fn indexed(&self, path: &str, change: impl Fn(&str, &str) -> String) -> Result<SaveResult, Error> {
        let saved = |warnings| SaveResult { path: path.to_owned(), warnings };
        if self.indexing == IndexUpkeep::Skipped {
            return Ok(saved(Vec::new()));
        }
        let (at, target) = home(path);
        let text = self.change_index(at, |text| change(text, target))?;
        Ok(saved(index::warnings(&text)))
    }

    /// Changes one index, even if others write it meanwhile, and returns it. The lock is held.
    pub(crate) fn change_index(&self, at: &str, change: impl Fn(&str) -> String) -> Result<String, Error> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let written = match self.root.read(at, EDIT_LIMIT) {
                Ok(file) => {
                    let Ok(text) = String::from_utf8(file.bytes) else {
                        return Err(Error::NotText { path: self.root.path().join(at) });
                    };
                    let changed = change(&text);
                    if changed == text {
                        return Ok(text);
                    }
                    self.root.replace_unchanged(at, changed.as_bytes(), &file.stamp, MODE).map(|()| changed)
                }
                Err(files::Error::NotFound { .. }) => {
                    let changed = change("");
                    if changed.is_empty() {
                        return Ok(changed);
                    }
                    self.root.create_new(at, changed.as_bytes(), MODE).map(|()| changed)
                }
                Err(error) => return Err(error.into()),
            };
            match written {
                Ok(text) => return Ok(text),
                Err(error @ (files::Error::Changed { .. } | files::Error::Exists { .. })) => last = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
        Err(last.unwrap_or_else(|| files::Error::Changed { path: self.root.path().join(at) }).into())
    }

    fn missing(&self, name: &str, error: files::Error) -> Error {
        match error {
            files::Error::NotFound { .. } => {
                Error::NoMemory { name: name.to_owned(), directory: self.root.path().to_owned() }
            }
            other => other.into(),
        }
    }
}

/// The index a file belongs to, and its path relative to that index.
pub(crate) fn home(path: &str) -> (&'static str, &str) {
    match path.strip_prefix(TEAM) {
        Some(target) => ("team/MEMORY.md", target),
        None => (index::FILE, path),
    }
}

/// Renders a memory as a file.
pub fn render(new: &NewMemory) -> String {
    let mut text = String::from("---\n---\n\n");
    text.push_str(new.body.trim_start_matches('\n'));
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text = frontmatter::set(&text, "name", &scan::one_line(&new.name, 200));
    text = frontmatter::set(&text, "description", &scan::one_line(&new.description, 1_000));
    if let Some(asked) = &new.asked {
        text = frontmatter::set(&text, ASKED, &scan::one_line(asked, 1_000));
    }
    if let Some(kind) = new.kind {
        text = frontmatter::set(&text, "type", kind.name());
    }
    if !new.applies_to.is_empty() {
        text = frontmatter::set(&text, "applies_to", &new.applies_to.join(", "));
    }
    text
}

/// Applies a change to the text of a memory.
pub fn apply(text: &str, change: &MemoryEdit) -> String {
    let mut text = text.to_owned();
    if let Some(name) = &change.name {
        text = frontmatter::set(&text, "name", &scan::one_line(name, 200));
    }
    if let Some(description) = &change.description {
        text = frontmatter::set(&text, "description", &scan::one_line(description, 1_000));
    }
    if let Some(asked) = &change.asked {
        text = frontmatter::set(&text, ASKED, &scan::one_line(asked, 1_000));
    }
    if let Some(kind) = change.kind {
        text = set_kind(&text, kind);
    }
    if let Some(body) = &change.body {
        let front = frontmatter::read(&text);
        let at = front.body_start();
        let space = &text[at..at + text[at..].len() - text[at..].trim_start_matches(['\r', '\n']).len()];
        text = format!("{}{space}{}", &text[..at], body.trim_start_matches('\n'));
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    match change.at {
        Some(at) if front_is_there(&text) => frontmatter::set_under(&text, "metadata", "modified", &at.to_string()),
        _ => text,
    }
}

fn front_is_there(text: &str) -> bool {
    frontmatter::read(text).is_present()
}

/// Sets the type where it is: at the top, or below `metadata`.
pub(crate) fn set_kind(text: &str, kind: Kind) -> String {
    let front = frontmatter::read(text);
    if !front.fields.contains_key("type") && front.metadata("type").is_some() {
        frontmatter::set_under(text, "metadata", "type", kind.name())
    } else {
        frontmatter::set(text, "type", kind.name())
    }
}

/// Makes a file name from a name: everything that is not a letter or digit becomes `-`.
pub fn file_name(name: &str) -> Result<String, Error> {
    let mut slug = String::new();
    for c in name.chars().filter(|c| !quoting::is_invisible(*c)) {
        if c.is_alphanumeric() {
            slug.extend(c.to_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_matches('-');
    let slug = slug[..slug.floor_char_boundary(80)].trim_matches('-');
    let path = format!("{slug}.md");
    checked(&path).map(str::to_owned).map_err(|_| Error::BadName {
        name: name.to_owned(),
        why: "it has no letters or digits a file name could be made from",
    })
}

/// Checks that a path may be a memory's: relative, below, `*.md`, no index, no log, and without lookalike characters.
pub fn checked(path: &str) -> Result<&str, Error> {
    let bad = |why| Err(Error::BadName { name: path.chars().take(200).collect(), why });
    if path.chars().any(|c| c.is_control() || matches!(c, '\\' | ':')) {
        return bad("it holds a control character, a colon or a backslash");
    }
    if path.chars().any(|c| quoting::is_invisible(c) || passes_for_another(c)) {
        return bad("it holds a character that is invisible or passes for another");
    }
    if !Path::new(path).components().all(|part| matches!(part, Component::Normal(_))) || path.contains("//") {
        return bad("it must be a path below the memory directory, without `..`");
    }
    if path.split('/').any(|part| part.starts_with('.') || part.starts_with(' ') || part.ends_with(' ')) {
        return bad("a part of it starts with a dot or has a space at an end");
    }
    if path.split('/').any(|part| part.len() > 200) {
        return bad("a part of it is longer than 200 bytes");
    }
    if path.starts_with("logs/") {
        return bad("logs/ is for daily logs");
    }
    // It would stand where an index or a memory is to be.
    if path.rsplit('/').skip(1).any(|folder| folder.to_ascii_lowercase().ends_with(".md")) {
        return bad("a folder of it is named like a memory");
    }
    if !scan::is_memory(path) {
        return bad("it must end in .md and not be an index");
    }
    Ok(path)
}

/// Dots and slashes of other alphabets, which some systems turn into real ones.
fn passes_for_another(c: char) -> bool {
    matches!(
        c,
        '\u{ff0e}'
            | '\u{2024}'
            | '\u{2025}'
            | '\u{2026}'
            | '\u{fe52}'
            | '\u{ff0f}'
            | '\u{2044}'
            | '\u{2215}'
            | '\u{29f8}'
            | '\u{ff3c}'
            | '\u{2216}'
            | '\u{fe68}'
            | '\u{ff1a}'
    )
}
