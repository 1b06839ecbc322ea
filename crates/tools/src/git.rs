//! Git as this program runs it itself: without hooks, confined to the repository it is about.
//!
//! It sees the repository, the system and git's configuration, changes only what it is told it may, reaches nobody and gets
//! no credentials. Where the kernel cannot hold it to that, it runs only if the repository's configuration makes it run
//! nothing else.

use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::confinement::Confinement;
use crate::environment::Environment;
use crate::permission::{git_runs_programs, repository};
use crate::program::{Program, ProgramEnd};

/// What every call of git is told: no hooks, nobody who watches files.
const QUIET: [&str; 5] = ["git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"];

/// How git is run.
#[derive(Debug, Clone)]
pub struct Git<'a> {
    /// Its variables.
    pub environment: &'a Environment,
    /// The program that is a [guard](crate::guard), if there is one.
    pub guard: Option<&'a Path>,
    /// The user's home.
    pub home: Option<&'a Path>,
    /// What it may change besides the repository's own folder; nothing at all where there is none.
    pub changes: Option<&'a Path>,
    /// What becomes of it where the repository makes git run other programs.
    pub programs: Programs,
    /// How long it may take.
    pub limit: Duration,
}

/// What becomes of git where a repository's configuration makes it run other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Programs {
    /// They run confined with it, or it does not run.
    Confined,
    /// They run as they are: the user was asked.
    Approved,
}

impl Git<'_> {
    /// Runs it, and gives what it prints, without the newline at the end; else why not.
    pub async fn run(&self, directory: &Path, arguments: &[&str]) -> Result<String, String> {
        let runs_programs = git_runs_programs(directory, self.home);
        let approved = self.programs == Programs::Approved && runs_programs.is_some();
        if let Some(confinement) = self.confinement(directory).filter(|_| !approved) {
            match self.start(directory, arguments, Some(confinement)).await {
                // There is no wall here, or no guard to build one.
                Err(GitFailure::NotStarted) => {}
                Err(GitFailure::Said(why)) => return Err(why),
                Ok(printed) => return Ok(printed),
            }
        }
        if let Some(why) = runs_programs.filter(|_| !approved) {
            return Err(why);
        }
        self.start(directory, arguments, None).await.map_err(|failure| match failure {
            GitFailure::NotStarted => "git could not be started".to_owned(),
            GitFailure::Said(why) => why,
        })
    }

    fn confinement(&self, directory: &Path) -> Option<Confinement> {
        let (root, common) = repository(directory)?;
        let writable = self.changes.map(|place| vec![common.clone(), place.to_owned()]).unwrap_or_default();
        self.guard?;
        Some(Confinement::looking_at(vec![root, common, directory.to_owned()], writable, self.home))
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
            _ => Err(GitFailure::Said(ran.err.trim().lines().last().unwrap_or("git failed").to_owned())),
        }
    }
}

/// Why git gave nothing.
enum GitFailure {
    NotStarted,
    Said(String),
}
