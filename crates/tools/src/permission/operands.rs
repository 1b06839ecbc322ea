//! Paths in the words of a command.
//!
//! Any word may be a path, and so may the part after a `=`, `@` or `:` in it. Those that lead somewhere are returned as
//! they are named and where they lead, from every directory the command may be in; patterns are matched against the
//! disk, so that a symlink among the matches is seen. Unknown words are skipped here: the kernel confines them.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::Situation;
use shell::{Field, FilesRead, PROCESS, SimpleCommand};

/// Limit on matches of a pattern.
const MOST: usize = 5_000;

/// Programs whose first word is a pattern or a program, unless an option brings it.
const PATTERN_FIRST: [&str; 10] = ["grep", "egrep", "fgrep", "rg", "ag", "sed", "awk", "gawk", "mawk", "jq"];

/// A path in a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Operand {
    pub(super) named: PathBuf,
    pub(super) real: PathBuf,
    /// True if it is surely a path, and not just a word that could be one.
    pub(super) surely: bool,
}

/// The paths in the words of a simple command.
pub(super) fn operands(found: &SimpleCommand, situation: &Situation<'_>) -> Vec<Operand> {
    let (Some(places), Some((first, rest))) = (places(found, situation), found.words.split_first()) else {
        return Vec::new();
    };
    if found.finding.reads == FilesRead::Nothing {
        return Vec::new();
    }
    let (name, redirects) = (found.name().unwrap_or_default(), matches!(first.text(), Some("<" | ">")));
    let brings = |field: &Field| matches!(field.beginning(), "-e" | "-f" | "--regexp" | "--file" | "--files");
    let pattern = (PATTERN_FIRST.contains(&name) && !rest.iter().any(brings))
        .then(|| rest.iter().position(|field| !field.is_option()))
        .flatten();
    // What stands behind the places in which find looks are tests.
    let tests = matches!(name, "find" | "gfind").then(|| rest.iter().position(Field::is_option)).flatten();
    let fields = rest.iter().take(tests.unwrap_or(rest.len())).enumerate();
    let mut paths = Vec::new();
    for (_, field) in fields.filter(|(at, _)| Some(*at) != pattern) {
        for place in &places {
            let named = match field {
                Field::Plain(text) | Field::Known(text) => texts(text).map(|text| place.join(text)).collect(),
                Field::Home(rest) => {
                    situation.home.map(|home| home.join(rest.trim_start_matches('/'))).into_iter().collect()
                }
                Field::Glob(pattern) => matches(pattern, place),
                Field::Unknown(_) => Vec::new(),
            };
            paths.extend(named.into_iter().filter_map(|path| {
                let surely = redirects || is_path(&path, name, field);
                let real = files::real(&path).ok()?;
                Some(Operand { named: lexical(&path), real, surely })
            }));
        }
    }
    paths
}

/// Returns whether a word surely names a path: it exists, or its parent does and it starts from the root or the home. A
/// revision of a file may exist though the file does not.
fn is_path(path: &Path, name: &str, field: &Field) -> bool {
    let from_the_top = matches!(field, Field::Home(_)) || field.beginning().starts_with('/');
    let parent = path.parent().filter(|parent| from_the_top && parent.parent().is_some());
    path.symlink_metadata().is_ok()
        || parent.is_some_and(Path::is_dir)
        || name == "git" && field.beginning().contains(':')
}

/// Parts of a word that may be a path: `x`, and `x` in `if=x`, `@x`, `HEAD:x` and `--file=x`.
fn texts(text: &str) -> impl Iterator<Item = &str> {
    let nowhere = ["", "-", PROCESS, "/dev/null", "/dev/stdin"];
    let tail = text.rsplit(['=', '@', ':']).next().filter(|tail| *tail != text);
    std::iter::once(text).chain(tail).filter(move |text| !nowhere.contains(text))
}

/// The directories that a command may run in; `None` if unknown.
pub(super) fn places(found: &SimpleCommand, situation: &Situation<'_>) -> Option<Vec<PathBuf>> {
    let absolute = |field: &Field, from: &Path| match field {
        Field::Plain(text) | Field::Known(text) => Some(lexical(&from.join(text))),
        Field::Home(rest) => Some(lexical(&situation.home?.join(rest.trim_start_matches('/')))),
        _ => None,
    };
    let directories = found.directories.as_ref()?.iter();
    let places = directories.map(|directory| absolute(directory, situation.directory)).collect::<Option<Vec<_>>>()?;
    // `git -C x` runs in x.
    let own = found.words.windows(2).find(|pair| found.name() == Some("git") && pair[0].text() == Some("-C"));
    match own {
        None => Some(places),
        Some(pair) => places.iter().map(|place| absolute(&pair[1], place)).collect(),
    }
}

/// The files that a pattern matches from a directory, as far as that can be told.
fn matches(pattern: &str, place: &Path) -> Vec<PathBuf> {
    let start = if pattern.starts_with('/') { PathBuf::from("/") } else { place.to_owned() };
    let mut reached = vec![start];
    for part in pattern.split('/').filter(|part| !part.is_empty() && *part != ".") {
        let literal = !part.contains(['*', '?', '[', '\\']);
        if part == ".." || literal {
            reached.iter_mut().for_each(|path| path.push(part));
            continue;
        }
        let Some(matcher) = matcher(part) else { return Vec::new() };
        let matching = |name: &OsStr| {
            let hidden = name.to_string_lossy().starts_with('.') && !part.starts_with('.');
            !hidden && matcher.matched(Path::new(name), false).is_ignore()
        };
        let below = |directory: &PathBuf| {
            let entries = files::list(directory).unwrap_or_default().into_iter().filter(|entry| matching(&entry.name));
            entries.map(|entry| directory.join(&entry.name)).collect::<Vec<_>>()
        };
        reached = reached.iter().flat_map(below).take(MOST).collect();
    }
    reached
}

/// Matcher for one component of a pattern, in which `*` matches at least what a shell's does.
fn matcher(part: &str) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new("");
    // Signs that mean something here and nothing there.
    let line = part.replace('{', "\\{").replace('}', "\\}");
    builder.add_line(None, &format!("/{line}")).ok()?;
    builder.build().ok()
}

/// Resolves `.` and `..` by name.
pub(super) fn lexical(path: &Path) -> PathBuf {
    let mut absolute = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(absolute.pop()),
            part => absolute.push(part),
        }
    }
    absolute
}
