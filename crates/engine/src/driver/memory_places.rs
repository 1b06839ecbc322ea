//! Memory directories that an agent may write to. Whatever it writes there goes through the saver of memories, also where
//! it was sent out by another agent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use learning::extract::ConversationAuthor;
use learning::saver::{Saver, SavingLimits, SavingPlace};
use memory::changes::Changes;
use memory::store::IndexUpkeep;
use session::{Home, Session};

/// Owner of the memories in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryOwner {
    /// The user.
    Users,
    /// The agent type.
    Agents,
}

/// A memory directory, with that of the memories about the user, which hold in every project.
#[derive(Debug, Clone)]
struct MemoryPlace {
    owner: MemoryOwner,
    own: SavingPlace,
    user: Option<SavingPlace>,
}

/// The memory directories of an agent.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemoryPlaces(Vec<MemoryPlace>);

impl MemoryPlaces {
    /// Sets the directory of an owner's memories, or none.
    pub(crate) fn keep(
        &mut self,
        owner: MemoryOwner,
        directory: Option<&Path>,
        indexing: IndexUpkeep,
        session: &Session,
    ) {
        self.0.retain(|place| place.owner != owner);
        let Some(directory) = directory else { return };
        let home = session.config_home().map(Home::at);
        let changes = match &home {
            Some(home) => home.changes(directory),
            None => Changes::at(session.folder().join("memory-changes")),
        };
        let own = SavingPlace {
            directory: files::real(directory).unwrap_or_else(|_| directory.to_owned()),
            indexing,
            changes,
        };
        let user = home.filter(|_| owner == MemoryOwner::Users).map(|home| SavingPlace::of_user(&home, indexing));
        self.0.push(MemoryPlace { owner, own, user });
    }

    /// Adds those of the agent that sent this one out.
    pub(crate) fn inherit(&mut self, parent: &Self) {
        self.0.extend(parent.0.iter().cloned());
    }

    /// True if a file lies in one of them.
    pub(crate) fn hold(&self, real: &Path) -> bool {
        self.0.iter().any(|place| place.holds(real))
    }

    /// Savers for the directories that these files lie in. Names in memories are looked up below `tree`.
    pub(crate) async fn savers(&self, files: &[&Path], author: ConversationAuthor, tree: PathBuf) -> Vec<Arc<Saver>> {
        let places: Vec<MemoryPlace> =
            self.0.iter().filter(|place| files.iter().any(|file| place.holds(file))).cloned().collect();
        if places.is_empty() {
            return Vec::new();
        }
        let open = move || -> Vec<Arc<Saver>> {
            let author = author.author();
            let saver = |MemoryPlace { own, user, .. }: MemoryPlace| {
                let saver = Saver::new(own, author.clone(), SavingLimits::NONE, &tree).ok()?;
                let saver = match user {
                    Some(user) => saver.with_user(user).ok()?,
                    None => saver,
                };
                Some(Arc::new(saver))
            };
            places.into_iter().filter_map(saver).collect() // where one cannot be opened, writing says why
        };
        tokio::task::spawn_blocking(open).await.unwrap_or_default()
    }
}

impl MemoryPlace {
    fn holds(&self, real: &Path) -> bool {
        [Some(&self.own), self.user.as_ref()].into_iter().flatten().any(|place| real.starts_with(&place.directory))
    }
}
