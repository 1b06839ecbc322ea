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

use transcript::tool_names;

use crate::permission::{ConfinementLevel, Rule, RuleVerdict, Rules, repository_elsewhere};
use crate::subject::Subject;

mod notes;
mod sandbox_status;

pub use crate::confinement::{Base, Confinement, MadePath, Network, SandboxExit, Sockets, Strength, tool_folders};
pub(crate) use notes::note;
pub use sandbox_status::SandboxStatus;
pub(crate) use sandbox_status::trial;

/// The sandbox of a session: which commands run in it, and how well it holds.
#[derive(Debug, Clone)]
pub struct Sandbox {
    confinement: Confinement,
    standing: SandboxStatus,
    outside: Rules,
    /// Why commands in it are asked about though it holds.
    asked: Vec<String>,
    leaving: SandboxExits,
    missing: WithoutSandbox,
}

/// Whether a command may run outside because it asks to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SandboxExits {
    Asked,
    Never,
}

/// What becomes of commands where there is no sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WithoutSandbox {
    RunWithout,
    Refused,
}

impl Sandbox {
    /// Commands run in it as the system allows.
    pub fn new(mut confinement: Confinement, standing: SandboxStatus) -> Self {
        confinement.strength = standing.strength();
        // Links count as they are now. One that is made later, in a directory that a command may write to, does not.
        for path in confinement.writable.iter_mut().chain(&mut confinement.read_only) {
            *path = files::real(&*path).unwrap_or_else(|_| path.clone());
        }
        let (leaving, missing) = (SandboxExits::Asked, WithoutSandbox::RunWithout);
        Self { confinement, standing, outside: Rules::default(), asked: Vec::new(), leaving, missing }
    }

    /// For an agent that may read and write what it was given, and nothing else: there is no way out of it, and where there
    /// is none no command runs.
    pub fn restricted(readable: Vec<PathBuf>, writable: Vec<PathBuf>, standing: SandboxStatus) -> Self {
        Self::new(Confinement::restricted(readable, writable), standing).closed().required()
    }

    /// With what git keeps elsewhere of the worktrees that commands work in, to read.
    #[must_use]
    pub fn with_repositories(mut self) -> Self {
        let Confinement { writable, readable, .. } = &mut self.confinement;
        readable.extend(writable.iter().filter_map(|directory| repository_elsewhere(directory)));
        self
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
        self.leaving = SandboxExits::Never;
        self
    }

    /// Where there is none, no command runs.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.missing = WithoutSandbox::Refused;
        self
    }

    /// How well it holds.
    pub fn standing(&self) -> &SandboxStatus {
        &self.standing
    }

    /// How a command is confined, `leaves` being its own wish to run outside; an error is why it may not run at all.
    pub(crate) fn confinement(&self, command: &str, leaves: SandboxExit) -> Result<Option<&Confinement>, String> {
        let subject = Subject::Command(command.to_owned());
        let leaves = leaves == SandboxExit::Yes && self.leaving == SandboxExits::Asked;
        if leaves || self.outside.decide(tool_names::BASH, &subject) == RuleVerdict::Allow {
            return Ok(None);
        }
        match &self.standing {
            SandboxStatus::No { why } if self.missing == WithoutSandbox::Refused => {
                Err(format!("Commands run in a sandbox or not at all, and there is none: {why}."))
            }
            SandboxStatus::No { .. } => Ok(None),
            SandboxStatus::Wholly | SandboxStatus::Partly { .. } => Ok(Some(&self.confinement)),
        }
    }

    /// How far a command is kept from doing harm, as permissions are decided by it.
    pub fn confined(&self, command: &str, leaves: SandboxExit) -> ConfinementLevel {
        match self.confinement(command, leaves) {
            Ok(Some(_)) if self.weaknesses().next().is_some() => ConfinementLevel::Partly,
            Ok(Some(_)) => self.standing.confined(),
            Ok(None) | Err(_) => ConfinementLevel::No,
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
