//! Repairs without guessing, so that no word is lost.
//!
//! What a line of the index says and its file does not is put into the file before the line is cut or removed; a line
//! whose file is gone stays as text, unless a memory says the same. Files keep their dates. Each change is recorded
//! before it is made.

use std::collections::BTreeMap;
use std::fmt;

use super::{DoctorFinding, INDEXES, LONGEST_LINE, examine};
use crate::diagnostic::{Diagnostic, FileProblem};
use crate::entry::{Memory, READ_LIMIT};
use crate::error::Error;
use crate::frontmatter;
use crate::index::{self, Link};
use crate::remember::by_what_it_says;
use crate::scan;
use crate::store::{MODE, Store, TEAM, home, set_kind};
use crate::taxonomy::Kind;

/// A repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoctorFix {
    /// The problem.
    pub finding: DoctorFinding,
    /// Description of the repair, with the lines.
    pub done: String,
}

impl fmt::Display for DoctorFix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.finding, self.done)
    }
}

/// The indexes in their new form.
struct Indexes<'s> {
    store: &'s Store,
    texts: BTreeMap<&'static str, (String, String)>,
}

/// Repairs what can be repaired without guessing, and describes it.
pub fn mend(store: &Store) -> Result<Vec<DoctorFix>, Error> {
    let _held = store.lock()?;
    let mut indexes = Indexes::read(store)?;
    let mut mended = Vec::new();
    let mut findings = examine(store)?;
    findings.sort_by_key(|finding| !matches!(finding, DoctorFinding::ListedTwice { .. })); // first to one line, then that one
    for finding in findings {
        let done = match &finding {
            DoctorFinding::Orphan { path } => Some(indexes.list(path)?),
            DoctorFinding::DeadLink { index, target, .. } => indexes.unlink(index, target)?,
            DoctorFinding::ListedTwice { index, target } => indexes.list_once(index, target)?,
            DoctorFinding::LongLine { index, target, .. } => indexes.shorten(index, target)?,
            DoctorFinding::WrongType { path, found: Some(found) } => retype(store, path, found)?,
            DoctorFinding::Odd { path, diagnostic: Diagnostic { problem: FileProblem::NotYaml(_), .. } } => {
                rewrite(store, path, frontmatter::mended)?.then(|| "its values were put in quotes".to_owned())
            }
            _ => None,
        };
        if let Some(done) = done {
            mended.push(DoctorFix { finding, done });
        }
    }
    indexes.write()?;
    Ok(mended)
}

impl<'s> Indexes<'s> {
    fn read(store: &'s Store) -> Result<Self, Error> {
        let mut texts = BTreeMap::new();
        for at in INDEXES {
            let text = match store.root().read(at, READ_LIMIT * 16) {
                Ok(file) => {
                    String::from_utf8(file.bytes).map_err(|_| Error::NotText { path: store.root().path().join(at) })?
                }
                Err(files::Error::NotFound { .. }) => String::new(),
                Err(error) => return Err(error.into()),
            };
            texts.insert(at, (text.clone(), text));
        }
        Ok(Self { store, texts })
    }

    fn text(&mut self, index: &str) -> Option<&mut String> {
        self.texts.get_mut(index).map(|(_, now)| now)
    }

    fn links(&mut self, index: &str, target: &str) -> Vec<Link> {
        let text = self.text(index).map(|text| index::links(text)).unwrap_or_default();
        text.into_iter().filter(|link| link.target == target).collect()
    }

    /// Adds a memory's line.
    fn list(&mut self, path: &str) -> Result<String, Error> {
        let memory = Memory::read(self.store.root(), path)?;
        let (at, target) = home(path);
        let hook = memory.description.clone().unwrap_or_default();
        if let Some(text) = self.text(at) {
            *text = index::put(text, &memory.name, target, &hook);
        }
        Ok(format!("a line was added to {at}: {}", index::line(&memory.name, target, &hook)))
    }

    /// Removes a line without a file, or turns it into text if no memory says the same.
    fn unlink(&mut self, index: &str, target: &str) -> Result<Option<String>, Error> {
        let Some(link) = self.links(index, target).into_iter().next() else { return Ok(None) };
        let written = self.text(index).and_then(|text| index::written(text, target).map(str::to_owned));
        let said = link.hook.is_empty() || is_in_a_memory(self.store, &link.hook)?;
        let Some(text) = self.text(index) else { return Ok(None) };
        let written = written.unwrap_or_default();
        if said {
            *text = index::take(text, target);
            return Ok(Some(format!("the line was removed: {}", written.trim())));
        }
        *text = index::unlink(text, target);
        Ok(Some(format!("the link was removed and the words stay: - {} — {}", link.title, link.hook)))
    }

    /// Leaves a memory its first line, once its file says what the others say.
    fn list_once(&mut self, index: &str, target: &str) -> Result<Option<String>, Error> {
        let links = self.links(index, target);
        let Some((first, others)) = links.split_first() else { return Ok(None) };
        if !says(self.store, &path_of(index, target), others)? {
            return Ok(None);
        }
        let removed: Vec<String> = others.iter().map(|link| format!("{} — {}", link.title, link.hook)).collect();
        if let Some(text) = self.text(index) {
            *text = index::keep_first(text, target);
        }
        let file = path_of(index, target);
        Ok(Some(format!(
            "line {} was kept; removed, and what it said is in {file}: {}",
            first.line,
            removed.join("; ")
        )))
    }

    /// Shortens a line, once its file says what it says.
    fn shorten(&mut self, index: &str, target: &str) -> Result<Option<String>, Error> {
        let overlong: Vec<Link> =
            self.links(index, target).into_iter().filter(|link| link.length > LONGEST_LINE).take(1).collect();
        let [link] = overlong.as_slice() else { return Ok(None) };
        let file = path_of(index, target);
        if !says(self.store, &file, &overlong)? {
            return Ok(None);
        }
        if let Some(text) = self.text(index) {
            *text = index::put(text, &link.title, target, &link.hook);
        }
        Ok(Some(format!("the line was shortened; what it said is in {file}")))
    }

    /// Writes the changed indexes.
    fn write(self) -> Result<(), Error> {
        for (at, (before, now)) in self.texts.into_iter().filter(|(_, (before, now))| before != now) {
            let was = (!before.is_empty()).then_some(before.as_str());
            self.store.keep(at, was, Some(&now))?;
            // Whoever else wrote meanwhile is not written over: what is left is found the next time.
            self.store.change_index(at, |text| if text == before { now.clone() } else { text.to_owned() })?;
        }
        Ok(())
    }
}

/// The memory that a line of an index leads to.
fn path_of(index: &str, target: &str) -> String {
    if index == index::FILE { target.to_owned() } else { format!("{TEAM}{target}") }
}

/// Returns whether a memory contains these words.
fn is_in_a_memory(store: &Store, words: &str) -> Result<bool, Error> {
    let words = by_what_it_says(words.trim_end_matches('…'));
    let has = |path: &String| {
        let file = store.root().read(path, READ_LIMIT).ok()?;
        Some(by_what_it_says(&String::from_utf8_lossy(&file.bytes)).contains(&words))
    };
    Ok(scan::paths(store.root())?.iter().any(|path| has(path).unwrap_or(false)))
}

/// Makes sure that a file says what lines say. Returns whether it does.
fn says(store: &Store, path: &str, lines: &[Link]) -> Result<bool, Error> {
    let Ok(file) = store.root().read(path, READ_LIMIT) else { return Ok(false) };
    let Ok(memory) = String::from_utf8(file.bytes) else { return Ok(false) };
    let said = by_what_it_says(&memory);
    let lost = |link: &Link| {
        let parts = [link.title.clone(), link.hook.clone()].into_iter();
        let lost: Vec<String> =
            parts.filter(|part| !said.contains(&by_what_it_says(part.trim_end_matches('…')))).collect();
        lost.join(": ")
    };
    let lost: Vec<String> = lines.iter().map(lost).filter(|words| !words.is_empty()).collect();
    Ok(lost.is_empty() || rewrite(store, path, |text| format!("{}\n\n{}\n", text.trim_end(), lost.join("\n\n")))?)
}

/// Corrects a type that is one of the four in another spelling, such as `Feedback` or `projects`.
fn retype(store: &Store, path: &str, found: &str) -> Result<Option<String>, Error> {
    let word = found.trim().to_lowercase();
    let Some(kind) = Kind::of(&word).or_else(|| Kind::of(word.trim_end_matches('s'))) else { return Ok(None) };
    Ok(rewrite(store, path, |text| set_kind(text, kind))?.then(|| format!("the type is {kind} now")))
}

/// Rewrites a file; its date stays.
fn rewrite(store: &Store, path: &str, change: impl Fn(&str) -> String) -> Result<bool, Error> {
    let file = store.root().read(path, READ_LIMIT)?;
    let Ok(text) = std::str::from_utf8(&file.bytes) else { return Ok(false) };
    let changed = change(text);
    if changed == text {
        return Ok(false);
    }
    let modified = store.root().head(path, 0)?.modified;
    store.keep(path, Some(text), Some(&changed))?;
    store.root().replace_unchanged(path, changed.as_bytes(), &file.stamp, MODE)?;
    if let Some(modified) = modified {
        store.root().date(path, modified)?;
    }
    Ok(true)
}
