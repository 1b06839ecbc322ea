//! The sources of the agents that a session can start.

use std::path::PathBuf;

use anyhow::Context;
use serde_json::{Map, Value};
use settings::agent_definitions::{Definition, DefinitionSource, DefinitionSources, DefinitionStatus, Registry};
use settings::trust::{Claim, Trust, TrustSite};
use settings::{SetValue, Settings};

use crate::plugins::LoadedPlugins;
use crate::program_paths::ProgramPaths;

/// The folder of definitions, in a config home and in a project's `.claude`.
const FOLDER: &str = "agents";

/// All agents there are for a session here.
pub(crate) fn registry(
    place: &ProgramPaths,
    settings: &Settings,
    trust: &Trust,
    plugins: &LoadedPlugins,
    flag: Option<&str>,
) -> anyhow::Result<Registry> {
    let flag: Option<Map<String, Value>> = flag
        .map(|text| serde_json::from_str(text).context("--agents must be a JSON object of agents by name"))
        .transpose()?;
    let trust = Some(trust.clone());
    Ok(Registry::load(&DefinitionSources {
        flag,
        trust,
        plugins: plugins.agents(),
        ..sources(place, settings.agents.clone())
    }))
}

/// The source of an agent, and what replaces, restricts or denies it.
pub(crate) fn source_text(agent: &Definition, replaced_by: Option<DefinitionSource>, is_denied: bool) -> String {
    let replaced = replaced_by.map(|by| format!(", replaced by the one of the {}", by.name()));
    let untrusted = if agent.standing == DefinitionStatus::Narrowed { ", not trusted" } else { "" };
    let denied = if is_denied { ", denied" } else { "" };
    format!("{}{}{untrusted}{denied}", agent.source.name(), replaced.unwrap_or_default())
}

/// Claims of the definitions in the project's folders.
pub(crate) fn claims(place: &ProgramPaths, site: &TrustSite) -> Vec<Claim> {
    settings::agent_definitions::claims(&sources(place, Vec::new()), site)
}

fn sources(place: &ProgramPaths, settings: Vec<SetValue>) -> DefinitionSources {
    let mut folders = Vec::new();
    if place.sources.user {
        folders.push((DefinitionSource::User, place.home.path().join(FOLDER)));
    }
    if place.sources.project {
        folders.extend(projects(place).into_iter().map(|folder| (DefinitionSource::Project, folder)));
    }
    folders.extend(
        place.managed().into_iter().map(|folder| (DefinitionSource::Policy, folder.join(".claude").join(FOLDER))),
    );
    DefinitionSources { settings, folders, ..DefinitionSources::default() }
}

/// The project's folders, from its root down to where the session works: the nearer wins.
pub(crate) fn projects(place: &ProgramPaths) -> Vec<PathBuf> {
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
