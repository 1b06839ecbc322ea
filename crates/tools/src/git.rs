//! Git as run by this program itself: without hooks, confined to the repository.
//!
//! It sees the repository, the system and git's configuration, changes only what it is allowed to, has no network and
//! gets no credentials. If the kernel cannot enforce that, git runs only if the repository's configuration makes it run
//! nothing else.

use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::confinement::Confinement;
use crate::environment::Environment;
use crate::permission::{git_runs_programs, repository};
use crate::program::{Program, ProgramEnd};

/// Arguments of every git call: no hooks, no file monitor.
const QUIET: [&str; 5] = ["git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"];

/// Options for running git.
#[derive(Debug, Clone)]
pub struct Git<'a> {
    /// Its environment variables.
    pub environment: &'a Environment,
    /// The [guard](crate::guard) program, if there is one.
    pub guard: Option<&'a Path>,
    /// The user's home.
    pub home: Option<&'a Path>,
    /// A folder it may change besides the repository's own; if `None`, it may change nothing at all.
    pub changes: Option<&'a Path>,
    /// Handling of a repository that makes git run other programs.
    pub programs: Programs,
    /// Timeout.
    pub limit: Duration,
}

/// Handling of a repository whose configuration makes git run other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Programs {
    /// They run confined with it, or it does not run.
    Confined,
    /// They run unconfined: the user was asked.
    Approved,
}

impl Git<'_> {
    /// Runs git and returns its output without the final newline, or the reason for the failure.
    pub async fn run(&self, directory: &Path, arguments: &[&str]) -> Result<String, String> {
        let runs_programs = git_runs_programs(directory, self.home);
        let approved = self.programs == Programs::Approved && runs_programs.is_some();
        if let Some(confinement) = self.confinement(directory).filter(|_| !approved) {
            match self.start(directory, arguments, Some(confinement)).await {
                // There is no wall here, or no guard to build one.
                Err(GitFailure::NotStarted) => {}
                Err(GitFailure::Failed(why)) => return Err(why),
                Ok(printed) => return Ok(printed),
            }
        }
        if let Some(why) = runs_programs.filter(|_| !approved) {
            return Err(why);
        }
        self.start(directory, arguments, None).await.map_err(|failure| match failure {
            GitFailure::NotStarted => "git could not be started".to_owned(),
            GitFailure::Failed(why) => why,
        })
    }

    fn confinement(&self, directory: &Path) -> Option<Confinement> {
        let (root, common) = repository(directory)?;
        let writable = self.changes.map(|place| vec![common.clone(), place.to_owned()]).unwrap_or_default();
        self.guard?;
        Some(Confinement::read_only(vec![root, common, directory.to_owned()], writable, self.home))
    }

    async fn start(
        &self,
        directory: &Path,
        arguments: &[&str],
        confinement: Option<Confinement>,
    ) -> Result<String, GitFailure> {
        let words = QUIET.iter().chain(arguments).map(|word| (*word).to_owned()).collect();
        let (environment, guard, limit) = (self.environment, self.guard, self.limit);
        let program = Program { words, input: String::new(), directory, environment, guard, confinement, limit };
        let ran = program.run(&CancellationToken::new()).await.map_err(|_| GitFailure::NotStarted)?;
        match ran.end {
            ProgramEnd::Exited(0) => Ok(ran.out.trim_end().to_owned()),
            _ => Err(GitFailure::Failed(ran.err.trim().lines().last().unwrap_or("git failed").to_owned())),
        }
    }
}

/// Reason why git failed.
enum GitFailure {
    NotStarted,
    Failed(String),
}
