//! Glob: files by name pattern.
//!
//! The pattern is read as in a `.gitignore`: without a slash it matches a name at any depth, with one it is anchored at
//! the searched directory. Ignored files and `.git` are left out; other hidden files are included. Newest first, since
//! the file touched last is most likely the one wanted.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, WalkBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use transcript::tool_names;

use crate::run_calls::{CANCELLED, off_the_loop};
use crate::scope::Scope;
use crate::show;
use crate::subject::{Access, Subject};
use crate::tool::{Output, TypedTool};

/// Limit on listed files.
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
    pub path: Option<String>,
}

/// Finds files.
#[derive(Debug, Clone, Copy)]
pub struct Glob;

impl TypedTool for Glob {
    type Input = GlobInput;
    const NAME: &'static str = tool_names::GLOB;
    const ACCESS: Access = Access::ReadOnly;

    fn subject(&self, input: &GlobInput, scope: &Scope) -> Subject {
        let (directory, _) = split(input, scope);
        scope.subject(&directory.to_string_lossy())
    }

    fn run(&self, input: GlobInput, scope: Scope) -> BoxFuture<'static, Output> {
        Box::pin(off_the_loop(move || find(&input, &scope)))
    }
}

/// Directory and pattern of a search: an absolute pattern brings its own directory.
fn split(input: &GlobInput, scope: &Scope) -> (PathBuf, String) {
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
    let (directory, pattern) = split(input, scope);
    let (directory, real_directory) = scope.place(&directory.to_string_lossy());
    if let Err(error) = files::list(&real_directory) {
        return Output::failed(format!("{error}."));
    }
    let wanted = match narrowed(&real_directory, &pattern) {
        Ok(wanted) => wanted,
        Err(why) => return Output::failed(why),
    };
    let mut found: Vec<(Option<SystemTime>, PathBuf)> = Vec::new();
    for entry in walk(&real_directory).hidden(false).build().flatten() {
        if scope.cancel().is_cancelled() {
            return Output::failed(CANCELLED);
        }
        let Some(kind) = entry.file_type().filter(|kind| kind.is_file() || kind.is_symlink()) else { continue };
        if !wanted.matched(entry.path(), false).is_whitelist() {
            continue;
        }
        let named = named(&directory, &real_directory, entry.path());
        // Only a link leads elsewhere than where it was met.
        let real = if kind.is_symlink() { files::real(entry.path()).ok() } else { Some(entry.path().to_owned()) };
        if real.is_some_and(|real| scope.may_show(&named, &real)) {
            found.push((modified(&entry), named));
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

/// A walk over a project's files: `.gitignore` is honoured also outside a repository, `.git` is left out, symlinks are
/// not followed, and nothing outside the project (a global ignore file) changes the result.
pub(crate) fn walk(root: &Path) -> WalkBuilder {
    let mut walk = WalkBuilder::new(root);
    let quiet = root.ancestors().all(is_quiet);
    walk.git_global(false).require_git(false).follow_links(false).parents(quiet).ignore(quiet).git_ignore(quiet);
    walk.git_exclude(quiet);
    walk.filter_entry(|entry| {
        let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        entry.depth() == 0 || entry.file_name() != ".git" && (!is_directory || is_quiet(entry.path()))
    });
    walk.sort_by_file_path(Path::cmp);
    walk
}

/// Paths of a project's files and folders from its top, folders with a slash, as far as git does not ignore them: at most
/// so many, and no more once it is to stop.
pub fn project_files(root: &Path, most: usize, stop: &AtomicBool) -> Vec<String> {
    let below = |entry: DirEntry| {
        let path = entry.path().strip_prefix(root).ok()?.to_str().filter(|path| !path.is_empty())?;
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        Some(format!("{path}{}", if is_folder { "/" } else { "" }))
    };
    let entries = walk(root).hidden(false).build().take_while(|_| !stop.load(Ordering::Relaxed));
    entries.flatten().filter_map(below).take(most).collect()
}

/// Path of a file found in a directory, in terms of the name that directory was given.
pub(crate) fn named(root: &Path, real_root: &Path, found: &Path) -> PathBuf {
    match found.strip_prefix(real_root) {
        Ok(below) if below.as_os_str().is_empty() => root.to_owned(),
        Ok(below) => root.join(below),
        Err(_) => found.to_owned(),
    }
}

/// Returns whether the ignore files of a directory can be read without blocking: one could be a pipe that nobody writes
/// to.
fn is_quiet(directory: &Path) -> bool {
    const IGNORING: [&str; 3] = [".gitignore", ".ignore", ".git/info/exclude"];
    let waits = |name: &str| matches!(files::open(directory.join(name)), Err(files::Error::NotRegular { .. }));
    !IGNORING.into_iter().any(waits)
}

/// A pattern that narrows a walk, relative to `root`.
pub(crate) fn narrowed(root: &Path, pattern: &str) -> Result<Override, String> {
    let bad = |error: ignore::Error| format!("The pattern `{pattern}` cannot be understood: {error}.");
    OverrideBuilder::new(root).add(pattern).map_err(bad)?.build().map_err(bad)
}

/// Time of a file's last change.
pub(crate) fn modified(entry: &DirEntry) -> Option<SystemTime> {
    entry.metadata().ok()?.modified().ok()
}

/// Sorts newest first; files of the same time by name.
pub(crate) fn newest_first(found: &mut [(Option<SystemTime>, PathBuf)]) {
    found.sort_by(|(one, one_path), (other, other_path)| other.cmp(one).then_with(|| one_path.cmp(other_path)));
}
