//! Where the agents come from that a session can send out.

use std::path::PathBuf;

use anyhow::Context;
use engine::agents::{Registry, Source, Sources};
use serde_json::{Map, Value};

use crate::setup::Place;

/// The folder of definitions, in a config home and in a project's `.claude`.
const FOLDER: &str = "agents";

/// All agents there are for a session here.
pub(crate) fn registry(place: &Place, flag: Option<&str>, trusted: bool) -> anyhow::Result<Registry> {
    let flag: Option<Map<String, Value>> = flag
        .map(|text| serde_json::from_str(text).context("--agents is to be a JSON object, each agent by its name"))
        .transpose()?;
    let mut folders = vec![(Source::User, place.home.path().join(FOLDER))];
    folders.extend(projects(place).into_iter().map(|folder| (Source::Project, folder)));
    folders.extend(place.managed().into_iter().map(|folder| (Source::Policy, folder.join(".claude").join(FOLDER))));
    Ok(Registry::load(&Sources { folders, flag, trusted }))
}

/// The project's folders, from its root down to where the session works: the nearer wins.
pub(crate) fn projects(place: &Place) -> Vec<PathBuf> {
    let root = memory::place::canonical_root(&place.directory);
    let inside = |directory: &&std::path::Path| directory.starts_with(&root) || *directory == place.directory;
    let mut folders: Vec<PathBuf> = place
        .directory
        .ancestors()
        .take_while(inside)
        .map(|directory| directory.join(".claude").join(FOLDER))
        .collect();
    folders.retain(|folder| *folder != place.home.path().join(FOLDER));
    folders.reverse();
    folders
}
