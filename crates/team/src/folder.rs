//! The team's folder on this machine: what can be shared of it, and putting in what others wrote.
//!
//! Only regular files with a name that is a [`Key`], of text, within the limit, and free of secrets are shared; the rest
//! is left where it is and told. What was edited here since it was looked at is never written over.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use files::{EntryKind, Glance, Root, Stamp};
use memory::secrets::Remarks;

use crate::checksum;
use crate::error::Error;
use crate::key::Key;
use crate::protocol::ENTRY_BYTES;
use crate::sync::Checksums;

/// The mode of files that are written.
const MODE: u32 = 0o600;

/// The rule that finds a secret in a text. No remark in the text excuses it, and no name.
pub fn secret(text: &str) -> Option<&'static str> {
    memory::secrets::scan(text.as_bytes(), "", Remarks::Ignored).first().map(|finding| finding.rule)
}

/// What is shared of a file, or why nothing is.
type Looked = Result<(Key, File), String>;

/// A folder.
#[derive(Debug)]
pub struct Folder {
    root: Root,
    /// What was found under a name, and the glance at it then: what has not changed is not read again.
    known: Mutex<BTreeMap<String, (Glance, Looked)>>,
}

/// What was found in it.
#[derive(Debug, Default)]
pub struct Found {
    /// What can be shared.
    pub files: BTreeMap<Key, File>,
    /// What cannot, and why.
    pub left: BTreeMap<String, String>,
}

/// A file that can be shared.
#[derive(Debug, Clone)]
pub struct File {
    /// Its checksum.
    pub checksum: String,
    stamp: Stamp,
}

impl Found {
    /// The checksums of what can be shared.
    pub fn checksums(&self) -> Checksums {
        self.files.iter().map(|(key, file)| (key.clone(), file.checksum.clone())).collect()
    }
}

impl Folder {
    /// Opens the folder, made where it is missing. One that is a link is refused: what it leads to is not the team's.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Error::Invalid(format!("{} is no folder", path.display())));
        };
        let parent = Root::create(parent)?;
        let root = parent.create_sub(name)?;
        let is_folder = |entry: &files::Entry| entry.name == name && entry.kind == EntryKind::Directory;
        if !parent.list()?.iter().any(is_folder) {
            return Err(Error::Invalid(format!("{} is a link, and what it leads to is not shared", path.display())));
        }
        Ok(Self { root, known: Mutex::default() })
    }

    /// Looks through it, and reads every file.
    pub fn look(&self) -> Result<Found, Error> {
        self.look_since(None)
    }

    /// Looks through it. A file that looks as it did the last time is not read again, if it was last changed well before
    /// `written`, a file that was written before this look: else it may have been changed since without looking so.
    pub fn look_since(&self, written: Option<&Glance>) -> Result<Found, Error> {
        let mut found = Found::default();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *known);
        let visible = |path: &Path| path.file_name().is_some_and(|name| !name.as_encoded_bytes().starts_with(b"."));
        let mut folded: BTreeSet<String> = BTreeSet::new();
        for one in self.root.walk(visible)? {
            let name = one.path.to_string_lossy().into_owned();
            if name.split('/').any(|part| part.starts_with('.')) {
                continue;
            }
            let glance = files::glance(self.root.path().join(&one.path));
            let same = before.remove(&name).filter(|(then, _)| Some(*then) == glance).map(|(_, file)| file);
            let file = same.unwrap_or_else(|| self.file(&name, &one.kind));
            if let Some(glance) = glance
                && written.is_some_and(|written| glance.is_long_before(written))
            {
                known.insert(name.clone(), (glance, file.clone()));
            }
            match file {
                Ok((key, _)) if !folded.insert(key.folded()) => {
                    drop(found.left.insert(name, "another file has this name in other letters".to_owned()));
                }
                Ok((key, file)) => drop(found.files.insert(key, file)),
                Err(why) => drop(found.left.insert(name, why)),
            }
        }
        Ok(found)
    }

    fn file(&self, name: &str, kind: &EntryKind) -> Looked {
        if *kind != EntryKind::File {
            return Err("it is no regular file".to_owned());
        }
        let key: Key = name.parse().map_err(|error: crate::BadKey| error.why.to_owned())?;
        let snapshot = self.root.read(name, ENTRY_BYTES as u64).map_err(|error| error.to_string())?;
        let text = String::from_utf8(snapshot.bytes).map_err(|_| "it is not text".to_owned())?;
        if let Some(rule) = secret(&text) {
            return Err(format!("it holds a secret ({rule})"));
        }
        let checksum = checksum::of(&text);
        Ok((key, File { checksum, stamp: snapshot.stamp }))
    }

    /// The text of a file that was found, unless it was changed since.
    pub fn text(&self, key: &Key, found: &Found) -> Option<String> {
        let file = found.files.get(key)?;
        let snapshot = self.root.read(key.as_str(), ENTRY_BYTES as u64).ok()?;
        let is_same = snapshot.stamp.same_content(&file.stamp);
        String::from_utf8(snapshot.bytes).ok().filter(|_| is_same)
    }

    /// A glance at every file: another means that something was changed.
    pub fn glances(&self) -> Result<BTreeMap<PathBuf, Glance>, Error> {
        let visible = |path: &Path| path.file_name().is_some_and(|name| !name.as_encoded_bytes().starts_with(b"."));
        let regular = self.root.walk(visible)?.into_iter().filter(|one| one.kind == EntryKind::File);
        let glance = |one: files::Found| Some((one.path.clone(), files::glance(self.root.path().join(&one.path))?));
        Ok(regular.filter_map(glance).collect())
    }

    /// Writes what somebody else wrote, unless the file was changed here since it was looked at. Says whether it did. The
    /// file gets the time it was written at, where that is known: how old a memory is matters to who reads it.
    pub fn take(&self, key: &Key, text: &str, written: Option<jiff::Timestamp>, found: &Found) -> Result<bool, Error> {
        let put = match found.files.get(key) {
            Some(file) => self.root.replace_unchanged(key.as_str(), text.as_bytes(), &file.stamp, MODE),
            None => self.root.create_new(key.as_str(), text.as_bytes(), MODE),
        };
        match put {
            Ok(_) => {
                if let Some(written) = written {
                    self.root.date(key.as_str(), written.into())?;
                }
                Ok(true)
            }
            Err(files::Error::Changed { .. } | files::Error::Exists { .. } | files::Error::NotFound { .. }) => {
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Removes what somebody else deleted, unless the file was changed here since it was looked at. Says whether it did.
    pub fn remove(&self, key: &Key, found: &Found) -> Result<bool, Error> {
        let Some(file) = found.files.get(key) else { return Ok(false) };
        match self.root.read(key.as_str(), ENTRY_BYTES as u64) {
            Ok(now) if now.stamp.same_content(&file.stamp) => {}
            Ok(_) | Err(_) => return Ok(false),
        }
        self.root.remove(key.as_str())?;
        Ok(true)
    }
}
