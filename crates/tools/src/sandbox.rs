//! A sandbox for commands: what they can see, change and reach, whatever they are.
//!
//! Everything is read-only but the working directories and a temporary folder of the session. Of the home directory only
//! working directories, folders with tools and what is named are there at all. There is a loopback and no other network,
//! and no way to a process or a socket outside. Guarded paths inside of working directories cannot be changed where they
//! exist, and are told about where they were made.
//!
//! A [`Confinement`] says it; the [guard](crate::guard) makes it so, before it runs a command, with namespaces, Landlock and
//! a filter of system calls. What the system refuses is found out by trying ([`Standing::find_out`]), and said. Nothing
//! here decides whether a command may run.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::permission::{Confined, Rule, Rules, Verdict, repository_elsewhere};
use crate::tool::Subject;

mod folders;
mod looking;
mod made;
mod notes;
pub(crate) mod paths;
mod private;
mod standing;

pub(crate) use folders::beside;
pub use folders::tool_folders;
pub(crate) use looking::{confinement as looking, find_out as wall};
pub use made::MadePath;
pub(crate) use notes::note;
pub(crate) use private::private;
pub use standing::Standing;

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
        let writable: Vec<PathBuf> = directories.into_iter().collect();
        let repositories = writable.iter().filter_map(|directory| repository_elsewhere(directory));
        Self {
            readable: repositories.chain(home.map(tool_folders).unwrap_or_default()).collect(),
            hidden: HOMES.iter().map(PathBuf::from).chain(home.map(Path::to_owned)).collect(),
            writable,
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
    fn weakness(&self) -> Option<String> {
        let covers = |directory: &&PathBuf| self.hidden.iter().any(|home| home.starts_with(directory));
        let directory = self.writable.iter().find(covers)?;
        Some(format!("{} is a working directory, and all of the home is in it", directory.display()))
    }
}

/// The sandbox of a session: which commands run in it, and how well it holds.
#[derive(Debug, Clone)]
pub struct Sandbox {
    confinement: Confinement,
    standing: Standing,
    outside: Rules,
    /// Why commands in it are asked about though it holds.
    asked: Vec<String>,
    leaving: Leaving,
    missing: Missing,
}

/// Whether a command may run outside because it asks to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    Asked,
    Never,
}

/// What becomes of commands where there is no sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    RunWithout,
    Refused,
}

impl Sandbox {
    /// Commands run in it as the system allows.
    pub fn new(mut confinement: Confinement, standing: Standing) -> Self {
        confinement.strength = standing.strength();
        // Links count as they are now. One that is made later, in a directory that a command may write to, does not.
        for path in confinement.writable.iter_mut().chain(&mut confinement.read_only) {
            *path = files::real(&*path).unwrap_or_else(|_| path.clone());
        }
        let (leaving, missing) = (Leaving::Asked, Missing::RunWithout);
        Self { confinement, standing, outside: Rules::default(), asked: Vec::new(), leaving, missing }
    }

    /// For an agent that may read and write what it was given, and nothing else: there is no way out of it, and where there
    /// is none no command runs.
    pub fn restricted(readable: Vec<PathBuf>, writable: Vec<PathBuf>, standing: Standing) -> Self {
        Self::new(Confinement::restricted(readable, writable), standing).closed().required()
    }

    /// For who works in a worktree, and not in the directory that it is a copy of.
    #[must_use]
    pub fn in_worktree(mut self, worktree: &Path, directory: &Path) -> Self {
        let [worktree, directory] = [worktree, directory].map(|path| files::real(path).unwrap_or_else(|_| path.into()));
        let Confinement { writable, readable, .. } = &mut self.confinement;
        writable.retain(|path| *path != directory);
        readable.extend(repository_elsewhere(&worktree));
        writable.push(worktree);
        self
    }

    /// Commands that these rules cover run outside of it.
    #[must_use]
    pub fn with_outside(mut self, allow: Vec<Rule>) -> Self {
        self.outside = Rules { allow, ..Rules::default() };
        self
    }

    /// Commands in it are asked about like others, and why.
    #[must_use]
    pub fn asked(mut self, why: impl Into<String>) -> Self {
        self.asked.push(why.into());
        self
    }

    /// No command runs outside because it asks to.
    #[must_use]
    pub fn closed(mut self) -> Self {
        self.leaving = Leaving::Never;
        self
    }

    /// Where there is none, no command runs.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.missing = Missing::Refused;
        self
    }

    /// How well it holds.
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// How a command is confined, `leaves` being its own wish to run outside; an error is why it may not run at all.
    pub(crate) fn confinement(&self, command: &str, leaves: Leaves) -> Result<Option<&Confinement>, String> {
        let subject = Subject::Command(command.to_owned());
        let leaves = leaves == Leaves::Yes && self.leaving == Leaving::Asked;
        if leaves || self.outside.decide("Bash", &subject) == Verdict::Allow {
            return Ok(None);
        }
        match &self.standing {
            Standing::No { why } if self.missing == Missing::Refused => {
                Err(format!("Commands run in a sandbox or not at all, and there is none: {why}."))
            }
            Standing::No { .. } => Ok(None),
            Standing::Wholly | Standing::Partly { .. } => Ok(Some(&self.confinement)),
        }
    }

    /// How far a command is kept from doing harm, as permissions are decided by it.
    pub fn confined(&self, command: &str, leaves: Leaves) -> Confined {
        match self.confinement(command, leaves) {
            Ok(Some(_)) if self.weaknesses().next().is_some() => Confined::Partly,
            Ok(Some(_)) => self.standing.confined(),
            Ok(None) | Err(_) => Confined::No,
        }
    }

    /// What holds and what does not, for people.
    pub fn describe(&self) -> String {
        let weaknesses = self.weaknesses().map(|why| format!("  - commands are asked about: {why}\n"));
        weaknesses.fold(self.standing.describe(), |text, line| text + &line)
    }

    fn weaknesses(&self) -> impl Iterator<Item = String> {
        self.asked.iter().cloned().chain(self.confinement.weakness())
    }
}

/// Whether a command asks to run outside of the sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Leaves {
    /// It does not.
    #[default]
    No,
    /// It does.
    Yes,
}
