//! `cairn memory import`: what other tools kept.

use std::path::{Path, PathBuf};

use memory::import::{ImportSource, apply, plan};
use memory::remember::MemoryOrigin;

use super::saving::report;
use crate::memory_shelves::CommandShelves;
use crate::out::{data, talk};

/// The most that is read of a document.
const LIMIT: u64 = 1_000_000;

/// The name under which what is imported is kept.
const IMPORT: &str = "import";

/// Shows what would be imported, or does it.
pub(super) fn import(shelves: &CommandShelves, from: &[PathBuf], do_it: bool) -> anyhow::Result<()> {
    let mut found = Vec::new();
    for path in from {
        found.extend(ImportInput::at(&shelves.place.directory.join(path))?);
    }
    let sources: Vec<ImportSource<'_>> = found.iter().map(ImportInput::source).collect();
    let directory = shelves.main().to_owned();
    let plan = plan(&shelves.store(&directory)?, &sources)?;
    for skipped in &plan.skipped {
        talk!("not imported: {skipped}");
    }
    if !do_it {
        data!("{}", plan.diff())?;
        talk!("{} memories would be added; --apply adds them.", plan.additions());
        return Ok(());
    }
    let origin = MemoryOrigin { agent: Some(IMPORT.to_owned()), at: Some(shelves.now()), ..MemoryOrigin::default() };
    let tree = shelves.place.directory.as_path();
    let imported = shelves.keeping(&directory, IMPORT, |store| Ok(apply(store, &plan, &origin, Some(tree))?))?;
    imported.saved.iter().for_each(|saved| report("saved", saved));
    for refused in &imported.refused {
        talk!("not imported: {refused}");
    }
    Ok(())
}

/// Something to import, read.
enum ImportInput {
    Directory(files::Root),
    Document { path: PathBuf, text: String },
    CursorRule { path: PathBuf, text: String },
}

impl ImportInput {
    /// Reads the sources at a path: Cursor rules by their ending, other folders as memories, other files as documents.
    fn at(path: &Path) -> anyhow::Result<Vec<Self>> {
        let is_rule = |path: &Path| path.extension().is_some_and(|extension| extension == "mdc");
        if !path.is_dir() {
            let text = String::from_utf8_lossy(&files::read(path, LIMIT)?.bytes).into_owned();
            let path = path.to_owned();
            return Ok(vec![if is_rule(&path) {
                Self::CursorRule { path, text }
            } else {
                Self::Document { path, text }
            }]);
        }
        let rules: Vec<PathBuf> =
            files::list(path)?.iter().map(|entry| path.join(&entry.name)).filter(|path| is_rule(path)).collect();
        if rules.is_empty() {
            return Ok(vec![Self::Directory(files::Root::open(path)?)]);
        }
        let mut found = Vec::new();
        for rule in rules {
            found.extend(Self::at(&rule)?);
        }
        Ok(found)
    }

    fn source(&self) -> ImportSource<'_> {
        match self {
            Self::Directory(root) => ImportSource::Directory(root),
            Self::Document { path, text } => ImportSource::Document { path, text },
            Self::CursorRule { path, text } => ImportSource::CursorRule { path, text },
        }
    }
}
