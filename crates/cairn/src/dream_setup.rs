//! From settings and environment to a dream.

pub(crate) mod past;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::Event;
use learning::dream::progress::DreamProgress;
use learning::dream::run::{Dream, Listener};
use learning::dream::schedule::{DreamSchedule, ScheduleDecision};
use learning::dream::session_dreams::SessionDreams;
use learning::dream::{DreamSite, SourcePurpose, rehearsal};
use learning::ledger::Ledger;
use session::{Home, World};
use settings::{Rhythm, Settings, keys};
use tokio_util::sync::CancellationToken;
use tools::Scope;
use transcript::window::{Window, WindowHints};

use crate::model::ChosenModel;
use crate::program_paths::ProgramPaths;
use crate::{env, memory_setup};

/// The largest beginning of a session that is read to find where it worked.
const HEAD: u64 = 64 * 1024;

/// The site of a project's dreams, if memory is on there.
pub(crate) fn site(place: &ProgramPaths, settings: &Settings) -> anyhow::Result<DreamSite> {
    let plan = memory_setup::MemorySetup::new(place, settings);
    let off = || anyhow::anyhow!("memory is off in {}", place.directory.display());
    Ok(DreamSite {
        home: place.home.clone(),
        memory: plan.directory.ok_or_else(off)?,
        project: place.directory.clone(),
        session: None,
        world: World::real(),
    })
}

/// A dream there.
pub(crate) fn dream(
    site: DreamSite,
    place: &ProgramPaths,
    settings: &Settings,
    chosen: &ChosenModel,
    ledger: Arc<Ledger>,
    listener: Listener,
    cancel: CancellationToken,
) -> anyhow::Result<Dream> {
    let scope = Scope::new(&place.directory, place.home.path().join("cairn/rehearsals"))
        .with_directories(settings.directories.clone())
        .with_home(place.user_home.clone());
    Ok(Dream {
        excluded: settings.extract.excluded(&place.base_paths())?,
        ledger,
        site,
        indexing: memory_setup::MemorySetup::new(place, settings).indexing,
        model: chosen.model.clone(),
        name: model(settings, chosen),
        window: window(settings, chosen, env::MAX_CONTEXT.number()?),
        scope,
        rules: settings.rules.clone(),
        purpose: SourcePurpose::of(settings),
        listener,
        cancel,
    })
}

/// The model that dreams: the one that is talked to, unless the settings name another. It decides what is removed.
pub(crate) fn model(settings: &Settings, chosen: &ChosenModel) -> String {
    settings.dream_model.clone().unwrap_or_else(|| chosen.name.clone())
}

/// Its window, in tokens. A window that the server or the environment tells of counts for any model there.
pub(crate) fn window(settings: &Settings, chosen: &ChosenModel, max_context_tokens: Option<u64>) -> u64 {
    let model = model(settings, chosen);
    let hints = WindowHints { model: &model, configured: chosen.window, max_context_tokens, ..WindowHints::default() };
    Window::of(&hints).size
}

/// When dreams come by themselves: never on another machine, whose memory is gone with it.
pub(crate) fn rhythm(settings: &Settings) -> Rhythm {
    let rhythm = settings.rhythm;
    Rhythm { on: rhythm.on && env::REMOTE.flag() != Some(true), ..rhythm }
}

/// Decides whether a dream is due, for a caller such as a timer. If sessions keep a daily log, none starts
/// automatically; then a dream is due when something was logged since the last one.
pub(crate) fn due(
    site: &DreamSite,
    settings: &Settings,
    gate: &mut DreamSchedule,
) -> Result<ScheduleDecision, files::Error> {
    let rhythm = rhythm(settings);
    if settings.daily_log != Some(true) {
        return site.due(gate, &rhythm);
    }
    let is_off = settings.counting(&keys::DREAM).any(|set| set.value == false);
    let on = !is_off && env::REMOTE.flag() != Some(true);
    site.due_to_distil(gate, &Rhythm { on, sessions: 1, ..rhythm })
}

/// The dreams alongside a session, if memory is on.
pub(crate) fn session_dreams(
    place: &ProgramPaths,
    settings: &Settings,
    chosen: &ChosenModel,
    session: &str,
    ledger: &Arc<Ledger>,
    listener: engine::event::Listener,
) -> Option<SessionDreams> {
    rehearsal::tidy(&place.home);
    let site = DreamSite { session: Some(session.to_owned()), ..site(place, settings).ok()? };
    let tell: Listener = Arc::new(move |progress: &DreamProgress| listener(Event::Dream(Box::new(progress.clone()))));
    let dream = dream(site, place, settings, chosen, ledger.clone(), tell, CancellationToken::new()).ok()?;
    Some(SessionDreams::new(dream, rhythm(settings)))
}

/// The projects that have memories, as far as a session tells where they are. Sessions lie by the directory they worked in,
/// memories by the repository: those of a subdirectory or a worktree tell of it too.
pub(crate) fn projects(home: &Home) -> Vec<PathBuf> {
    let below = home.path().join("projects");
    let folders: Vec<PathBuf> =
        files::list(&below).unwrap_or_default().into_iter().map(|entry| below.join(&entry.name)).collect();
    let roots: BTreeSet<PathBuf> = folders
        .iter()
        .filter_map(|folder| worked_in(folder))
        .map(|directory| memory::place::canonical_root(&directory))
        .filter(|root| root.is_dir())
        .collect();
    let has_memories = |root: &PathBuf| {
        let folder = below.join(memory::place::slug(root)).join("memory");
        files::list(folder).is_ok_and(|memories| !memories.is_empty())
    };
    roots.into_iter().filter(has_memories).collect()
}

/// The working directory of the newest session in a folder.
fn worked_in(folder: &Path) -> Option<PathBuf> {
    let mut sessions = files::list(folder).ok()?;
    sessions.retain(|entry| entry.name.to_str().is_some_and(|name| name.ends_with(".jsonl")));
    sessions.sort_by_key(|entry| std::cmp::Reverse(entry.modified));
    sessions.iter().find_map(|entry| {
        let head = files::read_range(folder.join(&entry.name), 0, HEAD).ok()?;
        let lines = head.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        lines.into_iter().find_map(|line: serde_json::Value| line["cwd"].as_str().map(PathBuf::from))
    })
}
