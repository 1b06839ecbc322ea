//! Grep: lines, files or counts that match a regular expression.
//!
//! It is made of ripgrep's own crates and behaves like it: `.gitignore` is honoured, hidden and binary files are
//! skipped unless the path names them, patterns are Rust regular expressions. The order is fixed (by path; files by
//! time, newest first), a long output is cut and says how to see more, and a search can be stopped at any moment.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::types::TypesBuilder;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::glob::{modified, named, narrowed, newest_first, walk};
use crate::run_calls::{CANCELLED, off_the_loop};
use crate::scope::Scope;
use crate::show;
use crate::subject::{Access, Subject};
use crate::tool::{Limit, Output, TypedTool};

mod sink;

use sink::{CollectedLines, MatchCounter, MatchPrinter};
use transcript::tool_names;

/// Default limit on lines or files shown.
const HEAD: usize = 250;

/// Memory limit for searching one file, in bytes: a multiline search holds a whole file.
const HEAP: usize = 64 * 1024 * 1024;

/// Searches the contents of files for a regular expression (Rust syntax, as in ripgrep).
///
/// Honours `.gitignore` and passes over hidden and binary files. Special characters that are meant literally are escaped:
/// `interface\{\}`. A pattern matches within a line unless `multiline` is set.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrepInput {
    /// The regular expression.
    pub pattern: String,
    /// The file or directory to search; the working directory if left out.
    pub path: Option<String>,
    /// Only files that match this pattern, such as `*.js` or `src/**/*.{ts,tsx}`.
    pub glob: Option<String>,
    /// Only files of this type, such as `rust`, `js`, `py`, `go`.
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
    /// `files_with_matches` (the default) lists files, newest first; `content` shows the lines; `count` says how many
    /// match in each file.
    pub output_mode: Option<OutputMode>,
    /// With `content`: lines to show after each match.
    #[serde(default, rename = "-A")]
    pub after: Option<usize>,
    /// With `content`: lines to show before each match.
    #[serde(default, rename = "-B")]
    pub before: Option<usize>,
    /// With `content`: lines to show before and after.
    #[serde(default, rename = "-C")]
    pub around: Option<usize>,
    /// The same as `-C`.
    pub context: Option<usize>,
    /// With `content`: line numbers; yes if left out.
    #[serde(default, rename = "-n")]
    pub numbers: Option<bool>,
    /// Ignore case.
    #[serde(default, rename = "-i")]
    pub ignore_case: Option<bool>,
    /// Let a match span lines; `.` then matches a newline.
    pub multiline: Option<bool>,
    /// The most lines or files to show: 250 if left out, 0 for all.
    pub head_limit: Option<usize>,
    /// Lines or files to leave out first.
    pub offset: Option<usize>,
}

/// The output of a search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputMode {
    /// The lines.
    Content,
    /// The files.
    #[default]
    FilesWithMatches,
    /// The number of lines in each file.
    Count,
}

/// Searches in files.
#[derive(Debug, Clone, Copy)]
pub struct Grep;

impl TypedTool for Grep {
    type Input = GrepInput;
    const NAME: &'static str = tool_names::GREP;
    const ACCESS: Access = Access::ReadOnly;
    const LIMIT: Limit = Limit::Characters(20_000);

    fn subject(&self, input: &GrepInput, scope: &Scope) -> Subject {
        scope.subject(input.path.as_deref().unwrap_or("."))
    }

    fn run(&self, input: GrepInput, scope: Scope) -> BoxFuture<'static, Output> {
        Box::pin(off_the_loop(move || search(&input, &scope).unwrap_or_else(Output::failed)))
    }
}

fn search(input: &GrepInput, scope: &Scope) -> Result<Output, String> {
    let (root, real_root) = scope.place(input.path.as_deref().unwrap_or("."));
    let matcher = matcher(input)?;
    let mut searcher = searcher(input);
    let skip = input.offset.unwrap_or(0);
    let take = match input.head_limit {
        None => HEAD,
        Some(0) => usize::MAX,
        Some(limit) => limit,
    };
    let mut collected = CollectedLines::new(skip, take);
    let mut counts: Vec<(PathBuf, u64)> = Vec::new();
    let mut files: Vec<(Option<SystemTime>, PathBuf)> = Vec::new();
    let mut unreadable = 0;
    for (modified, real) in entries(&root, &real_root, input, scope)? {
        let path = named(&root, &real_root, &real);
        if scope.cancel().is_cancelled() {
            return Err(CANCELLED.to_owned());
        }
        let Ok(file) = files::exact::open(&real) else {
            unreadable += 1;
            continue;
        };
        let searched = match input.output_mode.unwrap_or_default() {
            OutputMode::Content => {
                let numbers = input.numbers.unwrap_or(true);
                let mut printing = MatchPrinter::new(scope.shown(&path), numbers, &mut collected, scope.cancel());
                searcher.search_file(&matcher, &file, &mut printing)
            }
            OutputMode::FilesWithMatches => {
                let mut counting = MatchCounter::up_to(1, scope.cancel());
                let searched = searcher.search_file(&matcher, &file, &mut counting);
                if counting.matches > 0 {
                    files.push((modified, path));
                }
                searched
            }
            OutputMode::Count => {
                let mut counting = MatchCounter::up_to(u64::MAX, scope.cancel());
                let searched = searcher.search_file(&matcher, &file, &mut counting);
                if counting.matches > 0 {
                    counts.push((path, counting.matches));
                }
                searched
            }
        };
        unreadable += usize::from(searched.is_err());
        if collected.is_full() {
            break;
        }
    }
    if scope.cancel().is_cancelled() {
        return Err(CANCELLED.to_owned());
    }
    let summary = match input.output_mode.unwrap_or_default() {
        OutputMode::Content => format!("Found {}", show::count(collected.seen(), "line")),
        OutputMode::FilesWithMatches => {
            newest_first(&mut files);
            for (_, path) in &files {
                collected.add(scope.shown(path));
            }
            format!("Found {}", show::count(files.len(), "file"))
        }
        OutputMode::Count => {
            for (path, count) in &counts {
                collected.add(format!("{}:{count}", scope.shown(path)));
            }
            let total: u64 = counts.iter().map(|(_, count)| count).sum();
            let total = show::count(usize::try_from(total).unwrap_or(usize::MAX), "matching line");
            format!("Found {total} in {}", show::count(counts.len(), "file"))
        }
    };
    Ok(Output::done(collected.finish(&summary, unreadable, input.output_mode.unwrap_or_default()), summary))
}

fn matcher(input: &GrepInput) -> Result<RegexMatcher, String> {
    let multiline = input.multiline.unwrap_or(false);
    let mut builder = RegexMatcherBuilder::new();
    builder.case_insensitive(input.ignore_case.unwrap_or(false)).multi_line(true);
    if multiline {
        builder.dot_matches_new_line(true);
    } else {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build(&input.pattern).map_err(|error| {
        let hint =
            if !multiline && input.pattern.contains("\\n") { " Set multiline to match across lines." } else { "" };
        format!("The pattern `{}` is not a valid regular expression: {error}.{hint}", input.pattern)
    })
}

fn searcher(input: &GrepInput) -> Searcher {
    let around = input.around.or(input.context).unwrap_or(0);
    let content = input.output_mode == Some(OutputMode::Content);
    let (before, after) =
        if content { (input.before.unwrap_or(around), input.after.unwrap_or(around)) } else { (0, 0) };
    SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .multi_line(input.multiline.unwrap_or(false))
        .before_context(before)
        .after_context(after)
        .heap_limit(Some(HEAP))
        .line_number(true)
        .build()
}

/// The files to search, ordered by path.
fn entries(
    root: &Path,
    real_root: &Path,
    input: &GrepInput,
    scope: &Scope,
) -> Result<impl Iterator<Item = (Option<SystemTime>, PathBuf)>, String> {
    if !real_root.is_dir() {
        // Says what it is if it is no file either.
        files::exact::open(real_root).map_err(|error| crate::read::explain(&error, scope))?;
    }
    let mut walk = walk(real_root);
    if let Some(kind) = &input.kind {
        let types = TypesBuilder::new().add_defaults().select(kind).build();
        walk.types(
            types.map_err(|_| format!("There is no file type `{kind}`. Use glob instead, such as `*.{kind}`."))?,
        );
    }
    let base = if real_root.is_dir() { real_root } else { real_root.parent().unwrap_or(real_root) };
    let wanted = input.glob.as_deref().map(|glob| narrowed(base, glob)).transpose()?;
    let (scope, root, real_root) = (scope.clone(), root.to_owned(), real_root.to_owned());
    let found = walk.build().flatten().filter(move |entry| {
        // Links met on the way are not followed.
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        let wanted = wanted.as_ref().is_none_or(|wanted| !wanted.matched(entry.path(), false).is_ignore());
        is_file && wanted && scope.may_show(&named(&root, &real_root, entry.path()), entry.path())
    });
    Ok(found.map(|entry| (modified(&entry), entry.into_path())))
}
