//! Import from other tools: memory directories, sections of instruction files, Cursor rules.
//!
//! [`plan`] returns what would be added, as memories and as a diff, and touches nothing; [`apply`] does it. Existing
//! memories are left alone: one with the same text is not added twice, and a taken name gets a number. Everything is
//! saved in the one way: a text with a secret, or one that the user removed, is refused and named, and a saved memory
//! records its source and keeps its date. An imported memory keeps its lines; only what was not a memory (a section, a
//! rule) is rewritten.

use std::path::Path;
use std::time::SystemTime;

use files::Root;
use jiff::Timestamp;
use similar::TextDiff;

use crate::entry::{Memory, READ_LIMIT, stem};
use crate::error::Error;
use crate::frontmatter;
use crate::remember::{MemoryOrigin, by_what_it_says};
use crate::scan;
use crate::secrets::no_secret;
use crate::store::{self, NewMemory, SaveResult, Store};
use crate::taxonomy::Kind;

/// Shortest section that is imported, in characters.
const SHORTEST_SECTION: usize = 20;

/// Source of an import.
#[derive(Debug, Clone, Copy)]
pub enum ImportSource<'a> {
    /// Another memory directory.
    Directory(&'a Root),
    /// CLAUDE.md, AGENTS.md: a memory for each section.
    Document {
        /// Its path, for the record.
        path: &'a Path,
        /// Its text.
        text: &'a str,
    },
    /// A Cursor rule (`.mdc`): one memory, with the files it applies to.
    CursorRule {
        /// Its path, for the record.
        path: &'a Path,
        /// Its text.
        text: &'a str,
    },
}

/// Plan of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportPlan {
    /// The files, in order.
    pub items: Vec<ImportFile>,
    /// Files that cannot be imported, with reasons.
    pub skipped: Vec<String>,
}

/// A file that would be added, or the reason why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportFile {
    /// Its path, relative to the memory directory.
    pub path: String,
    /// Its content.
    pub text: String,
    /// Its source.
    pub from: String,
    /// Time of its source's last change.
    pub modified: Option<SystemTime>,
    /// The planned action.
    pub action: Action,
}

/// Action for a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// It is added.
    Add,
    /// A memory says the same already.
    Known {
        /// That memory.
        by: String,
    },
}

impl ImportPlan {
    /// The plan as a diff against the directory as it is.
    pub fn diff(&self) -> String {
        let mut out = String::new();
        for item in self.items.iter().filter(|item| item.action == Action::Add) {
            let diff = TextDiff::from_lines("", item.text.as_str());
            let unified = diff.unified_diff().context_radius(3).header("/dev/null", &item.path).to_string();
            out.push_str(&unified);
        }
        out
    }

    /// Number of files that would be added.
    pub fn additions(&self) -> usize {
        self.items.iter().filter(|item| item.action == Action::Add).count()
    }
}

/// Plans an import from the sources.
pub fn plan(store: &Store, sources: &[ImportSource<'_>]) -> Result<ImportPlan, Error> {
    let mut there: Vec<(String, String)> = Vec::new();
    for path in scan::paths(store.root())? {
        if let Ok(memory) = Memory::read(store.root(), &path) {
            there.push((path, by_what_it_says(&memory.body)));
        }
    }
    let mut plan = ImportPlan::default();
    for source in sources {
        for Offer { path, text, from, modified } in offered(source, &mut plan.skipped)? {
            if let Err(Error::Secret { rule, .. }) = no_secret(&path, &text) {
                plan.skipped.push(format!("{from}: it holds a secret (rule {rule})"));
                continue;
            }
            let body = by_what_it_says(&Memory::parse(&path, text.as_bytes(), None, text.len() as u64).body);
            let known = there.iter().find(|(_, other)| *other == body && !body.is_empty());
            if let Some((by, _)) = known {
                let action = Action::Known { by: by.clone() };
                plan.items.push(ImportFile { path, text, from, modified, action });
                continue;
            }
            let path = free(&path, |path| there.iter().any(|(taken, _)| taken == path));
            there.push((path.clone(), body));
            plan.items.push(ImportFile { path, text, from, modified, action: Action::Add });
        }
    }
    Ok(plan)
}

/// Result of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportResult {
    /// The saved memories.
    pub saved: Vec<SaveResult>,
    /// The refused ones, with reasons.
    pub refused: Vec<String>,
}

/// Carries out a plan. A file created meanwhile is not overwritten. `origin` names the importer and the time; named
/// things are looked up below `tree`.
pub fn apply(
    store: &Store,
    plan: &ImportPlan,
    origin: &MemoryOrigin,
    tree: Option<&Path>,
) -> Result<ImportResult, Error> {
    let mut imported = ImportResult::default();
    for item in plan.items.iter().filter(|item| item.action == Action::Add) {
        match item.save(store, origin, tree) {
            Ok(saved) => imported.saved.push(saved),
            Err(
                error @ (Error::Secret { .. }
                | Error::Known { .. }
                | Error::Forgotten { .. }
                | Error::Files(files::Error::Exists { .. })),
            ) => imported.refused.push(format!("{}: {error}", item.from)),
            Err(error) => return Err(error),
        }
    }
    Ok(imported)
}

impl ImportFile {
    fn save(&self, store: &Store, origin: &MemoryOrigin, tree: Option<&Path>) -> Result<SaveResult, Error> {
        let modified = self.modified.and_then(|time| Timestamp::try_from(time).ok());
        let memory = Memory::parse(&self.path, self.text.as_bytes(), modified, self.text.len() as u64);
        let front = frontmatter::read(&self.text);
        // Who wrote it stays written down.
        let agent = origin.agent.clone().filter(|_| front.metadata("agent").is_none());
        let origin = MemoryOrigin { agent, at: memory.dated.or(origin.at), ..origin.clone() };
        let text = origin.written_into(&self.text, &[]);
        let text = frontmatter::set_under(&text, "metadata", "importedFrom", &self.from);
        let saved = store.remember_text(&self.path, &text, &origin, tree)?;
        if let Some(modified) = self.modified {
            store.root().date(&self.path, modified)?; // a file that is copied is new, a memory is not
        }
        Ok(saved)
    }
}

/// The path, or a free one with a number.
fn free(path: &str, taken: impl Fn(&str) -> bool) -> String {
    if !taken(path) {
        return path.to_owned();
    }
    let stem = path.strip_suffix(".md").unwrap_or(path);
    (2..).map(|number| format!("{stem}-{number}.md")).find(|path| !taken(path)).unwrap_or_else(|| path.to_owned())
}

/// A file that could be imported.
struct Offer {
    path: String,
    text: String,
    from: String,
    modified: Option<SystemTime>,
}

/// Files that a source offers; those that cannot be imported go to `skipped`.
fn offered(source: &ImportSource<'_>, skipped: &mut Vec<String>) -> Result<Vec<Offer>, Error> {
    match source {
        ImportSource::Directory(root) => {
            let mut files = Vec::new();
            for path in scan::paths(root)? {
                let from = root.path().join(&path).display().to_string();
                let modified = root.head(&path, 0).ok().and_then(|head| head.modified);
                // A file that cannot be edited later is not brought in: its bytes would be lost.
                match root.read(&path, READ_LIMIT).map(|file| String::from_utf8(file.bytes)) {
                    Err(error) => skipped.push(format!("{from}: {error}")),
                    Ok(Err(_)) => skipped.push(format!("{from}: it is not UTF-8 text")),
                    Ok(Ok(text)) => match store::checked(&path) {
                        Err(error) => skipped.push(format!("{from}: {error}")),
                        Ok(_) => files.push(Offer { text: with_head(&path, text), path, from, modified }),
                    },
                }
            }
            Ok(files)
        }
        ImportSource::Document { path, text } => sections(path, text),
        ImportSource::CursorRule { path, text } => Ok(cursor_rule(path, text)?.into_iter().collect()),
    }
}

/// The text of a memory, with frontmatter if it lacks one.
fn with_head(path: &str, text: String) -> String {
    if frontmatter::read(&text).is_present() || text.trim().is_empty() {
        return text;
    }
    let kind = Some(kind_of(&text));
    store::render(&NewMemory {
        name: stem(path),
        description: first_sentence(&text),
        kind,
        body: text,
        ..NewMemory::default()
    })
}

/// The sections of a document, one memory each.
fn sections(path: &Path, text: &str) -> Result<Vec<Offer>, Error> {
    let front = frontmatter::read(text);
    let text = crate::markdown::without_comments(&text[front.body_start()..]);
    let fallback = path.file_stem().map_or("notes".into(), |stem| stem.to_string_lossy().into_owned());
    let mut found: Vec<(String, String)> = vec![(fallback.clone(), String::new())];
    let code = crate::markdown::regions(&text).code;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let title = line.trim_start_matches('#').trim();
        let level = line.len() - line.trim_start_matches('#').len();
        let heading = (1..=3).contains(&level) && line[level..].starts_with(' ') && !title.is_empty();
        if heading && !code.iter().any(|range| range.contains(&at)) {
            found.push((title.to_owned(), String::new()));
        } else if let Some((_, body)) = found.last_mut() {
            body.push_str(line);
        }
        at += line.len();
    }
    let mut memories = Vec::new();
    for (title, body) in found {
        let body = body.trim();
        if body.chars().count() < SHORTEST_SECTION {
            continue;
        }
        let new = NewMemory {
            description: first_sentence(body),
            kind: Some(kind_of(body)),
            body: body.to_owned(),
            name: title,
            ..NewMemory::default()
        };
        // A section called "Memory" would be the index itself, and one may have no letters at all.
        let file = store::file_name(&new.name).or_else(|_| store::file_name(&format!("{} notes", new.name)));
        let file = file.or_else(|_| store::file_name(&format!("{fallback} notes")))?;
        memories.push(Offer {
            path: file,
            text: store::render(&new),
            from: format!("{}, section {:?}", path.display(), new.name),
            modified: None,
        });
    }
    Ok(memories)
}

fn cursor_rule(path: &Path, text: &str) -> Result<Option<Offer>, Error> {
    let front = frontmatter::read(text);
    let body = text[front.body_start()..].trim();
    if body.is_empty() {
        return Ok(None);
    }
    let name = stem(&path.to_string_lossy());
    let new = NewMemory {
        description: front.text("description").filter(|text| !text.is_empty()).unwrap_or_else(|| first_sentence(body)),
        kind: Some(Kind::Feedback),
        applies_to: front.list("globs"),
        body: body.to_owned(),
        name,
        ..NewMemory::default()
    };
    let file = store::file_name(&new.name)?;
    Ok(Some(Offer { path: file, text: store::render(&new), from: path.display().to_string(), modified: None }))
}

/// The first sentence of a text, as a description.
pub fn first_sentence(body: &str) -> String {
    let line = body.lines().map(str::trim).find(|line| line.chars().any(char::is_alphanumeric)).unwrap_or_default();
    let line = line.trim_start_matches(['-', '*', '>', '#', ' ']).replace(['`', '*'], "");
    let end = line.find(". ").map_or(line.len(), |at| at + 1);
    scan::one_line(&line[..end], 200)
}

/// Type of a text: rules are feedback, the rest is about the project.
fn kind_of(body: &str) -> Kind {
    if crate::rank::directs(body) { Kind::Feedback } else { Kind::Project }
}
