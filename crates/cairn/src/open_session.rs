//! Opens the session of a run: a new one, or one that is resumed.

use std::path::Path;

use session::home::SessionFile;
use session::{Fork, Session, World};

use crate::args::RunArgs;
use crate::program_paths::ProgramPaths;
use crate::session_kind::{self, SessionKind};

/// The model a session that is to be resumed talked to, read before it is opened for writing.
pub(crate) fn resumed_model(args: &RunArgs, place: &ProgramPaths) -> Option<String> {
    let path = match &args.resume {
        Some(id) if id.ends_with(".jsonl") => {
            let path = files::real(place.directory.join(id)).ok()?;
            // Of a file from elsewhere nothing is believed but its text.
            let ours = path.parent() == Some(place.home.project(&place.directory).as_path());
            ours.then_some(path)?
        }
        Some(id) => place.home.find(&place.directory, id).ok()?.path,
        None if args.continue_ => newest(place).ok()??.path,
        None => return None,
    };
    let (lines, _) = session::record::lines(&path).ok()?;
    lines.into_iter().rev().find_map(|line| match line.body {
        transcript::line::Body::Prologue(prologue) => Some(prologue.model),
        _ => None,
    })
}

/// The session that flags name, and what of its file was skipped.
pub(crate) fn open_session(
    args: &RunArgs,
    place: &ProgramPaths,
) -> anyhow::Result<(Session, Vec<session::record::SkippedLine>)> {
    let world = World::real();
    let fork = if args.fork_session { Fork::Yes } else { Fork::No };
    if let Some(id) = &args.resume {
        let path = Path::new(id);
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            let path = files::real(place.directory.join(path))?;
            return Ok(Session::resume_file(&place.home, &place.directory, &path, fork, world)?);
        }
        return Ok(Session::resume(&place.home, &place.directory, id, fork, world)?);
    }
    if args.continue_ {
        let newest = newest(place)?
            .ok_or_else(|| anyhow::anyhow!("there is no session to continue in {}", place.directory.display()))?;
        return Ok(Session::resume_file(&place.home, &place.directory, &newest.path, fork, world)?);
    }
    let mut session = Session::create(&place.home, &place.directory, args.session_id.as_deref(), world)?;
    if let (Some(team), Some(name)) = (&args.team_name, &args.agent_name) {
        session.note(&SessionKind::note(team, name))?;
    }
    Ok((session, Vec::new()))
}

/// The session that a person worked in last. A teammate's goes on when it is written to, and not by itself.
fn newest(place: &ProgramPaths) -> anyhow::Result<Option<SessionFile>> {
    Ok(place
        .home
        .sessions(&place.directory)?
        .into_iter()
        .find(|session| session_kind::look(&session.path).0 == SessionKind::Person))
}
