//! What a confined command can see, change and reach, as data.
//!
//! Nothing here confines: the [guard](crate::guard) does, and [`sandbox`](crate::sandbox) says which commands.

mod folders;
mod looking;
mod made;
pub(crate) mod paths;
mod private;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub(crate) use folders::beside;
pub use folders::tool_folders;
pub use made::MadePath;
use private::private;

/// Where people's homes are, besides the one that is known.
const HOMES: [&str; 2] = ["/home", "/root"];

/// What a command can see, change and reach. Paths are absolute; those that do not exist are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// What it may change.
    #[serde(with = "paths")]
    pub writable: Vec<PathBuf>,
    /// What it may not change all the same, besides guarded paths.
    #[serde(with = "paths")]
    pub read_only: Vec<PathBuf>,
    /// What it does not see. The deeper path counts, here and below.
    #[serde(with = "paths")]
    pub hidden: Vec<PathBuf>,
    /// What it sees of what is hidden.
    #[serde(with = "paths")]
    pub readable: Vec<PathBuf>,
    /// What it does not see, whatever else is said of it.
    #[serde(with = "paths")]
    pub denied: Vec<PathBuf>,
    /// What only root may read, where we are root: hidden as well, but not in what it may see or change.
    #[serde(with = "paths")]
    pub private: Vec<PathBuf>,
    /// What is `/tmp` to it; without one, memory that ends with it.
    #[serde(with = "paths::maybe")]
    pub temporary: Option<PathBuf>,
    /// What it can reach.
    pub network: Network,
    /// Which sockets it may open besides.
    pub sockets: Sockets,
    /// Variables that are kept from it, besides those that look like secrets.
    pub variables: Vec<String>,
    /// By what it is held.
    pub strength: Strength,
    /// What there is before anything is hidden or shown.
    pub base: Base,
}

/// What a confined command sees before anything is hidden or shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Base {
    /// All that there is, read-only, and only processes of its own.
    #[default]
    Everything,
    /// The system's own folders, read-only, and all processes, of which it cannot touch any but its own.
    System,
}

/// What a command can reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// Nothing: it can open no socket but to ask the kernel for the state of the network.
    None,
    /// A loopback of its own.
    #[default]
    Loopback,
    /// All that we reach.
    All,
}

/// Which sockets with a path a command may open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sockets {
    /// None: whoever listens on one is outside.
    #[default]
    None,
    /// All that it sees.
    All,
}

/// By what a command is held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Strength {
    /// Namespaces, Landlock and a filter of system calls.
    #[default]
    Namespaces,
    /// Landlock and the filter: no view of its own, no network of its own.
    Landlock,
}

impl Confinement {
    /// For commands that work in `directories`: of the homes, nothing but these and the tools in `home` is seen.
    pub fn working_in(directories: impl IntoIterator<Item = PathBuf>, home: Option<&Path>) -> Self {
        Self {
            writable: directories.into_iter().collect(),
            hidden: HOMES.iter().map(PathBuf::from).chain(home.map(Path::to_owned)).collect(),
            readable: home.map(tool_folders).unwrap_or_default(),
            ..Self::default()
        }
    }

    /// For an agent that may read and write what it was given, and nothing else of what is the user's.
    pub fn restricted(readable: Vec<PathBuf>, writable: Vec<PathBuf>) -> Self {
        Self { readable, ..Self::working_in(writable, None) }
    }

    /// With all that has to be found out about the system.
    pub(crate) fn here(&self) -> Self {
        Self { private: private().to_vec(), ..self.clone() }
    }

    /// What is private and lies in nothing that was named.
    pub(crate) fn private(&self) -> impl Iterator<Item = &PathBuf> {
        let named = |path: &&PathBuf| self.writable.iter().chain(&self.readable).any(|named| path.starts_with(named));
        self.private.iter().filter(move |path| !named(path))
    }

    /// Why this keeps less than a sandbox should, whatever the system can do.
    pub(crate) fn weakness(&self) -> Option<String> {
        let covers = |directory: &&PathBuf| self.hidden.iter().any(|home| home.starts_with(directory));
        let directory = self.writable.iter().find(covers)?;
        Some(format!("{} is a working directory, and all of the home is in it", directory.display()))
    }
}

/// Whether a command asks to run outside of the sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SandboxExit {
    /// It does not.
    #[default]
    No,
    /// It does.
    Yes,
}
