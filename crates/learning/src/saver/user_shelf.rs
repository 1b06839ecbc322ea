//! The user's memories that hold in every project, as somebody sees them who saves in one: what they say needs no copy there.
//! Nothing is changed on the shelf here.

use std::path::{Path, PathBuf};

use memory::Memory;
use memory::store::Store;
use memory::tombstones::Tombstones;
use tools::Subject;

use super::{SavingPlace, is_index};

/// The user's memories that hold in every project.
pub(super) struct UserShelf {
    /// None where there are none yet.
    store: Option<Store>,
    directory: PathBuf,
    tombstones: Tombstones,
}

impl UserShelf {
    /// The shelf at a place, which need not exist.
    pub(super) fn at(place: &SavingPlace) -> Self {
        let directory = files::real(&place.directory).unwrap_or_else(|_| place.directory.clone());
        let store = Store::open(&directory, place.indexing).ok();
        Self { store, directory, tombstones: place.changes.tombstones() }
    }

    /// Memories that the user removed from it.
    pub(super) fn tombstones(&self) -> &Tombstones {
        &self.tombstones
    }

    /// The memory on it that says the same as a text, by its whole path.
    pub(super) fn says(&self, body: &str) -> Option<String> {
        let known = self.store.as_ref()?.known_by(body).ok()??;
        Some(self.directory.join(known).display().to_string())
    }

    /// The whole path of a memory on it that a call means.
    pub(super) fn place(&self, subject: &Subject) -> Option<String> {
        let Subject::Path { real, .. } = subject else { return None };
        let whole = real.to_str()?.to_owned();
        self.read(&whole).map(|_| whole)
    }

    /// A memory on it, by its whole path.
    pub(super) fn read(&self, whole: &str) -> Option<Memory> {
        let path = Path::new(whole).strip_prefix(&self.directory).ok()?.to_str()?;
        let is_memory = !is_index(path) && memory::store::checked(path).is_ok();
        let store = self.store.as_ref().filter(|_| is_memory)?;
        Memory::read(store.root(), path).ok()
    }
}

#[cfg(test)]
mod tests;
