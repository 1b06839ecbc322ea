//! What follows from the rules in the mode the session is in.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Rules, Verdict};
use crate::tool::{Access, Subject};

/// Directories below the project whose files decide what an agent may do, or what git runs. Edits of them are asked
/// about even where edits are accepted.
const GUARDED: [&str; 3] = [".git", ".cairn", ".claude"];

/// How much may happen without asking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Looking inside the working directories; everything else is asked.
    #[default]
    Default,
    /// Also writing and editing files inside the working directories.
    AcceptEdits,
    /// Only looking; everything else is denied.
    Plan,
    /// Everything but what a rule denies or asks about.
    BypassPermissions,
}

/// Whether a call may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may.
    Allow,
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

/// Decides on one call. `directories` are the working directories with symbolic links followed.
pub fn decide(
    mode: Mode,
    access: Access,
    tool: &str,
    subject: &Subject,
    rules: &Rules,
    directories: &[PathBuf],
) -> Decision {
    let verdict = rules.decide(tool, subject);
    if let Verdict::Deny(rule) = verdict {
        return Decision::Deny { why: format!("{tool} is denied here by the permission rule `{rule}`.") };
    }
    if mode == Mode::Plan && access == Access::Changes {
        let why = format!("{tool} could change something, and in plan mode nothing is changed. Look, and make a plan.");
        return Decision::Deny { why };
    }
    if let Verdict::Ask(rule) = verdict {
        return Decision::Ask { why: format!("the permission rule `{rule}` says to ask") };
    }
    if verdict == Verdict::Allow || mode == Mode::BypassPermissions {
        return Decision::Allow;
    }
    match (access, subject) {
        (Access::ReadOnly, Subject::Path { real, .. }) if !inside(real, directories) => {
            Decision::Ask { why: format!("{} lies outside the working directories", real.display()) }
        }
        (Access::ReadOnly | Access::Session, _) => Decision::Allow,
        (Access::Changes, Subject::Path { real, .. }) if mode == Mode::AcceptEdits => {
            if !inside(real, directories) {
                Decision::Ask { why: format!("{} lies outside the working directories", real.display()) }
            } else if guarded(real, directories) {
                Decision::Ask { why: format!("{} decides what may run here", real.display()) }
            } else {
                Decision::Allow
            }
        }
        (Access::Changes, _) => Decision::Ask { why: format!("{tool} could change something") },
    }
}

fn inside(path: &Path, directories: &[PathBuf]) -> bool {
    directories.iter().any(|directory| path.starts_with(directory))
}

fn guarded(path: &Path, directories: &[PathBuf]) -> bool {
    let below = directories.iter().filter_map(|directory| path.strip_prefix(directory).ok());
    below.flat_map(Path::components).any(|part| GUARDED.iter().any(|name| part.as_os_str() == *name))
}
