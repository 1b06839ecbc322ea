//! Read: a file as the model sees it.
//!
//! Text comes with line numbers and is bounded, so that its output never has to be spilled to a file (which the model
//! would have to Read). Images and PDFs are sent as such, recognised by their first bytes and not by their name. Files
//! too large to hold are read only as far as requested. Files that were read whole are noted, so that Edit and Write
//! can tell whether they changed since.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use files::{Error, Lines, Text};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use transcript::block::Block;
use transcript::tool_names;

use crate::run_calls::{CANCELLED, off_the_loop};
use crate::scope::Scope;
use crate::show;
use crate::subject::{Access, Subject};
use crate::tool::{Limit, Output, TypedTool};

/// Default limit on lines.
const LINES: u64 = 2_000;

/// Characters shown of a line.
const LINE_CHARACTERS: usize = 2_000;

/// Limit on tokens.
const TOKENS: usize = 25_000;

/// Fewest bytes of a token: an estimate on the safe side for code.
const BYTES_PER_TOKEN: usize = 3;

/// Largest text that is read whole, and so can be edited, in bytes. Larger ones are read only as far as requested.
pub(crate) const WHOLE: u64 = 10 * 1024 * 1024;

/// Largest image, in bytes: the provider takes 5 MB of base64.
const IMAGE: u64 = 5 * 1024 * 1024 / 4 * 3;

/// Largest PDF, in bytes: the provider takes 32 MB for a whole request.
const PDF: u64 = 20 * 1024 * 1024;

/// Length above which the reader already cuts lines of a streamed file, in bytes.
const STREAMED_LINE: usize = 64 * 1024;

/// Reads a file: text with line numbers (as `cat -n`), a picture (PNG, JPEG, GIF, WebP) or a PDF.
///
/// Without `offset` and `limit` it shows the first 2,000 lines. Lines above 2,000 characters are cut. More than about
/// 25,000 tokens at once are refused: ask for a part, or use Grep. For a directory use Glob, or `ls` in Bash.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadInput {
    /// Its absolute path.
    pub file_path: String,
    /// The line to start at; the first is 1.
    pub offset: Option<u64>,
    /// The most lines to show.
    pub limit: Option<u64>,
}

/// Reads files.
#[derive(Debug, Clone, Copy)]
pub struct Read;

impl TypedTool for Read {
    type Input = ReadInput;
    const NAME: &'static str = tool_names::READ;
    const ACCESS: Access = Access::ReadOnly;
    const LIMIT: Limit = Limit::Unlimited;

    fn subject(&self, input: &ReadInput, scope: &Scope) -> Subject {
        scope.subject(&input.file_path)
    }

    fn run(&self, input: ReadInput, scope: Scope) -> BoxFuture<'static, Output> {
        Box::pin(off_the_loop(move || {
            let (named, real) = scope.place(&input.file_path);
            read(&named, &real, &input, &scope).unwrap_or_else(|error| Output::failed(explain(&error, &scope)))
        }))
    }
}

/// Reads the file at `real`, which the model named `path`.
fn read(path: &Path, real: &Path, input: &ReadInput, scope: &Scope) -> Result<Output, Error> {
    let head = files::exact::read_head(real, 8000)?;
    if let Some(media_type) = picture(&head) {
        let bytes = files::exact::read(real, IMAGE)?.bytes;
        let summary = format!("Read a picture of {} bytes", bytes.len());
        return Ok(Output::of(vec![Block::image(media_type, &STANDARD.encode(bytes))], summary));
    }
    if head.starts_with(b"%PDF-") {
        let bytes = files::exact::read(real, PDF)?.bytes;
        let summary = format!("Read a PDF of {} bytes", bytes.len());
        return Ok(Output::of(vec![Block::document("application/pdf", &STANDARD.encode(bytes))], summary));
    }
    if show::is_binary(&head) {
        let path = path.display();
        return Ok(Output::failed(format!("{path} is a binary file and cannot be shown. Look at it with Bash.")));
    }
    let mut page = Page::new(input);
    match files::exact::read(real, WHOLE) {
        Ok(snapshot) => {
            scope.note(real, snapshot.stamp);
            let mut lines = snapshot.bytes.split(|byte| *byte == b'\n').peekable();
            while let Some(line) = lines.next() {
                // A last newline starts no line.
                if lines.peek().is_some() || !line.is_empty() {
                    page.add(line, line.len() as u64);
                }
            }
            Ok(page.finish(path, RemainingLines::Counted))
        }
        Err(Error::TooLarge { .. }) => {
            let mut lines = Lines::open_exact(real)?.with_cap(STREAMED_LINE);
            while let Some(line) = lines.next()? {
                if page.is_full() {
                    return Ok(page.finish(path, RemainingLines::Unknown));
                }
                if page.lines.is_multiple_of(10_000) && scope.cancel().is_cancelled() {
                    return Ok(Output::failed(CANCELLED));
                }
                match line.text {
                    Text::Whole(text) => page.add(text, text.len() as u64),
                    Text::Oversized { head, len } => page.add(head, len),
                }
            }
            Ok(page.finish(path, RemainingLines::Counted))
        }
        Err(error) => Err(error),
    }
}

/// Knowledge of the number of lines after the page.
#[derive(Clone, Copy)]
enum RemainingLines {
    Counted,
    Unknown,
}

/// The requested part of a file.
struct Page {
    first: u64,
    limit: u64,
    /// Lines seen so far, shown or not.
    lines: u64,
    shown: u64,
    text: String,
    lossy: bool,
    over: bool,
}

impl Page {
    fn new(input: &ReadInput) -> Self {
        let first = input.offset.unwrap_or(1).max(1);
        let limit = input.limit.unwrap_or(LINES).max(1);
        Self { first, limit, lines: 0, shown: 0, text: String::new(), lossy: false, over: false }
    }

    fn is_full(&self) -> bool {
        self.over || self.lines >= self.first.saturating_add(self.limit) - 1
    }

    /// Adds the next line, of which `bytes` may be only the beginning.
    fn add(&mut self, bytes: &[u8], len: u64) {
        self.lines += 1;
        if self.lines < self.first || self.shown >= self.limit || self.over {
            return;
        }
        let mut line = String::from_utf8_lossy(bytes);
        if self.lines == 1
            && let Some(rest) = line.strip_prefix('\u{feff}')
        {
            line = rest.to_owned().into();
        }
        let whole = len == bytes.len() as u64;
        self.lossy |= whole && std::str::from_utf8(bytes).is_err();
        let cut = show::cut(show::without_return(&line), LINE_CHARACTERS);
        let numbered = show::numbered(self.lines, &cut);
        if self.text.len() + numbered.len() > TOKENS * BYTES_PER_TOKEN {
            self.over = true;
            return;
        }
        self.text.push_str(&numbered);
        if !whole {
            self.text.push_str(&format!(" [the line has {len} bytes]"));
        }
        self.text.push('\n');
        self.shown += 1;
    }

    fn finish(mut self, path: &Path, rest: RemainingLines) -> Output {
        let path = path.display();
        let (first, last) = (self.first, self.first + self.shown.saturating_sub(1));
        if self.over {
            return Output::failed(format!(
                "This part of {path} is above the limit of about {TOKENS} tokens. Ask for less: offset {first} with \
                 limit {} fits. Or search in it with Grep.",
                self.shown
            ));
        }
        if self.lines == 0 {
            return Output::done(format!("{path} exists and is empty."), "Read an empty file");
        }
        if self.shown == 0 {
            return Output::failed(format!(
                "Offset {first} is past the end: {path} has {}.",
                show::count(usize::try_from(self.lines).unwrap_or(usize::MAX), "line")
            ));
        }
        let mut notes = Vec::new();
        match rest {
            RemainingLines::Counted if self.lines > last => {
                notes.push(format!("lines {first}–{last} of {}; go on with offset {}", self.lines, last + 1));
            }
            RemainingLines::Unknown => {
                notes.push(format!("lines {first}–{last}; more follow: go on with offset {}", last + 1));
            }
            RemainingLines::Counted => {}
        }
        if self.lossy {
            notes.push("some bytes are not valid UTF-8 and are shown as \u{fffd}".to_owned());
        }
        for note in notes {
            self.text.push_str(&format!("\n[{note}]"));
        }
        let shown = show::count(usize::try_from(self.shown).unwrap_or(usize::MAX), "line");
        Output::done(self.text.trim_end_matches('\n'), format!("Read {shown}"))
    }
}

/// Media type of an image, by its first bytes.
pub fn picture(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// Error text for a file that could not be read, with a suggestion.
pub(crate) fn explain(error: &Error, scope: &Scope) -> String {
    match error {
        Error::IsDirectory { .. } => format!("{error}. Use Glob to find files in it, or `ls` in Bash."),
        Error::NotFound { path } => match closest(path) {
            Some(name) => format!("{error}. Did you mean {}?", path.with_file_name(name).display()),
            None => format!("{error}. The working directory is {}.", scope.directory().display()),
        },
        _ => format!("{error}."),
    }
}

/// The name in the same directory that is most similar to a missing one.
fn closest(path: &Path) -> Option<String> {
    let wanted = path.file_name()?.to_str()?.to_lowercase();
    let stem = |name: &str| name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned();
    let names = files::list(path.parent()?).ok()?.into_iter().filter_map(|entry| entry.name.into_string().ok());
    let (distance, name) = names
        .map(|name| {
            let lower = name.to_lowercase();
            // Another extension is a smaller mistake than it looks.
            let distance = if stem(&lower) == stem(&wanted) { 1 } else { edits(&lower, &wanted) };
            (distance, name)
        })
        .min()?;
    (distance <= wanted.chars().count() / 3).then_some(name)
}

/// Levenshtein distance: the number of characters to add, remove or change to turn one word into the other.
fn edits(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}
