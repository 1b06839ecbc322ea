//! A sandbox for commands: limits on what they can see, change and reach, whatever they are.
//!
//! Everything is read-only except the working directories and a temporary folder of the session. Of the home directory
//! only working directories, tool folders and named paths are visible at all. There is a loopback and no other network,
//! and no way to a process or a socket outside. Existing guarded paths inside working directories cannot be changed,
//! and new ones are reported.
//!
//! A [`Confinement`] describes it; the [guard](crate::guard) enforces it before it runs a command, with namespaces,
//! Landlock and a system call filter. What the system refuses is found out by trying ([`SandboxStatus::find_out`]), and
//! reported. Nothing here decides whether a command may run.

use std::path::{Path, PathBuf};

use transcript::tool_names;

use crate::permission::{ConfinementLevel, Rule, RuleVerdict, Rules, repository_elsewhere};
use crate::subject::Subject;

mod sandbox_notes;
mod sandbox_status;

pub use crate::confinement::{Base, Confinement, MadePath, Network, SandboxExit, Sockets, Strength, tool_folders};
pub(crate) use sandbox_notes::note;
pub use sandbox_status::SandboxStatus;
pub(crate) use sandbox_status::trial;

/// The sandbox of a session: the commands it covers, and its status.
#[derive(Debug, Clone)]
pub struct Sandbox {
    confinement: Confinement,
    status: SandboxStatus,
    outside: Rules,
    /// Reasons why commands in it are asked about even though it holds.
    ask_reasons: Vec<String>,
    leaving: SandboxExits,
    missing: WithoutSandbox,
}

/// Handling of commands that ask to run outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SandboxExits {
    Ask,
    Never,
}

/// Handling of commands if there is no sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WithoutSandbox {
    RunWithout,
    Refused,
}

impl Sandbox {
    /// A sandbox as strong as the system allows.
    pub fn new(mut confinement: Confinement, status: SandboxStatus) -> Self {
        confinement.strength = status.strength();
        // Links count as they are now. One that is made later, in a directory that a command may write to, does not.
        for path in confinement.writable.iter_mut().chain(&mut confinement.read_only) {
            *path = files::real(&*path).unwrap_or_else(|_| path.clone());
        }
        let (leaving, missing) = (SandboxExits::Ask, WithoutSandbox::RunWithout);
        Self { confinement, status, outside: Rules::default(), ask_reasons: Vec::new(), leaving, missing }
    }

    /// For an agent that may read and write the given paths, and nothing else: no command can leave it, and if there is
    /// no sandbox, none runs.
    pub fn restricted(readable: Vec<PathBuf>, writable: Vec<PathBuf>, status: SandboxStatus) -> Self {
        Self::new(Confinement::restricted(readable, writable), status).closed().required()
    }

    /// Makes the git folders readable that the worktrees of commands share elsewhere.
    #[must_use]
    pub fn with_repositories(mut self) -> Self {
        let Confinement { writable, readable, .. } = &mut self.confinement;
        readable.extend(writable.iter().filter_map(|directory| repository_elsewhere(directory)));
        self
    }

    /// For an agent that works in a worktree, and not in the directory that it copies.
    #[must_use]
    pub fn in_worktree(mut self, worktree: &Path, directory: &Path) -> Self {
        let [worktree, directory] = [worktree, directory].map(|path| files::real(path).unwrap_or_else(|_| path.into()));
        let Confinement { writable, readable, .. } = &mut self.confinement;
        writable.retain(|path| *path != directory);
        readable.extend(repository_elsewhere(&worktree));
        writable.push(worktree);
        self
    }

    /// Runs commands that these rules cover outside of it.
    #[must_use]
    pub fn with_outside(mut self, allow: Vec<Rule>) -> Self {
        self.outside = Rules { allow, ..Rules::default() };
        self
    }

    /// Makes commands in it subject to permission like others, for a reason.
    #[must_use]
    pub fn ask_because(mut self, why: impl Into<String>) -> Self {
        self.ask_reasons.push(why.into());
        self
    }

    /// Ignores requests of commands to run outside.
    #[must_use]
    pub fn closed(mut self) -> Self {
        self.leaving = SandboxExits::Never;
        self
    }

    /// Lets no command run if there is no sandbox.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.missing = WithoutSandbox::Refused;
        self
    }

    /// Its status on this system.
    pub fn status(&self) -> &SandboxStatus {
        &self.status
    }

    /// Confinement of a command, where `leaves` is its request to run outside; the error is the reason why it may not
    /// run at all.
    pub(crate) fn confinement(&self, command: &str, leaves: SandboxExit) -> Result<Option<&Confinement>, String> {
        let subject = Subject::Command(command.to_owned());
        let leaves = leaves == SandboxExit::Yes && self.leaving == SandboxExits::Ask;
        if leaves || self.outside.decide(tool_names::BASH, &subject) == RuleVerdict::Allow {
            return Ok(None);
        }
        match &self.status {
            SandboxStatus::No { why } if self.missing == WithoutSandbox::Refused => {
                Err(format!("Commands run in a sandbox or not at all, and there is none: {why}."))
            }
            SandboxStatus::No { .. } => Ok(None),
            SandboxStatus::Wholly | SandboxStatus::Partly { .. } => Ok(Some(&self.confinement)),
        }
    }

    /// Degree to which a command is confined, for permission decisions.
    pub fn confined(&self, command: &str, leaves: SandboxExit) -> ConfinementLevel {
        match self.confinement(command, leaves) {
            Ok(Some(_)) if self.weaknesses().next().is_some() => ConfinementLevel::Partly,
            Ok(Some(_)) => self.status.confined(),
            Ok(None) | Err(_) => ConfinementLevel::No,
        }
    }

    /// Description of what holds and what does not, for people.
    pub fn describe(&self) -> String {
        let weaknesses = self.weaknesses().map(|why| format!("  - you are asked about commands: {why}\n"));
        weaknesses.fold(self.status.describe(), |text, line| text + &line)
    }

    fn weaknesses(&self) -> impl Iterator<Item = String> {
        self.ask_reasons.iter().cloned().chain(self.confinement.weakness())
    }
}
