//! Status of the sandbox on this system, found out by trying it.

use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::confinement::{Confinement, Strength};
use crate::environment::{Environment, Variables};
use crate::permission::ConfinementLevel;
use crate::process::{self, ShellContext, ShellEnd};

/// Timeout of a trial. It takes a few milliseconds.
const TRIAL: Duration = Duration::from_secs(10);

/// Status of the sandbox on this system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SandboxStatus {
    /// Every promise holds.
    Wholly,
    /// Only Landlock and the system call filter are available.
    Partly {
        /// The reason.
        why: String,
    },
    /// It is not available.
    No {
        /// The reason.
        why: String,
    },
}

impl SandboxStatus {
    /// Finds out by running a command that does nothing, confined as well as possible.
    pub async fn find_out(guard: Option<&Path>) -> Self {
        let Some(guard) = guard.filter(|_| cfg!(target_os = "linux")) else {
            return Self::No { why: "the guard program is missing".to_owned() };
        };
        match tried(guard, Strength::Namespaces).await {
            Ok(()) => Self::Wholly,
            Err(why) => match tried(guard, Strength::Landlock).await {
                Ok(()) => Self::Partly { why },
                Err(more) => Self::No { why: format!("{why}; {more}") },
            },
        }
    }

    pub(super) fn strength(&self) -> Strength {
        match self {
            Self::Wholly => Strength::Namespaces,
            Self::Partly { .. } | Self::No { .. } => Strength::Landlock,
        }
    }

    /// Degree to which commands are confined in it.
    pub fn confined(&self) -> ConfinementLevel {
        match self {
            Self::Wholly => ConfinementLevel::Wholly,
            Self::Partly { .. } => ConfinementLevel::Partly,
            Self::No { .. } => ConfinementLevel::No,
        }
    }

    /// Description of what holds and what does not, a line each.
    pub(super) fn describe(&self) -> String {
        let (head, lines): (String, &[(&str, &str)]) = match self {
            Self::Wholly => ("The sandbox is fully enforced here.".to_owned(), &WHOLLY),
            Self::Partly { why } => (
                format!("It is only partly enforced here, so you are asked about commands. No namespaces: {why}."),
                &PARTLY,
            ),
            Self::No { why } => (
                format!("It is not available here: {why}. You are asked about commands, and they run without it."),
                &[],
            ),
        };
        lines.iter().fold(format!("{head}\n"), |text, (mark, line)| text + "  " + mark + " " + line + "\n")
    }
}

const WHOLLY: [(&str, &str); 6] = [
    ("+", "files: read-only, except the working directories and the session's own /tmp"),
    ("+", "guarded paths (.git, .claude, …): read-only; new ones are reported"),
    ("+", "home: only working directories, folders with tools and paths in the settings are visible"),
    ("+", "network: only a loopback of its own, unless settings allow the whole network"),
    ("+", "sockets: no Unix sockets, unless settings allow them"),
    ("+", "processes: those outside cannot be seen, signalled or traced"),
];

const PARTLY: [(&str, &str); 8] = [
    ("+", "files: can be written only in the working directories and a folder of the session (TMPDIR, not /tmp)"),
    ("+", "home: only working directories, folders with tools and paths in the settings can be read"),
    ("+", "sockets with a path: cannot be opened"),
    ("-", "chmod, chown and timestamps of files elsewhere: as your account permits"),
    ("-", "guarded paths in working directories can be written"),
    ("-", "network: TCP is blocked from Linux 6.7 on, UDP is not"),
    ("-", "processes: all can be seen; from Linux 6.12 on those outside cannot be signalled"),
    ("-", "names of hidden files can be found out"),
];

async fn tried(guard: &Path, strength: Strength) -> Result<(), String> {
    let confinement = Confinement { strength, ..Confinement::working_in([], None) };
    trial(ShellContext {
        directory: Path::new("/"),
        environment: &Environment::default(),
        guard: Some(guard),
        confinement: Some(&confinement),
        variables: Variables::Inherited,
    })
    .await
}

/// Runs a command that does nothing; the error is the reason why it failed.
pub(crate) async fn trial(context: ShellContext<'_>) -> Result<(), String> {
    let trial = process::start("true", context).map_err(|trouble| trouble.why())?;
    let ended = trial.watch(TRIAL, &CancellationToken::new(), |_| {}).await.map_err(|trouble| trouble.why())?;
    match ended.end {
        ShellEnd::Exited(status) if status.success() => Ok(()),
        ShellEnd::Exited(status) => Err(format!("a trial run ended with {status}")),
        ShellEnd::TimedOut | ShellEnd::Cancelled => Err("a trial run did not end".to_owned()),
    }
}
