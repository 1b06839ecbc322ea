//! Facts about the system for the model: its name and version, the user's shell, and git's status.
//!
//! Git runs programs that a repository's configuration names: it is confined, or not run.

use std::time::Duration;

use engine::prompt::{Changes, SystemFacts, is_name};
use tools::Environment;
use tools::git::{Git, Programs};

use crate::env;
use crate::program_paths::ProgramPaths;

/// A session starts without git's status where that takes longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Looks around.
pub(crate) async fn look(place: &ProgramPaths, environment: &Environment) -> SystemFacts {
    let kernel = rustix::system::uname();
    let told = [kernel.sysname(), kernel.release(), kernel.machine()].map(|part| part.to_string_lossy().into_owned());
    let shell = env::SHELL.get().and_then(|shell| shell.rsplit('/').next().map(str::to_owned));
    SystemFacts {
        system: told.join(" "),
        shell: shell.filter(|shell| is_name(shell)),
        changes: changes(place, environment).await,
    }
}

/// Git's status of the working tree; none if there is no repository, or git would run something else.
async fn changes(place: &ProgramPaths, environment: &Environment) -> Option<Changes> {
    let is_repository = !session::home::git_branch(&place.directory).is_empty();
    if !is_repository {
        return None;
    }
    let guard = env::program();
    let git = Git {
        environment,
        guard: guard.as_deref(),
        home: place.user_home.as_deref(),
        changes: None,
        programs: Programs::Confined,
        limit: PATIENCE,
    };
    let status = git.run(&place.directory, &["--no-optional-locks", "status", "--porcelain"]).await.ok()?;
    Some(Changes::of(&status))
}
