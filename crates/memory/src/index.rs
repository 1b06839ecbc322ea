//! `MEMORY.md`: a line for each memory, `- [Title](file.md) — hook`, and nothing else that matters.
//!
//! It is read in full sessions, so it has limits: 200 lines, then 25,000 bytes, counted without frontmatter and
//! comments. [`load`] gives what fits and says which limit was hit. Edits ([`put`], [`take`], [`point`]) change one line
//! each and keep every other byte, since people and other programs write here too.

use std::fmt;
use std::path::Path;

use crate::frontmatter;
use crate::markdown;

/// The name of an index.
pub const FILE: &str = "MEMORY.md";

/// How many lines of it are loaded.
pub const LINE_LIMIT: usize = 200;

/// How many bytes of these.
pub const BYTE_LIMIT: usize = 25_000;

/// The largest index that is read; what is loaded of it is far less.
const READ_LIMIT: u64 = 10_000_000;

/// About how long a line should be.
pub const LINE_LENGTH: usize = 150;

/// A line of the index that leads to a memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The title in brackets.
    pub title: String,
    /// The file it leads to, relative to the index.
    pub target: String,
    /// What follows.
    pub hook: String,
    /// Which line it is, from 1.
    pub line: usize,
    /// How many characters the line has.
    pub length: usize,
}

/// What of an index is given to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The text, cut where it must be.
    pub text: String,
    /// The limits that were hit.
    pub warnings: Vec<Warning>,
}

/// A limit of the index that was hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Warning {
    /// Too many lines.
    Lines(usize),
    /// Too many bytes.
    Bytes(usize),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lines(lines) => write!(
                f,
                "{FILE} has {lines} lines and only the first {LINE_LIMIT} are loaded: merge or remove entries"
            ),
            Self::Bytes(bytes) => write!(
                f,
                "{FILE} has {bytes} bytes and only {BYTE_LIMIT} are loaded: keep each entry to one line of about \
                 {LINE_LENGTH} characters and move detail into the files"
            ),
        }
    }
}

/// What of an index is given to a model.
pub fn load(text: &str) -> Loaded {
    let text = bare(text);
    let mut warnings = Vec::new();
    let count = text.lines().count();
    let mut end = text.len();
    if count > LINE_LIMIT {
        warnings.push(Warning::Lines(count));
        end = text.split_inclusive('\n').take(LINE_LIMIT).map(str::len).sum();
    }
    let mut cut = text[..end].trim_end();
    if cut.len() > BYTE_LIMIT {
        warnings.push(Warning::Bytes(text.len()));
        let most = cut.floor_char_boundary(BYTE_LIMIT);
        cut = cut[..most].rfind('\n').map_or(&cut[..most], |at| &cut[..at]).trim_end();
    }
    Loaded { text: cut.to_owned(), warnings }
}

/// What of an index is given to a model, with the limits it passes at its end, where the model sees them; none where there is
/// nothing to show.
pub fn shown(path: &Path) -> Option<String> {
    // Below an opened directory: an index that is a link leads nowhere else.
    let file = files::Root::open(path.parent()?).ok()?.read(path.file_name()?, READ_LIMIT).ok()?;
    let loaded = load(&String::from_utf8_lossy(&file.bytes));
    let warnings = loaded.warnings.iter().map(|warning| format!("\n\n[{warning}]"));
    Some(loaded.text + &warnings.collect::<String>()).filter(|text| !text.trim().is_empty())
}

/// The limits a whole index passes.
pub fn warnings(text: &str) -> Vec<Warning> {
    // Most indexes are far from both, and then nothing has to be looked at closely.
    if text.len() <= BYTE_LIMIT && text.bytes().filter(|byte| *byte == b'\n').count() < LINE_LIMIT {
        return Vec::new();
    }
    load(text).warnings
}

/// The text without what does not count: frontmatter and comments.
fn bare(text: &str) -> String {
    let front = frontmatter::read(text);
    markdown::without_comments(&text[front.body_start()..]).trim().to_owned()
}

/// The lines that lead to files.
pub fn links(text: &str) -> Vec<Link> {
    text.lines().enumerate().filter_map(|(at, line)| link(line, at + 1)).collect()
}

fn link(line: &str, number: usize) -> Option<Link> {
    let (title, target, hook) = parts(line)?;
    let (title, target) = (title.replace("\\]", "]").replace("\\[", "["), decoded(target));
    Some(Link { title, target, hook: hook.to_owned(), line: number, length: line.chars().count() })
}

/// Title, target and hook of a line.
fn parts(line: &str) -> Option<(&str, &str, &str)> {
    let rest = line.trim_start_matches(['\u{feff}', ' ', '\t']).strip_prefix(['-', '*', '+'])?;
    let rest = rest.trim_start().strip_prefix('[')?;
    let close = rest.match_indices("](").map(|(at, _)| at).find(|at| !rest[..*at].ends_with('\\'))?;
    let (title, rest) = (&rest[..close], &rest[close + 2..]);
    let (target, rest) = match rest.strip_prefix('<') {
        Some(rest) => rest.split_once(">)")?,
        None => rest.split_once(')')?,
    };
    let is_file = !target.is_empty() && !target.contains("://") && !target.starts_with('#');
    let hook = rest.trim().trim_start_matches(['—', '–', '-', ':']).trim();
    is_file.then_some((title, target.strip_prefix("./").unwrap_or(target), hook))
}

/// A link's target with `%20` and its like worked out.
fn decoded(target: &str) -> String {
    if !target.contains('%') {
        return target.to_owned();
    }
    let mut bytes = Vec::with_capacity(target.len());
    let mut rest = target.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let code = tail.get(..2).filter(|_| *first == b'%').and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| target.to_owned())
}

/// The line for a memory, its hook cut so that it stays about as long as it should be.
pub fn line(title: &str, target: &str, hook: &str) -> String {
    let clean = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let title = clean(title).replace('\\', "/").replace('[', "\\[").replace(']', "\\]");
    let target = target.replace('%', "%25"); // what is decoded when it is read
    let target = if target.contains([' ', '(', ')', '<']) { format!("<{target}>") } else { target };
    let hook = clean(hook);
    let head = format!("- [{title}]({target})");
    if hook.is_empty() {
        return head;
    }
    let room = LINE_LENGTH.saturating_sub(head.chars().count() + 3).max(40);
    if hook.chars().count() <= room {
        return format!("{head} — {hook}");
    }
    let cut: String = hook.chars().take(room - 1).collect();
    format!("{head} — {}…", cut.trim_end())
}

/// The index with the line for `target` set: in the place of the one it has, else at the end.
pub fn put(text: &str, title: &str, target: &str, hook: &str) -> String {
    let new = line(title, target, hook);
    let mut placed = false;
    // A name that stands nowhere is on no line; an encoded one has a percent sign.
    if !text.contains(target) && !text.contains('%') {
        return append(text, &new);
    }
    let changed = edit(text, |found| {
        if found.target != target {
            return Edit::Keep;
        }
        if std::mem::replace(&mut placed, true) { Edit::Drop } else { Edit::Replace(new.clone()) }
    });
    if placed { changed } else { append(text, &new) }
}

fn append(text: &str, line: &str) -> String {
    let end = frontmatter_line_end(text);
    let glue = if text.is_empty() || text.ends_with('\n') { "" } else { end };
    format!("{text}{glue}{line}{end}")
}

/// The index without the lines for `target`.
pub fn take(text: &str, target: &str) -> String {
    edit(text, |found| if found.target == target { Edit::Drop } else { Edit::Keep })
}

/// The line for `target`, as it is written.
pub fn written<'t>(text: &'t str, target: &str) -> Option<&'t str> {
    text.lines().find(|content| link(content, 1).is_some_and(|link| link.target == target))
}

/// The index with a line for `target` as it was written before.
pub fn restore(text: &str, target: &str, written: &str) -> String {
    let mut placed = false;
    let changed = edit(text, |found| {
        if found.target != target {
            return Edit::Keep;
        }
        if std::mem::replace(&mut placed, true) { Edit::Drop } else { Edit::Replace(written.trim().to_owned()) }
    });
    if placed { changed } else { append(text, written) }
}

/// The index with the lines for `from` leading to `to`, title and hook as they were.
pub fn point(text: &str, from: &str, to: &str) -> String {
    edit(text, |found| if found.target == from { Edit::Replace(line_as_it_was(found, to)) } else { Edit::Keep })
}

fn line_as_it_was(found: &Link, to: &str) -> String {
    let bare = line(&found.title, to, "");
    if found.hook.is_empty() { bare } else { format!("{bare} — {}", found.hook) }
}

/// What happens to a line.
enum Edit {
    Keep,
    Drop,
    Replace(String),
}

fn edit(text: &str, mut decide: impl FnMut(&Link) -> Edit) -> String {
    let mut out = String::with_capacity(text.len());
    for raw in text.split_inclusive('\n') {
        let content = raw.trim_end_matches(['\n', '\r']);
        let decision = link(content, 1).map_or(Edit::Keep, |link| decide(&link));
        match decision {
            Edit::Keep => out.push_str(raw),
            Edit::Drop => {}
            Edit::Replace(new) => {
                let indent = content.len() - content.trim_start_matches(['\u{feff}', ' ', '\t']).len();
                out.push_str(&content[..indent]);
                out.push_str(&new);
                out.push_str(&raw[content.len()..]);
            }
        }
    }
    out
}

fn frontmatter_line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}
