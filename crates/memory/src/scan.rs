//! The manifest of memories: one line each, for a model to choose from.
//!
//! All `*.md` below the memory directory, `team/` included, `logs/` not, and nothing named `MEMORY.md` anywhere. Of
//! each file only the beginning is read, once, for its text and its time together. Unreadable entries are skipped: a
//! directory with such a name, a pipe, a file that is gone by now.

use std::fmt;
use std::path::Path;

use files::{EntryKind, Root};
use jiff::{Timestamp, Unit};

use crate::entry;
use crate::error::Error;
use crate::frontmatter;
use crate::taxonomy::Kind;

/// Number of lines of a file that the manifest is made from.
pub const HEAD_LINES: usize = 30;

/// Limit on the bytes of those lines.
const HEAD_BYTES: u64 = 4 * 1024;

/// Length limit of a description in the manifest: a line is a hint, not a text.
const DESCRIPTION_LIMIT: usize = 500;

/// Number of files from which on they are read by several threads.
const WORTH_THREADS: usize = 64;

/// Number of threads then.
const THREADS: usize = 4;

/// Entry of the manifest for one memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Its path, relative to the memory directory, with `/`. This is what a selector returns.
    pub path: String,
    /// Its type.
    pub kind: Option<Kind>,
    /// One-line description.
    pub description: Option<String>,
    /// Time of the last change: that of the frontmatter or of the file, whichever is later.
    pub modified: Option<Timestamp>,
}

impl fmt::Display for Header {
    /// `- [type] path (ISO time): description`, without what is absent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("- ")?;
        if let Some(kind) = self.kind {
            write!(f, "[{kind}] ")?;
        }
        f.write_str(&self.path)?;
        if let Some(modified) = self.modified {
            let modified = modified.round(Unit::Millisecond).unwrap_or(modified);
            write!(f, " ({modified:.3})")?;
        }
        match &self.description {
            Some(description) => write!(f, ": {description}"),
            None => Ok(()),
        }
    }
}

/// The manifest: a line for each.
pub fn manifest<'h>(headers: impl IntoIterator<Item = &'h Header>) -> String {
    headers.into_iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The headers of all memories below a directory, newest first.
pub fn headers(root: &Root) -> Result<Vec<Header>, Error> {
    let paths = paths(root)?;
    let mut headers = each(&paths, |path| header(root, path));
    headers.sort_by(|one, other| other.modified.cmp(&one.modified).then_with(|| one.path.cmp(&other.path)));
    Ok(headers)
}

/// The paths of all memories below a directory.
pub fn paths(root: &Root) -> Result<Vec<String>, Error> {
    let found = root.walk(|directory| directory != Path::new("logs"))?;
    let readable = found.into_iter().filter(|found| matches!(found.kind, EntryKind::File | EntryKind::Link));
    Ok(readable.filter_map(|found| found.path.to_str().map(str::to_owned)).filter(|path| is_memory(path)).collect())
}

/// Returns true if a relative path is a memory's: `*.md`, and no index.
pub fn is_memory(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.len() > 3 && name.ends_with(".md") && !name.eq_ignore_ascii_case(crate::index::FILE)
}

/// Calls `make` for each path, on several threads if there are many. `None` results are left out.
pub(crate) fn each<T: Send>(paths: &[String], make: impl Fn(&str) -> Option<T> + Sync) -> Vec<T> {
    if paths.len() < WORTH_THREADS {
        return paths.iter().filter_map(|path| make(path)).collect();
    }
    let make = &make;
    std::thread::scope(|scope| {
        let parts: Vec<_> = paths
            .chunks(paths.len().div_ceil(THREADS))
            .map(|part| scope.spawn(move || part.iter().filter_map(|path| make(path)).collect::<Vec<_>>()))
            .collect();
        parts.into_iter().flat_map(|part| part.join().unwrap_or_default()).collect()
    })
}

fn header(root: &Root, path: &str) -> Option<Header> {
    let head = root.head(path, HEAD_BYTES).ok()?;
    let text = String::from_utf8_lossy(&head.bytes);
    let mut front = frontmatter::read(first_lines(&text, HEAD_LINES));
    let description = front.text("description").filter(|text| !text.is_empty());
    Some(Header {
        kind: entry::kind(&mut front),
        description: description.map(|text| one_line(&text, DESCRIPTION_LIMIT)),
        modified: head.modified.and_then(|time| Timestamp::try_from(time).ok()).max(entry::written_date(&front)),
        path: path.to_owned(),
    })
}

fn first_lines(text: &str, lines: usize) -> &str {
    match text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').nth(lines - 1) {
        Some((end, _)) => &text[..=end],
        None => text,
    }
}

/// The text on one line, truncated to `limit` characters.
pub(crate) fn one_line(text: &str, limit: usize) -> String {
    if text.len() <= limit && !text.contains(|c: char| c.is_control()) {
        return text.to_owned();
    }
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == limit {
            out.push('…');
            break;
        }
        out.push(if c.is_control() { ' ' } else { c });
    }
    out
}
