//! What is wrong with a memory directory, and mending it.
//!
//! Found: files without a line in the index, lines without a file, a file listed twice, memories that say the same,
//! overlong lines, wrong types, frontmatter that is no YAML. Mended is what can be mended without guessing: the index is
//! brought in step with the files, since a change writes the file first. Frontmatter is made YAML by quoting the value
//! that is not. The rest is reported.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::diagnostic::{Diagnostic, Problem};
use crate::entry::Memory;
use crate::error::Error;
use crate::frontmatter;
use crate::index;
use crate::remember::by_what_it_says;
use crate::scan;
use crate::store::{MODE, Store, home};
use crate::taxonomy::Kind;

/// An index line longer than this is overlong: its detail belongs into the file.
pub const LONGEST_LINE: usize = 200;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// A memory without a line in its index.
    Orphan {
        /// The memory.
        path: String,
    },
    /// A line without a file.
    DeadLink {
        /// The index.
        index: String,
        /// The line, from 1.
        line: usize,
        /// Where it leads.
        target: String,
    },
    /// A memory with several lines.
    ListedTwice {
        /// The index.
        index: String,
        /// Where they lead.
        target: String,
    },
    /// Memories that have the same text.
    SameText {
        /// The memories.
        paths: Vec<String>,
    },
    /// A line that is too long.
    LongLine {
        /// The index.
        index: String,
        /// The line, from 1.
        line: usize,
        /// Where it leads.
        target: String,
        /// How many characters it has.
        length: usize,
    },
    /// A memory with a type that is none of the four, or with none.
    WrongType {
        /// The memory.
        path: String,
        /// The word it has there.
        found: Option<String>,
    },
    /// Something odd about a file's text.
    Odd {
        /// The memory.
        path: String,
        /// What.
        diagnostic: Diagnostic,
    },
    /// A file that cannot be read.
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        why: String,
    },
    /// An index over its limits.
    FullIndex {
        /// The index.
        index: String,
        /// Which limit.
        warning: index::Warning,
    },
}

/// Something that was mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mended {
    /// What was wrong.
    pub finding: Finding,
    /// What was done.
    pub done: String,
}

/// What is wrong with a directory.
pub fn examine(store: &Store) -> Result<Vec<Finding>, Error> {
    let root = store.root();
    let mut findings = Vec::new();
    let mut memories: BTreeMap<String, Memory> = BTreeMap::new();
    for path in scan::paths(root)? {
        match Memory::read(root, &path) {
            Ok(memory) => {
                memories.insert(path, memory);
            }
            Err(error) => findings.push(Finding::Unreadable { path, why: error.to_string() }),
        }
    }
    let mut listed: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for at in [index::FILE, "team/MEMORY.md"] {
        let Ok(file) = root.head(at, crate::entry::READ_LIMIT * 16) else { continue };
        let text = String::from_utf8_lossy(&file.bytes);
        let prefix = at.strip_suffix(index::FILE).unwrap_or_default();
        let seen = listed.entry(at).or_default();
        let mut twice = BTreeSet::new();
        for link in index::links(&text) {
            let path = format!("{prefix}{}", link.target);
            let index = at.to_owned();
            if link.length > LONGEST_LINE {
                let (line, target, length) = (link.line, link.target.clone(), link.length);
                findings.push(Finding::LongLine { index: index.clone(), line, target, length });
            }
            // A line may lead to something that is no memory, such as a log; it only has to be there.
            if !memories.contains_key(&path) && is_missing(root, &path) {
                findings.push(Finding::DeadLink { index, line: link.line, target: link.target });
            } else if !seen.insert(path) && twice.insert(link.target.clone()) {
                findings.push(Finding::ListedTwice { index, target: link.target });
            }
        }
        let warnings = index::warnings(&text).into_iter();
        findings.extend(warnings.map(|warning| Finding::FullIndex { index: at.to_owned(), warning }));
    }
    for (path, memory) in &memories {
        if !listed.get(home(path).0).is_some_and(|listed| listed.contains(path)) {
            findings.push(Finding::Orphan { path: path.clone() });
        }
        if memory.kind.is_none() {
            let found = memory.diagnostics.iter().find_map(|diagnostic| match &diagnostic.problem {
                Problem::UnknownType(found) => Some(found.clone()),
                _ => None,
            });
            findings.push(Finding::WrongType { path: path.clone(), found });
        }
        for diagnostic in &memory.diagnostics {
            if !matches!(diagnostic.problem, Problem::UnknownType(_)) {
                findings.push(Finding::Odd { path: path.clone(), diagnostic: diagnostic.clone() });
            }
        }
    }
    findings.extend(same_text(&memories));
    Ok(findings)
}

/// Whether nothing is there. A folder, a part of a file (`a.md#part`) and what cannot be read are something.
fn is_missing(root: &files::Root, path: &str) -> bool {
    let file = path.split(['#', '?']).next().unwrap_or(path);
    let gone = |path: &str| matches!(root.head(path, 0), Err(files::Error::NotFound { .. })) && root.sub(path).is_err();
    gone(path) && gone(file)
}

fn same_text(memories: &BTreeMap<String, Memory>) -> Vec<Finding> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, memory) in memories {
        let text = by_what_it_says(&memory.body);
        let text = if text.is_empty() { memory.description.clone().unwrap_or_default() } else { text };
        if !text.is_empty() {
            texts.entry(text).or_default().push(path.clone());
        }
    }
    texts.into_values().filter(|paths| paths.len() > 1).map(|paths| Finding::SameText { paths }).collect()
}

/// Mends what can be mended without guessing, and says what was done.
pub fn mend(store: &Store) -> Result<Vec<Mended>, Error> {
    let _held = store.lock()?;
    let mut mended = Vec::new();
    for finding in examine(store)? {
        let done = match &finding {
            Finding::Orphan { path } => {
                let memory = Memory::read(store.root(), path)?;
                let hook = memory.description.clone().unwrap_or_default();
                store.indexed(path, |text, target| index::put(text, &memory.name, target, &hook))?;
                Some("a line was added to the index")
            }
            Finding::DeadLink { index, target, .. } => {
                store.change_index(index, |text| index::take(text, target))?;
                Some("the line was removed")
            }
            Finding::ListedTwice { index, target } => {
                store.change_index(index, |text| once(text, target))?;
                Some("the first line was kept")
            }
            Finding::LongLine { index, target, .. } => {
                if keep_detail(store, index, target)? {
                    store.change_index(index, |text| shortened(text, target))?;
                    Some("the line was shortened; the detail is in the file")
                } else {
                    None
                }
            }
            Finding::WrongType { path, found: Some(found) } => {
                retype(store, path, found)?.then_some("the type was corrected")
            }
            Finding::Odd { path, diagnostic: Diagnostic { problem: Problem::NotYaml(_), .. } } => {
                rewrite(store, path, frontmatter::mended)?.then_some("values were put in quotes")
            }
            _ => None,
        };
        if let Some(done) = done {
            mended.push(Mended { finding, done: done.to_owned() });
        }
    }
    Ok(mended)
}

/// Sees to it that a file says what its line says, before the line is cut. Whether it does.
fn keep_detail(store: &Store, index: &str, target: &str) -> Result<bool, Error> {
    let read = |path: &str| store.root().read(path, crate::entry::READ_LIMIT).ok().map(|file| file.bytes);
    let text = |path: &str| String::from_utf8(read(path)?).ok();
    let path = if index == index::FILE { target.to_owned() } else { format!("{}{target}", crate::store::TEAM) };
    let (Some(lines), Some(memory)) = (text(index), text(&path)) else { return Ok(false) };
    let Some(link) = index::links(&lines).into_iter().find(|link| link.target == target) else { return Ok(false) };
    let said = by_what_it_says(&memory);
    let lost = [link.title, link.hook].into_iter().filter(|part| !said.contains(&by_what_it_says(part)));
    let lost: Vec<String> = lost.collect();
    Ok(lost.is_empty() || rewrite(store, &path, |text| format!("{}\n\n{}\n", text.trim_end(), lost.join(": ")))?)
}

fn once(text: &str, target: &str) -> String {
    match index::links(text).into_iter().find(|link| link.target == target) {
        Some(link) => index::put(text, &link.title, target, &link.hook),
        None => text.to_owned(),
    }
}

fn shortened(text: &str, target: &str) -> String {
    match index::links(text).into_iter().find(|link| link.target == target && link.length > LONGEST_LINE) {
        Some(link) => {
            let title: String = link.title.chars().take(80).collect();
            index::put(text, &title, target, &link.hook)
        }
        None => text.to_owned(),
    }
}

/// Corrects a type that is one of the four in other letters, such as `Feedback` or `projects`.
fn retype(store: &Store, path: &str, found: &str) -> Result<bool, Error> {
    let word = found.trim().to_lowercase();
    let Some(kind) = Kind::of(&word).or_else(|| Kind::of(word.trim_end_matches('s'))) else { return Ok(false) };
    rewrite(store, path, |text| crate::store::set_kind(text, kind))
}

fn rewrite(store: &Store, path: &str, change: impl Fn(&str) -> String) -> Result<bool, Error> {
    let file = store.root().read(path, crate::entry::READ_LIMIT)?;
    let Ok(text) = std::str::from_utf8(&file.bytes) else { return Ok(false) };
    let changed = change(text);
    if changed == text {
        return Ok(false);
    }
    store.root().replace_unchanged(path, changed.as_bytes(), &file.stamp, MODE)?;
    Ok(true)
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Orphan { path } => write!(f, "{path}: not in the index"),
            Self::DeadLink { index, line, target } => write!(f, "{index}:{line}: {target} does not exist"),
            Self::ListedTwice { index, target } => write!(f, "{index}: {target} is listed more than once"),
            Self::SameText { paths } => write!(f, "{}: the same text", paths.join(", ")),
            Self::LongLine { index, line, length, .. } => write!(f, "{index}:{line}: {length} characters"),
            Self::WrongType { path, found: Some(found) } => {
                write!(f, "{path}: type {found:?} is none of user, feedback, project, reference")
            }
            Self::WrongType { path, found: None } => write!(f, "{path}: no type"),
            Self::Odd { path, diagnostic } => write!(f, "{path}: {diagnostic}"),
            Self::Unreadable { path, why } => write!(f, "{path}: cannot be read: {why}"),
            Self::FullIndex { index, warning } => write!(f, "{index}: {warning}"),
        }
    }
}
