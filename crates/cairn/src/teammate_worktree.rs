//! The git worktree that a teammate works in, where it is to have one of its own.

use std::path::{Path, PathBuf};

use engine::agents::{Worktree, WorktreeRemains, WorktreeSite};
use session::Session;
use tools::Environment;

use crate::args::RunArgs;
use crate::env;
use crate::program_paths::ProgramPaths;

/// So much of the end of the id of a teammate's session tells its worktree from those of others with its name.
const ID: usize = 8;

/// A worktree, and how git is run for it.
pub(crate) struct TeammateWorktree {
    /// The worktree.
    pub(crate) worktree: Worktree,

    place: ProgramPaths,
    session: PathBuf,
    environment: Environment,
}

impl TeammateWorktree {
    /// Lets a session work in a worktree, where the flags say so.
    pub(crate) async fn enter(
        args: &RunArgs,
        place: &ProgramPaths,
        session: &mut Session,
        environment: &Environment,
    ) -> anyhow::Result<Option<Self>> {
        let Some(name) = args.agent_name.as_deref().filter(|_| args.in_worktree) else { return Ok(None) };
        let whole = session.id();
        let id = whole.get(whole.len().saturating_sub(ID)..).unwrap_or(whole).to_owned();
        let file = session.path().to_owned();
        let guard = env::program();
        let from = sender(place, &file, environment, guard.as_deref());
        let worktree = Worktree::enter(session, from, &format!("{name}-{id}")).await;
        let worktree = worktree.map_err(|why| anyhow::anyhow!("there is no worktree to work in: {why}"))?;
        Ok(Some(Self { worktree, place: place.clone(), session: file, environment: environment.clone() }))
    }

    /// The report that would be due if its work ended now.
    pub(crate) async fn left(&self) -> WorktreeRemains {
        let guard = env::program();
        self.worktree.left(sender(&self.place, &self.session, &self.environment, guard.as_deref())).await
    }

    /// The work has ended: one without changes goes.
    pub(crate) async fn finish(self) -> WorktreeRemains {
        let guard = env::program();
        self.worktree.finish(sender(&self.place, &self.session, &self.environment, guard.as_deref())).await
    }
}

fn sender<'a>(
    place: &'a ProgramPaths,
    session: &'a Path,
    environment: &'a Environment,
    guard: Option<&'a Path>,
) -> WorktreeSite<'a> {
    let (directory, user_home) = (place.directory.as_path(), place.user_home.as_deref());
    WorktreeSite { environment, guard, user_home, directory, session, top: session }
}
