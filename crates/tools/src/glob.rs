//! Glob: files by the shape of their names.
//!
//! The pattern is read as in a `.gitignore`: without a slash it matches a name at any depth, with one it is anchored at
//! the directory that is searched. What the project ignores is not found, `.git` neither; other hidden files are. Newest
//! first, since what was touched last is most likely what is wanted.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, WalkBuilder};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::run::{CANCELLED, off_the_loop};
use crate::scope::Scope;
use crate::show;
use crate::tool::{Access, Output, Subject, Typed};

/// How many files are listed.
const LISTED: usize = 100;

/// Finds files by a pattern such as `**/*.rs`, `src/**/*.{ts,tsx}` or `Cargo.toml`, the newest first.
///
/// A pattern without a slash matches names at any depth. Files that `.gitignore` names and `.git` are left out. At most
/// 100 files are listed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GlobInput {
    /// The pattern.
    pub pattern: String,
    /// The directory to search; the working directory if left out.
    #[serde(default)]
    pub path: Option<String>,
}

/// Finds files.
#[derive(Debug, Clone, Copy)]
pub struct Glob;

impl Typed for Glob {
    type Input = GlobInput;
    const NAME: &'static str = "Glob";

    fn access(&self, _: &GlobInput) -> Access {
        Access::ReadOnly
    }

    fn subject(&self, input: &GlobInput, scope: &Scope) -> Subject {
        let (directory, _) = place(input, scope);
        Subject::path(scope, &directory.to_string_lossy())
    }

    fn run(&self, input: GlobInput, scope: Scope) -> BoxFuture<'static, Output> {
        Box::pin(off_the_loop(move || find(&input, &scope)))
    }
}

/// Where to search and for what: an absolute pattern brings its own directory.
fn place(input: &GlobInput, scope: &Scope) -> (PathBuf, String) {
    let base = scope.absolute(input.path.as_deref().unwrap_or("."));
    let pattern = input.pattern.trim_start_matches("./");
    if !pattern.starts_with('/') && !pattern.starts_with("~/") {
        return (base, pattern.to_owned());
    }
    let plain: Vec<&str> = pattern.split('/').take_while(|part| !part.contains(['*', '?', '[', '{', '\\'])).collect();
    let parts = pattern.split('/').count();
    // The last part is always a pattern, even if it has no wildcard.
    let plain = &plain[..plain.len().min(parts - 1)];
    let rest: Vec<&str> = pattern.split('/').skip(plain.len()).collect();
    (scope.absolute(&format!("{}/", plain.join("/"))), format!("/{}", rest.join("/")))
}

fn find(input: &GlobInput, scope: &Scope) -> Output {
    let (directory, pattern) = place(input, scope);
    if let Err(error) = files::list(&directory) {
        return Output::failed(format!("{error}."));
    }
    let wanted = match narrowed(&directory, &pattern) {
        Ok(wanted) => wanted,
        Err(why) => return Output::failed(why),
    };
    let mut found: Vec<(Option<SystemTime>, PathBuf)> = Vec::new();
    for entry in walk(&directory).hidden(false).build().flatten() {
        if scope.cancel().is_cancelled() {
            return Output::failed(CANCELLED);
        }
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file() || kind.is_symlink());
        if is_file && wanted.matched(entry.path(), false).is_whitelist() && scope.may_show(entry.path()) {
            found.push((modified(&entry), entry.into_path()));
        }
    }
    if found.is_empty() {
        return Output::done("No files found.", "Found no files");
    }
    newest_first(&mut found);
    let total = found.len();
    let mut lines: Vec<String> = found.iter().take(LISTED).map(|(_, path)| scope.shown(path)).collect();
    if total > LISTED {
        lines.push(format!("\n[the newest {LISTED} of {total} files; use a narrower pattern or path to see others]"));
    }
    Output::done(lines.join("\n"), format!("Found {}", show::count(total, "file")))
}

/// A walk over what a project holds: `.gitignore` is honoured also outside a repository, `.git` is left out, links are
/// not followed, and nothing outside the project (a global ignore file) changes the result.
pub(crate) fn walk(root: &Path) -> WalkBuilder {
    let mut walk = WalkBuilder::new(root);
    walk.git_global(false).require_git(false).follow_links(false);
    walk.filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git");
    walk.sort_by_file_path(Path::cmp);
    walk
}

/// A pattern that narrows a walk, relative to `root`.
pub(crate) fn narrowed(root: &Path, pattern: &str) -> Result<Override, String> {
    let bad = |error: ignore::Error| format!("The pattern `{pattern}` cannot be understood: {error}.");
    OverrideBuilder::new(root).add(pattern).map_err(bad)?.build().map_err(bad)
}

/// When a file was last changed.
pub(crate) fn modified(entry: &DirEntry) -> Option<SystemTime> {
    entry.metadata().ok()?.modified().ok()
}

/// Newest first; files of the same moment by name.
pub(crate) fn newest_first(found: &mut [(Option<SystemTime>, PathBuf)]) {
    found.sort_by(|(one, one_path), (other, other_path)| other.cmp(one).then_with(|| one_path.cmp(other_path)));
}
