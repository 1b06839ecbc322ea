//! A memory: one topic in one file.
//!
//! Whatever the file looks like, there is a [`Memory`]; what is odd about it stands in its diagnostics. An unknown or
//! missing type is no type. `type` may also stand below `metadata`, where newer files have it.

use std::path::Path;

use files::Root;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::diagnostic::{Diagnostic, FileProblem};
use crate::error::Error;
use crate::frontmatter::{self, Frontmatter};
use crate::origin::{MemoryOrigin, NAMED};
use crate::taxonomy::Kind;

/// The most that is read of one memory: far more than is ever surfaced of it.
pub(crate) const READ_LIMIT: u64 = 1024 * 1024;

/// The key of the questions it answers.
pub(crate) const ASKED: &str = "asked";

/// A memory as it was read.
#[derive(Debug, Clone)]
pub struct Memory {
    /// Where it is, relative to the memory directory, with `/`.
    pub path: String,
    /// What it is called: `name`, else the file's name.
    pub name: String,
    /// One line on what it is about.
    pub description: Option<String>,
    /// Questions that it answers, in other words than its own (`asked`).
    pub asked: Option<String>,
    /// Which of the four types.
    pub kind: Option<Kind>,
    /// What it applies to, if its writer said so (`applies_to`): files, languages, tools, activities.
    pub applies_to: Vec<String>,
    /// The last day on which it holds, if its head names one (`until`).
    pub until: Option<Date>,
    /// What it names and was there when it was saved (`metadata.names`).
    pub named: Vec<String>,
    /// Who wrote it, when, and in which session, as far as its head says (`metadata`).
    pub origin: MemoryOrigin,
    /// What it was imported from (`metadata.importedFrom`).
    pub imported_from: Option<String>,
    /// The text below the frontmatter.
    pub body: String,
    /// When the file was last written.
    pub modified: Option<Timestamp>,
    /// When it was last changed: what its frontmatter says or when the file was last written, whichever is later. Whoever edits
    /// it by hand changes only the file.
    pub dated: Option<Timestamp>,
    /// How long the file is.
    pub len: u64,
    /// What is odd about it.
    pub diagnostics: Vec<Diagnostic>,
}

impl Memory {
    /// Reads one below an opened memory directory.
    pub fn read(root: &Root, path: &str) -> Result<Self, Error> {
        let head = root.head(path, READ_LIMIT)?;
        let modified = head.modified.and_then(|time| Timestamp::try_from(time).ok());
        Ok(Self::parse(path, &head.bytes, modified, head.len))
    }

    /// Makes one from bytes.
    pub fn parse(path: &str, bytes: &[u8], modified: Option<Timestamp>, len: u64) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let mut front = frontmatter::read(&text);
        if matches!(text, std::borrow::Cow::Owned(_)) && std::str::from_utf8(bytes).is_err() {
            let good = std::str::from_utf8(bytes).err().map_or(0, |error| error.valid_up_to());
            let line = bytes[..good].iter().filter(|byte| **byte == b'\n').count() + 1;
            front.diagnostics.push(Diagnostic { line, problem: FileProblem::NotUtf8 });
        }
        if len > bytes.len() as u64 {
            let problem = FileProblem::Cut { read: bytes.len() as u64, of: len };
            front.diagnostics.push(Diagnostic { line: 1, problem });
        }
        let kind = kind(&mut front);
        let applies_to = match front.list("applies_to") {
            list if list.is_empty() => below(&front, "applies_to"),
            list => list,
        };
        Self {
            name: front.text("name").filter(|name| !name.is_empty()).unwrap_or_else(|| stem(path)),
            description: front.text("description").filter(|text| !text.is_empty()),
            asked: asked(&front),
            kind,
            applies_to,
            until: front.text("until").or_else(|| front.metadata("until")).and_then(|day| day.trim().parse().ok()),
            named: below(&front, NAMED),
            origin: MemoryOrigin::of(&front),
            imported_from: front.metadata("importedFrom").filter(|from| !from.is_empty()),
            body: text.get(front.body_start()..).unwrap_or_default().to_owned(),
            dated: written_date(&front).max(modified),
            modified,
            path: path.to_owned(),
            len,
            diagnostics: front.diagnostics,
        }
    }
}

/// Whether the last day on which something holds is over.
pub(crate) fn is_over(until: Option<Date>, now: Timestamp) -> bool {
    until.is_some_and(|until| until < now.to_zoned(TimeZone::system()).date())
}

/// The type, and a diagnostic where it is none of the four.
pub(crate) fn kind(front: &mut Frontmatter) -> Option<Kind> {
    let written = front.text("type").or_else(|| front.metadata("type"))?;
    let kind = Kind::of(&written);
    if kind.is_none() && !written.is_empty() {
        let problem = FileProblem::UnknownType(written.chars().take(80).collect());
        front.diagnostics.push(Diagnostic { line: 1, problem });
    }
    kind
}

/// The questions it answers: a text, or a list of them.
fn asked(front: &Frontmatter) -> Option<String> {
    let text = front.text(ASKED).unwrap_or_else(|| front.list(ASKED).join(" "));
    (!text.is_empty()).then_some(text)
}

/// A list under `metadata`.
fn below(front: &Frontmatter, key: &str) -> Vec<String> {
    let Some(metadata) = front.fields.get("metadata").and_then(|value| value.as_object()) else { return Vec::new() };
    let below = Frontmatter { fields: metadata.clone(), ..Frontmatter::default() };
    below.list(key)
}

/// The date its writer gave it.
pub(crate) fn written_date(front: &Frontmatter) -> Option<Timestamp> {
    ["modified", "updated", "date"].iter().find_map(|key| {
        let text = front.metadata(key).or_else(|| front.text(key))?;
        parse_time(&text)
    })
}

/// A time as people and programs write it: RFC 3339, or a date alone.
pub(crate) fn parse_time(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time);
    }
    let date: jiff::civil::Date = text.get(..10)?.parse().ok()?;
    date.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

/// A file's name without its folder and ending.
pub(crate) fn stem(path: &str) -> String {
    Path::new(path).file_stem().map_or_else(|| path.to_owned(), |stem| stem.to_string_lossy().into_owned())
}
