//! Checks and repairs of a memory directory.
//!
//! It finds files without a line in the index, lines without a file, a file listed twice, memories that say the same,
//! overlong lines, wrong types, and frontmatter that is not YAML. It repairs what can be repaired without guessing: the
//! index is brought into step with the files, since a change writes the file first, and no word of it is lost.
//! Frontmatter is made YAML by quoting the value that is not. The rest is reported.

mod mend;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;
use jiff::civil::Date;

use crate::diagnostic::{Diagnostic, FileProblem};
use crate::entry::{Memory, is_over};
use crate::error::Error;
use crate::index;
use crate::remember::by_what_it_says;
use crate::scan;
use crate::store::{IndexUpkeep, Store, home};

pub use mend::{DoctorFix, mend};

/// Length above which an index line is overlong: its details belong in the file.
pub const LONGEST_LINE: usize = 200;

/// The possible indexes.
const INDEXES: [&str; 2] = [index::FILE, "team/MEMORY.md"];

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DoctorFinding {
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
        /// Its target.
        target: String,
    },
    /// A memory with several lines.
    ListedTwice {
        /// The index.
        index: String,
        /// Their target.
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
        /// Its target.
        target: String,
        /// Its length in characters.
        length: usize,
    },
    /// A memory without a type, or with one that is not one of the four.
    WrongType {
        /// The memory.
        path: String,
        /// The word found there.
        found: Option<String>,
    },
    /// A problem with a file's text.
    Odd {
        /// The memory.
        path: String,
        /// The problem.
        diagnostic: Diagnostic,
    },
    /// An expired memory, which is no longer recalled.
    Over {
        /// The memory.
        path: String,
        /// Its last day.
        until: Date,
    },
    /// A file that cannot be read.
    Unreadable {
        /// The file.
        path: String,
        /// The reason.
        why: String,
    },
    /// An index over its limits.
    FullIndex {
        /// The index.
        index: String,
        /// The exceeded limit.
        warning: index::Warning,
    },
}

/// Examines a directory.
pub fn examine(store: &Store) -> Result<Vec<DoctorFinding>, Error> {
    let root = store.root();
    let mut findings = Vec::new();
    let mut memories: BTreeMap<String, Memory> = BTreeMap::new();
    for path in scan::paths(root)? {
        match Memory::read(root, &path) {
            Ok(memory) => {
                memories.insert(path, memory);
            }
            Err(error) => findings.push(DoctorFinding::Unreadable { path, why: error.to_string() }),
        }
    }
    let mut listed: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let indexes = if store.indexing() == IndexUpkeep::Kept { &INDEXES[..] } else { &[] };
    for at in indexes.iter().copied() {
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
                findings.push(DoctorFinding::LongLine { index: index.clone(), line, target, length });
            }
            // A line may lead to something that is no memory, such as a log; it only has to be there.
            if !memories.contains_key(&path) && is_missing(root, &path) {
                findings.push(DoctorFinding::DeadLink { index, line: link.line, target: link.target });
            } else if !seen.insert(path) && twice.insert(link.target.clone()) {
                findings.push(DoctorFinding::ListedTwice { index, target: link.target });
            }
        }
        let warnings = index::warnings(&text).into_iter();
        findings.extend(warnings.map(|warning| DoctorFinding::FullIndex { index: at.to_owned(), warning }));
    }
    for (path, memory) in &memories {
        let is_indexed = store.indexing() == IndexUpkeep::Kept;
        if is_indexed && !listed.get(home(path).0).is_some_and(|listed| listed.contains(path)) {
            findings.push(DoctorFinding::Orphan { path: path.clone() });
        }
        if memory.kind.is_none() {
            let found = memory.diagnostics.iter().find_map(|diagnostic| match &diagnostic.problem {
                FileProblem::UnknownType(found) => Some(found.clone()),
                _ => None,
            });
            findings.push(DoctorFinding::WrongType { path: path.clone(), found });
        }
        for diagnostic in &memory.diagnostics {
            if !matches!(diagnostic.problem, FileProblem::UnknownType(_)) {
                findings.push(DoctorFinding::Odd { path: path.clone(), diagnostic: diagnostic.clone() });
            }
        }
    }
    findings.extend(same_text(&memories));
    Ok(findings)
}

/// The expired memories.
pub fn over(store: &Store, now: Timestamp) -> Result<Vec<DoctorFinding>, Error> {
    let root = store.root();
    let memories = scan::paths(root)?.into_iter().filter_map(|path| Memory::read(root, &path).ok());
    let over = memories.filter(|memory| is_over(memory.until, now));
    Ok(over.filter_map(|memory| Some(DoctorFinding::Over { path: memory.path, until: memory.until? })).collect())
}

/// Returns whether nothing is there. A folder, a part of a file (`a.md#part`) and an unreadable file count as present.
fn is_missing(root: &files::Root, path: &str) -> bool {
    let file = path.split(['#', '?']).next().unwrap_or(path);
    let gone = |path: &str| matches!(root.head(path, 0), Err(files::Error::NotFound { .. })) && root.sub(path).is_err();
    gone(path) && gone(file)
}

fn same_text(memories: &BTreeMap<String, Memory>) -> Vec<DoctorFinding> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, memory) in memories {
        let text = by_what_it_says(&memory.body);
        let text = if text.is_empty() { memory.description.clone().unwrap_or_default() } else { text };
        if !text.is_empty() {
            texts.entry(text).or_default().push(path.clone());
        }
    }
    texts.into_values().filter(|paths| paths.len() > 1).map(|paths| DoctorFinding::SameText { paths }).collect()
}

impl fmt::Display for DoctorFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Orphan { path } => write!(f, "{path}: not in the index"),
            Self::DeadLink { index, line, target } => write!(f, "{index}:{line}: {target} does not exist"),
            Self::ListedTwice { index, target } => write!(f, "{index}: {target} is listed more than once"),
            Self::SameText { paths } => write!(f, "{}: the same text", paths.join(", ")),
            Self::LongLine { index, line, target, length } => {
                write!(f, "{index}:{line}: {length} characters for {target}, and a line has at most {LONGEST_LINE}")
            }
            Self::WrongType { path, found: Some(found) } => {
                write!(f, "{path}: type {found:?} is none of user, feedback, project, reference")
            }
            Self::WrongType { path, found: None } => write!(f, "{path}: no type"),
            Self::Odd { path, diagnostic } => write!(f, "{path}: {diagnostic}"),
            Self::Over { path, until } => write!(f, "{path}: out of date: it names {until} as its last day"),
            Self::Unreadable { path, why } => write!(f, "{path}: cannot be read: {why}"),
            Self::FullIndex { index, warning } => write!(f, "{index}: {warning}"),
        }
    }
}
