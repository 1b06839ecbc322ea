//! Edit: replaces one exact text with another.
//!
//! The model gives the text that is there and its replacement. That only works on a file it has seen in its current
//! state, so the file must have been read (or written) here before and be unchanged since: a user's edit in between is
//! never lost. Everything else stays as it was, byte for byte: line endings, byte order mark, the last newline or its
//! absence, the mode. Nothing is guessed: a text that is missing, or occurs more than once, is an error that says where
//! to look.

use std::path::{Path, PathBuf};

use files::Error;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use transcript::tool_names;

use crate::read::WHOLE;
use crate::run_calls::off_the_loop;
use crate::scope::Scope;
use crate::show;
use crate::subject::{Access, Subject};
use crate::tool::{Output, TypedTool};
use crate::write::refusal;

/// Lines shown before and after the change.
const AROUND: usize = 3;

/// Lines shown of the change itself.
const SHOWN: usize = 40;

/// Limit on listed line numbers of matches.
const LISTED: usize = 20;

/// Characters shown of a line.
const LINE_CHARACTERS: usize = 500;

/// Replaces an exact text in a file by another.
///
/// The file must have been read before and be unchanged since. `old_string` must occur exactly once, with its whitespace
/// as in the file and without Read's line numbers; take in more around it if it is not unique, or set `replace_all`. An
/// empty `old_string` makes a new file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditInput {
    /// Its absolute path.
    pub file_path: String,
    /// The text to replace.
    pub old_string: String,
    /// The new text.
    pub new_string: String,
    /// Replace every occurrence.
    pub replace_all: Option<bool>,
}

/// Edits files.
#[derive(Debug, Clone, Copy)]
pub struct Edit;

impl TypedTool for Edit {
    type Input = EditInput;
    const NAME: &'static str = tool_names::EDIT;
    const ACCESS: Access = Access::Changes;

    fn subject(&self, input: &EditInput, scope: &Scope) -> Subject {
        scope.subject(&input.file_path)
    }

    fn changes(&self, input: &EditInput, scope: &Scope) -> Option<PathBuf> {
        Some(scope.place(&input.file_path).1)
    }

    fn run(&self, input: EditInput, scope: Scope) -> BoxFuture<'static, Output> {
        Box::pin(off_the_loop(move || {
            let (named, real) = scope.place(&input.file_path);
            edit(&named, &real, &input, &scope).unwrap_or_else(|error| Output::failed(refusal(&error, &scope)))
        }))
    }
}

fn edit(named: &Path, real: &Path, input: &EditInput, scope: &Scope) -> Result<Output, Error> {
    let shown = named.display();
    if input.old_string == input.new_string {
        return Ok(Output::failed("old_string and new_string are the same: there is nothing to change."));
    }
    if input.old_string.is_empty() {
        let written = match files::exact::create_new(real, input.new_string.as_bytes()) {
            Err(Error::Exists { .. }) => {
                return Ok(Output::failed(format!(
                    "{shown} exists: an empty old_string only makes a new file. Name the text to replace."
                )));
            }
            written => written?,
        };
        scope.note(real, written);
        let lines = show::count(show::lines(&input.new_string), "line");
        return Ok(Output::done(format!("Created {shown} with {lines}."), format!("Created, {lines}"))
            .with_changed(named)
            .with_rewrite("", &input.new_string));
    }
    let snapshot = files::exact::read(real, WHOLE)?;
    let Some(seen) = scope.seen(real) else {
        return Ok(Output::failed(format!("{shown} has not been read. Read it before editing it.")));
    };
    if !seen.same_content(&snapshot.stamp) {
        return Err(Error::Changed { path: named.to_owned() });
    }
    let Ok(text) = std::str::from_utf8(&snapshot.bytes) else {
        return Ok(Output::failed(format!("{shown} is not valid UTF-8. Change it with Bash.")));
    };
    let change = match TextReplacement::find(text, input) {
        Ok(change) => change,
        Err(why) => return Ok(Output::failed(format!("{why} ({shown})"))),
    };
    let (edited, at) = change.apply(text);
    let written = files::exact::replace_unchanged(real, edited.as_bytes(), &seen)?;
    scope.note(real, written);
    let times = show::count(change.places.len(), "place");
    let snippet = snippet(&edited, at, change.new.len());
    Ok(Output::done(format!("Edited {shown} in {times}.\n{snippet}"), format!("Edited {times}"))
        .with_changed(named)
        .with_rewrite(text, &edited))
}

/// Applies an edit to a text, or returns the reason why it cannot be applied.
pub fn edited(text: &str, input: &EditInput) -> Result<String, String> {
    if input.old_string.is_empty() || input.old_string == input.new_string {
        return Err("old_string has to name the text to replace, and new_string has to differ from it.".to_owned());
    }
    Ok(TextReplacement::find(text, input)?.apply(text).0)
}

/// The texts and positions of a replacement, in the file's line endings.
struct TextReplacement {
    old: String,
    new: String,
    places: Vec<usize>,
}

impl TextReplacement {
    fn find(text: &str, input: &EditInput) -> Result<Self, String> {
        let in_the_files_endings =
            uses_crlf(text).then(|| (with_crlf(&input.old_string), with_crlf(&input.new_string)));
        let as_given = (input.old_string.clone(), input.new_string.clone());
        for (old, new) in in_the_files_endings.into_iter().chain([as_given]) {
            let places: Vec<usize> = text.match_indices(&old).map(|(place, _)| place).collect();
            match places.len() {
                0 => {}
                1 => return Ok(Self { old, new, places }),
                _ if input.replace_all == Some(true) => return Ok(Self { old, new, places }),
                many => {
                    let lines = places.iter().take(LISTED).map(|place| line_of(text, *place).to_string());
                    let lines = lines.collect::<Vec<_>>().join(", ");
                    let more = if many > LISTED { ", …" } else { "" };
                    return Err(format!(
                        "old_string occurs {many} times, at lines {lines}{more}. Take in more of the surroundings to \
                         make it unique, or set replace_all."
                    ));
                }
            }
        }
        Err(match loose_match(text, &input.old_string) {
            Some(line) => format!(
                "old_string was not found as it is, but line {line} differs from it only in whitespace. Read the file \
                 there and copy it exactly."
            ),
            None => "old_string was not found.".to_owned(),
        })
    }

    /// The new text, and the position of the first change in it.
    fn apply(&self, text: &str) -> (String, usize) {
        let mut edited = String::with_capacity(text.len() + self.places.len() * self.new.len());
        let mut done = 0;
        for place in &self.places {
            edited.push_str(&text[done..*place]);
            edited.push_str(&self.new);
            done = place + self.old.len();
        }
        edited.push_str(&text[done..]);
        (edited, self.places.first().copied().unwrap_or(0))
    }
}

/// Returns whether most lines end in CRLF.
fn uses_crlf(text: &str) -> bool {
    let crlf = text.matches("\r\n").count();
    crlf > 0 && crlf * 2 > text.matches('\n').count()
}

fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

fn line_of(text: &str, place: usize) -> usize {
    text[..place].matches('\n').count() + 1
}

/// Line number of `wanted` if leading and trailing whitespace of its lines is ignored.
fn loose_match(text: &str, wanted: &str) -> Option<usize> {
    let wanted: Vec<&str> = wanted.trim().lines().map(str::trim).collect();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let first = *wanted.first().filter(|line| !line.is_empty())?;
    let at = lines.windows(wanted.len()).position(|window| window == wanted);
    // A single line may be a part of one, with other whitespace inside.
    at.or_else(|| {
        let collapsed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let first = collapsed(first);
        (wanted.len() == 1).then(|| lines.iter().position(|line| collapsed(line).contains(&first))).flatten()
    })
    .map(|index| index + 1)
}

/// The changed lines with a few around them, numbered.
fn snippet(text: &str, at: usize, len: usize) -> String {
    let first = line_of(text, at);
    let last = line_of(text, at + len);
    let from = first.saturating_sub(AROUND).max(1);
    let to = (last + AROUND).min(from + AROUND * 2 + SHOWN);
    let lines = text.lines().enumerate().skip(from - 1).take(to + 1 - from);
    let lines = lines.map(|(index, line)| show::numbered(index as u64 + 1, &show::cut(line, LINE_CHARACTERS)));
    lines.collect::<Vec<_>>().join("\n")
}
