//! From settings and environment to a dream.

pub(crate) mod past;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::Event;
use learning::dream::Site;
use learning::dream::beside::Dreaming;
use learning::dream::progress::Progress;
use learning::dream::run::{Dream, Listener};
use learning::ledger::Ledger;
use session::{Home, World};
use settings::{Rhythm, Settings};
use tokio_util::sync::CancellationToken;
use tools::Scope;

use crate::model::Chosen;
use crate::place::Place;
use crate::{env, knowledge};

/// The largest beginning of a session that is read to find where it worked.
const HEAD: u64 = 64 * 1024;

/// Where a project's dreams are dreamt, if memory is on there.
pub(crate) fn site(place: &Place, settings: &Settings) -> anyhow::Result<Site> {
    let plan = knowledge::Plan::new(place, settings);
    let off = || anyhow::anyhow!("memory is off in {}", place.directory.display());
    Ok(Site {
        home: place.home.clone(),
        memory: plan.directory.ok_or_else(off)?,
        project: place.directory.clone(),
        session: None,
        world: World::real(),
    })
}

/// A dream there.
pub(crate) fn dream(
    site: Site,
    place: &Place,
    settings: &Settings,
    chosen: &Chosen,
    ledger: Arc<Ledger>,
    listener: Listener,
    cancel: CancellationToken,
) -> anyhow::Result<Dream> {
    let mut scope = Scope::new(&place.directory, place.home.path().join("cairn/rehearsals"))
        .with_directories(settings.directories.clone());
    if let Some(home) = &place.user_home {
        scope = scope.with_home(home.clone());
    }
    Ok(Dream {
        excluded: settings.extract.excluded(&place.ground())?,
        ledger,
        site,
        indexing: knowledge::Plan::new(place, settings).indexing,
        model: chosen.model.clone(),
        name: model(settings, chosen),
        scope,
        rules: settings.rules.clone(),
        listener,
        cancel,
    })
}

/// The model that dreams.
pub(crate) fn model(settings: &Settings, chosen: &Chosen) -> String {
    let name = settings.dream.model.clone().or_else(|| chosen.small_name(settings));
    name.unwrap_or_else(|| chosen.name.clone())
}

/// When dreams come by themselves: never on another machine, whose memory is gone with it.
pub(crate) fn rhythm(settings: &Settings) -> Rhythm {
    let rhythm = settings.rhythm();
    Rhythm { on: rhythm.on && env::REMOTE.flag() != Some(true), ..rhythm }
}

/// The dreams beside a session, if memory is on.
pub(crate) fn beside(
    place: &Place,
    settings: &Settings,
    chosen: &Chosen,
    session: &str,
    ledger: &Arc<Ledger>,
    listener: engine::event::Listener,
) -> Option<Dreaming> {
    let site = Site { session: Some(session.to_owned()), ..site(place, settings).ok()? };
    let tell: Listener = Arc::new(move |progress: &Progress| listener(Event::Dream(Box::new(progress.clone()))));
    let dream = dream(site, place, settings, chosen, ledger.clone(), tell, CancellationToken::new()).ok()?;
    Some(Dreaming::new(dream, rhythm(settings)))
}

/// The projects that have memories, as far as a session tells where they are.
pub(crate) fn projects(home: &Home) -> Vec<PathBuf> {
    let below = home.path().join("projects");
    let mut found: Vec<PathBuf> = files::list(&below)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|entry| {
            let folder = below.join(&entry.name);
            let has_memories = files::list(folder.join("memory")).is_ok_and(|memories| !memories.is_empty());
            let project = has_memories.then(|| worked_in(&folder)).flatten()?;
            let root = memory::place::canonical_root(&project);
            (root.is_dir() && memory::place::slug(&root) == entry.name.to_str()?).then_some(root)
        })
        .collect();
    found.dedup();
    found
}

/// Where the newest session of a folder worked.
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
