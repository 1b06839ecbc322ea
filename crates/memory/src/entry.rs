//! A memory: one topic in one file.
//!
//! Whatever the file looks like, there is a [`Memory`]; its problems are in its diagnostics. An unknown or missing type
//! is no type. `type` may also be below `metadata`, where newer files have it.

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

/// Bytes read of one memory: far more than is ever surfaced of it.
pub(crate) const READ_LIMIT: u64 = 1024 * 1024;

/// Key of the questions it answers.
pub(crate) const ASKED: &str = "asked";

/// A memory as it was read.
#[derive(Debug, Clone)]
pub struct Memory {
    /// Its path, relative to the memory directory, with `/`.
    pub path: String,
    /// Its name: `name`, else the file's name.
    pub name: String,
    /// Its topic in one line.
    pub description: Option<String>,
    /// Questions that it answers, in words other than its own (`asked`).
    pub asked: Option<String>,
    /// Its type.
    pub kind: Option<Kind>,
    /// Its field of application, if given (`applies_to`): files, languages, tools, activities.
    pub applies_to: Vec<String>,
    /// Last day on which it holds, if given (`until`).
    pub until: Option<Date>,
    /// Things it names that existed when it was saved (`metadata.names`).
    pub named: Vec<String>,
    /// Its author, time and session, as far as given (`metadata`).
    pub origin: MemoryOrigin,
    /// Source from which it was imported (`metadata.importedFrom`).
    pub imported_from: Option<String>,
    /// The text below the frontmatter.
    pub body: String,
    /// Time of the file's last change.
    pub modified: Option<Timestamp>,
    /// Time of its last change: that of its frontmatter or of the file, whichever is later. An edit by hand changes
    /// only the file's.
    pub dated: Option<Timestamp>,
    /// Length of the file.
    pub len: u64,
    /// Its problems.
    pub diagnostics: Vec<Diagnostic>,
}

impl Memory {
    /// Reads a memory below an opened memory directory.
    pub fn read(root: &Root, path: &str) -> Result<Self, Error> {
        let head = root.head(path, READ_LIMIT)?;
        let modified = head.modified.and_then(|time| Timestamp::try_from(time).ok());
        Ok(Self::parse(path, &head.bytes, modified, head.len))
    }

    /// Parses a memory from bytes.
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
        let until = last_day(&mut front);
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
            until,
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

/// Returns whether the last day on which something holds has passed.
pub(crate) fn is_over(until: Option<Date>, now: Timestamp) -> bool {
    until.is_some_and(|until| until < now.to_zoned(TimeZone::system()).date())
}

/// The type, and a diagnostic if it is not one of the four.
pub(crate) fn kind(front: &mut Frontmatter) -> Option<Kind> {
    let written = front.text("type").or_else(|| front.metadata("type"))?;
    let kind = Kind::of(&written);
    if kind.is_none() && !written.is_empty() {
        let problem = FileProblem::UnknownType(written.chars().take(80).collect());
        front.diagnostics.push(Diagnostic { line: 1, problem });
    }
    kind
}

/// The last day on which it holds, and a diagnostic if what stands there is no date.
fn last_day(front: &mut Frontmatter) -> Option<Date> {
    let written = front.text("until").or_else(|| front.metadata("until"))?;
    let day = written.trim().parse().ok();
    if day.is_none() && !written.trim().is_empty() {
        let problem = FileProblem::UnknownDay(written.chars().take(80).collect());
        front.diagnostics.push(Diagnostic { line: 1, problem });
    }
    day
}

/// The questions it answers: a text, or a list of them.
fn asked(front: &Frontmatter) -> Option<String> {
    let text = front.text(ASKED).unwrap_or_else(|| front.list(ASKED).join(" "));
    (!text.is_empty()).then_some(text)
}

/// A list below `metadata`.
fn below(front: &Frontmatter, key: &str) -> Vec<String> {
    let Some(metadata) = front.fields.get("metadata").and_then(|value| value.as_object()) else { return Vec::new() };
    let below = Frontmatter { fields: metadata.clone(), ..Frontmatter::default() };
    below.list(key)
}

/// The date in its frontmatter.
pub(crate) fn written_date(front: &Frontmatter) -> Option<Timestamp> {
    ["modified", "updated", "date"].iter().find_map(|key| {
        let text = front.metadata(key).or_else(|| front.text(key))?;
        parse_time(&text)
    })
}

/// Parses a time: RFC 3339, or a date alone.
pub(crate) fn parse_time(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time);
    }
    let date: jiff::civil::Date = text.get(..10)?.parse().ok()?;
    date.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

/// A file's name without folder and extension.
pub(crate) fn stem(path: &str) -> String {
    Path::new(path).file_stem().map_or_else(|| path.to_owned(), |stem| stem.to_string_lossy().into_owned())
}
