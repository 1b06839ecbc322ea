//! Notebooks of a project: the tool that edits them is offered only where there are some, since its definition is a part of
//! every request.

use std::path::Path;

use files::EntryKind;

/// The most folders that are looked into.
const MOST_FOLDERS: usize = 100;

/// True if a notebook is in a directory or in one of its folders.
pub(crate) fn has_notebooks(directory: &Path) -> bool {
    let listed = files::list(directory).unwrap_or_default();
    let is_visible = |entry: &&files::DirectoryEntry| !entry.name.to_string_lossy().starts_with('.');
    let folders = listed.iter().filter(|entry| entry.kind == EntryKind::Directory).filter(is_visible);
    let mut folders =
        folders.take(MOST_FOLDERS).map(|folder| files::list(directory.join(&folder.name)).unwrap_or_default());
    listed.iter().any(is_notebook) || folders.any(|inside| inside.iter().any(is_notebook))
}

fn is_notebook(entry: &files::DirectoryEntry) -> bool {
    entry.kind == EntryKind::File && Path::new(&entry.name).extension().is_some_and(|extension| extension == "ipynb")
}
