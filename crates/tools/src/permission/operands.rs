//! Where the paths in a command lead.
//!
//! A path is judged as it is named and where it leads, from every directory the command may be in. Patterns are matched
//! against the disk, so that a link among the matches is seen. What cannot be resolved is said to be so.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use files::{EntryKind, Root};
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::Situation;
use crate::shell::{Field, Found, How, PROCESS, Source};

/// How many matches of a pattern are looked at. More are not resolved.
const MOST: usize = 5_000;

/// How many directories are entered in search of links.
const MOST_DIRECTORIES: usize = 10_000;

/// A path in a command, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Operand {
    pub(super) named: PathBuf,
    pub(super) real: PathBuf,
    pub(super) how: How,
}

/// The paths a command touches.
#[derive(Debug, Default)]
pub(super) struct Operands {
    pub(super) paths: Vec<Operand>,
    /// A path that could not be resolved, as it was written.
    pub(super) unresolved: Option<String>,
}

/// Resolves the paths of one simple command.
pub(super) fn operands(found: &Found, situation: &Situation<'_>) -> Operands {
    let mut operands = Operands::default();
    let Some(places) = places(found, situation) else {
        if !found.finding.touches.is_empty() {
            operands.unresolved = Some("a path from a directory that is not known".to_owned());
        }
        return operands;
    };
    for touch in &found.finding.touches {
        for place in &places {
            operands.add(&touch.path, touch.how, place, situation);
        }
    }
    operands
}

/// The directories a command may run in. None: not known.
pub(super) fn places(found: &Found, situation: &Situation<'_>) -> Option<Vec<PathBuf>> {
    let absolute = |field: &Field, from: &Path| match field {
        Field::Known(text) => Some(lexical(&from.join(text))),
        Field::Home(rest) => Some(lexical(&situation.home?.join(rest.trim_start_matches('/')))),
        _ => None,
    };
    let places = found.directories.iter().map(|directory| absolute(directory, situation.directory));
    let places = places.collect::<Option<Vec<_>>>()?;
    match &found.finding.directory {
        None => Some(places),
        Some(own) => places.iter().map(|place| absolute(own, place)).collect(),
    }
}

impl Operands {
    fn add(&mut self, path: &Field, how: How, place: &Path, situation: &Situation<'_>) {
        match path {
            Field::Known(text) if text == "-" || text == PROCESS || text == "/dev/null" || text == "/dev/stdin" => {}
            Field::Known(text) => self.push(&place.join(text), how),
            Field::Home(rest) => match situation.home {
                Some(home) => self.push(&home.join(rest.trim_start_matches('/')), how),
                None => self.unresolved = Some("a path in the home".to_owned()),
            },
            Field::Glob(pattern) => match matches(pattern, place) {
                Some(found) if found.is_empty() => {}
                Some(found) => found.iter().for_each(|path| self.push(path, how)),
                None => self.unresolved = Some(pattern.clone()),
            },
            // Neither can leave the directory by its name.
            Field::Unknown { source: Source::Number | Source::Commit, .. } => {}
            Field::Unknown { source: Source::Listing(starts), .. } => {
                for start in starts {
                    match start {
                        Field::Unknown { .. } => self.unresolved = Some("a path that is not known".to_owned()),
                        known => self.add(known, How::Followed, place, situation),
                    }
                }
            }
            Field::Unknown { prefix, .. } => {
                self.unresolved = Some(if prefix.is_empty() {
                    "a path that is not known".to_owned()
                } else {
                    format!("{prefix}…")
                });
            }
        }
    }

    fn push(&mut self, path: &Path, how: How) {
        let Ok(real) = files::real(path) else {
            self.unresolved = Some(path.display().to_string());
            return;
        };
        if how == How::Entered && !real.is_dir() {
            self.unresolved = Some(format!("{}, which is not there,", path.display()));
        }
        if how == How::Followed && real.is_dir() {
            match links(&real) {
                Some(links) => self.paths.extend(links.into_iter().map(|(named, real)| Operand { named, real, how })),
                None => self.unresolved = Some(format!("everything below {}", path.display())),
            }
        }
        self.paths.push(Operand { named: lexical(path), real, how });
    }
}

/// The links below a directory, and where they lead. None: too much to look at.
fn links(directory: &Path) -> Option<Vec<(PathBuf, PathBuf)>> {
    let mut waiting = vec![directory.to_owned()];
    let (mut entered, mut seen, mut found) = (HashSet::new(), 0, Vec::new());
    while let Some(directory) = waiting.pop() {
        if !entered.insert(directory.clone()) {
            continue;
        }
        let root = Root::open(&directory).ok()?;
        let below = root.walk(|_| {
            seen += 1;
            seen <= MOST_DIRECTORIES
        });
        for entry in below.ok()?.into_iter().filter(|entry| entry.kind == EntryKind::Link) {
            let path = directory.join(&entry.path);
            let real = files::real(&path).ok()?;
            // Where it leads, more links may lie.
            if real.is_dir() {
                waiting.push(real.clone());
            }
            found.push((path, real));
        }
        if seen > MOST_DIRECTORIES {
            return None;
        }
    }
    Some(found)
}

/// The files a pattern matches, from a directory. None: it cannot be said.
fn matches(pattern: &str, place: &Path) -> Option<Vec<PathBuf>> {
    let start = if pattern.starts_with('/') { PathBuf::from("/") } else { place.to_owned() };
    let mut reached = vec![start];
    for part in pattern.split('/').filter(|part| !part.is_empty() && *part != ".") {
        let literal = !part.contains(['*', '?', '[', '\\']);
        if part == ".." || literal {
            reached.iter_mut().for_each(|path| path.push(part));
            continue;
        }
        let matcher = matcher(part)?;
        let mut next = Vec::new();
        for directory in &reached {
            let Ok(entries) = files::list(directory) else { continue };
            let matching = |name: &OsStr| {
                let hidden = name.to_string_lossy().starts_with('.') && !part.starts_with('.');
                !hidden && matcher.matched(Path::new(name), false).is_ignore()
            };
            next.extend(entries.iter().filter(|entry| matching(&entry.name)).map(|entry| directory.join(&entry.name)));
            if next.len() > MOST {
                return None;
            }
        }
        reached = next;
    }
    Some(reached)
}

/// A part of a pattern between slashes, in which `*` matches whatever a shell's does and more.
fn matcher(part: &str) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new("");
    // Signs that mean something here and nothing there.
    let line = part.replace('{', "\\{").replace('}', "\\}");
    builder.add_line(None, &format!("/{line}")).ok()?;
    builder.build().ok()
}

/// `.` and `..` taken out by name.
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
