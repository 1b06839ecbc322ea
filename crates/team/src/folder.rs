//! The team's folder on this machine: listing what can be shared, and writing what others changed.
//!
//! Only regular files with a name that is a [`EntryKey`], of text, within the limit, and free of secrets are shared;
//! the rest is left where it is and reported. A file that was edited here since it was listed is never overwritten.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use files::{EntryKind, Glance, Root, Stamp};
use memory::secrets::Remarks;
use parking_lot::Mutex;

use crate::checksum::{self, Checksums};
use crate::error::Error;
use crate::key::EntryKey;
use crate::protocol::ENTRY_BYTES;

/// Mode of files that are written.
const MODE: u32 = 0o600;

/// A file in the folder that identifies it. It is not shared.
const MARK: &str = ".mark";
/// The longest mark that is read.
const MARK_BYTES: u64 = 100;

/// The rule that finds a secret in a text. Neither a remark in the text nor the file's name exempts it.
pub fn secret(text: &str) -> Option<&'static str> {
    memory::secrets::scan(text.as_bytes(), "", Remarks::Ignored).first().map(|finding| finding.rule)
}

/// Key and checksum of a file that can be shared, or the reason it cannot.
type Share = Result<(EntryKey, String), String>;

/// A folder.
#[derive(Debug)]
pub struct Folder {
    root: Root,
    /// Results of the last look by name, each with a glance at the file: a file that has not changed is not read again.
    known: Mutex<BTreeMap<String, (Glance, Share)>>,
}

/// Content of the folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// The files that can be shared.
    pub files: Checksums,
    /// Files, links and unlistable folders that cannot be shared, with the reasons.
    pub left: BTreeMap<String, String>,
}

impl Listing {
    /// True if the file of this name, or a folder it would be in, exists but cannot be shared: then nothing is known
    /// about it.
    pub fn hides(&self, key: &EntryKey) -> bool {
        let name = key.as_str();
        let folders = name.match_indices('/').map(|(at, _)| &name[..at]);
        !self.left.is_empty() && folders.chain([name]).any(|name| self.left.contains_key(name))
    }
}

impl Folder {
    /// Opens the folder and creates it if it is missing. A link is refused: its target is not the team's.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Error::Invalid(format!("{} is not a folder", path.display())));
        };
        let parent = Root::create(parent)?;
        let root = parent.create_sub(name)?;
        let is_folder = |entry: &files::DirectoryEntry| entry.name == name && entry.kind == EntryKind::Directory;
        if !parent.list()?.iter().any(is_folder) {
            return Err(Error::Invalid(format!("{} is a link, and what it leads to is not shared", path.display())));
        }
        Ok(Self { root, known: Mutex::default() })
    }

    /// Opens it again, since it may have been removed and recreated; what is known of its files stays known.
    pub(crate) fn reopen(&mut self, path: &Path) -> Result<(), Error> {
        self.root = Self::open(path)?.root;
        Ok(())
    }

    /// The mark that tells it from any other folder of this name, earlier or later.
    pub(crate) fn mark(&self) -> Option<String> {
        String::from_utf8(self.root.read(MARK, MARK_BYTES).ok()?.bytes).ok()
    }

    /// Gives it a new mark.
    pub(crate) fn make_mark(&self) -> Result<String, Error> {
        let mark = uuid::Uuid::new_v4().to_string();
        self.root.replace(MARK, mark.as_bytes(), MODE)?;
        Ok(mark)
    }

    /// Syncs these files and their names to disk.
    pub(crate) fn flush(&self, keys: &BTreeSet<EntryKey>) -> Result<(), Error> {
        keys.iter().try_for_each(|key| self.root.flush_file(key.as_str()))?;
        let folder_of = |key: &'_ EntryKey| key.as_str().rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        let folders: BTreeSet<String> = keys.iter().map(folder_of).collect();
        folders.into_iter().try_for_each(|folder| Ok(self.root.flush(folder)?))
    }

    /// Lists it, and reads every file.
    pub fn look(&self) -> Result<Listing, Error> {
        self.look_since(None)
    }

    /// Lists it. A file that looks unchanged is not read again, if it was last changed well before `written`, a file
    /// that was written before this look: otherwise it may have changed since without looking different.
    pub fn look_since(&self, written: Option<&Glance>) -> Result<Listing, Error> {
        let mut listing = Listing::default();
        let mut known = self.known.lock();
        let mut before = std::mem::take(&mut *known);
        let mut folded: BTreeSet<String> = BTreeSet::new();
        let walk = self.root.walk_whole(is_visible)?;
        for folder in walk.unlisted {
            listing.left.insert(name(&folder), "it cannot be listed".to_owned());
        }
        for one in walk.found {
            let name = name(&one.path);
            if name.split('/').any(|part| part.starts_with('.')) {
                continue;
            }
            let glance = files::glance(self.root.path().join(&one.path));
            if glance.is_none() && one.kind == EntryKind::File {
                continue; // removed since it was listed
            }
            let same = before.remove(&name).filter(|(then, _)| Some(*then) == glance).map(|(_, file)| file);
            let file = same.unwrap_or_else(|| self.file(&name, &one.kind));
            if let Some(glance) = glance
                && written.is_some_and(|written| glance.is_long_before(written))
            {
                known.insert(name.clone(), (glance, file.clone()));
            }
            match file {
                Ok((key, _)) if !folded.insert(key.folded()) => {
                    drop(
                        listing
                            .left
                            .insert(name, "another file's name differs only in the form of its letters".to_owned()),
                    );
                }
                Ok((key, checksum)) => drop(listing.files.insert(key, checksum)),
                Err(why) => drop(listing.left.insert(name, why)),
            }
        }
        Ok(listing)
    }

    fn file(&self, name: &str, kind: &EntryKind) -> Share {
        if *kind != EntryKind::File {
            return Err("it is not a regular file".to_owned());
        }
        let key: EntryKey = name.parse().map_err(|error: crate::BadKey| error.why.to_owned())?;
        let snapshot = self.root.read(name, ENTRY_BYTES as u64).map_err(|error| error.to_string())?;
        let text = String::from_utf8(snapshot.bytes).map_err(|_| "it is not text".to_owned())?;
        if text.contains('\0') {
            return Err("it holds a NUL byte".to_owned());
        }
        if let Some(rule) = secret(&text) {
            return Err(format!("it holds a secret ({rule})"));
        }
        Ok((key, checksum::of(&text)))
    }

    /// The text of a file, if it is the one of this checksum.
    pub fn text(&self, key: &EntryKey, checksum: &str) -> Option<String> {
        self.now(key).ok().flatten().map(|(text, _)| text).filter(|text| checksum::of(text) == checksum)
    }

    /// Text and stamp of a file; none if it is missing.
    fn now(&self, key: &EntryKey) -> Result<Option<(String, Stamp)>, Error> {
        match self.root.read(key.as_str(), ENTRY_BYTES as u64) {
            Ok(now) => Ok(String::from_utf8(now.bytes).ok().map(|text| (text, now.stamp))),
            Err(files::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// A glance at every file: a different one means that something changed.
    pub fn glances(&self) -> Result<BTreeMap<PathBuf, Glance>, Error> {
        let regular = self.root.walk(is_visible)?.into_iter().filter(|one| one.kind == EntryKind::File);
        let glance = |one: files::WalkEntry| Some((one.path.clone(), files::glance(self.root.path().join(&one.path))?));
        Ok(regular.filter_map(glance).collect())
    }

    /// Writes somebody else's text, unless the file does not have the `expected` checksum. Returns whether it did. The
    /// file gets the time its text was written, if known: the age of a memory matters to its readers.
    pub fn take(
        &self,
        key: &EntryKey,
        text: &str,
        written: Option<jiff::Timestamp>,
        expected: Option<&str>,
    ) -> Result<bool, Error> {
        let put = match (expected, self.now(key)?) {
            (Some(expected), Some((now, stamp))) if checksum::of(&now) == expected => {
                self.root.replace_unchanged(key.as_str(), text.as_bytes(), &stamp, MODE)
            }
            (None, None) => self.root.create_new(key.as_str(), text.as_bytes(), MODE),
            _ => return Ok(false),
        };
        match put {
            Ok(()) => {
                if let Some(written) = written {
                    // The text is what counts: a file that cannot be dated is as old as it looks.
                    let _ = self.root.date(key.as_str(), written.into());
                }
                Ok(true)
            }
            Err(files::Error::Changed { .. } | files::Error::Exists { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a file that somebody else deleted, unless it does not have the `expected` checksum. Returns whether it
    /// did.
    pub fn remove(&self, key: &EntryKey, expected: &str) -> Result<bool, Error> {
        match self.now(key)? {
            Some((now, _)) if checksum::of(&now) == expected => {}
            _ => return Ok(false),
        }
        match self.root.remove(key.as_str()) {
            Ok(()) => Ok(true),
            Err(files::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

fn is_visible(path: &Path) -> bool {
    path.file_name().is_some_and(|name| !name.as_encoded_bytes().starts_with(b"."))
}

/// A path in the form of a key.
fn name(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
