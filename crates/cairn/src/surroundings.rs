//! Where the program runs, as the model is told: the system and its version, the user's shell, and git's status.
//!
//! Git runs programs that a repository's configuration names. Where it does more than look, it is not asked.

use std::time::Duration;

use engine::prompt::{Changes, Surroundings, is_name};
use tokio_util::sync::CancellationToken;
use tools::Environment;
use tools::permission::git_runs_programs;
use tools::program::{Ended, Program};

use crate::env;
use crate::setup::Place;

/// A session starts without git's status where that takes longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Looks around.
pub(crate) async fn look(place: &Place, environment: &Environment) -> Surroundings {
    let kernel = rustix::system::uname();
    let told = [kernel.sysname(), kernel.release(), kernel.machine()].map(|part| part.to_string_lossy().into_owned());
    let shell = env::SHELL.get().and_then(|shell| shell.rsplit('/').next().map(str::to_owned));
    Surroundings {
        system: told.join(" "),
        shell: shell.filter(|shell| is_name(shell)),
        changes: changes(place, environment).await,
    }
}

/// What git says of the working tree; none where there is no repository, or git would run something else.
async fn changes(place: &Place, environment: &Environment) -> Option<Changes> {
    let is_repository = !engine::home::git_branch(&place.directory).is_empty();
    if !is_repository || git_runs_programs(&place.directory, place.user_home.as_deref()).is_some() {
        return None;
    }
    let given = [("GIT_OPTIONAL_LOCKS".to_owned(), "0".to_owned())].into();
    let guard = env::program();
    let status = Program {
        words: ["git", "-c", "core.fsmonitor=false", "status", "--porcelain"].map(str::to_owned).to_vec(),
        input: String::new(),
        directory: &place.directory,
        environment: &Environment { given, hidden: environment.hidden.clone() },
        guard: guard.as_deref(),
        limit: PATIENCE,
    };
    let ran = status.run(&CancellationToken::new()).await.ok()?;
    (ran.end == Ended::Exited(0)).then(|| Changes::of(&ran.out))
}
