//! What follows from the rules in the mode the session is in.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::protected_paths::guarded;
use super::{RuleVerdict, Rules, shell};
use crate::confinement::SandboxExit;
use crate::subject::{Access, Subject};

/// How much may happen without asking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Looking inside the working directories, with commands that only look too; everything else is asked.
    #[default]
    Default,
    /// Also writing and editing files inside the working directories.
    AcceptEdits,
    /// Only looking; everything else is denied.
    Plan,
    /// Everything but what a rule denies or asks about.
    BypassPermissions,
}

impl Mode {
    /// All of them, in the order in which they are offered.
    pub const ALL: [Self; 4] = [Self::Default, Self::AcceptEdits, Self::Plan, Self::BypassPermissions];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
            Self::BypassPermissions => "bypassPermissions",
        }
    }
}

/// Whether a call may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may, with these rights.
    Allow(Rights),
    /// The user is to be asked.
    Ask {
        /// Why.
        why: String,
    },
    /// It may not.
    Deny {
        /// Why, as the model is told.
        why: String,
    },
}

impl Decision {
    /// Whether the call runs unasked.
    pub fn allows(&self) -> bool {
        matches!(self, Self::Allow(_))
    }
}

/// What a call that may run is let do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rights {
    /// All that the user may, or the sandbox lets it.
    Full,
    /// To look: it runs because it was judged to do nothing else, and the kernel holds it to that where it can.
    Looking(ReadOnlyView),
}

/// What a command that only looks sees, besides the working directories, the system and programs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadOnlyView {
    /// What it does not see, wherever it lies.
    pub hidden: Vec<PathBuf>,
    /// What it sees of what lies elsewhere.
    pub readable: Vec<PathBuf>,
}

/// Whether the kernel can hold commands to looking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wall {
    /// It cannot, or that is not known: only commands of which every word is known are taken for looking.
    #[default]
    None,
    /// It can: nothing is written, no connection made and nothing hidden read, whatever the command is.
    Whole,
}

/// How far a command is kept from doing harm by where it runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ConfinementLevel {
    /// Not at all.
    #[default]
    No,
    /// Some promises of the sandbox hold here, not all: commands are asked about as if there were none.
    Partly,
    /// Every promise holds: commands run unasked unless a rule or plan mode speaks.
    Wholly,
}

/// What a call is judged by, beside itself.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// How much may happen without asking.
    pub mode: Mode,
    /// The rules in force.
    pub rules: &'a Rules,
    /// The working directories, symbolic links followed.
    pub directories: &'a [PathBuf],
    /// Where the call would run: paths in commands start from it.
    pub directory: &'a Path,
    /// What `~` stands for.
    pub home: Option<&'a Path>,
    /// How commands run.
    pub confined: ConfinementLevel,
    /// Whether commands can be held to looking.
    pub wall: Wall,
    /// Whether the command asks to run outside of all that.
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
        let why = format!("{tool} could change something, and in plan mode nothing is changed. Look, and make a plan.");
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
            Decision::Ask { why: format!("{} lies outside the working directories", real.display()) }
        }
        (Access::ReadOnly | Access::Session, _) => Decision::Allow(Rights::Full),
        (Access::Changes, Subject::Path { real, .. }) if mode == Mode::AcceptEdits => {
            if inside(real, directories) {
                Decision::Allow(Rights::Full)
            } else {
                Decision::Ask { why: format!("{} lies outside the working directories", real.display()) }
            }
        }
        (Access::Changes | Access::Asks, _) => Decision::Ask { why: format!("{tool} could change something") },
    }
}

pub(super) fn inside(path: &Path, directories: &[PathBuf]) -> bool {
    directories.iter().any(|directory| path.starts_with(directory))
}
