//! Saving a memory as an agent does it: a whole text, in place of one it has read, or as a new memory.
//!
//! It is the same operation as [`Store::remember`]: no secrets, no duplicates of another memory, file and index under
//! one lock, with the origin. Besides, the text has to be a memory (a name, a description, one of the four types;
//! missing quotes are added), no symlink is followed, a file that changed since it was read is not overwritten, and the
//! previous content is handed to `keep` before anything changes.

use std::path::Path;

use files::Stamp;

use crate::drift;
use crate::entry::Memory;
use crate::error::Error;
use crate::frontmatter;
use crate::index;
use crate::kept_change::KeptChange;
use crate::remember::MemoryOrigin;
use crate::secrets::no_secret;
use crate::store::{MODE, SaveResult, Store, checked};

pub use crate::kept_change::Keep;

/// Size limit for memories that agents write: a memory is one topic.
pub const LARGEST: usize = 32 * 1024;

/// Larger files are not changed here.
const LIMIT: u64 = 1024 * 1024;

/// Result of a revision.
#[derive(Debug, Clone)]
pub struct RevisionResult {
    /// The file, and the warnings of the index.
    pub saved: SaveResult,
    /// New state of the file.
    pub stamp: Stamp,
}

impl Store {
    /// Saves a text as a memory: a new one, or in place of the one that was `seen`. The things it names are looked up
    /// below `tree`.
    pub fn revise(
        &self,
        path: &str,
        text: &str,
        seen: Option<&Stamp>,
        origin: &MemoryOrigin,
        tree: Option<&Path>,
        keep: &mut Keep<'_>,
    ) -> Result<RevisionResult, Error> {
        self.plain(path)?;
        let text = frontmatter::mended(text);
        well_formed(path, &text)?;
        no_secret(path, &text)?;
        let named = tree.map(|tree| drift::record(&text, tree)).unwrap_or_default();
        let text = origin.written_into(&text, &named);
        let memory = Memory::parse(path, text.as_bytes(), None, text.len() as u64);
        let _held = self.lock()?;
        let before = self.before(path, seen)?;
        if before.is_none() {
            self.nothing_like(&memory.body)?;
        }
        let line = self.line(path)?;
        keep(&KeptChange { path: path.to_owned(), before: before.clone(), after: Some(text.clone()), line })?;
        match (&before, seen) {
            (Some(_), Some(seen)) => self.root().replace_unchanged(path, text.as_bytes(), seen, MODE)?,
            _ => self.root().create_new(path, text.as_bytes(), MODE)?,
        }
        let stamp = self.root().read(path, LIMIT)?.stamp;
        let hook = memory.description.clone().unwrap_or_default();
        let was = before.map(|text| Memory::parse(path, text.as_bytes(), None, text.len() as u64));
        let same_line = was.is_some_and(|was| was.name == memory.name && was.description == memory.description);
        let saved = self.indexed(path, |text, target| {
            // A line that the user worded is left as it is, as long as it is about the same.
            if same_line && index::written(text, target).is_some() {
                return text.to_owned();
            }
            index::put(text, &memory.name, target, &hook)
        })?;
        Ok(RevisionResult { saved, stamp })
    }

    /// Removes a memory that was `seen`, with its line in the index.
    pub fn discard(&self, path: &str, seen: Option<&Stamp>, keep: &mut Keep<'_>) -> Result<SaveResult, Error> {
        self.plain(path)?;
        let _held = self.lock()?;
        let Some(before) = self.before(path, seen)? else {
            return Err(Error::NoMemory { name: path.to_owned(), directory: self.root().path().to_owned() });
        };
        let line = self.line(path)?;
        keep(&KeptChange { path: path.to_owned(), before: Some(before), after: None, line })?;
        self.root().remove(path)?;
        self.indexed(path, index::take)
    }

    /// Puts a memory back that was removed by a change, with its line in the index. Whatever is there now stays.
    pub fn put_back(&self, removal: &KeptChange, keep: &mut Keep<'_>) -> Result<Stamp, Error> {
        let KeptChange { path, before, line, .. } = removal;
        self.plain(path)?;
        let _held = self.lock()?;
        let text = before.clone().unwrap_or_default();
        if self.root().head(path, 0).is_ok() {
            return Err(files::Error::Exists { path: self.root().path().join(path) }.into());
        }
        keep(&KeptChange { path: path.clone(), before: None, after: Some(text.clone()), line: None })?;
        self.root().create_new(path, text.as_bytes(), MODE)?;
        let stamp = self.root().read(path, LIMIT)?.stamp;
        self.indexed(path, |index, target| match line {
            Some(line) => index::restore(index, target, line),
            None => index.to_owned(),
        })?;
        Ok(stamp)
    }

    /// Fails for a path that no memory can have, or that leads elsewhere.
    fn plain(&self, path: &str) -> Result<(), Error> {
        checked(path)?;
        if self.root().is_linked(path) {
            return Err(files::Error::Linked { path: self.root().path().join(path) }.into());
        }
        Ok(())
    }

    /// Current content, if it is what was seen. The lock is held.
    fn before(&self, path: &str, seen: Option<&Stamp>) -> Result<Option<String>, Error> {
        let file = match self.root().read(path, LIMIT) {
            Ok(file) => file,
            Err(files::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let at = || self.root().path().join(path);
        match seen {
            None => Err(Error::Unseen { path: path.to_owned() }),
            Some(seen) if !seen.same_content(&file.stamp) => Err(files::Error::Changed { path: at() }.into()),
            Some(_) => String::from_utf8(file.bytes).map(Some).map_err(|_| Error::NotText { path: at() }),
        }
    }
}

/// Fails for a text that is not a well-formed memory by the rules for agents.
fn well_formed(path: &str, text: &str) -> Result<(), Error> {
    let malformed = |why: String| Err(Error::Malformed { path: path.to_owned(), why });
    if text.len() > LARGEST {
        return malformed(format!(
            "it has {} bytes, and a memory has at most {LARGEST}; keep to one topic",
            text.len()
        ));
    }
    let front = frontmatter::read(text);
    if !front.is_present() {
        return malformed(
            "it has no frontmatter; begin with lines `---`, `name:`, `description:`, `type:`, `---`".into(),
        );
    }
    let memory = Memory::parse(path, text.as_bytes(), None, text.len() as u64);
    if let Some(odd) = memory.diagnostics.first() {
        return malformed(format!("{odd}"));
    }
    for key in ["name", "description"] {
        if front.text(key).is_none_or(|value| value.is_empty()) {
            return malformed(format!("its frontmatter has no `{key}`, one line of text"));
        }
    }
    if memory.kind.is_none() {
        return malformed("its frontmatter needs `type`: user, feedback, project or reference".into());
    }
    if memory.body.trim().is_empty() {
        return malformed("there is no text below its frontmatter".into());
    }
    Ok(())
}
