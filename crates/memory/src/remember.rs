//! The one way to save a memory, whoever asks: a command, a model's tool, a background agent, a server.
//!
//! A memory that holds a secret is refused, and so is a duplicate of another; the reason names the rule or the file. A
//! saved memory records its origin: session, message, agent, model and time, under `metadata`, besides the existing
//! things it names ([`crate::drift`]). File and index are written under one lock.

use std::path::Path;

use crate::drift;
use crate::entry::Memory;
use crate::error::Error;
use crate::frontmatter;
use crate::index;
use crate::scan;
use crate::secrets::no_secret;
use crate::store::{MODE, NewMemory, SaveResult, Store, checked, file_name, render};

pub use crate::origin::MemoryOrigin;

/// A memory larger than this is not settled.
const LIMIT: u64 = 1024 * 1024;

impl Store {
    /// Saves a new memory. The things it names are looked up below `tree`, the working tree, if one is given.
    pub fn remember(&self, new: &NewMemory, origin: &MemoryOrigin, tree: Option<&Path>) -> Result<SaveResult, Error> {
        let path = match &new.path {
            Some(path) => checked(path)?.to_owned(),
            None => file_name(&new.name)?,
        };
        self.remember_text(&path, &render(new), origin, tree)
    }

    /// Saves a whole text as a new memory, as [`Store::remember`] does.
    pub fn remember_text(
        &self,
        path: &str,
        text: &str,
        origin: &MemoryOrigin,
        tree: Option<&Path>,
    ) -> Result<SaveResult, Error> {
        checked(path)?;
        let named = tree.map(|tree| drift::record(text, tree)).unwrap_or_default();
        let text = origin.written_into(text, &named);
        no_secret(path, &text)?;
        let memory = Memory::parse(path, text.as_bytes(), None, text.len() as u64);
        let _held = self.lock()?;
        self.nothing_like(&memory.body)?;
        if self.root().head(path, 0).is_ok() {
            return Err(files::Error::Exists { path: self.root().path().join(path) }.into());
        }
        self.keep(path, None, Some(&text))?;
        self.root().create_new(path, text.as_bytes(), MODE)?;
        let hook = memory.description.clone().unwrap_or_default();
        self.indexed(path, |text, target| index::put(text, &memory.name, target, &hook))
    }

    /// Brings a file that somebody else wrote into order: it gets the mode of a memory, its origin, the existing things
    /// it names, and a line in the index if it has none. An empty file is removed.
    pub fn settle(&self, path: &str, origin: &MemoryOrigin, tree: Option<&Path>) -> Result<Option<SaveResult>, Error> {
        if checked(path).is_err() {
            return Ok(None); // an index, a log, or no memory at all
        }
        let _held = self.lock()?;
        let file = self.root().read(path, LIMIT)?;
        if file.bytes.trim_ascii().is_empty() {
            self.root().remove(path)?;
            return self.indexed(path, index::take).map(Some);
        }
        let bytes = match std::str::from_utf8(&file.bytes) {
            Ok(text) => {
                let named = tree.map(|tree| drift::record(text, tree)).unwrap_or_default();
                origin.written_into(&frontmatter::mended(text), &named).into_bytes()
            }
            Err(_) => file.bytes,
        };
        self.root().replace_unchanged(path, &bytes, &file.stamp, MODE)?;
        let memory = Memory::parse(path, &bytes, None, bytes.len() as u64);
        let hook = memory.description.as_deref().unwrap_or_default();
        let saved = self.indexed(path, |text, target| {
            if index::links(text).iter().any(|link| link.target == target) {
                return text.to_owned();
            }
            index::put(text, &memory.name, target, hook)
        })?;
        Ok(Some(saved))
    }

    /// Fails if another memory says the same. The lock is held.
    pub(crate) fn nothing_like(&self, body: &str) -> Result<(), Error> {
        self.known_by(body)?.map_or(Ok(()), |by| Err(Error::Known { by }))
    }

    /// The memory that says the same as a text.
    pub fn known_by(&self, body: &str) -> Result<Option<String>, Error> {
        let said = by_what_it_says(body);
        if said.is_empty() {
            return Ok(None);
        }
        let same =
            |path: &String| Memory::read(self.root(), path).is_ok_and(|memory| by_what_it_says(&memory.body) == said);
        Ok(scan::paths(self.root())?.into_iter().find(same))
    }
}

/// A text normalised to its words.
pub(crate) fn by_what_it_says(body: &str) -> String {
    body.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}
