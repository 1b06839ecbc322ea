//! The directories that a memory command reads and writes: the project's, the user's across projects, or one that is
//! named.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use memory::changes::{Changes, RunHead, USER};
use memory::quoted_sentences::Register;
use memory::store::{IndexUpkeep, Store};
use memory::{Memory, lookup};
use parking_lot::Mutex;

use crate::program_paths::ProgramPaths;
use crate::{memory_setup, trusted_settings};

/// The directories a command works on.
pub(crate) struct CommandShelves {
    pub(crate) place: ProgramPaths,
    /// The first is the one that is written to.
    directories: Vec<PathBuf>,
    indexing: IndexUpkeep,
    world: session::World,
}

/// A memory that was named.
pub(crate) struct NamedMemory {
    pub(crate) directory: PathBuf,
    pub(crate) memory: Memory,
}

impl CommandShelves {
    pub(crate) fn of(place: &ProgramPaths, given: Option<&Path>, of_the_user: bool) -> anyhow::Result<Self> {
        let user = memory::place::user_directory(place.home.path());
        let directories = match (given, of_the_user) {
            (Some(given), _) => vec![memory_setup::directory(place, Some(given))?],
            (None, true) => vec![user],
            (None, false) => vec![memory_setup::directory(place, None)?, user],
        };
        let skips = trusted_settings::settings(place, None)?.skip_index == Some(true);
        let indexing = if skips { IndexUpkeep::Skipped } else { IndexUpkeep::Kept };
        Ok(Self { place: place.clone(), directories, indexing, world: session::World::real() })
    }

    /// The directory that is written to.
    pub(crate) fn main(&self) -> &Path {
        &self.directories[0]
    }

    /// True if both the project's and the user's memories are meant.
    pub(crate) fn has_two(&self) -> bool {
        self.directories.len() > 1
    }

    /// True if a directory is that of the user's memories across projects.
    pub(crate) fn is_the_users(&self, directory: &Path) -> bool {
        directory == self.user()
    }

    /// The directory of the user's memories across projects.
    pub(crate) fn user(&self) -> PathBuf {
        memory::place::user_directory(self.place.home.path())
    }

    pub(crate) fn are_missing(&self) -> bool {
        self.there().next().is_none()
    }

    /// Those that exist.
    pub(crate) fn there(&self) -> impl Iterator<Item = &Path> {
        self.directories.iter().map(PathBuf::as_path).filter(|directory| directory.is_dir())
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.world.now()
    }

    /// The recorded changes of the directory that is written to.
    pub(crate) fn changes(&self) -> Changes {
        self.place.home.changes(self.main())
    }

    /// The register of your words that the memories of a directory quote.
    pub(super) fn register(&self, directory: &Path) -> Register {
        Register::in_folder(self.place.home.changes(directory).folder())
    }

    /// A directory to read from, or to take something back in.
    pub(crate) fn store(&self, directory: &Path) -> anyhow::Result<Store> {
        Ok(Store::create(directory, self.indexing)?)
    }

    /// All memories, the newest first.
    pub(crate) fn all(&self) -> anyhow::Result<Vec<NamedMemory>> {
        let mut all = Vec::new();
        for directory in self.there() {
            let memories = lookup::all(&files::Root::open(directory)?)?;
            all.extend(memories.into_iter().map(|memory| NamedMemory { directory: directory.to_owned(), memory }));
        }
        all.sort_by_key(|meant| std::cmp::Reverse(meant.memory.dated));
        Ok(all)
    }

    /// The one memory that a name means.
    pub(crate) fn find(&self, name: &str) -> anyhow::Result<NamedMemory> {
        let mut all = self.all()?;
        let memories: Vec<Memory> = all.iter().map(|meant| meant.memory.clone()).collect();
        match lookup::find(&memories, name).as_slice() {
            [one] => Ok(all.swap_remove(*one)),
            [] => {
                let places: Vec<String> = self.directories.iter().map(|one| one.display().to_string()).collect();
                anyhow::bail!("there is no memory {name:?} in {}; cairn memory list shows them", places.join(" or "))
            }
            several => {
                let names: Vec<&str> = several.iter().map(|at| memories[*at].path.as_str()).collect();
                anyhow::bail!("{name:?} matches several memories: {}", names.join(", "))
            }
        }
    }

    /// Does something in a directory, and keeps each change before it is made, so that it can be taken back.
    pub(crate) fn keeping<T>(
        &self,
        directory: &Path,
        agent: &str,
        act: impl FnOnce(&Store) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let at = self.now();
        let fresh: String = self.world.fresh_id().to_string().chars().filter(char::is_ascii_alphanumeric).collect();
        let tail = &fresh[fresh.len().saturating_sub(8)..];
        // Names sort by age, also those of commands that follow at once.
        let part = at.subsec_nanosecond() / 1_000;
        let id = format!("{}-{part:06}-{agent}-{tail}", at.strftime("%Y%m%d-%H%M%S"));
        let directory_there = directory.to_owned();
        let head = RunHead {
            agent: agent.to_owned(),
            session: None,
            model: None,
            at: at.to_string(),
            directory: directory_there,
        };
        let recorder = Arc::new(Mutex::new(self.place.home.changes(directory).recorder(id, head)));
        let keeper = Arc::clone(&recorder);
        let store = self.store(directory)?.keeping(move |change| keeper.lock().keep(change));
        let done = act(&store);
        recorder.lock().end()?;
        done
    }

    /// The same for the user's own commands.
    pub(crate) fn as_the_user<T>(
        &self,
        directory: &Path,
        act: impl FnOnce(&Store) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        self.keeping(directory, USER, act)
    }
}
