//! Decisions that follow from the rules in the session's mode.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::protected_paths::guarded;
use super::{RuleVerdict, Rules, shell};
use crate::confinement::SandboxExit;
use crate::subject::{Access, Subject};

/// Permission mode: how much may happen without asking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Reading inside the working directories, including read-only commands; everything else is asked.
    #[default]
    Default,
    /// Also writing and editing files inside the working directories.
    AcceptEdits,
    /// Only reading; everything else is denied.
    Plan,
    /// Everything except what a rule denies or asks about.
    BypassPermissions,
}

impl Mode {
    /// All modes, in the order in which they are offered.
    pub const ALL: [Self; 4] = [Self::Default, Self::AcceptEdits, Self::Plan, Self::BypassPermissions];

    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
            Self::BypassPermissions => "bypassPermissions",
        }
    }
}

/// Decision on a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may run, with these rights.
    Allow(Rights),
    /// The user is to be asked.
    Ask {
        /// The reason.
        why: String,
    },
    /// It may not run.
    Deny {
        /// The reason, as the model is told.
        why: String,
    },
}

impl Decision {
    /// Returns whether the call runs unasked.
    pub fn allows(&self) -> bool {
        matches!(self, Self::Allow(_))
    }
}

/// Rights of an allowed call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rights {
    /// All that the user may do, or the sandbox allows.
    Full,
    /// Reading: it runs because it was judged to do nothing else, and the kernel enforces that if it can.
    ReadOnly(ReadOnlyView),
}

/// View of a read-only command, besides the working directories, the system and programs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadOnlyView {
    /// Hidden paths, wherever they are.
    pub hidden: Vec<PathBuf>,
    /// Visible paths elsewhere.
    pub readable: Vec<PathBuf>,
}

/// Ability of the kernel to confine commands to reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wall {
    /// It cannot, or that is unknown: only fully understood commands count as read-only.
    #[default]
    None,
    /// It can: nothing is written, no connection made and nothing hidden read, whatever the command is.
    Whole,
}

/// Degree to which a command is confined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ConfinementLevel {
    /// Not at all.
    #[default]
    No,
    /// Some promises of the sandbox hold here, not all: commands are asked about as if there were none.
    Partly,
    /// Every promise holds: commands run unasked unless a rule or plan mode says otherwise.
    Wholly,
}

/// Circumstances by which a call is judged.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// The permission mode.
    pub mode: Mode,
    /// The rules in force.
    pub rules: &'a Rules,
    /// The working directories, with symlinks resolved.
    pub directories: &'a [PathBuf],
    /// Directory in which the call would run: paths in commands start from it.
    pub directory: &'a Path,
    /// The directory for `~`.
    pub home: Option<&'a Path>,
    /// Degree to which commands are confined.
    pub confined: ConfinementLevel,
    /// Ability of the kernel to confine commands to reading.
    pub wall: Wall,
    /// Request of the command to run outside the sandbox.
    pub leaves: SandboxExit,
}

/// Decides on one call.
pub fn decide(situation: &Situation<'_>, access: Access, tool: &str, subject: &Subject) -> Decision {
    if let (Access::Changes, Subject::Command(text)) = (access, subject) {
        return shell::decide(situation, tool, text);
    }
    let Situation { mode, rules, directories, .. } = *situation;
    let verdict = rules.decide(tool, subject);
    if let RuleVerdict::Deny(rule) = verdict {
        return Decision::Deny { why: format!("{tool} is denied here by the permission rule {rule}.") };
    }
    if access == Access::Asks {
        return Decision::Ask { why: format!("{tool} is for you to decide") };
    }
    if mode == Mode::Plan && access == Access::Changes {
        let why = format!("{tool} may make changes, and plan mode only reads. Look, and make a plan.");
        return Decision::Deny { why };
    }
    if let RuleVerdict::Ask(rule) = verdict {
        return Decision::Ask { why: format!("the permission rule {rule} says to ask") };
    }
    if mode == Mode::BypassPermissions {
        return Decision::Allow(Rights::Full);
    }
    if let (Access::Changes, Subject::Path { named, real }) = (access, subject)
        && (guarded(named, directories) || guarded(real, directories))
        && !rules.name_guarded(tool, named, real)
    {
        return Decision::Ask { why: format!("{} decides what may run here", real.display()) };
    }
    if verdict == RuleVerdict::Allow {
        return Decision::Allow(Rights::Full);
    }
    match (access, subject) {
        (Access::ReadOnly, Subject::Path { real, .. }) if !inside(real, directories) => {
            Decision::Ask { why: format!("{} is outside the working directories", real.display()) }
        }
        (Access::ReadOnly | Access::Session, _) => Decision::Allow(Rights::Full),
        (Access::Changes, Subject::Path { real, .. }) if mode == Mode::AcceptEdits => {
            if inside(real, directories) {
                Decision::Allow(Rights::Full)
            } else {
                Decision::Ask { why: format!("{} is outside the working directories", real.display()) }
            }
        }
        (Access::Network, Subject::Name(name)) => {
            let host = name.strip_prefix("domain:").unwrap_or(name);
            Decision::Ask { why: format!("{tool} would contact {host}") }
        }
        (Access::Network, _) => Decision::Ask { why: format!("{tool} would contact another machine") },
        (Access::Changes | Access::Asks, _) => Decision::Ask { why: format!("{tool} may make changes") },
    }
}

pub(super) fn inside(path: &Path, directories: &[PathBuf]) -> bool {
    directories.iter().any(|directory| path.starts_with(directory))
}
