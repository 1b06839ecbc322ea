//! The folder of a plugin, as far as it is read: bounded, and never past its own border, whatever links are in it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use files::{EntryKind, Root};

use crate::trouble::ExtensionTrouble;

/// Size limit of one file.
const MOST_BYTES: u64 = 200_000;
/// Limit on the files of one kind.
const MOST_FILES: usize = 2_000;
/// The deepest level of folders that is looked at.
const DEPTH: usize = 6;

/// An opened plugin.
pub(super) struct PluginFolder {
    root: Root,
    path: PathBuf,
    seen: BTreeSet<PathBuf>,
    pub(super) troubles: Vec<ExtensionTrouble>,
}

/// A file of a plugin: its path from the root, and its text.
pub(super) struct PluginFile {
    pub(super) relative: PathBuf,
    pub(super) text: String,
}

impl PluginFolder {
    pub(super) fn open(path: &Path) -> Result<Self, ExtensionTrouble> {
        let gone = |error: files::Error| ExtensionTrouble::error(path, 1, format!("{error}; the plugin is left out"));
        let path = files::real(path).map_err(gone)?;
        Ok(Self { root: Root::open(&path).map_err(gone)?, path, seen: BTreeSet::new(), troubles: Vec::new() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn trouble(&mut self, relative: &Path, what: impl Into<String>) {
        self.troubles.push(ExtensionTrouble::error(&self.path.join(relative), 1, what));
    }

    /// The bytes of a file; none if there is none. What cannot be read, or leads out, is told of.
    pub(super) fn bytes(&mut self, relative: &Path) -> Option<Vec<u8>> {
        match self.root.read(relative, MOST_BYTES) {
            Ok(file) => Some(file.bytes),
            Err(files::Error::NotFound { .. }) => None,
            Err(error) => {
                self.trouble(relative, error.to_string());
                None
            }
        }
    }

    /// The text of a file that was not read before.
    pub(super) fn file(&mut self, relative: PathBuf) -> Option<PluginFile> {
        let real = files::real(self.path.join(&relative)).ok()?;
        let bytes = self.bytes(&relative)?;
        self.seen.insert(real).then(|| PluginFile { relative, text: String::from_utf8_lossy(&bytes).into_owned() })
    }

    /// True if there is a folder.
    pub(super) fn has_folder(&self, relative: &Path) -> bool {
        self.root.sub(relative).is_ok()
    }

    /// The names in a folder and whether they are folders, sorted. What leads out of the plugin is left out.
    pub(super) fn names(&self, relative: &Path) -> Vec<(String, EntryKind)> {
        let Ok(listed) = self.root.sub(relative).and_then(|folder| folder.list()) else { return Vec::new() };
        let kind = |name: &str, kind: EntryKind| match kind {
            EntryKind::Link if self.has_folder(&relative.join(name)) => EntryKind::Directory,
            EntryKind::Link => EntryKind::File,
            kind => kind,
        };
        let name = |entry: files::DirectoryEntry| Some((entry.name.into_string().ok()?, entry.kind));
        let mut names: Vec<_> = listed.into_iter().filter_map(name).collect();
        names.retain(|(name, _)| !name.starts_with('.'));
        names.iter_mut().for_each(|(name, of)| *of = kind(name, *of));
        names.sort_by(|one, other| one.0.cmp(&other.0));
        names
    }

    /// The Markdown files that a path names: itself, or all below it, with their names from there as `folder:file`.
    pub(super) fn markdown(&mut self, relative: &Path) -> Vec<(String, PathBuf)> {
        let mut found = Vec::new();
        if self.has_folder(relative) {
            self.below(relative, "", DEPTH, &mut found);
        } else if let Some(stem) = relative.file_stem().and_then(|stem| stem.to_str()) {
            found.push((stem.to_owned(), relative.to_owned()));
        }
        found
    }

    fn below(&self, relative: &Path, prefix: &str, depth: usize, found: &mut Vec<(String, PathBuf)>) {
        for (name, kind) in self.names(relative) {
            let path = relative.join(&name);
            match name.strip_suffix(".md") {
                _ if found.len() >= MOST_FILES => return,
                Some(stem) if kind == EntryKind::File => found.push((format!("{prefix}{stem}"), path)),
                None if kind == EntryKind::Directory && depth > 0 => {
                    self.below(&path, &format!("{prefix}{name}:"), depth - 1, found);
                }
                _ => {}
            }
        }
    }
}

/// A path of the manifest from the root of the plugin.
pub(super) fn below(path: &str) -> PathBuf {
    let path = path.strip_prefix("./").unwrap_or(path).trim_end_matches('/');
    PathBuf::from(if path.is_empty() { "." } else { path })
}
