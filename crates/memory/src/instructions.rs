//! Instruction files: CLAUDE.md and related files, ordered so that later ones are stronger.
//!
//! Managed, then the user's, then the project's from the root of the file system down to the working directory, then
//! the memory index. Files may include others with `@path` ([`mod@include`]); rules may apply to some files only, and load
//! when one is touched (`rules_for_files`); a directory below the working directory brings its own when it is first read. Each
//! file is loaded once, whatever leads to it, and reported with the reason. A project's files come from the project and
//! reach no further (`reach`). What cannot be loaded becomes a [`Note`]: a missing include, one from outside, a
//! device, a file far too large. Nothing here fails.

pub mod include;
mod load_report;
mod reach;
mod render;
mod rules_for_files;

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use crate::frontmatter;
use crate::markdown;
use reach::{IncludeReach, ReadRefusal};
use rules_for_files::{Globs, WaitingRule};

pub use load_report::{InstructionFault, LoadedInstruction, Note, Owner, Reason};
pub use render::{changed, first_message, nested};

/// Number of characters above which a file is loaded with a warning.
pub const LONG_FILE: usize = 40_000;

/// Limit on the depth of includes.
pub const DEEPEST_INCLUDE: usize = 5;

/// Largest instruction file, in bytes.
const READ_LIMIT: u64 = 1024 * 1024;

/// Limit on loaded files; a project with more has a loop of its own making.
const MOST_FILES: usize = 500;

/// Limit on loaded bytes of all files together: every request carries them.
const MOST_BYTES: u64 = 4 * READ_LIMIT;

/// Sources of instruction files.
#[derive(Debug, Clone, Default)]
pub struct InstructionSources {
    /// The organisation's files, such as `/etc/claude-code/CLAUDE.md`.
    pub managed: Vec<PathBuf>,
    /// The config home.
    pub config_home: PathBuf,
    /// The user's home, for `~/`.
    pub home: Option<PathBuf>,
    /// The session's working directory.
    pub working_directory: PathBuf,
    /// `claudeMdExcludes`: globs of absolute paths that are not loaded. Managed files are.
    pub excludes: Vec<String>,
    /// Owners whose files are not loaded.
    pub left_out: Vec<Owner>,
    /// Files outside the project, with symlinks resolved, that the user agreed the project's files may include.
    pub agreed: BTreeSet<PathBuf>,
    /// The memory indexes, private before team. They are read whenever instructions are loaded.
    pub indexes: Vec<PathBuf>,
}

/// Loaded and waiting instruction files.
#[derive(Debug)]
pub struct Instructions {
    sources: InstructionSources,
    /// Loaded files, in order.
    pub files: Vec<LoadedInstruction>,
    /// Problems found.
    pub notes: Vec<Note>,
    seen: HashSet<PathBuf>,
    visited: HashSet<PathBuf>,
    waiting: Vec<WaitingRule>,
    refused: Vec<RefusedFile>,
    excludes: Globs,
    project: PathBuf,
}

/// A file that is about to be loaded.
struct FileRequest<'a> {
    path: &'a Path,
    owner: Owner,
    reach: &'a IncludeReach,
    reason: Reason,
    parent: Option<&'a Path>,
    depth: usize,
}

/// A file from outside that was not read, and everything needed to read it once the user agrees.
#[derive(Debug)]
struct RefusedFile {
    real: PathBuf,
    path: PathBuf,
    owner: Owner,
    reach: IncludeReach,
    reason: Reason,
    parent: Option<PathBuf>,
    depth: usize,
    /// Base directory of a rule's patterns.
    base: Option<PathBuf>,
}

impl Instructions {
    /// The session's working directory.
    pub fn working_directory(&self) -> &Path {
        &self.sources.working_directory
    }

    /// Their sources.
    pub fn sources(&self) -> &InstructionSources {
        &self.sources
    }

    /// `claudeMdExcludes`.
    pub fn excludes(&self) -> &[String] {
        &self.sources.excludes
    }

    /// Changes the excludes and indexes from now on. Loaded files stay until everything is loaded again.
    pub fn follow(&mut self, excludes: Vec<String>, indexes: Vec<PathBuf>) {
        self.excludes = Globs::new(&excludes, &mut |_, _| {});
        (self.sources.excludes, self.sources.indexes) = (excludes, indexes);
    }

    /// Loads everything again, from the same sources.
    pub fn reload(&mut self, reason: Reason) {
        *self = Self::load(self.sources.clone(), reason);
    }

    /// Loads everything a session starts with. `reason` is [`Reason::SessionStart`] or [`Reason::Compact`].
    pub fn load(sources: InstructionSources, reason: Reason) -> Self {
        let mut notes = Vec::new();
        let excludes = Globs::new(&sources.excludes, &mut |pattern, why| {
            notes.push(Note { path: PathBuf::from(pattern), parent: None, what: InstructionFault::BadGlob(why) });
        });
        let mut all = Self {
            files: Vec::new(),
            notes,
            seen: HashSet::new(),
            visited: HashSet::new(),
            waiting: Vec::new(),
            refused: Vec::new(),
            excludes,
            project: reach::project(&sources),
            sources,
        };
        for path in all.sources.managed.clone() {
            all.file(&path, Owner::Managed, &IncludeReach::Anywhere, reason);
        }
        let config = all.sources.config_home.clone();
        let working = all.sources.working_directory.clone();
        all.file(&config.join("CLAUDE.md"), Owner::User, &IncludeReach::Anywhere, reason);
        all.rules(&config.join("rules"), Owner::User, &IncludeReach::Anywhere, &working, reason);
        let above: Vec<PathBuf> = working.ancestors().map(Path::to_owned).collect();
        for directory in above.into_iter().rev() {
            all.directory(&directory, reason);
        }
        all.read_indexes(reason);
        all
    }

    /// Reads the memory indexes again: others may have written to theirs since.
    pub fn refresh_indexes(&mut self, reason: Reason) {
        self.files.retain(|file| !matches!(file.owner, Owner::AutoMem | Owner::TeamMem));
        self.read_indexes(reason);
    }

    fn read_indexes(&mut self, reason: Reason) {
        for path in self.sources.indexes.clone() {
            if let Some(text) = crate::index::shown(&path)
                && !self.files.iter().any(|file| file.path == path)
            {
                let (size, owner) = (text.len() as u64, self.owner_of_index(&path));
                self.seen.insert(path.clone());
                self.files.push(LoadedInstruction { path, owner, reason, parent: None, globs: Vec::new(), text, size });
            }
        }
    }

    /// Owner of an index: the team's folder is inside the private one.
    fn owner_of_index(&self, path: &Path) -> Owner {
        let folder = path.parent();
        let is_team = |private: &PathBuf| private.parent().map(|private| private.join("team")).as_deref() == folder;
        if self.sources.indexes.iter().any(is_team) { Owner::TeamMem } else { Owner::AutoMem }
    }

    /// Loads what a touched file requires, and returns it: rules for it, and the files of directories on the way to it
    /// that were not read before.
    pub fn touched(&mut self, file: &Path) -> Vec<LoadedInstruction> {
        let before = self.files.len();
        let file = crate::place::without_dots(file);
        if let Some(parent) = file.parent() {
            self.enter(parent);
        }
        let (due, rest) =
            std::mem::take(&mut self.waiting).into_iter().partition(|rule: &WaitingRule| rule.is_for(&file));
        self.waiting = rest;
        let due: Vec<WaitingRule> = due;
        for rule in due {
            let (owner, reach, reason) = (rule.owner, &rule.reach, Reason::PathGlobMatch);
            let asked = FileRequest { path: &rule.path, owner, reach, reason, parent: None, depth: 0 };
            self.seen.remove(&real(&rule.path));
            self.take(&asked, PatternedFiles::Met);
        }
        self.files[before..].to_vec()
    }

    /// Loads what a directory that is read requires, and returns it.
    pub fn entered(&mut self, directory: &Path) -> Vec<LoadedInstruction> {
        let before = self.files.len();
        self.enter(&crate::place::without_dots(directory));
        self.files[before..].to_vec()
    }

    /// Records the user's consent that the project's files include this one from outside: loads it where it was left
    /// out, and returns the result. The consent stays.
    pub fn agree(&mut self, real: &Path) -> Vec<LoadedInstruction> {
        let before = self.files.len();
        self.sources.agreed.insert(real.to_owned());
        self.notes.retain(|note| !matches!(&note.what, InstructionFault::Outside(outside) if outside == real));
        let (due, rest) = std::mem::take(&mut self.refused).into_iter().partition(|one: &RefusedFile| one.real == real);
        self.refused = rest;
        let due: Vec<RefusedFile> = due;
        for one in due {
            let RefusedFile { path, owner, reach, reason, parent, depth, base, .. } = &one;
            let (owner, reason, depth, parent) = (*owner, *reason, *depth, parent.as_deref());
            let conditional = base.as_deref().map_or(PatternedFiles::Loads, PatternedFiles::Waits);
            self.take(&FileRequest { path, owner, reach, reason, parent, depth }, conditional);
        }
        self.files[before..].to_vec()
    }

    fn enter(&mut self, directory: &Path) {
        let working = self.sources.working_directory.clone();
        if !directory.starts_with(&working) {
            return;
        }
        let way: Vec<PathBuf> =
            directory.ancestors().take_while(|above| *above != working).map(Path::to_owned).collect();
        for directory in way.into_iter().rev() {
            self.directory(&directory, Reason::NestedTraversal);
        }
    }

    /// Loads the files of one directory of the project, once.
    fn directory(&mut self, directory: &Path, reason: Reason) {
        if !self.visited.insert(directory.to_owned()) {
            return;
        }
        let reach = IncludeReach::of(directory, &self.project);
        let own = directory.join("CLAUDE.md");
        let hidden = directory.join(".claude/CLAUDE.md");
        // Asked before loading: a file that is excluded or loaded already is there all the same.
        let any = exists(&own) || exists(&hidden);
        self.file(&own, Owner::Project, &reach, reason);
        self.file(&hidden, Owner::Project, &reach, reason);
        if !any {
            self.file(&directory.join("AGENTS.md"), Owner::Project, &reach, reason);
        }
        let rules = directory.join(".claude/rules");
        // Above a project in the home lie the user's own, which are loaded already, wherever a link leads.
        if real(&rules) != real(&self.sources.config_home.join("rules")) {
            self.rules(&rules, Owner::Project, &reach, directory, reason);
        }
        self.file(&directory.join("CLAUDE.local.md"), Owner::Local, &reach, reason);
    }

    fn file(&mut self, path: &Path, owner: Owner, reach: &IncludeReach, reason: Reason) {
        self.take(&FileRequest { path, owner, reach, reason, parent: None, depth: 0 }, PatternedFiles::Loads);
    }

    /// Loads the rules of a folder: those without patterns at once, the others wait.
    fn rules(&mut self, folder: &Path, owner: Owner, reach: &IncludeReach, base: &Path, reason: Reason) {
        match reach.rules(folder) {
            Ok(paths) => {
                for path in paths {
                    let asked = FileRequest { path: &path, owner, reach, reason, parent: None, depth: 0 };
                    self.take(&asked, PatternedFiles::Waits(base));
                }
            }
            Err(ReadRefusal::Outside(real)) => {
                self.notes.push(Note { path: folder.to_owned(), parent: None, what: InstructionFault::Outside(real) });
            }
            Err(_) => {}
        }
    }

    /// Loads a file and its includes.
    fn take(&mut self, asked: &FileRequest<'_>, conditional: PatternedFiles<'_>) {
        let note = |what| Note { path: asked.path.to_owned(), parent: asked.parent.map(Path::to_owned), what };
        let real = real(asked.path);
        let excluded = self.excludes.is_match(asked.path) || self.excludes.is_match(&real);
        if self.seen.contains(&real)
            || asked.owner != Owner::Managed && excluded
            || self.sources.left_out.contains(&asked.owner)
        {
            return;
        }
        let bytes: u64 = self.files.iter().map(|file| file.size).sum();
        if self.files.len() >= MOST_FILES || bytes >= MOST_BYTES {
            if self.notes.last().is_none_or(|last| last.what != InstructionFault::TooMany) {
                self.notes.push(note(InstructionFault::TooMany));
            }
            return;
        }
        let file = match self.read(asked) {
            Ok(file) => file,
            Err(ReadRefusal::Failed(files::Error::NotFound { .. })) => {
                if asked.parent.is_some() {
                    self.notes.push(note(InstructionFault::Missing));
                }
                return;
            }
            // `CLAUDE.md` may be a folder's name; as an include it is a mistake.
            Err(ReadRefusal::Failed(files::Error::IsDirectory { .. })) if asked.parent.is_none() => return,
            Err(ReadRefusal::Failed(error)) => {
                self.notes.push(note(InstructionFault::Unreadable(error.to_string())));
                return;
            }
            Err(ReadRefusal::Outside(real)) => {
                self.notes.push(note(InstructionFault::Outside(real.clone())));
                let base = match conditional {
                    PatternedFiles::Waits(base) => Some(base.to_owned()),
                    PatternedFiles::Met | PatternedFiles::Loads => None,
                };
                let (path, parent) = (asked.path.to_owned(), asked.parent.map(Path::to_owned));
                let (owner, reach, reason, depth) = (asked.owner, asked.reach.clone(), asked.reason, asked.depth);
                self.refused.push(RefusedFile { real, path, owner, reach, reason, parent, depth, base });
                return;
            }
            Err(ReadRefusal::OfAnother) => {
                self.notes.push(note(InstructionFault::OfAnother));
                return;
            }
        };
        if file.bytes.contains(&0) {
            self.notes.push(note(InstructionFault::NotText));
            return;
        }
        self.seen.insert(real);
        let whole = String::from_utf8_lossy(&file.bytes);
        let front = frontmatter::read(&whole);
        let globs = rules_for_files::patterns(&front);
        if let (PatternedFiles::Waits(base), false) = (&conditional, globs.is_empty()) {
            let globs = Globs::new(&globs, &mut |pattern, why| {
                let (path, parent) = (PathBuf::from(pattern), Some(asked.path.to_owned()));
                self.notes.push(Note { path, parent, what: InstructionFault::BadGlob(why) });
            });
            self.waiting.push(WaitingRule::new(asked, base, globs));
            return;
        }
        let text = markdown::without_comments(&whole[front.body_start()..]).trim().to_owned();
        let length = text.chars().count();
        if length > LONG_FILE {
            self.notes.push(note(InstructionFault::Long(length)));
        }
        let includes = include::paths(&text);
        if !text.is_empty() {
            self.files.push(LoadedInstruction {
                path: asked.path.to_owned(),
                owner: asked.owner,
                reason: asked.reason,
                parent: asked.parent.map(Path::to_owned),
                globs,
                text,
                size: file.bytes.len() as u64,
            });
        }
        for path in includes {
            self.include(&path, asked);
        }
    }

    /// Loads an included file.
    fn include(&mut self, written: &str, by: &FileRequest<'_>) {
        let Some(path) = include::resolve(written, by.path, self.sources.home.as_deref()) else { return };
        let note = |what| Note { path: path.clone(), parent: Some(by.path.to_owned()), what };
        // `@alice` is a person; only what looks like a file is missed.
        if !exists(&path) && !include::looks_like_a_file(written) || self.seen.contains(&real(&path)) {
            return;
        }
        if by.depth >= DEEPEST_INCLUDE {
            self.notes.push(note(InstructionFault::TooDeep));
            return;
        }
        if !include::is_text_type(&path) {
            self.notes.push(note(InstructionFault::NotText));
            return;
        }
        let (owner, reach, reason) = (by.owner, by.reach, Reason::Include);
        let asked = FileRequest { path: &path, owner, reach, reason, parent: Some(by.path), depth: by.depth + 1 };
        self.take(&asked, PatternedFiles::Loads);
    }

    /// Reads a file within reach. One above the project has to be the user's own.
    fn read(&self, asked: &FileRequest<'_>) -> Result<files::Snapshot, ReadRefusal> {
        let above = matches!(asked.reach, IncludeReach::Inside(root) if *root != self.project);
        if above && exists(asked.path) && !reach::is_own(asked.path, &self.sources.working_directory) {
            return Err(ReadRefusal::OfAnother);
        }
        asked.reach.read(asked.path, &self.sources.agreed)
    }
}

/// Handling of a file with patterns.
#[derive(Clone, Copy)]
enum PatternedFiles<'a> {
    /// It waits for a matching file; patterns are relative to this directory.
    Waits(&'a Path),
    /// A matching file was touched.
    Met,
    /// It is not a rule: patterns are ignored.
    Loads,
}

fn real(path: &Path) -> PathBuf {
    files::real(path).unwrap_or_else(|_| path.to_owned())
}

fn exists(path: &Path) -> bool {
    files::open(path).is_ok()
}
