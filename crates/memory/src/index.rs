//! `MEMORY.md`: a line for each memory, `- [Title](file.md) — hook`, and nothing else that matters.
//!
//! It is loaded whole into sessions, so it has limits: 200 lines, then 25,000 bytes, counted without frontmatter and
//! comments. [`load`] returns what fits, newest first to stay, and reports the exceeded limit and how much is left out.
//! Edits ([`put`], [`take`], [`point`]) change one line each and keep every other byte, since people and other programs
//! write here too.

use std::fmt;
use std::path::Path;
use std::time::SystemTime;

use crate::frontmatter;
use crate::markdown;

/// The name of an index.
pub const FILE: &str = "MEMORY.md";

/// Limit on loaded lines.
pub const LINE_LIMIT: usize = 200;

/// Limit on loaded bytes.
pub const BYTE_LIMIT: usize = 25_000;

/// Largest index that is read, in bytes; far less of it is loaded.
const READ_LIMIT: u64 = 10_000_000;

/// Approximate length of a line.
pub const LINE_LENGTH: usize = 150;

/// Characters of a memory's name in its line.
const TITLE_LENGTH: usize = 80;

/// A line of the index that links to a memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The title in brackets.
    pub title: String,
    /// The file it links to, relative to the index.
    pub target: String,
    /// The text after the link.
    pub hook: String,
    /// Line number, from 1.
    pub line: usize,
    /// Length of the line, in characters.
    pub length: usize,
}

/// The part of an index that is loaded for a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedIndex {
    /// The text, cut if necessary.
    pub text: String,
    /// The exceeded limits.
    pub warnings: Vec<Warning>,
}

/// An exceeded limit of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Warning {
    /// Too many lines: the total.
    Lines(usize),
    /// Too many bytes.
    Bytes {
        /// The total.
        bytes: usize,
        /// Number of lines left out because of it.
        left_out: usize,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lines(lines) => write!(
                f,
                "{FILE} has {lines} lines: the newest {LINE_LIMIT} are shown and {} are left out; merge or remove entries",
                lines.saturating_sub(LINE_LIMIT)
            ),
            Self::Bytes { bytes, left_out } => write!(
                f,
                "{FILE} has {bytes} bytes and only {BYTE_LIMIT} are shown, {left_out} lines are left out: keep each entry to \
                 one line of about {LINE_LENGTH} characters and move detail into the files"
            ),
        }
    }
}

/// The part of an index for a model: of an overlong one the last lines, since new ones are added at the end.
pub fn load(text: &str) -> LoadedIndex {
    load_by(text, |_| None)
}

/// The same if the time of a memory's last change is known: the newest.
fn load_by(text: &str, changed: impl Fn(&str) -> Option<SystemTime>) -> LoadedIndex {
    let text = bare(text);
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= LINE_LIMIT && text.len() <= BYTE_LIMIT {
        return LoadedIndex { text, warnings: Vec::new() };
    }
    // What leads to no memory (a heading, a word on how to use it) goes last of all.
    let mut oldest_first: Vec<usize> = (0..lines.len()).collect();
    let age = |line: &usize| link(lines[*line], 1).map_or((true, None), |link| (false, changed(&link.target)));
    oldest_first.sort_by_cached_key(|line| (age(line), *line));
    let mut warnings = Vec::new();
    let mut shown = vec![true; lines.len()];
    let mut leave = oldest_first.into_iter();
    let surplus = lines.len().saturating_sub(LINE_LIMIT);
    leave.by_ref().take(surplus).for_each(|line| shown[line] = false);
    if surplus > 0 {
        warnings.push(Warning::Lines(lines.len()));
    }
    let length = |line: usize| lines[line].len() + 1;
    let mut bytes: usize = (0..lines.len()).filter(|line| shown[*line]).map(length).sum();
    let mut left_out = 0;
    if bytes > BYTE_LIMIT + 1 {
        // The newest stays, however long it is; its beginning then.
        for line in leave.take(lines.len() - surplus - 1) {
            if bytes <= BYTE_LIMIT + 1 {
                break;
            }
            (shown[line], bytes, left_out) = (false, bytes - length(line), left_out + 1);
        }
        warnings.push(Warning::Bytes { bytes: text.len(), left_out });
    }
    let kept: Vec<&str> = lines.iter().zip(&shown).filter(|(_, shown)| **shown).map(|(line, _)| *line).collect();
    let kept = kept.join("\n");
    LoadedIndex { text: kept[..kept.floor_char_boundary(BYTE_LIMIT)].trim().to_owned(), warnings }
}

/// The part of an index for a model, with the exceeded limits at its end, where the model sees them; `None` if there is
/// nothing to show.
pub fn shown(path: &Path) -> Option<String> {
    // Below an opened directory: an index that is a link leads nowhere else.
    let root = files::Root::open(path.parent()?).ok()?;
    let file = root.read(path.file_name()?, READ_LIMIT).ok()?;
    let changed = |target: &str| root.head(target, 0).ok()?.modified;
    let loaded = load_by(&String::from_utf8_lossy(&file.bytes), changed);
    let warnings = loaded.warnings.iter().map(|warning| format!("\n\n[{warning}]"));
    Some(loaded.text + &warnings.collect::<String>()).filter(|text| !text.trim().is_empty())
}

/// The limits that a whole index exceeds.
pub fn warnings(text: &str) -> Vec<Warning> {
    // Most indexes are far from both, and then nothing has to be looked at closely.
    if text.len() <= BYTE_LIMIT && text.bytes().filter(|byte| *byte == b'\n').count() < LINE_LIMIT {
        return Vec::new();
    }
    load(text).warnings
}

/// The text without frontmatter and comments, which do not count.
fn bare(text: &str) -> String {
    let front = frontmatter::read(text);
    markdown::without_comments(&text[front.body_start()..]).trim().to_owned()
}

/// The lines that link to files.
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

/// A link's target with `%20` and the like decoded.
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

/// The line for a memory, with its hook cut to keep it near the usual length.
pub fn line(title: &str, target: &str, hook: &str) -> String {
    let clean = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let title = bounded(&clean(title)).replace('\\', "/").replace('[', "\\[").replace(']', "\\]");
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

/// A title cut to leave room for the hook.
fn bounded(title: &str) -> String {
    match title.char_indices().nth(TITLE_LENGTH) {
        Some((end, _)) => format!("{}…", title[..end].trim_end()),
        None => title.to_owned(),
    }
}

/// Sets the line for `target`: in place of its current one, else at the end.
pub fn put(text: &str, title: &str, target: &str, hook: &str) -> String {
    let new = line(title, target, hook);
    let mut placed = false;
    // A name that stands nowhere is on no line; an encoded one has a percent sign.
    if !text.contains(target) && !text.contains('%') {
        return append(text, &new);
    }
    let changed = edit(text, |found| {
        if found.target != target {
            return IndexEdit::Keep;
        }
        if std::mem::replace(&mut placed, true) { IndexEdit::Drop } else { IndexEdit::Replace(new.clone()) }
    });
    if placed { changed } else { append(text, &new) }
}

fn append(text: &str, line: &str) -> String {
    let end = frontmatter_line_end(text);
    let glue = if text.is_empty() || text.ends_with('\n') { "" } else { end };
    format!("{text}{glue}{line}{end}")
}

/// Removes the lines for `target`.
pub fn take(text: &str, target: &str) -> String {
    edit(text, |found| if found.target == target { IndexEdit::Drop } else { IndexEdit::Keep })
}

/// Keeps only the first of the lines for `target`.
pub fn keep_first(text: &str, target: &str) -> String {
    let mut kept = false;
    edit(text, |found| {
        if found.target == target && std::mem::replace(&mut kept, true) { IndexEdit::Drop } else { IndexEdit::Keep }
    })
}

/// Keeps the words of the lines for `target`, without the link.
pub fn unlink(text: &str, target: &str) -> String {
    let words = |found: &Link| {
        let hook = if found.hook.is_empty() { String::new() } else { format!(" — {}", found.hook) };
        format!("- {}{hook}", found.title)
    };
    edit(text, |found| if found.target == target { IndexEdit::Replace(words(found)) } else { IndexEdit::Keep })
}

/// The line for `target`, as written.
pub fn written<'t>(text: &'t str, target: &str) -> Option<&'t str> {
    text.lines().find(|content| link(content, 1).is_some_and(|link| link.target == target))
}

/// Restores an earlier line for `target`.
pub fn restore(text: &str, target: &str, written: &str) -> String {
    let mut placed = false;
    let changed = edit(text, |found| {
        if found.target != target {
            return IndexEdit::Keep;
        }
        if std::mem::replace(&mut placed, true) {
            IndexEdit::Drop
        } else {
            IndexEdit::Replace(written.trim().to_owned())
        }
    });
    if placed { changed } else { append(text, written) }
}

/// Makes the lines for `from` link to `to`, with title and hook unchanged.
pub fn point(text: &str, from: &str, to: &str) -> String {
    edit(
        text,
        |found| if found.target == from { IndexEdit::Replace(line_as_it_was(found, to)) } else { IndexEdit::Keep },
    )
}

fn line_as_it_was(found: &Link, to: &str) -> String {
    let bare = line(&found.title, to, "");
    if found.hook.is_empty() { bare } else { format!("{bare} — {}", found.hook) }
}

/// Edit of a line.
enum IndexEdit {
    Keep,
    Drop,
    Replace(String),
}

fn edit(text: &str, mut decide: impl FnMut(&Link) -> IndexEdit) -> String {
    let mut out = String::with_capacity(text.len());
    for raw in text.split_inclusive('\n') {
        let content = raw.trim_end_matches(['\n', '\r']);
        let decision = link(content, 1).map_or(IndexEdit::Keep, |link| decide(&link));
        match decision {
            IndexEdit::Keep => out.push_str(raw),
            IndexEdit::Drop => {}
            IndexEdit::Replace(new) => {
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
