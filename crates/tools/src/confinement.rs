//! Confinement of a command as data: what it can see, change and reach.
//!
//! Nothing here confines: the [guard](crate::guard) does, and [`sandbox`](crate::sandbox) selects the commands.

mod folders;
mod made_paths;
pub(crate) mod paths;
mod private;
mod read_only_view;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub(crate) use folders::folders_behind;
pub use folders::tool_folders;
pub use made_paths::MadePath;
use private::private;

/// Directories with users' homes, besides the known one.
const HOMES: [&str; 2] = ["/home", "/root"];

/// Confinement of a command: what it can see, change and reach. Paths are absolute; those that do not exist are left
/// out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Writable paths.
    #[serde(with = "paths")]
    pub writable: Vec<PathBuf>,
    /// Read-only paths within the writable ones, besides guarded paths.
    #[serde(with = "paths")]
    pub read_only: Vec<PathBuf>,
    /// Hidden paths. The deeper path wins, here and below.
    #[serde(with = "paths")]
    pub hidden: Vec<PathBuf>,
    /// Visible paths within the hidden ones.
    #[serde(with = "paths")]
    pub readable: Vec<PathBuf>,
    /// Paths that are hidden whatever the other fields say.
    #[serde(with = "paths")]
    pub denied: Vec<PathBuf>,
    /// Paths that only root may read, if we are root: hidden as well, except within visible or writable paths.
    #[serde(with = "paths")]
    pub private: Vec<PathBuf>,
    /// Directory that is `/tmp` for it; if `None`, memory that ends with it.
    #[serde(with = "paths::maybe")]
    pub temporary: Option<PathBuf>,
    /// Network access.
    pub network: Network,
    /// Unix sockets it may open.
    pub sockets: Sockets,
    /// Environment variables that are withheld, besides those that look like secrets.
    pub variables: Vec<String>,
    /// Mechanism that enforces it.
    pub strength: Strength,
    /// Starting point, before paths are hidden or shown.
    pub base: Base,
}

/// Starting point of a confined view.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Base {
    /// The whole file system, read-only, and only its own processes.
    #[default]
    Everything,
    /// The system's own folders, read-only, and all processes, of which it can touch only its own.
    System,
}

/// Network access of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// None: the only sockets it can open query the kernel for the state of the network.
    None,
    /// A private loopback.
    #[default]
    Loopback,
    /// Everything that we can reach.
    All,
}

/// Unix sockets that a command may open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sockets {
    /// None: their listeners are outside.
    #[default]
    None,
    /// All that it can see.
    All,
}

/// Mechanism that enforces a confinement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Strength {
    /// Namespaces, Landlock and a system call filter.
    #[default]
    Namespaces,
    /// Landlock and the filter: no private view, no private network.
    Landlock,
}

impl Confinement {
    /// For commands that work in `directories`: of the homes, only these and the tools in `home` are visible.
    pub fn working_in(directories: impl IntoIterator<Item = PathBuf>, home: Option<&Path>) -> Self {
        Self {
            writable: directories.into_iter().collect(),
            hidden: HOMES.iter().map(PathBuf::from).chain(home.map(Path::to_owned)).collect(),
            readable: home.map(tool_folders).unwrap_or_default(),
            ..Self::default()
        }
    }

    /// For an agent that may read and write the given paths, and nothing else of the user's.
    pub fn restricted(readable: Vec<PathBuf>, writable: Vec<PathBuf>) -> Self {
        Self { readable, ..Self::working_in(writable, None) }
    }

    /// Adds the paths that have to be looked up on this system.
    pub(crate) fn here(&self) -> Self {
        Self { private: private().to_vec(), ..self.clone() }
    }

    /// Private paths outside the paths that were named.
    pub(crate) fn private(&self) -> impl Iterator<Item = &PathBuf> {
        let named = |path: &&PathBuf| self.writable.iter().chain(&self.readable).any(|named| path.starts_with(named));
        self.private.iter().filter(move |path| !named(path))
    }

    /// Reason why this protects less than a sandbox should, whatever the system supports.
    pub(crate) fn weakness(&self) -> Option<String> {
        let covers = |directory: &&PathBuf| self.hidden.iter().any(|home| home.starts_with(directory));
        let directory = self.writable.iter().find(covers)?;
        Some(format!("{} is a working directory, and all of the home is in it", directory.display()))
    }
}

/// Request of a command to run outside the sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SandboxExit {
    /// It does not ask.
    #[default]
    No,
    /// It asks.
    Yes,
}
